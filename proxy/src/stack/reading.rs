//! How a response is read on its way back: not at all, through the shard's lens, or as the shard's lock.
//!
//! Decided before the request goes upstream, because the server has to be asked for a form that
//! can be read. What comes back in another form is refused, never passed unread.

mod form;

use std::{fmt::Display, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri, header, request::Parts};
use http_body_util::{BodyExt, Limited};

pub(super) use self::form::{Form, decoded};
use super::scene::Scene;
use crate::{
    body::{self, Body, Gunzip, Metered},
    election::LockNames,
    filter::{
        Counts, Encoding, FilterError, Lens, Scanner, Shape,
        body::{BodyError, Filtered, Meter},
        object,
    },
    metrics::Metrics,
    ownership::{Ring, lens::ShardLens},
    request::{KubeRequest, accept::BodyType, path::Verb, query::Query},
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
    Filtered(Shape, ShardLens, Form),
    /// It is about the shard's lock, which gets back the name that the controller knows.
    Lock(LockNames, Form),
}

/// A body whose bytes are counted as they come.
pub(super) type Counted = Gunzip<Metered<Received>>;

/// Counts what a filter shows and hides.
pub(super) struct ObjectMeter(Arc<Metrics>);

// === impl Reading ===

impl Reading {
    /// How the response to a request is read; `query` is the one that goes upstream.
    pub(super) fn of(
        ring: &Arc<Ring>,
        cluster: &Arc<str>,
        request: &KubeRequest,
        lock: Option<&LockNames>,
        query: Option<&str>,
    ) -> Self {
        let form = || Form::of(request, query);
        let shape = match request.info.verb {
            _ if request.method == Method::HEAD => return Self::Whole,
            Verb::List => Shape::List,
            Verb::Watch => Shape::Watch,
            _ => return lock.map_or(Self::Whole, |lock| Self::Lock(lock.clone(), form())),
        };
        let lens = request.target().and_then(|target| ShardLens::for_read(ring, cluster, target));
        lens.map_or(Self::Whole, |lens| Self::Filtered(shape, lens, form()))
    }

    /// Whether what is shown depends on slots.
    pub(super) fn moves(&self) -> bool {
        matches!(self, Self::Filtered(_, lens, _) if lens.moves())
    }

    /// Whether the response passes as it comes.
    pub(super) fn is_whole(&self) -> bool {
        matches!(self, Self::Whole)
    }

    /// Asks the server only for what can be read, and, if it `selects`, to leave out by itself what it can. Where it
    /// was asked for the latter this returns the target without that, as a server may refuse it. What is done to a
    /// lock could not be undone if the answer were none that can be read.
    pub(super) fn ask(&self, parts: &mut Parts, selects: bool) -> Result<Option<Uri>, Refusal> {
        match self {
            Self::Whole => Ok(None),
            Self::Filtered(_, lens, form) => {
                form.ask(parts)?;
                lens.shard_selector().filter(|_| selects).map_or(Ok(None), |own| push_down(own, parts))
            }
            Self::Lock(_, form) => {
                form.check()?;
                form.ask(parts)?;
                Ok(None)
            }
        }
    }

