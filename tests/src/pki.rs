//! The certificates of one control plane: an authority of its own, one serving certificate, one for the API server as a
//! client of kubelets, a key for service accounts.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};

use crate::HarnessError;

/// The names that every program of the control plane serves under.
const SERVING_NAMES: [&str; 4] = ["127.0.0.1", "::1", "localhost", "kubernetes.default.svc"];

/// Paths of PEM files, as the programs' flags want them.
#[derive(Debug, Clone)]
pub struct Pki {
    /// The authority's certificate.
    pub ca: PathBuf,
    /// The serving certificate of all programs of the control plane.
    pub cert: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// What the API server shows to kubelets, which take no token from it.
    pub kubelet_client_cert: PathBuf,
    /// Its key.
    pub kubelet_client_key: PathBuf,
    /// The key that signs service account tokens.
    pub service_account_key: PathBuf,
    /// Its public half.
    pub service_account_pub: PathBuf,
}

// === impl Pki ===

impl Pki {
    /// Makes all keys and certificates new and writes them into `dir`.
    pub fn create(dir: &Path) -> Result<Self, HarnessError> {
        fs::create_dir_all(dir).map_err(HarnessError::io("make", dir))?;
        let ca = authority()?;
        let key = KeyPair::generate()?;
        let cert = serving_params()?.signed_by(&key, &ca)?;
        let client_key = KeyPair::generate()?;
        let client_cert = kubelet_client_params().signed_by(&client_key, &ca)?;
        let service_account = KeyPair::generate()?;
        let write = |name: &str, pem: String| write(dir.join(name), &pem);
        Ok(Self {
            ca: write("ca.crt", ca.pem())?,
            cert: write("serving.crt", cert.pem())?,
            key: write("serving.key", key.serialize_pem())?,
            kubelet_client_cert: write("kubelet-client.crt", client_cert.pem())?,
            kubelet_client_key: write("kubelet-client.key", client_key.serialize_pem())?,
            service_account_key: write("service-account.key", service_account.serialize_pem())?,
            service_account_pub: write("service-account.pub", service_account.public_key_pem())?,
        })
    }
}

fn authority() -> Result<CertifiedIssuer<'static, KeyPair>, HarnessError> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "shoal-tests");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(CertifiedIssuer::self_signed(params, KeyPair::generate()?)?)
}

fn serving_params() -> Result<CertificateParams, HarnessError> {
    let mut params = CertificateParams::new(SERVING_NAMES.map(str::to_owned))?;
    params.distinguished_name.push(DnType::CommonName, "control-plane");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    Ok(params)
}

/// In the group that may do everything, also to kubelets.
fn kubelet_client_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
    params.distinguished_name.push(DnType::OrganizationName, "system:masters");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params
}

fn write(path: PathBuf, pem: &str) -> Result<PathBuf, HarnessError> {
    fs::write(&path, pem).map_err(HarnessError::io("write", &path))?;
    Ok(path)
}
