//! The way of a request, outer to inner; nothing else composes rooms.

mod audit;
pub mod clusters;
mod fence;
mod gate;
mod intake;
mod locks;
mod reading;
mod redraw;
mod refused;
mod scene;
mod upgrades;

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use arc_swap::ArcSwap;
use http::{HeaderMap, Method, Request, Response, StatusCode, header, request::Parts};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use parking_lot::Mutex;
use tokio::time::Instant;

pub use self::clusters::{Clusters, Home};
use self::{
    audit::{AuditId, AuditIds},
    clusters::Cluster,
    fence::{Answer, Fenced},
    gate::Stop,
    intake::Onward,
    reading::Reading,
    upgrades::Exit,
};
use crate::{
    body::{self, Body, Boundary, Ending, Joined, Metered, Open},
    drain::Drain,
    election::LockNames,
    identity::Life,
    listen::{Handler, token::ListenToken},
    metrics::Metrics,
    ownership::{Live, Ring, Role, TermToken},
    request::{
        KubeRequest, RequestError,
        accept::{BodyType, StatusEncoding},
        path::{Target, Verb},
    },
    respond::Refusal,
    upstream::{Received, Traffic, user_agent::Claim},
    view::View,
};

/// Everything that a request needs on its way.
pub struct Stack {
    /// The ring as this shard sees it now. A request is served by the one that it found.
    pub ring: ArcSwap<Ring>,
    /// What is measured.
    pub metrics: Arc<Metrics>,
    /// Where requests go.
    pub clusters: Clusters,
    /// Whose credential they carry there.
    pub credentials: Credentials,
    /// When watches end.
    pub drain: Drain,
    /// What the controller is shown.
    pub view: Arc<View>,
    /// The gate; none in a ring of files.
    pub live: Option<Arc<Live>>,
    /// What writes carry in mode `Credential`.
    pub term_token: Arc<TermToken>,
    /// Which controller is served; none in a ring of files.
    pub life: Option<Arc<Mutex<Life>>>,
    ids: AuditIds,
    watches: AtomicU32,
}

/// The way in of one listener.
pub struct Door {
    /// Where its requests go.
    pub stack: Arc<Stack>,
    /// Which cluster it stands for.
    pub home: Home,
}

/// Whose credential goes upstream.
pub enum Credentials {
    /// The client's own.
    Client,
    /// The proxy's; clients must present the listener's token.
    Own(Arc<ListenToken>),
}

// === impl Stack ===