    /// Makes the response that the client gets.
    pub(super) async fn apply(
        self,
        response: Response<Received>,
        metrics: &Arc<Metrics>,
        scene: Option<Scene>,
    ) -> Result<Response<Body>, Refusal> {
        let received = metrics.bytes.with_label_values(&["received"]);
        let response = response.map(|body| Metered::new(body, received, None));
        match self {
            Self::Whole => Ok(response.map(|body| body.map_err(Into::into).boxed_unsync())),
            Self::Filtered(shape, lens, form) => {
                let meter = ObjectMeter(metrics.clone());
                let response = decoded(response)?;
                match scene {
                    Some(scene) => scene.filter(response, shape, lens, &form, meter).await,
                    None => filter(response, shape, lens, &form, meter).await,
                }
            }
            Self::Lock(lock, form) => rename(decoded(response)?, &lock, &form).await,
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

/// The head of a list that is asked for again at `uri`. A body is gone by then, which a list needs none of.
pub(super) fn asked_plainly(asked: &Parts, uri: Uri) -> Parts {
    let mut parts = asked.clone();
    parts.uri = uri;
    parts.headers.remove(header::CONTENT_LENGTH);
    parts
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

/// Which of the two forms that can be read a response has, once it is [`decoded`].
pub(super) fn readable(headers: &HeaderMap) -> Result<Encoding, Refusal> {
    let content_type = headers.get(header::CONTENT_TYPE).map(|value| value.to_str().unwrap_or("unreadable"));
    match BodyType::of(content_type) {
        BodyType::Json => Ok(Encoding::Json),
        BodyType::Protobuf => Ok(Encoding::Protobuf),
        _ => Err(unreadable(&format!("Content-Type {:?}", content_type.unwrap_or_default()))),
    }
}

/// Shows the client what the lens allows. An error of the server is not looked into.
pub(super) async fn filter<L: Lens + Send + Unpin + 'static>(
    response: Response<Counted>,
    shape: Shape,
    lens: L,
    form: &Form,
    meter: ObjectMeter,
) -> Result<Response<Body>, Refusal> {
    let (mut parts, body) = response.into_parts();
    if !parts.status.is_success() {
        form.relabel(&mut parts.headers);
        return Ok(Response::from_parts(parts, body.boxed_unsync()));
    }
    let scanner = Scanner::new(form.readable(&parts.headers)?, shape, lens);
    let scanner = match form.tables() {
        Some(rows) => scanner.with_tables(rows),
        None => scanner,
    };
    let mut filtered = Filtered::new(body, scanner, meter);
    if shape == Shape::List {
        filtered.begin().await.map_err(|error| unusable(&error))?;
    }
    form.relabel(&mut parts.headers);
    parts.headers.remove(header::CONTENT_LENGTH);
    Ok(Response::from_parts(parts, filtered.map_err(Into::into).boxed_unsync()))
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
async fn rename(
    response: Response<Counted>,
    lock: &LockNames,
    form: &Form,
) -> Result<Response<Body>, Refusal> {
    let (mut parts, body) = response.into_parts();
    let encoding = form.readable(&parts.headers);
    #[allow(clippy::disallowed_methods, reason = "bounded")]
    let bytes = Limited::new(body, OBJECT_BYTES).collect().await;
    let bytes =
        bytes.map_err(|error| unreadable(&format!("a lock whose body broke off ({error})")))?.to_bytes();
    let renamed = match encoding {
        _ if bytes.is_empty() => bytes,
        Ok(encoding) => {
            known_name(&bytes, encoding, lock, form).map_err(|error| unreadable(&error.to_string()))?
        }
        Err(refusal) if parts.status.is_success() => return Err(refusal),
        Err(_) => bytes,
    };
    form.relabel(&mut parts.headers);
    parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(renamed.len()));
    Ok(Response::from_parts(parts, body::full(renamed)))
}

fn known_name(
    bytes: &Bytes,
    encoding: Encoding,
    lock: &LockNames,
    form: &Form,
) -> Result<Bytes, FilterError> {
    if encoding == Encoding::Json
        && let Some(rows) = form.tables()
        && let Some(table) = object::rename_in_table(bytes, &lock.own, &lock.original, rows)?
    {
        return Ok(table);
    }
    object::rename(bytes, encoding, &lock.own, &lock.original)
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

    #[test]
    fn a_list_that_is_asked_for_again_announces_no_body() {
        let asked = http::Request::get("/api/v1/pods?shardSelector=x")
            .header(header::CONTENT_LENGTH, 5)
            .header(header::ACCEPT, "application/json")
            .body(());
        let plain = asked_plainly(&asked.unwrap().into_parts().0, Uri::from_static("/api/v1/pods"));
        assert_eq!(plain.uri, "/api/v1/pods");
        assert_eq!(plain.headers.keys().collect::<Vec<_>>(), [header::ACCEPT]);
    }
}
