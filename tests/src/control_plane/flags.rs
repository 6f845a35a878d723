//! The command lines of etcd and kube-apiserver.

use std::path::Path;

use super::{Options, Ports};
use crate::pki::Pki;

/// In the control plane's folder.
pub(super) const AUDIT_LOG: &str = "audit.log";
/// In the control plane's folder.
pub(super) const ETCD_DATA: &str = "etcd-data";

/// Cluster IPs; pods get theirs from kwok's range.
const SERVICE_CIDR: &str = "10.96.0.0/16";

/// Nothing in it outlives the test, so it need not reach the disk.
pub(super) fn etcd(dir: &Path, ports: &Ports) -> Vec<String> {
    let client = format!("http://127.0.0.1:{}", ports.etcd.number());
    let peer = format!("http://127.0.0.1:{}", ports.etcd_peer.number());
    vec![
        format!("--data-dir={}", dir.join(ETCD_DATA).display()),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
        "--unsafe-no-fsync".to_owned(),
    ]
}

pub(super) fn apiserver(dir: &Path, ports: &Ports, pki: &Pki, options: &Options) -> Vec<String> {
    let mut args = serving(ports, pki);
    args.extend(identity(dir, pki));
    args.push(format!("--authorization-mode={}", options.authorization));
    args.extend(audit(dir));
    args.extend(options.flags.iter().cloned());
    if !options.feature_gates.is_empty() {
        args.push(format!("--feature-gates={}", options.feature_gates.join(",")));
    }
    args
}

fn serving(ports: &Ports, pki: &Pki) -> Vec<String> {
    vec![
        format!("--etcd-servers=http://127.0.0.1:{}", ports.etcd.number()),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={}", ports.apiserver.number()),
        format!("--tls-cert-file={}", pki.cert.display()),
        format!("--tls-private-key-file={}", pki.key.display()),
        format!("--client-ca-file={}", pki.ca.display()),
        format!("--service-cluster-ip-range={SERVICE_CIDR}"),
        // A loopback address is no valid endpoint of the service `kubernetes`.
        "--endpoint-reconciler-type=none".to_owned(),
        "--allow-privileged=true".to_owned(),
    ]
}

fn identity(dir: &Path, pki: &Pki) -> Vec<String> {
    vec![
        format!("--token-auth-file={}", dir.join("tokens.csv").display()),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-key-file={}", pki.service_account_pub.display()),
        format!("--service-account-signing-key-file={}", pki.service_account_key.display()),
        format!("--kubelet-client-certificate={}", pki.kubelet_client_cert.display()),
        format!("--kubelet-client-key={}", pki.kubelet_client_key.display()),
    ]
}

/// Blocking and without rotation: an answer that a client has seen is in the log, and the log is whole.
fn audit(dir: &Path) -> Vec<String> {
    vec![
        format!("--audit-policy-file={}", dir.join("audit-policy.yaml").display()),
        format!("--audit-log-path={}", dir.join(AUDIT_LOG).display()),
        "--audit-log-mode=blocking".to_owned(),
        "--audit-log-maxsize=0".to_owned(),
    ]
}
