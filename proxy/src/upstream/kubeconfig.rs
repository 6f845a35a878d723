//! Where an API server is and how it is verified, from a kubeconfig. Of it only the cluster is used:
//! a forwarded request carries the client's own credential.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use http::{Uri, uri::Authority};
use kube::config::{Cluster, Kubeconfig, KubeconfigError};
use rustls::pki_types::{
    CertificateDer, ServerName,
    pem::{self, PemObject},
};

use super::tls::{self, Target};

/// One API server as configured.
pub struct Endpoint {
    /// The cluster's name, as the ring knows it.
    pub name: String,
    /// A path in front of every request's path; empty for most servers.
    pub base_path: String,
    pub(super) target: Arc<Target>,
}

/// Why a kubeconfig cannot be used. The file is at fault.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// Not a kubeconfig.
    #[error("{0}")]
    Kubeconfig(#[from] KubeconfigError),
    /// The context names no cluster.
    #[error("current-context must name a context whose cluster is in the file")]
    NoCluster,
    /// Not `https://host[:port][/path]`.
    #[error("server must be https://HOST[:PORT], found {0:?}")]
    Server(String),
    /// Shoal never talks to a server that it cannot verify.
    #[error("insecure-skip-tls-verify is not supported: give certificate-authority-data")]
    Insecure,
    /// No authority to verify the server with.
    #[error("certificate-authority or certificate-authority-data is needed to verify the server")]
    NoAuthority,
    /// The authority is not PEM.
    #[error("the certificate authority is not PEM: {0}")]
    Pem(#[from] pem::Error),
    /// The authority cannot be trusted.
    #[error("the certificate authority is not usable: {0}")]
    Tls(#[from] rustls::Error),
    /// The authority's file cannot be read.
    #[error("cannot read {0}: {1}")]
    Read(PathBuf, std::io::Error),
}

// === impl Endpoint ===

impl Endpoint {
    /// Reads the cluster of the current context.
    pub fn from_kubeconfig(name: &str, path: &Path) -> Result<Self, EndpointError> {
        let file = Kubeconfig::read_from(path)?;
        let cluster = current_cluster(&file).ok_or(EndpointError::NoCluster)?;
        let server = cluster.server.clone().unwrap_or_default();
        let uri: Uri = server.parse().map_err(|_| EndpointError::Server(server.clone()))?;
        let authority = match (uri.scheme_str(), uri.authority()) {
            (Some("https"), Some(authority)) => authority.clone(),
            _ => return Err(EndpointError::Server(server)),
        };
        let target = target(cluster, authority, path)?;
        let base_path = uri.path().trim_end_matches('/').to_owned();
        Ok(Self { name: name.to_owned(), base_path, target: Arc::new(target) })
    }

    /// Host and port of the server.
    pub fn authority(&self) -> &Authority {
        &self.target.authority
    }
}

fn current_cluster(file: &Kubeconfig) -> Option<&Cluster> {
    let context =
        file.contexts.iter().find(|context| Some(&context.name) == file.current_context.as_ref())?;
    let wanted = &context.context.as_ref()?.cluster;
    file.clusters.iter().find(|cluster| cluster.name == *wanted)?.cluster.as_ref()
}

fn target(cluster: &Cluster, authority: Authority, path: &Path) -> Result<Target, EndpointError> {
    if cluster.insecure_skip_tls_verify == Some(true) {
        return Err(EndpointError::Insecure);
    }
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    let name = cluster.tls_server_name.as_deref().unwrap_or(host).to_owned();
    let server_name = ServerName::try_from(name).map_err(|_| EndpointError::Server(authority.to_string()))?;
    let connector = tls::connector(authorities(cluster, path)?)?;
    Ok(Target { authority, server_name, connector })
}

fn authorities(cluster: &Cluster, path: &Path) -> Result<Vec<CertificateDer<'static>>, EndpointError> {
    let pem = match (&cluster.certificate_authority_data, &cluster.certificate_authority) {
        (Some(data), _) => base64_decode(data)?,
        (None, Some(file)) => read_beside(path, Path::new(file))?,
        (None, None) => return Err(EndpointError::NoAuthority),
    };
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&pem).collect::<Result<_, _>>()?;
    if certificates.is_empty() { Err(EndpointError::NoAuthority) } else { Ok(certificates) }
}

/// Relative paths of a kubeconfig start at its own folder, as in kubectl.
fn read_beside(kubeconfig: &Path, file: &Path) -> Result<Vec<u8>, EndpointError> {
    let path = kubeconfig.parent().map_or_else(|| file.to_owned(), |folder| folder.join(file));
    std::fs::read(&path).map_err(|error| EndpointError::Read(path, error))
}

fn base64_decode(data: &str) -> Result<Vec<u8>, EndpointError> {
    use base64::{Engine, prelude::BASE64_STANDARD};
    BASE64_STANDARD.decode(data.trim()).map_err(|_| EndpointError::NoAuthority)
}