impl Stack {
    /// The rooms of one shard.
    pub fn new(
        ring: Arc<Ring>,
        clusters: Clusters,
        credentials: Credentials,
        drain: Drain,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            ring: ArcSwap::new(ring),
            view: Arc::new(View::new(metrics.clone())),
            metrics,
            clusters,
            credentials,
            drain,
            live: None,
            term_token: Arc::default(),
            life: None,
            ids: AuditIds::new(),
            watches: AtomicU32::new(0),
        }
    }

    /// The same in a ring whose slots come and go.
    #[must_use]
    pub fn with_gate(self, gate: Arc<Live>, life: Arc<Mutex<Life>>) -> Self {
        Self { live: Some(gate), life: Some(life), ..self }
    }

    /// Answers a request that came through the listener of a cluster; a refusal is an answer too.
    async fn handle(&self, home: Home, request: Request<Incoming>) -> Response<Body> {
        let is_head = request.method() == Method::HEAD;
        let (mut parts, body) = request.into_parts();
        let exit = Exit::take(&mut parts);
        let (verb, mut response) = self.answer(home, parts, body, exit.clone()).await;
        let is_tunnel = response.status() == StatusCode::SWITCHING_PROTOCOLS;
        if let Some(exit) = exit.filter(|_| !is_tunnel) {
            exit.close(&mut response);
        }
        self.metrics.requests.with_label_values(&[verb, response.status().as_str()]).inc();
        if is_head || is_tunnel { response.map(|_| body::empty()) } else { self.metered(verb, response) }
    }

    async fn answer(
        &self,
        home: Home,
        mut parts: Parts,
        body: Incoming,
        exit: Option<Exit>,
    ) -> (&'static str, Response<Body>) {
        let id = self.ids.of(&mut parts.headers);
        let signed = |refusal: Refusal, encoding| {
            let mut response = refusal.into_response(encoding);
            id.sign(response.headers_mut());
            response
        };
        let (cluster, request) = match self.read(home, &mut parts) {
            Ok(read) => read,
            Err(refusal) => return ("", signed(refusal, StatusEncoding::wanted(&parts.headers))),
        };
        let verb = verb_label(&request);
        // 9 respond: a refusal is a Status in the caller's encoding.
        let walked = self.walk(cluster, &request, &id, (parts, body, exit)).await;
        (verb, walked.unwrap_or_else(|refusal| signed(refusal, request.status)))
    }

    fn read(&self, home: Home, parts: &mut Parts) -> Result<(&Cluster, KubeRequest), Refusal> {
        // 1 listen: where the proxy has rights of its own, who asks needs its token; the path tells the cluster.
        if let Credentials::Own(token) = &self.credentials {
            token.check(&parts.headers)?;
        }
        let (cluster, rest) = self.clusters.route(home, &parts.uri)?;
        if let Some(uri) = rest {
            parts.uri = uri;
        }
        // 2 request: what cannot be read is refused.
        let request = KubeRequest::parse(&parts.method, &parts.uri, &parts.headers);
        Ok((cluster, request.map_err(|error| self.unclear(error))?))
    }

    fn unclear(&self, error: RequestError) -> Refusal {
        self.metrics.refused_requests.with_label_values(&[error.reason()]).inc();
        Refusal::new(StatusCode::BAD_REQUEST, "BadRequest", error.to_string())
    }

    async fn walk(
        &self,
        cluster: &Cluster,
        request: &KubeRequest,
        id: &AuditId,
        (parts, body, exit): (Parts, Incoming, Option<Exit>),
    ) -> Result<Response<Body>, Refusal> {
        // 1 listen: bodies get their limits; who asks to leave HTTP can do so.
        let mut onward = Onward::new(request, parts, body)?;
        if request.upgrade.is_some() && exit.is_none() {
            return Err(upgrades::no_exit());
        }
        let ring = self.ring.load_full();
        // 5 ownership and 6 election: may this shard do it, and by what right.
        let (lock, claim) = match self.admit(&ring, cluster, request, &mut onward).await {
            Ok(admitted) => admitted,
            Err(stop) => {
                onward.discard().await;
                return self.stopped(request, id, stop);
            }
        };
        // 8 filter: the server is asked only for what can be read on the way back, and to leave out what it can.
        let query = onward.parts.uri.query();
        let reading = Reading::of(&ring, &cluster.name, request, lock, query);
        if ring.role == Role::Nobody && !reading.is_whole() {
            return Err(no_shard());
        }
        let is_refused = request.target().is_some_and(|target| cluster.refused.holds(target, Instant::now()));
        let plain = reading.ask(&mut onward.parts, !is_refused)?;
        if request.upgrade.is_some() && request.info.verb == Verb::Watch && !reading.is_whole() {
            return Err(upgrades::unfilterable());
        }
        // Where slots come and go, what is shown is settled when the answer begins.
        let mut scene = self.scene(cluster, request, &reading, &mut onward.parts)?;
        // Evidence: the audit log tells who sent this, and by what right.
        onward.sign(&ring.agent, None);
        self.authorize(cluster, &mut onward.parts.headers)?;
        let plain = plain.map(|uri| reading::asked_plainly(&onward.parts, uri));
        if let Some(scene) = &mut scene {
            scene.goes_upstream(&onward.parts);
        }
        // 7 upstream.
        let again = onward.again();
        let response = match claim {
            None => self.send(cluster, request, onward).await?,
            Some(claim) => {
                let fenced = Fenced { ring: &ring, cluster, request, claim };
                match Box::pin(self.send_claimed(&fenced, onward)).await {
                    Ok(Answer::Coming(response)) => response,
                    Ok(Answer::Read(response)) => return Ok(response),
                    Err(refusal) => {
                        self.count_refused(request, id, &refusal);
                        return Err(refusal);
                    }
                }
            }
        };
        let response = match plain {
            Some(parts) if reading::may_be_about_the_selector(response.status()) => {
                request.target().inspect(|target| cluster.refused.note(target, Instant::now()));
                let sent = cluster.upstream.send(parts, body::empty(), traffic_of(request)).await;
                sent.map_err(|error| error.refusal(&cluster.name, true))?
            }
            _ => response,
        };
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return match (request.upgrade, exit) {
                (Some(protocol), Some(exit)) if reading.is_whole() => {
                    exit.tunnel(protocol, response, &self.metrics)
                }
                _ => Err(upgrades::unasked(&response)),
            };
        }
        // 8 filter, 9 respond.
        let response = reading.apply(response, &self.metrics, scene).await?;
        let response = self.redraw(&ring, cluster, request, again, response).await?;
        Ok(if request.info.verb == Verb::Watch { self.ending(response) } else { response })
    }

    async fn send(
        &self,
        cluster: &Cluster,
        request: &KubeRequest,
        onward: Onward,
    ) -> Result<Response<Received>, Refusal> {
        let Onward { parts, body, cut, .. } = onward;
        let sent = match request.upgrade {
            Some(protocol) => cluster.upstream.upgrade(parts, body, protocol, traffic_of(request)).await,
            None => cluster.upstream.send(parts, body, traffic_of(request)).await,
        };
        let reads = request.method == Method::GET && !request.is_write();
        let response =
            sent.map_err(|error| cut.refusal().unwrap_or_else(|| error.refusal(&cluster.name, reads)))?;
        if request.is_write() {
            self.metrics.writes.with_label_values(&[verb_label(request)]).inc();
        }
        Ok(response)
    }

    /// The client's credential passes as it came, unless the proxy is to use its own.
    fn authorize(&self, cluster: &Cluster, headers: &mut HeaderMap) -> Result<(), Refusal> {
        let Credentials::Own(_) = &self.credentials else { return Ok(()) };
        let missing = || {
            let message = format!("upstream {}: the proxy has no credential for it", cluster.name);
            Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
        };
        let credential = cluster.upstream.credential().ok_or_else(missing)?;
        headers.insert(header::AUTHORIZATION, credential.header());
        Ok(())
    }

    /// A lock belongs to its shard, whatever slot its namespace is in; so election is asked first.
    async fn admit<'r>(
        &self,
        ring: &'r Ring,
        cluster: &Cluster,
        request: &KubeRequest,
        onward: &mut Onward,
    ) -> Result<(Option<&'r LockNames>, Option<Claim>), Stop> {
        match self.rename_lock(ring, request, onward).await? {
            Some(lock) => Ok((Some(lock), None)),
            None => Ok((None, self.pass_gate(ring, cluster, request, onward).await?)),
        }
    }

    fn stopped(&self, request: &KubeRequest, id: &AuditId, stop: Stop) -> Result<Response<Body>, Refusal> {
        match stop {
            Stop::Refused(refusal) => {
                self.count_refused(request, id, &refusal);
                Err(refusal)
            }
            Stop::Answered(mut response) => {
                id.sign(response.headers_mut());
                Ok(response)
            }
        }
    }

    fn count_refused(&self, request: &KubeRequest, id: &AuditId, refusal: &Refusal) {
        // Without a cause it is the client's mistake and no matter of shards.
        let Some(cause) = &refusal.cause else { return };
        let (verb, reason) = (verb_label(request), cause.reason);
        self.metrics.refused_writes.with_label_values(&[verb, reason]).inc();
        let (path, audit_id, message) = (&request.info.path, id.text(), &refusal.message);
        tracing::info!(path, audit_id, verb, reason, message, "write refused");
    }

    /// A watch that ends between two events. One whose events cannot be told apart is cut when the drain is over.
    fn ending(&self, response: Response<Body>) -> Response<Body> {
        if response.headers().contains_key(header::CONTENT_ENCODING) {
            return response;
        }
        let content_type = response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let boundary = match BodyType::of(content_type) {
            BodyType::Json if response.status().is_success() => Boundary::LINES,
            BodyType::Protobuf if response.status().is_success() => Boundary::FRAMES,
            _ => return response,
        };
        let told = self.drain.clone().watch_ends(self.watches.fetch_add(1, Ordering::Relaxed));
        response.map(|body| Ending::new(body, boundary, told).boxed_unsync())
    }

    fn metered(&self, verb: &str, response: Response<Body>) -> Response<Body> {
        let (sent, streams) = (self.metrics.bytes.with_label_values(&["sent"]), &self.metrics.streams);
        let open = Open::one(streams.with_label_values(&[verb]));
        response.map(|body| Metered::new(Joined::new(body), sent, Some(open)).boxed_unsync())
    }
}

