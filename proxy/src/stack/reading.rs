//! How a response is read on its way back: not at all, through the shard's lens, or as the shard's lock.
//!
//! Decided before the request goes upstream, because the server has to be asked for a form that
//! can be read. What comes back in another form is refused, never passed unread.

use std::{fmt::Display, sync::Arc};

use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri, header, request::Parts};
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
        query::Query,
    },
    respond::Refusal,
    upstream::Received,
};

/// A lock is small; the API server stores no object larger than this.
const OBJECT_BYTES: usize = 3 << 20;

const SHARD_SELECTOR: &str = "shardSelector";

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

    /// Asks the server only for what can be read, and to leave out by itself what it can. Where it was asked for the latter
    /// this returns the target without that, as a server may refuse it.
    pub(super) fn ask(&self, request: &KubeRequest, parts: &mut Parts) -> Result<Option<Uri>, Refusal> {
        if self.is_whole() {
            return Ok(None);
        }
        let accept = accept::readable_by_filter(request.accept.as_deref())
            .map_err(|error| Refusal::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", error.to_string()))?;
        let accept = HeaderValue::from_str(&accept).map_err(|error| bad_request(&error))?;
        parts.headers.insert(header::ACCEPT, accept);
        parts.headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        match self {
            Self::Filtered(_, lens) => lens.shard_selector().map_or(Ok(None), |own| push_down(own, parts)),
            Self::Whole | Self::Lock(_) => Ok(None),
        }
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

/// Adds a selector, unless the client has one of its own: only one can be said.
fn push_down(selector: &str, parts: &mut Parts) -> Result<Option<Uri>, Refusal> {
    let mut query = Query::new(parts.uri.query());
    if query.get(SHARD_SELECTOR).map_err(|error| bad_request(&error))?.is_some() {
        return Ok(None);
    }
    query.append(SHARD_SELECTOR, selector);
    let target = query.path_and_query(parts.uri.path()).map_err(|error| bad_request(&error))?;
    Ok(Some(std::mem::replace(&mut parts.uri, target.into())))
}

/// Whether a server that knows no `shardSelector`, or not ours, may have answered so. kube-apiserver 1.36 has 500 for one
/// that it cannot read.
pub(super) fn may_be_about_the_selector(status: StatusCode) -> bool {
    matches!(status.as_u16(), 400 | 422 | 500 | 501)
}

pub(super) fn bad_request(error: &dyn Display) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, "BadRequest", error.to_string())
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
pub(super) fn readable(headers: &HeaderMap) -> Result<Encoding, Refusal> {
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

pub(super) fn unreadable(what: &str) -> Refusal {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_is_added_unless_the_client_has_its_own() {
        let asked = |target: &str| {
            let mut parts = http::Request::get(target).body(()).unwrap().into_parts().0;
            let plain = push_down("shardRange(a, '0x0')", &mut parts).unwrap();
            (parts.uri.to_string(), plain.map(|uri| uri.to_string()))
        };
        let added = "shardSelector=shardRange%28a%2C%20%270x0%27%29";
        for (target, with) in [("/api/v1/pods", "?"), ("/api/v1/pods?limit=5&watch=1", "&")] {
            assert_eq!(asked(target), (format!("{target}{with}{added}"), Some(target.to_owned())));
        }
        for own in ["/api/v1/pods?shardSelector=", "/api/v1/pods?a=1&shardSelector=x"] {
            assert_eq!(asked(own), (own.to_owned(), None));
        }
    }
}
