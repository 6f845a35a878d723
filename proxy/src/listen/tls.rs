//! The listener's own certificate authority. Controllers trust it through `ca.crt`; it is kept
//! beside its key, so that a restart of the proxy alone changes nothing for them.

use std::{
    fs, io,
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio_rustls::TlsAcceptor;

/// The names that a controller may know its API server by.
const NAMES: [&str; 4] = ["127.0.0.1", "::1", "localhost", "kubernetes.default.svc"];
/// What controllers are given to trust.
const CA_CERTIFICATE: &str = "ca.crt";
/// Readable by the proxy only.
const CA_KEY: &str = "ca.key";
/// The authority's name.
const CA_NAME: &str = "shoal-proxy";
/// The serving certificate's. OpenSSL takes a certificate for self-signed if it has its issuer's name.
const SERVING_NAME: &str = "shoal-proxy listener";

/// Why the listener has no certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The folder cannot be used.
    #[error("{}: {}", .0.display(), .1)]
    Io(PathBuf, io::Error),
    /// The authority in the folder is damaged, or one cannot be made.
    #[error("certificate authority: {0}; remove ca.crt and ca.key to have a new one made")]
    Authority(String),
    /// The certificate cannot be served.
    #[error("serving certificate: {0}")]
    Serving(#[from] rustls::Error),
}

/// Reads or makes the authority in `folder`, and a serving certificate by it.
pub fn acceptor(folder: &Path) -> Result<TlsAcceptor, CertificateError> {
    let authority = Authority::in_folder(folder)?;
    let key = KeyPair::generate()?;
    let certificate = serving_params()?.signed_by(&key, &authority.issuer)?;
    let key = PrivateKeyDer::try_from(key.serialize_der())
        .map_err(|error| CertificateError::Authority(error.to_owned()))?;
    let chain = vec![certificate.der().clone(), authority.certificate];
    let mut config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

struct Authority {
    certificate: CertificateDer<'static>,
    issuer: rcgen::Issuer<'static, KeyPair>,
}

// === impl CertificateError ===

impl From<rcgen::Error> for CertificateError {
    fn from(error: rcgen::Error) -> Self {
        Self::Authority(error.to_string())
    }
}

// === impl Authority ===

impl Authority {
    fn in_folder(folder: &Path) -> Result<Self, CertificateError> {
        let (certificate, key) = (folder.join(CA_CERTIFICATE), folder.join(CA_KEY));
        match (fs::read_to_string(&certificate), fs::read_to_string(&key)) {
            (Ok(certificate), Ok(key)) => Self::load(&certificate, &key),
            (Err(error), _) if error.kind() != io::ErrorKind::NotFound => {
                Err(CertificateError::Io(certificate, error))
            }
            (_, Err(error)) if error.kind() != io::ErrorKind::NotFound => {
                Err(CertificateError::Io(key, error))
            }
            _ => Self::make(folder, &certificate, &key),
        }
    }

    fn load(certificate: &str, key: &str) -> Result<Self, CertificateError> {
        let der = CertificateDer::from_pem_slice(certificate.as_bytes())
            .map_err(|error| CertificateError::Authority(format!("ca.crt: {error}")))?;
        let issuer = rcgen::Issuer::new(authority_params(), KeyPair::from_pem(key)?);
        Ok(Self { certificate: der, issuer })
    }

    /// The key is written first, so that a `ca.crt` never appears without it.
    fn make(folder: &Path, certificate: &Path, key: &Path) -> Result<Self, CertificateError> {
        fs::create_dir_all(folder).map_err(|error| CertificateError::Io(folder.to_owned(), error))?;
        let issuer = CertifiedIssuer::self_signed(authority_params(), KeyPair::generate()?)?;
        write(key, &issuer.key().serialize_pem(), 0o600)?;
        write(certificate, &issuer.pem(), 0o644)?;
        Self::load(&issuer.pem(), &issuer.key().serialize_pem())
    }
}

fn authority_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    params.distinguished_name.push(DnType::CommonName, CA_NAME);
    params
}

fn serving_params() -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(NAMES.map(str::to_owned))?;
    params.distinguished_name.push(DnType::CommonName, SERVING_NAME);
    // OpenSSL's strict mode, which is Python's default, asks for it.
    params.use_authority_key_identifier_extension = true;
    params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
    Ok(params)
}

fn write(path: &Path, text: &str, mode: u32) -> Result<(), CertificateError> {
    let failed = |error| CertificateError::Io(path.to_owned(), error);
    let mut options = fs::OpenOptions::new();
    let mut file = options.create(true).truncate(true).write(true).mode(mode).open(path).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_restart_keeps_the_authority() {
        let folder = tempfile::tempdir().unwrap();
        acceptor(folder.path()).unwrap();
        let first = fs::read(folder.path().join(CA_CERTIFICATE)).unwrap();
        acceptor(folder.path()).unwrap();
        assert_eq!(fs::read(folder.path().join(CA_CERTIFICATE)).unwrap(), first);
    }

    #[test]
    fn a_strict_client_tells_the_certificate_from_its_authority() {
        let (serving, authority) = (serving_params().unwrap(), authority_params());
        assert_ne!(serving.distinguished_name, authority.distinguished_name);
        assert!(serving.use_authority_key_identifier_extension);
    }

    #[test]
    fn only_the_proxy_reads_the_key() {
        let folder = tempfile::tempdir().unwrap();
        acceptor(folder.path()).unwrap();
        let mode = fs::metadata(folder.path().join(CA_KEY)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_damaged_authority_is_an_error_and_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        acceptor(folder.path()).unwrap();
        fs::write(folder.path().join(CA_KEY), "garbage").unwrap();
        let error = acceptor(folder.path()).err().unwrap().to_string();
        assert!(error.contains("remove ca.crt and ca.key"), "{error}");
    }
}
