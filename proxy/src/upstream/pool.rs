//! HTTP/2 connections to one API server, each with a budget of streams.
//!
//! hyper-util's pool keeps one connection per host and waits in silence at the server's stream
//! limit (hyperium/hyper#3623); a controller's watches alone can pass that limit. Here a stream is
//! taken before a request is sent and given back when its body has ended.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::{
    body::Incoming,
    client::conn::http2::{self, SendRequest},
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use prometheus::IntGauge;
use tokio::{
    net::TcpStream,
    sync::{Mutex, Notify, OwnedMutexGuard},
    task::yield_now,
    time::{Instant, timeout},
};
use tokio_rustls::client::TlsStream;

use super::{
    UpstreamError,
    tls::{DialError, Target},
};
use crate::body::{Body, Open};

/// Streams of one connection at most. Go's HTTP/2 server, and so the API server, allows 100 to 250;
/// the server's own setting is obeyed where it is lower.
const STREAMS: usize = 100;
/// Streams before the server's settings have arrived.
const STREAMS_AT_FIRST: usize = 8;
/// How much of one response may be on its way unread.
const STREAM_WINDOW: u32 = 512 << 10;
/// Room for every stream of a connection, so that slow readers never stall their neighbours. It is
/// memory only while readers are slow. Four times that, because h2 takes the half of it for what DATA
/// frames of less than 256 bytes may cost unread, and ends the connection beyond: with slow readers
/// on every stream that is enough for events of 100 bytes.
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * 100 * 4;
/// client-go pings a silent connection after 30 s and gives up after 15 s (apimachinery `util/net/http.go`).
const PING_AFTER: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(15);
/// TCP connect, TLS and HTTP/2 preface together.
const DIAL_TIMEOUT: Duration = Duration::from_secs(10);
/// Attempts to hand a request to a connection that turns out to be closed.
const ATTEMPTS: usize = 3;

/// The connections to one API server for one kind of traffic.
pub(super) struct Pool {
    target: ArcSwap<Target>,
    connections: ArcSwap<Vec<Arc<Connection>>>,
    /// Held while dialing, so that a burst opens one connection and not one each.
    dialing: Arc<Mutex<Dialed>>,
    open: IntGauge,
}

/// When the last dial failed, and why; none before the first failure.
type Dialed = Option<(Instant, Arc<DialError>)>;

type Wire = http2::Connection<TokioIo<TlsStream<TcpStream>>, Body, TokioExecutor>;

struct Connection {
    sender: SendRequest<Body>,
    /// Streams under way.
    streams: AtomicUsize,
    budget: Arc<Budget>,
}

/// What the server allows, by its settings.
struct Budget {
    streams: AtomicUsize,
    /// Somebody wants it to be up to date: hyper tells of new settings only while a request is given to it.
    asked: Notify,
}

/// One stream of a connection, given back when it is dropped.
pub(super) struct Stream(Arc<Connection>);

/// A response body that holds its stream.
pub struct Received {
    body: Incoming,
    _stream: Stream,
}

// === impl Pool ===

impl Pool {
    pub(super) fn new(target: Arc<Target>, open: IntGauge) -> Arc<Self> {
        let (target, connections) = (ArcSwap::new(target), ArcSwap::default());
        Arc::new(Self { target, connections, dialing: Arc::default(), open })
    }

    /// Sends a request over a free stream. A request that a closing connection did not take is put
    /// to another; one that may have been sent never is.
    pub(super) async fn send(
        self: &Arc<Self>,
        mut request: Request<Body>,
    ) -> Result<Response<Received>, UpstreamError> {
        let mut attempts = 1..=ATTEMPTS;
        loop {
            let attempt = attempts.next();
            let stream = self.stream().await?;
            let sent = stream.0.sender.clone().try_send_request(request).await;
            let mut error = match sent {
                Ok(response) => return Ok(response.map(|body| Received { body, _stream: stream })),
                Err(error) => error,
            };
            match (error.take_message(), attempt) {
                (Some(unsent), Some(_)) => request = unsent,
                _ => return Err(UpstreamError::of(error.into_error())),
            }
        }
    }

    /// From here on new streams go to another target. Those under way stay where they are.
    pub(super) async fn retarget(&self, target: Arc<Target>) {
        // A connection to the old target that is being made would be kept otherwise.
        let _turn = self.dialing.lock().await;
        self.target.store(target);
        self.connections.store(Arc::default());
    }

