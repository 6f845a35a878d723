//! Lists and watches in a ring whose slots come and go: what is shown is the view's matter.

use std::sync::Arc;

use http::{Response, StatusCode, header, request::Parts};
use http_body_util::BodyExt;

use super::{
    Cluster, Stack,
    intake::uri,
    reading::{self, Counted, Form, ObjectMeter, Reading, filter},
};
use crate::{
    body::{self, Body},
    filter::Shape,
    ownership::lens::ShardLens,
    request::{KubeRequest, query::Query},
    respond::Refusal,
    upstream::Upstream,
    view::{self, Opened, Opening, View},
};

const CONTINUE: &str = "continue";

/// A read of what comes and goes.
pub(super) struct Scene {
    view: Arc<View>,
    cluster: Arc<str>,
    upstream: Arc<Upstream>,
    client: String,
    /// Whether it is no later page of a list.
    is_first: bool,
    /// The head as it went upstream.
    head: Option<Parts>,
}

// === impl Stack ===

impl Stack {
    /// The scene of a request; none where nothing moves. A page token becomes the server's own.
    pub(super) fn scene(
        &self,
        cluster: &Cluster,
        request: &KubeRequest,
        reading: &Reading,
        parts: &mut Parts,
    ) -> Result<Option<Scene>, Refusal> {
        let Some(target) = request.target().filter(|_| self.live.is_some() && reading.moves()) else {
            return Ok(None);
        };
        let client = view::client(&request.info.path, target, &parts.headers);
        let is_first = !turn_page(&self.view, parts)?;
        Ok(Some(Scene {
            view: self.view.clone(),
            cluster: cluster.name.clone(),
            upstream: cluster.upstream.clone(),
            client,
            is_first,
            head: None,
        }))
    }
}

// === impl Scene ===

impl Scene {
    /// The request is complete and goes upstream.
    pub(super) fn goes_upstream(&mut self, parts: &Parts) {
        self.head = Some(parts.clone());
    }

    /// Shows the client what the view shows.
    pub(super) async fn filter(
        self,
        response: Response<Counted>,
        shape: Shape,
        lens: ShardLens,
        form: &Form,
        meter: ObjectMeter,
    ) -> Result<Response<Body>, Refusal> {
        let Self { view, cluster, upstream, client, is_first, head } = self;
        let Some(head) = head.filter(|_| shape == Shape::Watch && response.status().is_success()) else {
            let lens = view.list(&cluster, client, lens, is_first);
            return filter(response, shape, lens, form, meter).await;
        };
        let (mut parts, body) = response.into_parts();
        let encoding = form.readable(&parts.headers)?;
        let query = head.uri.query().unwrap_or_default().to_owned();
        let (ask, tables) = (view::asking(upstream, head), form.tables());
        let opening = Opening { cluster, client, lens, query, ask, encoding, tables };
        let body = match view.open(opening, body, meter) {
            Opened::Watch(watch) => watch.map_err(Into::into).boxed_unsync(),
            Opened::Expired(event) => body::full(event),
        };
        form.relabel(&mut parts.headers);
        parts.headers.remove(header::CONTENT_LENGTH);
        Ok(Response::from_parts(parts, body))
    }
}

/// Whether a later page of a list is asked for, now by the server's own token.
fn turn_page(view: &View, parts: &mut Parts) -> Result<bool, Refusal> {
    let mut query = Query::new(parts.uri.query());
    let token = query.get(CONTINUE).map_err(|error| reading::bad_request(&error))?;
    let Some(token) = token.filter(|token| !token.is_empty()) else { return Ok(false) };
    let token = view.page(&token).ok_or_else(expired)?.to_owned();
    query.set(CONTINUE, &token);
    parts.uri = uri(&query, parts.uri.path())?;
    Ok(true)
}

/// What the API server answers to a token that it cannot go on from (apiserver `pkg/storage/errors.go`).
fn expired() -> Refusal {
    let message = "The provided continue parameter is too old to display a consistent list result. You must start a new \
                   list without the continue parameter.";
    Refusal::new(StatusCode::GONE, "Expired", message)
}
