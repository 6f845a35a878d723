//! Stock controllers: kube-controller-manager with chosen controllers, and kube-scheduler.

use std::path::Path;

use crate::ports::Port;
use crate::{ControlPlane, HarnessError, Process, User};

/// Controllers that run once, straight at the API server, beside a ring.
///
/// Their work is keyed by nodes or by the whole cluster, not by a namespace: a node-lifecycle-controller that sees
/// the Leases of one shard only marks all other nodes dead. Without it new nodes keep their not-ready taint. The
/// publisher writes the CA of its own kubeconfig, which behind a proxy is the proxy's.
pub const SINGLETONS: [&str; 4] = [
    "node-lifecycle-controller",
    "taint-eviction-controller",
    "pod-garbage-collector-controller",
    "root-ca-certificate-publisher-controller",
];

/// Controllers that run as a ring, sharded by namespace; each was seen to work so.
///
/// The namespace controller deletes all that a namespace holds, so whole namespaces stay together.
pub const RING: [&str; 11] = [
    "deployment-controller",
    "replicaset-controller",
    "statefulset-controller",
    "daemonset-controller",
    "job-controller",
    "cronjob-controller",
    "endpoints-controller",
    "endpointslice-controller",
    "serviceaccount-controller",
    "garbage-collector-controller",
    "namespace-controller",
];

/// Whom the audit log knows the [`RING`] as: the user it logs in as and the service accounts of its controllers
/// (kubernetes `pkg/controller` and `cmd/kube-controller-manager/names`).
pub const RING_WRITERS: [&str; 12] = [
    "system:kube-controller-manager",
    "system:serviceaccount:kube-system:deployment-controller",
    "system:serviceaccount:kube-system:replicaset-controller",
    "system:serviceaccount:kube-system:statefulset-controller",
    "system:serviceaccount:kube-system:daemon-set-controller",
    "system:serviceaccount:kube-system:job-controller",
    "system:serviceaccount:kube-system:cronjob-controller",
    "system:serviceaccount:kube-system:endpoint-controller",
    "system:serviceaccount:kube-system:endpointslice-controller",
    "system:serviceaccount:kube-system:service-account-controller",
    "system:serviceaccount:kube-system:generic-garbage-collector",
    "system:serviceaccount:kube-system:namespace-controller",
];

/// Client-side rate of the controllers; their own default (20 a second) makes tests wait.
pub(crate) const QPS_FLAGS: [&str; 2] = ["--kube-api-qps=500", "--kube-api-burst=1000"];

/// Leader election, in whole seconds; the defaults are those of kube-controller-manager.
#[derive(Debug, Clone, Copy)]
pub struct Election {
    /// A leader that has not renewed for so long may be replaced.
    pub lease_s: u32,
    /// A leader that could not renew for so long gives up; less than `lease_s`.
    pub renew_s: u32,
    /// Between two tries.
    pub retry_s: u32,
}

/// How a kube-controller-manager is to run.
#[derive(Debug, Clone, Copy)]
pub struct ControllerManager<'a> {
    /// Its name in this run, and its log's.
    pub name: &'a str,
    /// Names of controllers, [`RING`] for example.
    pub controllers: &'a [&'a str],
    /// Whom it talks to: the API server or a proxy.
    pub kubeconfig: &'a Path,
    /// Its election, or none.
    pub election: Option<Election>,
    /// More flags; a flag given twice counts as given last.
    pub flags: &'a [String],
}

/// A running controller. Dropping it ends it.
#[derive(Debug)]
pub struct Controller {
    process: Process,
    url: String,
    _port: Port,
}

// === impl Election ===

impl Default for Election {
    fn default() -> Self {
        Self { lease_s: 15, renew_s: 10, retry_s: 2 }
    }
}

impl Election {
    pub(crate) fn flags(option: Option<Self>) -> Vec<String> {
        let Some(Self { lease_s, renew_s, retry_s }) = option else {
            return vec!["--leader-elect=false".to_owned()];
        };
        vec![
            "--leader-elect=true".to_owned(),
            format!("--leader-elect-lease-duration={lease_s}s"),
            format!("--leader-elect-renew-deadline={renew_s}s"),
            format!("--leader-elect-retry-period={retry_s}s"),
        ]
    }
}

// === impl ControllerManager ===

impl ControllerManager<'_> {
    /// Starts it; it is ready when its health endpoint answers, which says nothing about its election.
    pub async fn start(self, plane: &ControlPlane) -> Result<Controller, HarnessError> {
        let mut args = vec![
            format!("--controllers={}", self.controllers.join(",")),
            "--use-service-account-credentials=true".to_owned(),
            format!("--root-ca-file={}", plane.pki().ca.display()),
        ];
        args.extend(Election::flags(self.election));
        let port = Port::reserve()?;
        args.extend(common(plane, self.kubeconfig, &port));
        args.extend(self.flags.iter().cloned());
        Controller::start(plane, self.name, "kube-controller-manager", &args, port).await
    }
}

// === impl Controller ===

impl Controller {
    /// kube-scheduler, straight at the API server, without election.
    pub async fn scheduler(plane: &ControlPlane) -> Result<Self, HarnessError> {
        let port = Port::reserve()?;
        let mut args = common(plane, &plane.kubeconfig(&User::SCHEDULER)?, &port);
        args.extend(Election::flags(None));
        Self::start(plane, "kube-scheduler", "kube-scheduler", &args, port).await
    }

    async fn start(
        plane: &ControlPlane,
        name: &str,
        program: &str,
        args: &[String],
        port: Port,
    ) -> Result<Self, HarnessError> {
        let process = plane.spawn(name, program, args)?;
        let url = format!("https://127.0.0.1:{}", port.number());
        plane.probe(&url, "/healthz").ready(&process).await?;
        Ok(Self { process, url, _port: port })
    }

    /// Its process.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Its process, to end it.
    pub fn process_mut(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Its own endpoint (`/healthz`, `/metrics`), served with the control plane's certificate.
    pub fn url(&self) -> &str {
        &self.url
    }
}

/// What kube-controller-manager and kube-scheduler share.
fn common(plane: &ControlPlane, kubeconfig: &Path, port: &Port) -> Vec<String> {
    let mut flags = vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={}", port.number()),
        format!("--tls-cert-file={}", plane.pki().cert.display()),
        format!("--tls-private-key-file={}", plane.pki().key.display()),
    ];
    flags.extend(QPS_FLAGS.map(str::to_owned));
    flags
}
