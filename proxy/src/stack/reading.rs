//! How a response is read on its way back: not at all, through the shard's lens, or as the shard's lock.
//!
//! Decided before the request goes upstream, because the server has to be asked for a form that
//! can be read. What comes back in another form is refused, never passed unread.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header, request::Parts};
use http_body_util::{BodyExt, Limited};

use crate::{
    body::{self, Body, Metered},
    election::LockNames,
    filter::{
        Counts, Encoding, FilterError, Scanner, Shape,
        body::{BodyError, Filtered, Meter},
        object,
    },
    metrics::Metrics,
    ownership::{Ring, lens::ShardLens},
    request::{
        KubeRequest,
        accept::{self, BodyType},
        path::Verb,
    },
    respond::Refusal,
    upstream::Received,
};

/// A lock is small; the API server stores no object larger than this.
const OBJECT_BYTES: usize = 3 << 20;

/// How a response is read.
pub(super) enum Reading {
    /// It passes as it comes.
    Whole,
    /// Only the shard's own objects pass.
    Filtered(Shape, ShardLens),
    /// It is about the shard's lock, which gets back the name that the controller knows.
    Lock(LockNames),
}

/// Counts what a filter shows and hides.
struct ObjectMeter(Arc<Metrics>);

// === impl Reading ===

impl Reading {
    /// How the response to a request is read.
    pub(super) fn of(
        ring: &Arc<Ring>,
        cluster: &Arc<str>,
        request: &KubeRequest,
        lock: Option<&LockNames>,
    ) -> Self {
        let shape = match request.info.verb {
            _ if request.method == Method::HEAD => return Self::Whole,
            Verb::List => Shape::List,
            Verb::Watch => Shape::Watch,
            _ => return lock.map_or(Self::Whole, |lock| Self::Lock(lock.clone())),
        };
        let lens = request.target().and_then(|target| ShardLens::for_read(ring, cluster, target));
        lens.map_or(Self::Whole, |lens| Self::Filtered(shape, lens))
    }

    /// Whether the response passes as it comes.
    pub(super) fn is_whole(&self) -> bool {
        matches!(self, Self::Whole)
    }

    /// Asks the server only for what can be read.
    pub(super) fn ask(&self, request: &KubeRequest, parts: &mut Parts) -> Result<(), Refusal> {
        if self.is_whole() {
            return Ok(());
        }
        let accept = accept::readable_by_filter(request.accept.as_deref())
            .map_err(|error| Refusal::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", error.to_string()))?;
        let accept = HeaderValue::from_str(&accept)
            .map_err(|error| Refusal::new(StatusCode::BAD_REQUEST, "BadRequest", error.to_string()))?;
        parts.headers.insert(header::ACCEPT, accept);
        parts.headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        Ok(())
    }

    /// Makes the response that the client gets.
    pub(super) async fn apply(
        self,
        response: Response<Received>,
        metrics: &Arc<Metrics>,
    ) -> Result<Response<Body>, Refusal> {
        let received = metrics.bytes.with_label_values(&["received"]);
        let response = response.map(|body| Metered::new(body, received, None));
        match self {
            Self::Filtered(shape, lens) if response.status().is_success() => {
                let encoding = readable(response.headers())?;
                let scanner = Scanner::new(encoding, shape, lens);
                let meter = ObjectMeter(metrics.clone());
                let (mut parts, body) = response.into_parts();
                let mut filtered = Filtered::new(body, scanner, meter);
                if shape == Shape::List {
                    filtered.begin().await.map_err(|error| unusable(&error))?;
                }
                parts.headers.remove(header::CONTENT_LENGTH);
                Ok(Response::from_parts(parts, filtered.map_err(Into::into).boxed_unsync()))
            }
            Self::Lock(lock) => rename(response, &lock).await,
            Self::Whole | Self::Filtered(..) => {
                Ok(response.map(|body| body.map_err(Into::into).boxed_unsync()))
            }
        }
    }
}

// === impl ObjectMeter ===

impl Meter for ObjectMeter {
    fn counted(&self, counts: Counts) {
        self.0.shown_objects.inc_by(counts.kept);
        self.0.hidden_objects.inc_by(counts.hidden);
    }

    fn failed(&self, error: FilterError) {
        self.0.broken_streams.inc();
        tracing::warn!(%error, "a response could not be filtered");
    }
}

/// Which of the two forms that can be read a response has.
fn readable(headers: &HeaderMap) -> Result<Encoding, Refusal> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let coding = text(header::CONTENT_ENCODING).unwrap_or("identity");
    if coding != "identity" {
        return Err(unreadable(&format!("Content-Encoding {coding}, although identity was asked for")));
    }
    let content_type = text(header::CONTENT_TYPE).unwrap_or_default();
    match BodyType::of(Some(content_type)) {
        BodyType::Json => Ok(Encoding::Json),
        BodyType::Protobuf => Ok(Encoding::Protobuf),
        _ => Err(unreadable(&format!("Content-Type {content_type:?}"))),
    }
}

/// A list that ends, or fails, before any of it could be shown.
fn unusable(error: &BodyError) -> Refusal {
    let refusal = unreadable(&format!("a list that cannot be read ({error})"));
    match error {
        BodyError::Filter(_) => refusal,
        BodyError::Upstream(_) => refusal.retry_after(1),
    }
}

fn unreadable(what: &str) -> Refusal {
    let message = format!(
        "upstream answered with {what}: the proxy cannot tell whose objects are in it and passes none"
    );
    Refusal::new(StatusCode::BAD_GATEWAY, "InternalError", message)
}

/// Puts the known name back. A refusal that is no Status, such as that of flow control, passes as it is.
async fn rename(response: Response<Metered<Received>>, lock: &LockNames) -> Result<Response<Body>, Refusal> {
    let encoding = readable(response.headers());
    let (mut parts, body) = response.into_parts();
    #[allow(clippy::disallowed_methods, reason = "bounded")]
    let bytes = Limited::new(body, OBJECT_BYTES).collect().await;
    let bytes =
        bytes.map_err(|error| unreadable(&format!("a lock whose body broke off ({error})")))?.to_bytes();
    let renamed = match encoding {
        _ if bytes.is_empty() => bytes,
        Ok(encoding) => object::rename(&bytes, encoding, &lock.own, &lock.original)
            .map_err(|error| unreadable(&error.to_string()))?,
        Err(refusal) if parts.status.is_success() => return Err(refusal),
        Err(_) => bytes,
    };
    parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(renamed.len()));
    Ok(Response::from_parts(parts, body::full(renamed)))
}
