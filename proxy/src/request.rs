//! Room 2: what a request asks for, read exactly as the API server reads it. Pure; no IO.
//!
//! ```text
//! request line -> path (verb, resource, namespace, name)    headers -> accept (encodings)
//!                 query, selector, labels (parameters)
//! ```
//!
//! Every later room uses only this reading. What the API server would refuse, and what another server on the way
//! could read differently, is refused here, before any rule is asked.

use http::header::{ACCEPT, CONTENT_TYPE, HeaderName};
use http::{HeaderMap, Method, Uri};
use thiserror::Error;

pub mod accept;
pub mod hop;
mod labels;
pub mod path;
pub mod query;
pub mod selector;
pub mod upgrade;

use accept::{BodyType, StatusEncoding};
use path::{RequestInfo, Target, Verb};
use upgrade::Protocol;

/// Subresources whose requests last as long as the client likes (kube-apiserver's own list).
const LONG_RUNNING: [&str; 5] = ["attach", "exec", "proxy", "log", "portforward"];

/// A request that is refused unread: a 400 Status. The client is at fault in each case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RequestError {
    /// CONNECT, or a request target that names a host only.
    #[error("client: the request target is not a path; send the path of an API, such as /api/v1/pods")]
    NotAPath,
    /// A `%` without two hexadecimal digits after it.
    #[error("client: the URL holds a '%' that starts no escape; write %25 for a literal '%'")]
    BadEscape,
    /// Bytes that are not UTF-8 in the path or in a parameter that decides what is asked for.
    #[error("client: the URL is not UTF-8; names, namespaces and selectors are ASCII")]
    NotUtf8,
    /// A control character in the path, or a NUL in a selector.
    #[error("client: the URL holds a control character; names, namespaces and selectors have none")]
    ControlCharacter,
    /// `.` or `..`, escaped or not.
    #[error("client: the path has a '.' or '..' segment; send the path that is meant, without dot segments")]
    DotSegment,
    /// `//` inside the path of a resource.
    #[error("client: the path of the resource has an empty segment; a namespace or name may be missing")]
    EmptySegment,
    /// `%2F` in the path of a resource.
    #[error("client: the path of the resource has an escaped slash; no name holds one, send '/' as it is")]
    EncodedSlash,
    /// `/api/v1/watch` and the like, with nothing after the verb.
    #[error("client: the path names a verb but no resource; put the resource after it")]
    NoResource,
    /// A `/watch/` path with a method other than GET and HEAD, or a `watch` value that Go reads in two ways.
    #[error("client: it is unclear whether this is a watch; send GET with ?watch=true")]
    AmbiguousWatch,
    /// A `;` in the query of a resource request: Go drops such a pair, older servers split at it.
    #[error("client: the query holds a ';', which the API server ignores together with its pair; write %3B")]
    Semicolon,
    /// More pairs than Go reads.
    #[error("client: the query has more than 10000 parameters, which the API server ignores; send fewer")]
    TooManyParameters,
    /// An `Accept` or `Content-Type` that is not visible ASCII.
    #[error("client: the Accept or Content-Type header is not ASCII; send plain media types")]
    Header,
    /// An `Upgrade` that no API server knows, or that `Connection` does not name.
    #[error(
        "client: an upgrade is asked for by one header Upgrade: websocket or Upgrade: SPDY/3.1, and Connection: Upgrade"
    )]
    Upgrade,
    /// An `Upgrade` by a method that no API server upgrades.
    #[error("client: only GET and POST can be upgraded; send other methods without Upgrade")]
    UpgradeMethod,
    /// A `Connection` that names a header which the API server must see.
    #[error(
        "client: Connection names a header that is not for this hop alone, such as Authorization; it may name close, \
         keep-alive, Upgrade, TE and headers of your own"
    )]
    Hop,
}

/// A request as every later room sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct KubeRequest {
    /// The HTTP method.
    pub method: Method,
    /// Verb, resource, namespace and name.
    pub info: RequestInfo,
    /// The first `Accept` line, the only one that the API server reads.
    pub accept: Option<String>,
    /// What the body holds, if there is one.
    pub body: BodyType,
    /// How the caller wants an error.
    pub status: StatusEncoding,
    /// What it asks to speak in place of HTTP.
    pub upgrade: Option<Protocol>,
}

// === impl RequestError ===

impl RequestError {
    /// A word for the metrics.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Hop => "Hop",
            Self::Upgrade | Self::UpgradeMethod => "Upgrade",
            Self::Header => "Header",
            Self::AmbiguousWatch => "AmbiguousWatch",
            Self::Semicolon | Self::TooManyParameters => "Query",
            Self::NotAPath
            | Self::BadEscape
            | Self::NotUtf8
            | Self::ControlCharacter
            | Self::DotSegment
            | Self::EmptySegment
            | Self::EncodedSlash
            | Self::NoResource => "Path",
        }
    }
}

// === impl KubeRequest ===

impl KubeRequest {
    /// Reads the head of a request.
    pub fn parse(method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<Self, RequestError> {
        if hop::names_end_to_end(headers) {
            return Err(RequestError::Hop);
        }
        let accept = text(headers, &ACCEPT)?;
        let info = RequestInfo::parse(method, uri)?;
        let upgrade = Protocol::asked(headers)?;
        if upgrade.is_some() && !is_upgraded(method, info.target.as_ref()) {
            return Err(RequestError::UpgradeMethod);
        }
        Ok(Self {
            method: method.clone(),
            info,
            accept: accept.map(str::to_owned),
            body: BodyType::of(text(headers, &CONTENT_TYPE)?),
            status: StatusEncoding::of(accept),
            upgrade,
        })
    }

    /// The resource asked for; `None` for discovery, health and the like.
    pub fn target(&self) -> Option<&Target> {
        self.info.target.as_ref()
    }

    /// Whether the request may change something. Decided by the method, so that an unknown one counts as a write; a
    /// command that is run by a GET that upgrades (WebSocket exec) can do anything.
    pub fn is_write(&self) -> bool {
        let reads = matches!(self.info.verb, Verb::List | Verb::Watch);
        self.upgrade.is_some() && !reads
            || !matches!(self.method, Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE)
    }

    /// Whether the server sets no time limit: `BasicLongRunningRequestCheck` with kube-apiserver's verbs and
    /// subresources.
    pub fn is_long_running(&self) -> bool {
        match &self.info.target {
            Some(target) => {
                matches!(self.info.verb, Verb::Watch | Verb::Proxy)
                    || LONG_RUNNING.contains(&target.subresource.as_str())
            }
            None => self.info.path.starts_with("/debug/pprof/"),
        }
    }
}

/// kube-apiserver upgrades by GET and POST (`registry/core/pod/rest/subresources.go`, `upgradeableMethods`), and by any
/// method what is proxied, where the program behind it decides.
fn is_upgraded(method: &Method, target: Option<&Target>) -> bool {
    matches!(*method, Method::GET | Method::POST) || target.is_some_and(Target::is_proxied)
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, RequestError> {
    let value = headers.get(name).map(|value| value.to_str().map_err(|_| RequestError::Header));
    value.transpose()
}

#[cfg(test)]
mod tests;
