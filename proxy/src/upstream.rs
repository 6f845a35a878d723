//! Room 7: the one place that talks to an API server.
//!
//! Watches and calls go over connections of their own, so that neither waits for the other. A
//! request that may have been sent is never sent again, except a read.

pub mod endpoint;
pub mod headers;
mod pool;
mod tls;
mod tunnel;
pub mod user_agent;

use std::{error::Error as StdError, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use http::{Method, Request, Response, StatusCode, Uri, request::Parts};
use http_body::Body as _;
use prometheus::IntGauge;
use tokio::{task::spawn_blocking, time::timeout};

use self::{
    endpoint::{Credential, Endpoint, EndpointError, ForwardIdentity, Source},
    pool::Pool,
    tls::Target,
};
pub use self::{pool::Received, tls::DialError};
use crate::{
    body::{self, Body},
    metrics::Metrics,
    respond::Refusal,
};

/// How long the head of a response may take. The API server cuts ordinary requests after 60 s by
/// itself (apiserver `server/config.go`, `RequestTimeout`).
const HEAD_TIMEOUT: Duration = Duration::from_secs(65);
/// The same where the API server was told to give up after 5 s (`shoal_sharding::times::WRITE`), a connection included.
const BOUNDED_TIMEOUT: Duration = Duration::from_secs(10);

/// Connections to one API server at most, without those of upgrades.
pub const CONNECTIONS: usize = 2 * pool::CONNECTIONS;

/// One API server.
pub struct Upstream {
    name: String,
    source: Source,
    identity: ForwardIdentity,
    endpoint: ArcSwap<Endpoint>,
    target: ArcSwap<Target>,
    calls: Arc<Pool>,
    streams: Arc<Pool>,
    /// Connections of upgrades, each its own.
    tunnels: IntGauge,
}

/// What a request is like, and so which connections it may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// Answered soon.
    Call,
    /// Its head comes soon, its body has no end of its own.
    Watch,
    /// Runs until the client or the server ends it, and may be silent before its head: logs that are followed,
    /// what is proxied to a pod.
    Stream,
}

/// Why an API server cannot be used as it is written down.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamSetupError {
    /// Its file is at fault.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// It was not read to the end.
    #[error("its files were not read: {0}")]
    Reading(String),
    /// Its authorities cannot be trusted.
    #[error("the certificate authority is not usable: {0}")]
    Authority(String),
}