// === impl Door ===

impl Handler for Door {
    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        self.stack.handle(self.home, request).await
    }
}

/// What a list or a watch is told while this proxy has no shard: never an empty list, never an unfiltered one.
fn no_shard() -> Refusal {
    let message = "this proxy has no shard yet, so it cannot tell what to show: it waits for one of the ring's identity \
                   Leases to be free";
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message).retry_after(1)
}

/// The head of an upgrade comes soon, as the API server's own; only what is proxied may take as long as it likes.
fn traffic_of(request: &KubeRequest) -> Traffic {
    let is_proxied = request.target().is_some_and(Target::is_proxied);
    match request.info.verb {
        Verb::Watch => Traffic::Watch,
        _ if request.upgrade.is_some() && !is_proxied => Traffic::Call,
        _ if request.is_long_running() => Traffic::Stream,
        _ => Traffic::Call,
    }
}

/// A fixed set, so that a client cannot make labels. An upgrade is what the API server's own metrics call it.
fn verb_label(request: &KubeRequest) -> &'static str {
    match request.info.verb {
        _ if request.upgrade.is_some() => "connect",
        Verb::Get => "get",
        Verb::List => "list",
        Verb::Watch => "watch",
        Verb::Create => "create",
        Verb::Update => "update",
        Verb::Patch => "patch",
        Verb::Delete => "delete",
        Verb::DeleteCollection => "deletecollection",
        Verb::Proxy | Verb::Unknown | Verb::NonResource(_) => "other",
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_the_head_of_what_is_proxied_is_awaited_for_ever() {
        let traffic = |target: &str, upgrade: bool| {
            let lines = [(header::CONNECTION, "Upgrade"), (header::UPGRADE, "websocket")];
            let lines = lines.into_iter().filter(|_| upgrade);
            let headers = lines.map(|(name, value)| (name, HeaderValue::from_static(value))).collect();
            traffic_of(&KubeRequest::parse(&Method::GET, &target.parse().unwrap(), &headers).unwrap())
        };
        let pod = "/api/v1/namespaces/a/pods/b";
        for (target, plain, upgraded) in [
            (format!("{pod}/proxy/c"), Traffic::Stream, Traffic::Stream),
            ("/api/v1/nodes/a/proxy/".to_owned(), Traffic::Stream, Traffic::Stream),
            (format!("{pod}/exec"), Traffic::Stream, Traffic::Call),
            (format!("{pod}/portforward"), Traffic::Stream, Traffic::Call),
            ("/api/v1/pods?watch=1".to_owned(), Traffic::Watch, Traffic::Watch),
            (pod.to_owned(), Traffic::Call, Traffic::Call),
        ] {
            assert_eq!((traffic(&target, false), traffic(&target, true)), (plain, upgraded), "{target}");
        }
    }
}
