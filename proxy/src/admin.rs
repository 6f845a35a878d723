//! What operators ask a proxy: is it alive, is it ready, what is it set to. Served on listeners and
//! a runtime of their own, so that a scrape never waits for the data path nor slows it.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use axum::{
    Json, Router,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use http::Request;
use http_body_util::BodyExt;
use hyper::{body::Incoming, service::Service};
use hyper_util::service::TowerToHyperService;
use prometheus::IntGauge;
use serde::Serialize;
use tokio::net::TcpListener;
use tokio_util::task::TaskTracker;

use crate::{
    body::Body,
    drain::Drain,
    identity::Attendance,
    listen::{Handler, Listener, Places, Security},
    metrics::Metrics,
};

/// Connections to one of the two listeners: probes, a scraper or two, a person.
const CONNECTIONS: usize = 16;

/// What `/configz` shows. It holds no credential.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// The ring, `namespace/name`.
    pub ring: String,
    /// What the proxy is for that shard.
    pub role: &'static str,
    /// This shard.
    pub shard: String,
    /// Its term.
    pub term: u64,
    /// The version of the `ShardMap` in force.
    pub map_version: i64,
    /// How many slots this shard owns.
    pub owned_slots: usize,
    /// Where the controller reaches the hub.
    pub listen: String,
    /// Cluster names and where each is reached by itself, the hub first.
    pub listeners: Vec<(String, String)>,
    /// Where `/metrics` is.
    pub metrics: SocketAddr,
    /// Cluster names and API server addresses, the hub first.
    pub upstreams: Vec<(String, String)>,
    /// The proxy's version.
    pub version: &'static str,
}

/// Whether the proxy is ready to serve; set by the data path.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<AtomicBool>);

/// Pages as a listener wants them.
struct Pages(Router);

/// The state behind the admin pages.
#[derive(Clone)]
pub struct Admin {
    /// Tells what the proxy is set to now.
    pub config: Arc<dyn Fn() -> Config + Send + Sync>,
    /// Whether it is ready.
    pub readiness: Readiness,
    /// Whether it is to end.
    pub drain: Drain,
    /// What it measures.
    pub metrics: Arc<Metrics>,
}

// === impl Readiness ===

impl Readiness {
    /// From here on the proxy is ready.
    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

// === impl Admin ===

impl Admin {
    /// Serves both listeners for as long as the proxy runs.
    pub async fn serve(self, admin: std::net::TcpListener, metrics: std::net::TcpListener) -> io::Result<()> {
        let (admin, metrics) = (TcpListener::from_std(admin)?, TcpListener::from_std(metrics)?);
        let scrape = Router::new().route("/metrics", get(render)).with_state(self.clone());
        let open = self.metrics.admin_connections.clone();
        let pages = self.pages(admin.local_addr()?);
        let tracker = TaskTracker::new();
        tokio::join!(
            listener(admin, pages, open.clone()).serve(tracker.clone()),
            listener(metrics, scrape, open).serve(tracker)
        );
        Ok(())
    }

    fn pages(self, address: SocketAddr) -> Router {
        // Who can end the proxy could end it again and again.
        let drain = if address.ip().is_loopback() { post(drain) } else { post(far) };
        Router::new()
            .route("/livez", get(|| async { "ok\n" }))
            .route("/readyz", get(readyz))
            .route("/configz", get(configz))
            .route("/drain", drain)
            .with_state(self)
    }
}

// === impl Pages ===

impl Handler for Pages {
    async fn handle(&self, request: Request<Incoming>) -> http::Response<Body> {
        let Ok(response) = TowerToHyperService::new(self.0.clone()).call(request).await;
        response.map(|body| body.map_err(Into::into).boxed_unsync())
    }
}

/// A listener like the controller's: few connections, and those that ask nothing are cut. A drain does not end it.
fn listener(socket: TcpListener, pages: Router, open: IntGauge) -> Listener<TcpListener, Pages> {
    let (places, drain) = (Places::new(CONNECTIONS), Drain::default());
    Listener {
        socket,
        security: Security::Plain,
        places,
        open,
        attendance: Attendance::default(),
        drain,
        handler: Arc::new(Pages(pages)),
    }
}

async fn configz(State(admin): State<Admin>) -> Response {
    Json((admin.config)()).into_response()
}

async fn drain(State(admin): State<Admin>) -> &'static str {
    admin.drain.begin();
    "draining\n"
}

async fn far() -> (StatusCode, &'static str) {
    (StatusCode::FORBIDDEN, "only where --admin is a loopback address; send TERM instead\n")
}

async fn readyz(State(admin): State<Admin>) -> Response {
    if admin.drain.has_begun() {
        return (StatusCode::SERVICE_UNAVAILABLE, "not ready: draining\n").into_response();
    }
    if admin.readiness.is_set() {
        return "ok\n".into_response();
    }
    let config = (admin.config)();
    let hub = config.upstreams.first().map_or("?", |(_, url)| url);
    (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: no connection to {hub} yet\n")).into_response()
}

async fn render(State(admin): State<Admin>) -> Response {
    match admin.metrics.render() {
        Ok(text) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::Empty;

    use super::*;

    async fn drained(address: &str) -> (StatusCode, bool) {
        let address: SocketAddr = address.parse().unwrap();
        let config = move || Config {
            ring: String::new(),
            role: "holder",
            shard: String::new(),
            term: 1,
            map_version: 1,
            owned_slots: 0,
            listen: String::new(),
            listeners: Vec::new(),
            metrics: address,
            upstreams: Vec::new(),
            version: "",
        };
        let (drain, metrics) = (Drain::default(), Arc::new(Metrics::new().unwrap()));
        let admin = Admin {
            config: Arc::new(config),
            readiness: Readiness::default(),
            drain: drain.clone(),
            metrics,
        };
        let pages = TowerToHyperService::new(admin.pages(address));
        let request = Request::post("/drain").body(Empty::<bytes::Bytes>::new()).unwrap();
        (pages.call(request).await.unwrap().status(), drain.has_begun())
    }

    #[tokio::test]
    async fn only_who_is_on_this_machine_may_end_the_proxy() {
        assert_eq!(drained("127.0.0.1:1").await, (StatusCode::OK, true));
        assert_eq!(drained("[::1]:1").await, (StatusCode::OK, true));
        for far in ["0.0.0.0:1", "10.0.0.1:1", "[::]:1"] {
            assert_eq!(drained(far).await, (StatusCode::FORBIDDEN, false), "{far}");
        }
    }
}
