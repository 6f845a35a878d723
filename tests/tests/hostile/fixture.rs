//! A proxy and an upstream that takes every request, and what the tests look at.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::Method;
use shoal_tests::meter::Growth;
use shoal_tests::scripted::client::{self, Http, Reader, Wire};
use shoal_tests::scripted::pods::namespaces;
use shoal_tests::scripted::{Exchange, PING, PONG, STREAMS, Scripted};
pub(crate) use shoal_tests::soon;
use shoal_tests::{Proxy, RunDir};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};

pub(crate) const JSON: &str = "application/json";
/// How the proxy is started where nothing is special.
pub(crate) const PLAINLY: &str = r#"exec "$@""#;

/// A proxy whose upstream reads each body to its end and answers.
pub(crate) struct Stand {
    pub(crate) proxy: Proxy,
    pub(crate) upstream: Scripted,
    whole: Arc<AtomicUsize>,
    // Dropped last.
    _dir: RunDir,
}

/// What a proxy's memory was, to see what is added.
pub(crate) struct Memory(Growth);

// === impl Stand ===

impl Stand {
    pub(crate) async fn start(test: &str) -> Self {
        Self::start_by(PLAINLY, test).await
    }

    pub(crate) async fn start_by(line: &str, test: &str) -> Self {
        let dir = RunDir::for_test(test).unwrap();
        let whole = Arc::new(AtomicUsize::new(0));
        let count = whole.clone();
        let script = move |exchange| take(exchange, count.clone());
        let upstream = Scripted::start(dir.path(), STREAMS, script).await.unwrap();
        let proxy = upstream.proxy_by(line, dir.path()).await.unwrap();
        Self { proxy, upstream, whole, _dir: dir }
    }

    /// Bodies of writes that arrived whole, hence writes that a server would have done.
    pub(crate) fn whole(&self) -> usize {
        self.whole.load(Ordering::SeqCst)
    }

    /// A new client is served.
    pub(crate) async fn serves(&self) {
        for http in [Http::One, Http::Two] {
            ping(&soon("a connection", Wire::connect(&self.proxy, http)).await.unwrap()).await;
        }
    }

    /// Lines of the proxy's log.
    pub(crate) fn log_lines(&self) -> usize {
        self.log().lines().count()
    }

    /// The proxy's log.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.proxy.process().log_path()).unwrap()
    }
}

/// Says how many bytes came, so that a client sees how its body was read.
async fn take(mut exchange: Exchange, whole: Arc<AtomicUsize>) {
    let is_write = exchange.request.method != Method::GET;
    let Ok(body) = exchange.read().await else { return };
    whole.fetch_add(usize::from(is_write), Ordering::SeqCst);
    let answer = if exchange.target() == PING { PONG.to_vec() } else { got(body.len()).into_bytes() };
    // Whoever is gone needs no answer.
    let _ = exchange.answer(200, JSON, answer).await;
}

/// The answer to a body of so many bytes.
pub(crate) fn got(bytes: usize) -> String {
    format!(
        r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"got"}},"data":{{"bytes":"{bytes}"}}}}"#
    )
}

// === impl Memory ===

impl Memory {
    pub(crate) fn of(proxy: &Proxy) -> Self {
        Self(Growth::of(proxy.process()).unwrap())
    }

    /// By how much the proxy grew at its peak, in KiB; says so, and at most `limit`.
    pub(crate) fn grew_at_most(&self, what: &str, limit: usize) {
        let added = self.0.at_peak().unwrap() >> 10;
        println!("{what}: {added} KiB added to {}", self.0.before() >> 10);
        assert!(added <= limit as u64, "{what}: {added} KiB added to {}", self.0.before() >> 10);
    }
}

pub(crate) async fn ping(client: &Wire) {
    let response = soon("a ping", client.get(PING, JSON)).await.unwrap();
    assert_eq!(soon("a pong", Reader::new(response).rest()).await.unwrap(), PONG);
}

/// A collection that the shard may write to.
pub(crate) fn owned() -> String {
    format!("/api/v1/namespaces/{}/configmaps", namespaces(true).next().unwrap())
}

/// A collection that another shard writes to.
pub(crate) fn foreign() -> String {
    format!("/api/v1/namespaces/{}/configmaps", namespaces(false).next().unwrap())
}

/// Says something over HTTP/1.1, reads while it speaks, and returns what was answered until the proxy closed.
pub(crate) async fn converse(proxy: &Proxy, said: &[u8]) -> String {
    talk(soon("TLS", client::secure(proxy, Http::One)).await.unwrap(), said).await
}

/// The same over any connection.
pub(crate) async fn talk(io: impl AsyncRead + AsyncWrite, said: &[u8]) -> String {
    let (mut hears, mut says) = split(io);
    let mut answers = Vec::new();
    let talk = async {
        let speak = async {
            // A proxy that has heard enough closes.
            let _ = says.write_all(said).await;
            let _ = says.flush().await;
        };
        // A close without a farewell is an error to TLS, and a close to us.
        tokio::join!(speak, hears.read_to_end(&mut answers)).1
    };
    let _ = soon("the proxy to close", talk).await;
    String::from_utf8_lossy(&answers).into_owned()
}

/// The status codes of the answers in what was heard.
pub(crate) fn codes(heard: &str) -> Vec<&str> {
    let answers = heard.split("HTTP/1.").skip(1);
    answers.map(|answer| answer.get(2..5).unwrap_or_default()).collect()
}
