//! A proxy between a client on the wire and an upstream that a test plays by hand.

use bytes::Bytes;
use http::Response;
use hyper::body::Incoming;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::client::{Http, Wire};
use super::{Exchange, Scripted};
use crate::proxy::DIRECTLY;
use crate::{HarnessError, Proxy, RunDir};

/// A request that is answered at once, whatever else goes on. No lens lies over it.
pub const PING: &str = "/api/v1/namespaces/default/configmaps/ping";
/// The answer to it.
pub const PONG: &[u8] = br#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"ping"}}"#;
/// Requests that may wait for the test.
const WAITING: usize = 1024;

/// A proxy and its upstream. Dropping it ends both.
pub struct Stage {
    /// The proxy, which is shard `kcm-0` of the example ring.
    pub proxy: Proxy,
    /// The upstream.
    pub upstream: Scripted,
    requests: mpsc::Receiver<Exchange>,
    // Dropped last.
    _dir: RunDir,
}

/// A request under way: its head will come.
pub type Asked = JoinHandle<Result<Response<Incoming>, hyper::Error>>;

// === impl Stage ===

impl Stage {
    /// Starts both for the test of that name; `streams` is the limit that the upstream announces.
    pub async fn start(test: &str, streams: u32) -> Result<Self, HarnessError> {
        Self::start_by(DIRECTLY, test, streams).await
    }

    /// The same with a proxy that is started by a line of shell, see [`Proxy::start_by`].
    pub async fn start_by(line: &str, test: &str, streams: u32) -> Result<Self, HarnessError> {
        let dir = RunDir::for_test(test)?;
        let (hand, requests) = mpsc::channel(WAITING);
        let script = move |exchange: Exchange| {
            let hand = hand.clone();
            async move {
                if exchange.target() == PING {
                    // A client that is gone needs no answer.
                    let _ = exchange.answer(200, "application/json", Bytes::from_static(PONG)).await;
                } else {
                    let _ = hand.send(exchange).await;
                }
            }
        };
        let upstream = Scripted::start(dir.path(), streams, script).await?;
        let proxy = upstream.proxy_by(line, dir.path()).await?;
        Ok(Self { proxy, upstream, requests, _dir: dir })
    }

    /// A new connection to the proxy.
    pub async fn client(&self, http: Http) -> Result<Wire, HarnessError> {
        Wire::connect(&self.proxy, http).await
    }

    /// The next request that reaches the upstream, pings apart; for ever if none does.
    pub async fn next(&mut self) -> Option<Exchange> {
        self.requests.recv().await
    }

    /// Sends a GET, and returns once it has reached the upstream.
    pub async fn ask(&mut self, client: &Wire, target: &str, accept: &str) -> Option<(Asked, Exchange)> {
        let (client, target, accept) = (client.clone(), target.to_owned(), accept.to_owned());
        let asked = tokio::spawn(async move { client.get(&target, &accept).await });
        Some((asked, self.next().await?))
    }
}
