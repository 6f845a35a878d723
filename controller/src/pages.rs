//! What operators ask the control plane: is it alive, is it ready, what does it measure.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use tokio::net::TcpListener;

use crate::metrics::Metrics;

/// The state behind the pages.
#[derive(Clone)]
pub struct Pages {
    /// What is measured.
    pub metrics: Arc<Metrics>,
    /// Whether the hub has answered.
    pub ready: Ready,
}

/// Whether the control plane has reached the hub; set once.
#[derive(Clone, Debug, Default)]
pub struct Ready(Arc<AtomicBool>);

// === impl Ready ===

impl Ready {
    /// From here on it is ready.
    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }
}

// === impl Pages ===

impl Pages {
    /// Serves `/metrics`, `/livez` and `/readyz` for as long as the process runs.
    pub async fn serve(self, listener: TcpListener) -> std::io::Result<()> {
        let pages = Router::new()
            .route("/livez", get(|| async { "ok\n" }))
            .route("/readyz", get(readyz))
            .route("/metrics", get(render))
            .with_state(self);
        axum::serve(listener, pages).await
    }
}

async fn readyz(State(pages): State<Pages>) -> Response {
    if pages.ready.0.load(Ordering::Acquire) {
        return "ok\n".into_response();
    }
    (StatusCode::SERVICE_UNAVAILABLE, "not ready: the hub has not answered yet\n").into_response()
}

async fn render(State(pages): State<Pages>) -> Response {
    match pages.metrics.render() {
        Ok(text) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
