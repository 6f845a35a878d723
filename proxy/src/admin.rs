//! What operators ask a proxy: is it alive, is it ready, what is it set to. Served on listeners and
//! a runtime of their own, so that a scrape never waits for the data path nor slows it.

use std::{
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
use serde::Serialize;
use tokio::net::TcpListener;

use crate::{drain::Drain, metrics::Metrics};

/// What `/configz` shows. It holds no credential.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// The ring, `namespace/name`.
    pub ring: String,
    /// This shard.
    pub shard: String,
    /// Its term.
    pub term: u64,
    /// The version of the `ShardMap` in force.
    pub map_version: i64,
    /// How many slots this shard owns.
    pub owned_slots: usize,
    /// Where the controller connects.
    pub listen: String,
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

/// The state behind the admin pages.
#[derive(Clone)]
pub struct Admin {
    /// What the proxy is set to.
    pub config: Arc<Config>,
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
    /// Serves both listeners until one of them fails.
    pub async fn serve(self, admin: TcpListener, metrics: TcpListener) -> std::io::Result<()> {
        let pages = Router::new()
            .route("/livez", get(|| async { "ok\n" }))
            .route("/readyz", get(readyz))
            .route("/drain", post(drain))
            .route(
                "/configz",
                get(|State(admin): State<Self>| async move { Json(&*admin.config).into_response() }),
            )
            .with_state(self.clone());
        let scrape = Router::new().route("/metrics", get(render)).with_state(self);
        tokio::try_join!(axum::serve(admin, pages), axum::serve(metrics, scrape)).map(|_| ())
    }
}

async fn drain(State(admin): State<Admin>) -> &'static str {
    admin.drain.begin();
    "draining\n"
}

async fn readyz(State(admin): State<Admin>) -> Response {
    if admin.drain.has_begun() {
        return (StatusCode::SERVICE_UNAVAILABLE, "not ready: draining\n").into_response();
    }
    if admin.readiness.is_set() {
        return "ok\n".into_response();
    }
    let hub = admin.config.upstreams.first().map_or("?", |(_, url)| url);
    (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: no connection to {hub} yet\n")).into_response()
}

async fn render(State(admin): State<Admin>) -> Response {
    match admin.metrics.render() {
        Ok(text) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