    /// Takes a free stream, over a new connection where none is free. Whoever waits while a dial fails
    /// fails with it, so that a burst waits for one and not for one each.
    pub(super) async fn stream(self: &Arc<Self>) -> Result<Stream, Arc<DialError>> {
        if let Some(stream) = self.free() {
            return Ok(stream);
        }
        let asked = Instant::now();
        let turn = self.dialing.clone().lock_owned().await;
        if let Some(stream) = self.free() {
            return Ok(stream);
        }
        self.learn().await;
        if let Some(stream) = self.free() {
            return Ok(stream);
        }
        if let Some((_, error)) = turn.as_ref().filter(|(failed, _)| *failed > asked) {
            return Err(error.clone());
        }
        // A task of its own: who gives up ends it for nobody else.
        let dialed = tokio::spawn(self.clone().dial(turn)).await;
        dialed.unwrap_or_else(|_| Err(Arc::new(DialError::Closed)))
    }

    /// Lets each connection note what its server allows by now.
    async fn learn(&self) {
        self.connections.load().iter().for_each(|connection| connection.budget.asked.notify_one());
        // Their tasks come first.
        yield_now().await;
    }

    fn free(&self) -> Option<Stream> {
        self.connections.load().iter().find_map(Connection::take)
    }

    async fn dial(self: Arc<Self>, mut turn: OwnedMutexGuard<Dialed>) -> Result<Stream, Arc<DialError>> {
        let dialed = timeout(DIAL_TIMEOUT, self.handshake()).await;
        let stream = dialed.unwrap_or(Err(DialError::Timeout(DIAL_TIMEOUT))).and_then(|new| self.keep(new));
        stream.map_err(|error| {
            let error = Arc::new(error);
            *turn = Some((Instant::now(), error.clone()));
            error
        })
    }

    /// Adds a connection, forgets those that have ended, and takes a stream of the new one.
    fn keep(&self, new: Connection) -> Result<Stream, DialError> {
        let new = Arc::new(new);
        let mut connections: Vec<_> =
            self.connections.load().iter().filter(|c| c.is_open()).cloned().collect();
        connections.push(new.clone());
        self.connections.store(Arc::new(connections));
        new.take().ok_or(DialError::Closed)
    }

    async fn handshake(&self) -> Result<Connection, DialError> {
        let target = self.target.load_full();
        let io = target.connect().await?;
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_max_send_streams(STREAMS_AT_FIRST)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .keep_alive_interval(PING_AFTER)
            .keep_alive_timeout(PING_TIMEOUT)
            .keep_alive_while_idle(true)
            .handshake(io)
            .await
            .map_err(DialError::Http2)?;
        let budget = Arc::new(Budget { streams: AtomicUsize::new(STREAMS_AT_FIRST), asked: Notify::new() });
        let open = Open::one(self.open.clone());
        tokio::spawn(drive(connection, budget.clone(), target, open));
        Ok(Connection { sender, streams: AtomicUsize::new(0), budget })
    }
}

/// Moves a connection's bytes until it ends, and notes what the server allows. Only so long it counts as open: who holds a
/// stream of it, or would take one, may learn of the end much later.
async fn drive(connection: Wire, budget: Arc<Budget>, target: Arc<Target>, _open: Open) {
    let mut connection = pin!(connection);
    let mut end = pin!(poll_fn(|cx| {
        let polled = connection.as_mut().poll(cx);
        budget.streams.store(connection.current_max_send_streams(), Ordering::Release);
        polled
    }));
    let ended = loop {
        tokio::select! {
            ended = &mut end => break ended,
            // Then it is polled again.
            () = budget.asked.notified() => {}
        }
    };
    if let Err(error) = ended {
        tracing::info!(upstream = %target.authority, %error, "connection ended");
    }
}

// === impl Connection ===

impl Connection {
    fn is_open(self: &Arc<Self>) -> bool {
        !self.sender.is_closed()
    }

    fn take(self: &Arc<Self>) -> Option<Stream> {
        let budget = self.budget.streams.load(Ordering::Acquire).min(STREAMS);
        let more = |taken| (taken < budget).then_some(taken + 1);
        let taken =
            self.is_open() && self.streams.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok();
        taken.then(|| Stream(self.clone()))
    }
}

// === impl Stream ===

impl Drop for Stream {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::AcqRel);
    }
}

// === impl Received ===

impl HttpBody for Received {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
