//! Where an API server is, how it is verified, and whose credential may be used there. Plain data,
//! read from files again and again, so that a rotation is seen.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use clap::ValueEnum;
use http::{HeaderValue, Uri, uri::Authority};
use kube::config::{AuthInfo, Cluster, Kubeconfig};
use rustls::pki_types::ServerName;
use secrecy::ExposeSecret;

use crate::file;

/// Where a pod finds its own cluster's authority and its own token (kubernetes `rest.InClusterConfig`).
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Whose credential goes upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ForwardIdentity {
    /// The client's own: the proxy adds no power.
    Client,
    /// The proxy's: clients must present the listener's token.
    Own,
}

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
    /// The user's own credential; there if and only if the proxy forwards with its own identity.
    pub credential: Option<Credential>,
}

/// A bearer token, as a header that no log shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential(HeaderValue);

/// Why an endpoint cannot be used. Its file is at fault.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// Not a kubeconfig. The decoder's own words quote the file, which holds credentials.
    #[error("not a kubeconfig: its YAML or one of its fields is malformed")]
    Malformed,
    /// The context names no cluster.
    #[error("current-context must name a context whose cluster is in the file")]
    NoCluster,
    /// Not `https://host[:port][/path]`.
    #[error("server must be https://HOST[:PORT], found {0:?}")]
    Server(String),
    /// A password in the address; it is not repeated here.
    #[error("server must be https://HOST[:PORT] without a user or a password")]
    UserInfo,
    /// Shoal never talks to a server that it cannot verify.
    #[error("insecure-skip-tls-verify is not supported: give certificate-authority-data")]
    Insecure,
    /// No authority to verify the server with.
    #[error("certificate-authority or certificate-authority-data is needed to verify the server")]
    NoAuthority,
    /// It, the authority or the token cannot be read.
    #[error("cannot read {}: {}", .0.display(), .1)]
    Read(PathBuf, io::Error),
    /// A token that cannot stand in a header, or nothing.
    #[error("the user's token must be visible ASCII, and not empty")]
    Token,
    /// Nothing to log in with.
    #[error("--forward-identity=own needs a token of the context's user: token or tokenFile")]
    NoToken,
}

// === impl Source ===

impl Source {
    /// Reads the endpoint as it is written down now; its credential only if it is to be used. Blocks.
    pub fn read(&self, identity: ForwardIdentity) -> Result<Endpoint, EndpointError> {
        match self {
            Self::Kubeconfig(path) => from_kubeconfig(path, identity),
            Self::InCluster(authority) => in_cluster(authority.clone(), identity, Path::new(SERVICE_ACCOUNT)),
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
        let token = token.trim();
        if token.is_empty() {
            return Err(EndpointError::Token);
        }
        let mut value =
            HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| EndpointError::Token)?;
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

fn from_kubeconfig(path: &Path, identity: ForwardIdentity) -> Result<Endpoint, EndpointError> {
    let text = text(path.to_owned())?;
    let file = Kubeconfig::from_yaml(&text).map_err(|_| EndpointError::Malformed)?;
    let (cluster, user) = current(&file).ok_or(EndpointError::NoCluster)?;
    if cluster.insecure_skip_tls_verify == Some(true) {
        return Err(EndpointError::Insecure);
    }
    let (authority, base_path) = address(cluster)?;
    let name = cluster.tls_server_name.as_deref().unwrap_or_else(|| host(&authority));
    Ok(Endpoint {
        server_name: server_name(name)?,
        authorities: authorities(cluster, path)?,
        credential: match identity {
            ForwardIdentity::Client => None,
            ForwardIdentity::Own => Some(credential(user, path)?),
        },
        authority,
        base_path,
    })
}

fn in_cluster(
    authority: Authority,
    identity: ForwardIdentity,
    folder: &Path,
) -> Result<Endpoint, EndpointError> {
    let token = || Credential::bearer(&text(folder.join("token"))?);
    Ok(Endpoint {
        server_name: server_name(host(&authority))?,
        authorities: read(folder.join("ca.crt"))?,
        credential: (identity == ForwardIdentity::Own).then(token).transpose()?,
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
    if server.contains('@') {
        return Err(EndpointError::UserInfo);
    }
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

fn credential(user: Option<&AuthInfo>, path: &Path) -> Result<Credential, EndpointError> {
    match user.map(|user| (&user.token_file, &user.token)) {
        Some((Some(file), _)) => Credential::bearer(&text(beside(path, file))?),
        Some((None, Some(token))) => Credential::bearer(token.expose_secret()),
        Some((None, None)) | None => Err(EndpointError::NoToken),
    }
}

/// Relative paths of a kubeconfig start at its own folder, as in kubectl.
fn beside(kubeconfig: &Path, file: &str) -> PathBuf {
    kubeconfig.parent().map_or_else(|| PathBuf::from(file), |folder| folder.join(file))
}

fn text(path: PathBuf) -> Result<String, EndpointError> {
    file::read_text(&path).map_err(|error| EndpointError::Read(path, error))
}

fn read(path: PathBuf) -> Result<Vec<u8>, EndpointError> {
    file::read(&path).map_err(|error| EndpointError::Read(path, error))
}

#[cfg(test)]
mod tests;
