//! Where an API server is and how it is verified, from a kubeconfig. Of it only the cluster is used:
//! a forwarded request carries the client's own credential.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use base64::{Engine, prelude::BASE64_STANDARD};
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
    /// The file cannot be found or read.
    #[error("{0}")]
    File(KubeconfigError),
    /// Not a kubeconfig. The decoder's own words quote the file, which holds credentials.
    #[error("not a kubeconfig: its YAML or one of its fields is malformed")]
    Malformed,
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
        let file = Kubeconfig::read_from(path).map_err(EndpointError::reading)?;
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

// === impl EndpointError ===

impl EndpointError {
    fn reading(error: KubeconfigError) -> Self {
        match error {
            KubeconfigError::Parse(_) => Self::Malformed,
            other => Self::File(other),
        }
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
    BASE64_STANDARD.decode(data.trim()).map_err(|_| EndpointError::NoAuthority)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kubeconfig(cluster: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
             contexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n\
             clusters: [{{name: k, cluster: {{{cluster}}}}}]\n\
             users: [{{name: u, user: {{token: s3cret}}}}]\n"
        )
    }

    /// A kubeconfig with a real authority beside it.
    fn read(text: &str) -> Result<Endpoint, EndpointError> {
        let folder = tempfile::tempdir().unwrap();
        let authority = rcgen::generate_simple_self_signed(vec!["a".to_owned()]).unwrap();
        std::fs::write(folder.path().join("ca.crt"), authority.cert.pem()).unwrap();
        std::fs::write(folder.path().join("kubeconfig"), text).unwrap();
        Endpoint::from_kubeconfig("hub", &folder.path().join("kubeconfig"))
    }

    fn error(text: &str) -> String {
        read(text).err().unwrap().to_string()
    }

    #[test]
    fn the_server_may_have_a_path_and_the_authority_lies_beside_the_file() {
        let endpoint =
            read(&kubeconfig("server: 'https://[::1]:6443/k8s/c-1/', certificate-authority: ca.crt"));
        let endpoint = endpoint.unwrap();
        assert_eq!((endpoint.authority().as_str(), endpoint.base_path.as_str()), ("[::1]:6443", "/k8s/c-1"));
    }

    #[test]
    fn what_cannot_be_verified_is_refused() {
        let insecure = "server: 'https://a', insecure-skip-tls-verify: true";
        assert!(error(&kubeconfig(insecure)).contains("not supported"));
        assert!(error(&kubeconfig("server: 'https://a'")).contains("is needed"));
        assert!(
            error(&kubeconfig("server: 'http://a', certificate-authority: ca.crt")).contains("https://HOST")
        );
        assert!(error(&kubeconfig("server: 'https://a', certificate-authority: gone")).contains("gone"));
        assert!(
            error(&kubeconfig("server: 'https://a'").replace("cluster: k", "cluster: x"))
                .contains("current-context")
        );
    }

    /// Whatever is wrong with the file, its credentials never reach a log.
    #[test]
    fn no_error_quotes_the_file() {
        let good = kubeconfig("server: 'https://a', certificate-authority: ca.crt");
        for broken in [
            good.replace("token: s3cret", "token: s3cret: x"),
            good.replace("{token: s3cret}", "{token: [s3cret]}"),
            good.replace("users: [", "users: [s3cret, "),
            format!("{good}  - s3cret\n :"),
        ] {
            let error = error(&broken);
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