/// Why a request got no response.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// No connection; nothing was sent.
    #[error("cannot connect: {0}")]
    Connect(#[from] Arc<DialError>),
    /// The server gave the request back unprocessed (RFC 9113, sections 6.8 and 8.7).
    #[error("the server refused the stream before it processed the request: {0}")]
    Unprocessed(hyper::Error),
    /// The request may have been processed.
    #[error("the connection broke before the response: {0}")]
    Broken(hyper::Error),
    /// The request may be in process still.
    #[error("no response within {} s", .0.as_secs())]
    Timeout(Duration),
    /// It had to wait for a connection, and may not be sent any more; nothing was sent.
    #[error("the request waited for a connection until it was too late to send it")]
    Withheld,
    /// The request cannot be put to the server's address.
    #[error("cannot address the request: {0}")]
    Address(#[from] http::Error),
}

// === impl Upstream ===

impl Upstream {
    /// Reads where the API server is; no connection is opened yet.
    pub fn new(
        name: &str,
        source: Source,
        identity: ForwardIdentity,
        metrics: &Metrics,
    ) -> Result<Self, UpstreamSetupError> {
        let endpoint = source.read(identity)?;
        let target = Arc::new(Target::new(&endpoint)?);
        let open = |traffic| metrics.upstream_connections.with_label_values(&[name, traffic]);
        Ok(Self {
            name: name.to_owned(),
            source,
            identity,
            calls: Pool::new(target.clone(), pool::CALL_WINDOW, open("call")),
            streams: Pool::new(target.clone(), pool::WATCH_WINDOW, open("stream")),
            tunnels: open("tunnel"),
            target: ArcSwap::new(target),
            endpoint: ArcSwap::from_pointee(endpoint),
        })
    }

    /// The cluster's name, as the ring knows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The API server's address, for people.
    pub fn url(&self) -> String {
        let endpoint = self.endpoint.load();
        format!("https://{}{}", endpoint.authority, endpoint.base_path)
    }

    /// The credential that requests carry; none if that is the client's own.
    pub fn credential(&self) -> Option<Credential> {
        self.endpoint.load().credential.clone()
    }

    /// Reads again where the API server is, and tells whether something changed. Requests under way
    /// go on; new ones take new connections where address or authority changed. What cannot be used
    /// changes nothing.
    pub async fn reload(&self) -> Result<bool, UpstreamSetupError> {
        let (source, identity) = (self.source.clone(), self.identity);
        // A file may be on a disk that hangs.
        let read = spawn_blocking(move || source.read(identity)).await;
        let new = read.map_err(|error| UpstreamSetupError::Reading(error.to_string()))??;
        let old = self.endpoint.load_full();
        if new == *old {
            return Ok(false);
        }
        let place = |endpoint: &Endpoint| Endpoint { credential: None, ..endpoint.clone() };
        if place(&new) != place(&old) {
            let target = Arc::new(Target::new(&new)?);
            self.calls.retarget(target.clone()).await;
            self.streams.retarget(target.clone()).await;
            self.target.store(target);
        }
        self.endpoint.store(Arc::new(new));
        Ok(true)
    }

    /// Opens a connection if there is none.
    pub async fn connect(&self) -> Result<(), UpstreamError> {
        Ok(self.calls.stream().await.map(drop)?)
    }

    /// Sends a request. Once the future resolves the response's head has arrived; the body holds its
    /// stream until it ends or is dropped. Of requests only reads are repeated, and only once.
    pub async fn send(
        &self,
        mut parts: Parts,
        body: Body,
        traffic: Traffic,
    ) -> Result<Response<Received>, UpstreamError> {
        parts.uri = self.address(&parts.uri)?;
        parts.version = http::Version::HTTP_2;
        headers::strip(&mut parts.headers);
        let again = may_repeat(&parts, &body).then(|| parts.clone());
        let pool = self.pool(traffic);
        let sent = async {
            match (pool.send(Request::from_parts(parts, body), || true).await, again) {
                (Err(UpstreamError::Unprocessed(_) | UpstreamError::Broken(_)), Some(parts)) => {
                    pool.send(Request::from_parts(parts, body::empty()), || true).await
                }
                (outcome, _) => outcome,
            }
        };
        in_time(traffic, sent).await
    }

    /// Sends a write that the API server gives up after some seconds by itself. Whether it `may` be sent is asked when there
    /// is a connection, and nothing more to wait for.
    pub async fn send_bounded(
        &self,
        mut parts: Parts,
        body: Body,
        may: impl FnMut() -> bool,
    ) -> Result<Response<Received>, UpstreamError> {
        parts.uri = self.address(&parts.uri)?;
        parts.version = http::Version::HTTP_2;
        headers::strip(&mut parts.headers);
        let sent = self.calls.send(Request::from_parts(parts, body), may);
        timeout(BOUNDED_TIMEOUT, sent).await.unwrap_or(Err(UpstreamError::Timeout(BOUNDED_TIMEOUT)))
    }

    fn pool(&self, traffic: Traffic) -> &Arc<Pool> {
        match traffic {
            Traffic::Call => &self.calls,
            Traffic::Watch | Traffic::Stream => &self.streams,
        }
    }

    /// The server comes from configuration, never from the client's Host header.
    fn address(&self, uri: &Uri) -> Result<Uri, http::Error> {
        let tail = uri.path_and_query().map_or("/", |tail| tail.as_str());
        let endpoint = self.endpoint.load();
        let builder = Uri::builder().scheme("https").authority(endpoint.authority.clone());
        if endpoint.base_path.is_empty() {
            return builder.path_and_query(tail).build();
        }
        builder.path_and_query(format!("{}{tail}", endpoint.base_path)).build()
    }
}

// === impl UpstreamError ===

impl UpstreamError {
    /// Sorts a transport error by whether the server can have acted on the request.
    fn of(error: hyper::Error) -> Self {
        if is_unprocessed(&error) { Self::Unprocessed(error) } else { Self::Broken(error) }
    }

    /// What the caller is told. Only a request that was certainly not processed, or that `reads` and so changes
    /// nothing, may be repeated by the client's own retry.
    pub fn refusal(&self, cluster: &str, reads: bool) -> Refusal {
        let message = format!("upstream {cluster}: {self}");
        match self {
            Self::Connect(_) | Self::Unprocessed(_) | Self::Withheld => {
                Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message).retry_after(1)
            }
            Self::Broken(_) if reads => {
                Refusal::new(StatusCode::BAD_GATEWAY, "InternalError", message).retry_after(1)
            }
            Self::Broken(_) => {
                let message = format!("{message}; the write may have been done, read before you repeat it");
                Refusal::new(StatusCode::BAD_GATEWAY, "InternalError", message)
            }
            Self::Timeout(_) => Refusal::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message),
            Self::Address(_) => Refusal::new(StatusCode::BAD_REQUEST, "BadRequest", message),
        }
    }
}

/// Bounds the wait for a head, repetition and connecting included.
async fn in_time<T>(
    traffic: Traffic,
    sent: impl Future<Output = Result<T, UpstreamError>>,
) -> Result<T, UpstreamError> {
    match traffic {
        Traffic::Call | Traffic::Watch => {
            timeout(HEAD_TIMEOUT, sent).await.unwrap_or(Err(UpstreamError::Timeout(HEAD_TIMEOUT)))
        }
        Traffic::Stream => sent.await,
    }
}

/// A body is gone once it was sent.
fn may_repeat(parts: &Parts, body: &Body) -> bool {
    (parts.method == Method::GET || parts.method == Method::HEAD) && body.is_end_stream()
}

fn is_unprocessed(error: &hyper::Error) -> bool {
    let mut source: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(cause) = source {
        if let Some(h2) = cause.downcast_ref::<h2::Error>() {
            let refused = h2.reason() == Some(h2::Reason::REFUSED_STREAM);
            return h2.is_remote() && (refused || h2.is_go_away());
        }
        source = cause.source();
    }
    error.is_canceled()
}

#[cfg(test)]
mod tests;
