//! An upstream that does what a test tells it, down to the frame: TLS and HTTP/2, and no control plane behind it.
//!
//! ```text
//! test ──script──▶ Scripted ── Line (one a connection: GOAWAY, cut) ── Exchange (one a request) ── Sending (its body)
//!   ▲                 │
//!   └────── Seen ─────┘   what has arrived so far
//! ```
//! It speaks through h2 and not through a server library, because a test must be able to send what no such library
//! sends: a body that is never finished, a stream that is refused, a connection that ends in the middle.

pub mod client;
mod door;
mod exchange;
pub mod frames;
mod line;
pub mod peer;
pub mod pods;
mod spliced;
mod stage;

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::Method;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

pub use self::door::Door;
use self::door::{Porter, Turn};
pub use self::exchange::{Exchange, Gone, Sending};
pub use self::line::Line;
use self::peer::Server;
pub use self::stage::{Asked, PING, PONG, Stage};
use crate::pki::Pki;
pub use crate::proxy::DIRECTLY;
use crate::proxy::{Proxy, ProxyArgs};
use crate::ring::{HUB, example};
use crate::{HarnessError, kubeconfig};

/// What Go's HTTP/2 server, and so the API server, allows on one connection.
pub const STREAMS: u32 = 250;

/// A running upstream. Dropping it cuts its connections.
#[derive(Debug)]
pub struct Scripted {
    kubeconfig: PathBuf,
    seen: watch::Receiver<Seen>,
    /// Connections that speak HTTP/1.1.
    spoken: tokio::sync::Mutex<mpsc::Receiver<Server>>,
    turns: mpsc::Sender<Turn>,
    task: JoinHandle<()>,
}

/// What has arrived at an upstream.
#[derive(Debug, Default, Clone)]
pub struct Seen {
    /// Connections that were ever accepted.
    pub connections: usize,
    /// Requests in the order in which they came.
    pub requests: Vec<Request>,
    /// Streams that are open now: their body is not at its end and nobody has reset them.
    pub open: usize,
}

/// One request that arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Its method.
    pub method: Method,
    /// Its path, with the query.
    pub target: String,
    /// The connection that it came over, counted from 1.
    pub connection: usize,
}

// === impl Scripted ===

impl Scripted {
    /// Listens on a free port, with certificates in `dir`. Each request goes through `script`, in a task of its own.
    ///
    /// `streams` is the limit that connections announce.
    pub async fn start<F>(
        dir: &Path,
        streams: u32,
        script: impl Fn(Exchange) -> F + Send + Sync + 'static,
    ) -> Result<Self, HarnessError>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let pki = Pki::create(&dir.join("upstream"))?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.map_err(HarnessError::io("listen for", dir))?;
        let address = listener.local_addr().map_err(HarnessError::io("listen for", dir))?;
        let kubeconfig = dir.join("upstream.kubeconfig");
        kubeconfig::write(&kubeconfig, &format!("https://{address}"), &pki.ca, "unused")?;
        let (book, seen) = watch::channel(Seen::default());
        let script = Arc::new(move |exchange| -> line::Played { Box::pin(script(exchange)) });
        let (speakers, spoken) = mpsc::channel(line::SPEAKERS);
        let setup = line::Setup { book: Arc::new(book), streams, script, speakers };
        let (turns, turned) = mpsc::channel(1);
        let porter = Arc::new(Porter::new(address, &pki, dir, setup)?);
        let task = tokio::spawn(porter.stand(listener, turned));
        Ok(Self { kubeconfig, seen, spoken: spoken.into(), turns, task })
    }

    /// Starts a proxy in front of it: shard `kcm-0` of the example ring. Its log goes to `dir`.
    pub async fn proxy(&self, dir: &Path) -> Result<Proxy, HarnessError> {
        self.proxy_by(DIRECTLY, dir).await
    }

    /// The same by a line of shell, see [`Proxy::start_by`].
    pub async fn proxy_by(&self, line: &str, dir: &Path) -> Result<Proxy, HarnessError> {
        self.proxy_of(line, &example(), dir).await
    }

    /// The same of the ring in `config`.
    pub async fn proxy_of(&self, line: &str, config: &Path, dir: &Path) -> Result<Proxy, HarnessError> {
        let upstreams = [(HUB, self.kubeconfig.clone())];
        let args = ProxyArgs { shard: "kcm-0", config, upstreams: &upstreams, dir };
        Proxy::start_by(line, args).await
    }

    /// Ends every connection and receives new ones like this; returns when it does so.
    pub async fn door(&self, door: Door) {
        let (done, turned) = oneshot::channel();
        let _ = self.turns.send((door, done)).await;
        let _ = turned.await;
    }

    /// The next connection that speaks HTTP/1.1, which is the test's to answer; for ever if none comes. `None` when the
    /// upstream has ended.
    pub async fn http1(&self) -> Option<Server> {
        self.spoken.lock().await.recv().await
    }

    /// Where it is, for a proxy.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// What has arrived.
    pub fn seen(&self) -> Seen {
        self.seen.borrow().clone()
    }

    /// Waits until what has arrived is as awaited; for ever if that never happens.
    pub async fn until(&self, awaited: impl FnMut(&Seen) -> bool) {
        // The book is kept for as long as this upstream runs.
        let _ = self.seen.clone().wait_for(awaited).await;
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.task.abort();
    }
}

// === impl Seen ===

impl Seen {
    /// How many requests came for exactly this path and query.
    pub fn count(&self, target: &str) -> usize {
        self.requests.iter().filter(|request| request.target == target).count()
    }
}
