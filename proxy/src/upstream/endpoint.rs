//! Where an API server is, how it is verified, and whose credential may be used there. Plain data,
//! read from files again and again, so that a rotation is seen.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderValue, Uri, uri::Authority};
use kube::config::{AuthInfo, Cluster, Kubeconfig, KubeconfigError};
use rustls::pki_types::ServerName;
use secrecy::ExposeSecret;

/// Where a pod finds its own cluster's authority and its own token (kubernetes `rest.InClusterConfig`).
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Where an endpoint is written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A kubeconfig's current context.
    Kubeconfig(PathBuf),
    /// The cluster that this pod runs in, at `KUBERNETES_SERVICE_HOST:KUBERNETES_SERVICE_PORT`.
    InCluster(Authority),
}

/// One API server as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Host and port.
    pub authority: Authority,
    /// A path in front of every request's path; empty for most servers.
    pub base_path: String,
    /// The name that the server's certificate must carry.
    pub server_name: ServerName<'static>,
    /// The certificates of the authorities that may have signed it, PEM.
    pub authorities: Vec<u8>,
    /// The user's own credential; used only where the proxy forwards with its own identity.
    pub credential: Option<Credential>,
}

/// A bearer token, as a header that no log shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential(HeaderValue);

/// Why an endpoint cannot be used. Its file is at fault.
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
    /// The authority or the token is elsewhere and cannot be read.
    #[error("cannot read {}: {}", .0.display(), .1)]
    Read(PathBuf, io::Error),
    /// A token that cannot stand in a header.
    #[error("the user's token is not visible ASCII")]
    Token,
}

// === impl Source ===

impl Source {
    /// Reads the endpoint as it is written down now.
    pub fn read(&self) -> Result<Endpoint, EndpointError> {
        match self {
            Self::Kubeconfig(path) => from_kubeconfig(path),
            Self::InCluster(authority) => in_cluster(authority.clone(), Path::new(SERVICE_ACCOUNT)),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kubeconfig(path) => path.display().fmt(f),
            Self::InCluster(_) => f.write_str("in-cluster"),
        }
    }
}

// === impl Credential ===

impl Credential {
    /// The credential that a bearer token is.
    pub fn bearer(token: &str) -> Result<Self, EndpointError> {
        let mut value =
            HeaderValue::from_str(&format!("Bearer {}", token.trim())).map_err(|_| EndpointError::Token)?;
        value.set_sensitive(true);
        Ok(Self(value))
    }

    /// The `Authorization` header.
    pub fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential(..)")
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

fn from_kubeconfig(path: &Path) -> Result<Endpoint, EndpointError> {
    let file = Kubeconfig::read_from(path).map_err(EndpointError::reading)?;
    let (cluster, user) = current(&file).ok_or(EndpointError::NoCluster)?;
    if cluster.insecure_skip_tls_verify == Some(true) {
        return Err(EndpointError::Insecure);
    }
    let (authority, base_path) = address(cluster)?;
    let name = cluster.tls_server_name.as_deref().unwrap_or_else(|| host(&authority));
    Ok(Endpoint {
        server_name: server_name(name)?,
        authorities: authorities(cluster, path)?,
        credential: user.map(|user| credential(user, path)).transpose()?.flatten(),
        authority,
        base_path,
    })
}

fn in_cluster(authority: Authority, folder: &Path) -> Result<Endpoint, EndpointError> {
    let token = read(folder.join("token"))?;
    Ok(Endpoint {
        server_name: server_name(host(&authority))?,
        authorities: read(folder.join("ca.crt"))?,
        credential: Some(Credential::bearer(&String::from_utf8_lossy(&token))?),
        base_path: String::new(),
        authority,
    })
}

fn current(file: &Kubeconfig) -> Option<(&Cluster, Option<&AuthInfo>)> {
    let context =
        file.contexts.iter().find(|context| Some(&context.name) == file.current_context.as_ref())?;
    let context = context.context.as_ref()?;
    let cluster = file.clusters.iter().find(|cluster| cluster.name == context.cluster)?.cluster.as_ref()?;
    let user = file.auth_infos.iter().find(|user| Some(&user.name) == context.user.as_ref());
    Some((cluster, user.and_then(|user| user.auth_info.as_ref())))
}

fn address(cluster: &Cluster) -> Result<(Authority, String), EndpointError> {
    let server = cluster.server.clone().unwrap_or_default();
    let uri: Uri = server.parse().map_err(|_| EndpointError::Server(server.clone()))?;
    match (uri.scheme_str(), uri.authority()) {
        (Some("https"), Some(authority)) => {
            Ok((authority.clone(), uri.path().trim_end_matches('/').to_owned()))
        }
        _ => Err(EndpointError::Server(server)),
    }
}

/// The host without the brackets of an IPv6 address.
fn host(authority: &Authority) -> &str {
    authority.host().trim_start_matches('[').trim_end_matches(']')
}

fn server_name(name: &str) -> Result<ServerName<'static>, EndpointError> {
    ServerName::try_from(name.to_owned()).map_err(|_| EndpointError::Server(name.to_owned()))
}

fn authorities(cluster: &Cluster, path: &Path) -> Result<Vec<u8>, EndpointError> {
    match (&cluster.certificate_authority_data, &cluster.certificate_authority) {
        (Some(data), _) => BASE64_STANDARD.decode(data.trim()).map_err(|_| EndpointError::NoAuthority),
        (None, Some(file)) => read(beside(path, file)),
        (None, None) => Err(EndpointError::NoAuthority),
    }
}

fn credential(user: &AuthInfo, path: &Path) -> Result<Option<Credential>, EndpointError> {
    let token = match (&user.token_file, &user.token) {
        (Some(file), _) => String::from_utf8_lossy(&read(beside(path, file))?).into_owned(),
        (None, Some(token)) => token.expose_secret().to_owned(),
        (None, None) => return Ok(None),
    };
    Credential::bearer(&token).map(Some)
}

/// Relative paths of a kubeconfig start at its own folder, as in kubectl.
fn beside(kubeconfig: &Path, file: &str) -> PathBuf {
    kubeconfig.parent().map_or_else(|| PathBuf::from(file), |folder| folder.join(file))
}

fn read(path: PathBuf) -> Result<Vec<u8>, EndpointError> {
    fs::read(&path).map_err(|error| EndpointError::Read(path, error))
}

#[cfg(test)]
mod tests;
