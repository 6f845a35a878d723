//! Room 7: the one place that talks to an API server.
//!
//! Watches and calls go over connections of their own, so that neither waits for the other. A
//! request that may have been sent is never sent again, except a read.

pub mod headers;
pub mod kubeconfig;
mod pool;
mod tls;
pub mod user_agent;

use std::{error::Error as StdError, time::Duration};

use http::{Method, Request, Response, StatusCode, Uri, request::Parts, uri::Authority};
use tokio::time::timeout;

use self::{kubeconfig::Endpoint, pool::Pool};
pub use self::{pool::Received, tls::DialError};
use crate::{
    body::{self, Body},
    metrics::Metrics,
    respond::Refusal,
};

/// How long the head of a response may take. The API server cuts ordinary requests after 60 s by
/// itself (apiserver `server/config.go`, `RequestTimeout`).
const HEAD_TIMEOUT: Duration = Duration::from_secs(65);

/// One API server.
pub struct Upstream {
    endpoint: Endpoint,
    calls: Pool,
    streams: Pool,
}

/// What a request is like, and so which connections it may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// Answered soon.
    Call,
    /// Runs until the client or the server ends it: watches, logs that are followed.
    Stream,
}

/// Why a request got no response.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// No connection; nothing was sent.
    #[error("cannot connect: {0}")]
    Connect(#[from] DialError),
    /// The server gave the request back unprocessed (RFC 9113, sections 6.8 and 8.7).
    #[error("the server refused the stream before it processed the request: {0}")]
    Unprocessed(hyper::Error),
    /// The request may have been processed.
    #[error("the connection broke before the response: {0}")]
    Broken(hyper::Error),
    /// The request may be in process still.
    #[error("no response within {} s", HEAD_TIMEOUT.as_secs())]
    Timeout,
    /// The request cannot be put to the server's address.
    #[error("cannot address the request: {0}")]
    Address(#[from] http::Error),
}

// === impl Upstream ===

impl Upstream {
    /// Prepares the connections; none is opened yet.
    pub fn new(endpoint: Endpoint, metrics: &Metrics) -> Self {
        let connections =
            |traffic| metrics.upstream_connections.with_label_values(&[endpoint.name.as_str(), traffic]);
        let calls = Pool::new(endpoint.target.clone(), connections("call"));
        let streams = Pool::new(endpoint.target.clone(), connections("stream"));
        Self { endpoint, calls, streams }
    }

    /// The cluster's name, as the ring knows it.
    pub fn name(&self) -> &str {
        &self.endpoint.name
    }

    /// The API server's address, for people.
    pub fn url(&self) -> String {
        format!("https://{}{}", self.endpoint.authority(), self.endpoint.base_path)
    }

    /// Opens a connection if there is none.
    pub async fn connect(&self) -> Result<(), UpstreamError> {
        self.calls.stream().await.map(drop).map_err(UpstreamError::Connect)
    }

    /// Sends a request. Once the future resolves the response's head has arrived; the body holds its
    /// stream until it ends or is dropped.
    pub async fn send(
        &self,
        mut parts: Parts,
        body: Body,
        traffic: Traffic,
    ) -> Result<Response<Received>, UpstreamError> {
        parts.uri = self.address(&parts.uri)?;
        parts.version = http::Version::HTTP_2;
        headers::strip(&mut parts.headers);
        let again = may_repeat(&parts).then(|| parts.clone());
        match (self.attempt(Request::from_parts(parts, body), traffic).await, again) {
            (Err(UpstreamError::Unprocessed(_) | UpstreamError::Broken(_)), Some(parts)) => {
                self.attempt(Request::from_parts(parts, body::empty()), traffic).await
            }
            (outcome, _) => outcome,
        }
    }

    async fn attempt(
        &self,
        request: Request<Body>,
        traffic: Traffic,
    ) -> Result<Response<Received>, UpstreamError> {
        match traffic {
            Traffic::Stream => self.streams.send(request).await,
            Traffic::Call => {
                let sent = timeout(HEAD_TIMEOUT, self.calls.send(request)).await;
                sent.map_err(|_| UpstreamError::Timeout)?
            }
        }
    }

    /// The server comes from configuration, never from the client's Host header.
    fn address(&self, uri: &Uri) -> Result<Uri, http::Error> {
        let tail = uri.path_and_query().map_or("/", |tail| tail.as_str());
        let authority: &Authority = self.endpoint.authority();
        let builder = Uri::builder().scheme("https").authority(authority.clone());
        if self.endpoint.base_path.is_empty() {
            return builder.path_and_query(tail).build();
        }
        builder.path_and_query(format!("{}{tail}", self.endpoint.base_path)).build()
    }
}

// === impl UpstreamError ===

impl UpstreamError {
    /// Sorts a transport error by whether the server can have acted on the request.
    fn of(error: hyper::Error) -> Self {
        if is_unprocessed(&error) { Self::Unprocessed(error) } else { Self::Broken(error) }
    }

    /// What the caller is told. Only a request that was certainly not processed, or that changes
    /// nothing, may be repeated by the client's own retry.
    pub fn refusal(&self, cluster: &str, method: &Method) -> Refusal {
        let message = format!("upstream {cluster}: {self}");
        match self {
            Self::Connect(_) | Self::Unprocessed(_) => {
                Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message).retry_after(1)
            }
            Self::Broken(_) if *method == Method::GET => {
                Refusal::new(StatusCode::BAD_GATEWAY, "InternalError", message).retry_after(1)
            }
            Self::Broken(_) => {
                let message = format!("{message}; the write may have been done, read before you repeat it");
                Refusal::new(StatusCode::BAD_GATEWAY, "InternalError", message)
            }
            Self::Timeout => Refusal::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message),
            Self::Address(_) => Refusal::new(StatusCode::BAD_REQUEST, "BadRequest", message),
        }
    }
}

fn may_repeat(parts: &Parts) -> bool {
    parts.method == Method::GET || parts.method == Method::HEAD
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
