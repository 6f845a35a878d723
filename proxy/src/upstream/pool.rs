//! HTTP/2 connections to one API server, each with a budget of streams.
//!
//! hyper-util's pool keeps one connection per host and waits in silence at the server's stream
//! limit (hyperium/hyper#3623); a controller's watches alone can pass that limit. Here a stream is
//! taken before a request is sent and given back when its body has ended. Where none is free, the next
//! comes from a new connection or from whoever gives one back first.

use std::{
    future::{pending, poll_fn},
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

/// Connections of a pool at most, hence 12,800 streams: many times what the informers of many controllers keep open.
/// Each is a file handle here and a connection of the API server; a client that asks for more waits.
pub(super) const CONNECTIONS: usize = 128;
/// Streams of one connection at most. Go's HTTP/2 server, and so the API server, allows 100 to 250;
/// the server's own setting is obeyed where it is lower.
const STREAMS: usize = 100;
/// Streams before the server's settings have arrived.
const STREAMS_AT_FIRST: usize = 8;
/// How much of one answer may be on its way unread: enough for a list over a network of some milliseconds.
pub(super) const CALL_WINDOW: u32 = 512 << 10;
/// The same of a watch. Many may be unread at once, each at up to six times this where events are small.
pub(super) const WATCH_WINDOW: u32 = 128 << 10;
/// A connection's window, in windows of a stream: room for every stream, so that slow readers never
/// stall their neighbours. It is memory only while readers are slow. Four times that, because h2 takes the half of it for what DATA
/// frames of less than 256 bytes may cost unread, and ends the connection beyond: with slow readers
/// on every stream that is enough for events of 100 bytes.
const WINDOWS_OF_CONNECTION: u32 = 100 * 4;
/// client-go pings a silent connection after 30 s and gives up after 15 s (apimachinery `util/net/http.go`).
const PING_AFTER: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(15);
/// TCP connect, TLS and HTTP/2 preface together.
pub(super) const DIAL_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a request is handed to a connection at most, where one after the other turns out to be closed.
const ATTEMPTS: usize = 3;

/// The connections to one API server for one kind of traffic.
pub(super) struct Pool {
    target: ArcSwap<Target>,
    connections: ArcSwap<Vec<Arc<Connection>>>,
    /// Held while dialing, so that a burst opens one connection and not one each.
    dialing: Arc<Mutex<Dialed>>,
    /// There may be a free stream again.
    freed: Arc<Notify>,
    /// How much of one response may be on its way unread.
    window: u32,
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
    /// The pool's.
    freed: Arc<Notify>,
}

/// One stream of a connection, given back when it is dropped.
pub(super) struct Stream {
    connection: Arc<Connection>,
    pool: Arc<Pool>,
}

/// A response body that holds what it comes over.
pub struct Received {
    body: Incoming,
    _held: Held,
}

/// What a response comes over.
enum Held {
    Stream {
        _stream: Stream,
    },
    /// A connection of its own.
    Connection {
        _open: Open,
    },
}

// === impl Pool ===

impl Pool {
    pub(super) fn new(target: Arc<Target>, window: u32, open: IntGauge) -> Arc<Self> {
        let (target, connections) = (ArcSwap::new(target), ArcSwap::default());
        Arc::new(Self { target, connections, dialing: Arc::default(), freed: Arc::default(), window, open })
    }

    /// Sends a request over a free stream, if it `may` be sent still once there is one. A request that a closing connection
    /// did not take is put to another; one that may have been sent never is.
    pub(super) async fn send(
        self: &Arc<Self>,
        mut request: Request<Body>,
        mut may: impl FnMut() -> bool,
    ) -> Result<Response<Received>, UpstreamError> {
        let mut left = ATTEMPTS;
        loop {
            left -= 1;
            let stream = self.stream().await?;
            if !may() {
                return Err(UpstreamError::Withheld);
            }
            let sent = stream.connection.sender.clone().try_send_request(request).await;
            // The settings came first, if there is an answer.
            stream.connection.budget.ask();
            let mut error = match sent {
                Ok(response) => return Ok(response.map(|body| Received::over(body, stream))),
                Err(error) => error,
            };
            match error.take_message() {
                Some(unsent) if left > 0 => request = unsent,
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

    /// Takes a free stream: one that is given back, or one of a new connection. Waits for as long as neither
    /// comes. Whoever waits while a dial fails fails with it, so that a burst waits for one and not for one each.
    pub(super) async fn stream(self: &Arc<Self>) -> Result<Stream, Arc<DialError>> {
        if let Some(stream) = self.free() {
            return Ok(stream);
        }
        let asked = Instant::now();
        loop {
            // In line before it looks: what is given back after the look wakes it.
            let mut freed = pin!(self.freed.notified());
            freed.as_mut().enable();
            if let Some(stream) = self.free() {
                return Ok(stream);
            }
            tokio::select! {
                // What was dialed is not thrown away.
                biased;
                taken = self.another(asked) => return taken,
                () = freed => {}
            }
        }
    }

    /// Takes a stream of a new connection, if none becomes free until its turn; never comes back if there are
    /// connections enough.
    async fn another(self: &Arc<Self>, asked: Instant) -> Result<Stream, Arc<DialError>> {
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
        if self.is_full() {
            drop(turn);
            return pending().await;
        }
        // A task of its own: who gives up ends it for nobody else.
        let dialed = tokio::spawn(self.clone().dial(turn)).await;
        dialed.unwrap_or_else(|_| Err(Arc::new(DialError::Closed)))
    }

    /// Lets each connection note what its server allows by now.
    async fn learn(&self) {
        self.connections.load().iter().for_each(|connection| connection.budget.ask());
        // Their tasks come first.
        yield_now().await;
    }

    fn free(self: &Arc<Self>) -> Option<Stream> {
        self.connections.load().iter().find_map(|connection| self.take(connection))
    }

    fn take(self: &Arc<Self>, connection: &Arc<Connection>) -> Option<Stream> {
        connection.take().then(|| Stream { connection: connection.clone(), pool: self.clone() })
    }

    fn is_full(&self) -> bool {
        self.connections.load().iter().filter(|connection| connection.is_open()).count() >= CONNECTIONS
    }

    /// Forgets connections that have ended, and those without streams beside one that has half of its own free:
    /// not beside any that has one free, since the next burst would dial again. A forgotten one ends with its last stream.
    fn tidy(&self) {
        self.connections.rcu(|all| {
            let open = || all.iter().filter(|connection| connection.is_open());
            let mut spare = open().any(|connection| !connection.is_idle() && connection.is_spare());
            let needed = |connection: &&Arc<Connection>| {
                let surplus = spare && connection.is_idle();
                spare |= connection.is_spare();
                !surplus
            };
            open().filter(needed).cloned().collect::<Vec<_>>()
        });
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

    /// Adds a connection and takes a stream of it.
    fn keep(self: &Arc<Self>, new: Connection) -> Result<Stream, DialError> {
        let new = Arc::new(new);
        let taken = self.take(&new).ok_or(DialError::Closed)?;
        self.tidy();
        self.connections.rcu(|all| all.iter().chain([&new]).cloned().collect::<Vec<_>>());
        Ok(taken)
    }

    async fn handshake(&self) -> Result<Connection, DialError> {
        let target = self.target.load_full();
        let io = target.connect().await?;
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_max_send_streams(STREAMS_AT_FIRST)
            .initial_stream_window_size(self.window)
            .initial_connection_window_size(self.window * WINDOWS_OF_CONNECTION)
            .keep_alive_interval(PING_AFTER)
            .keep_alive_timeout(PING_TIMEOUT)
            .keep_alive_while_idle(true)
            .handshake(io)
            .await
            .map_err(DialError::Http2)?;
        let budget = Arc::new(Budget::new(self.freed.clone()));
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
        budget.note(connection.current_max_send_streams());
        polled
    }));
    let ended = loop {
        tokio::select! {
            ended = &mut end => break ended,
            // Then it is polled again.
            () = budget.asked.notified() => {}
        }
    };
    // Somebody may dial in its place.
    budget.freed.notify_waiters();
    if let Err(error) = ended {
        tracing::info!(upstream = %target.authority, %error, "connection ended");
    }
}

// === impl Connection ===

impl Connection {
    fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    fn is_idle(&self) -> bool {
        self.streams.load(Ordering::Acquire) == 0
    }

    /// Half of its streams are free, or more.
    fn is_spare(&self) -> bool {
        let budget = self.budget.streams();
        budget > 0 && self.streams.load(Ordering::Acquire) * 2 <= budget
    }

    /// Takes a stream, if one is free.
    fn take(&self) -> bool {
        let budget = self.budget.streams();
        let more = |taken| (taken < budget).then_some(taken + 1);
        self.is_open() && self.streams.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok()
    }
}

// === impl Budget ===

impl Budget {
    fn new(freed: Arc<Notify>) -> Self {
        Self { streams: AtomicUsize::new(STREAMS_AT_FIRST), asked: Notify::new(), freed }
    }

    fn streams(&self) -> usize {
        self.streams.load(Ordering::Acquire).min(STREAMS)
    }

    fn note(&self, streams: usize) {
        if self.streams.swap(streams, Ordering::AcqRel) < streams {
            self.freed.notify_waiters();
        }
    }

    /// Has it brought up to date, where the server may allow more by now.
    fn ask(&self) {
        if self.streams() < STREAMS {
            self.asked.notify_one();
        }
    }
}

// === impl Stream ===

impl Drop for Stream {
    fn drop(&mut self) {
        self.connection.streams.fetch_sub(1, Ordering::AcqRel);
        if self.connection.is_spare() && self.pool.connections.load().len() > 1 {
            self.pool.tidy();
        }
        self.pool.freed.notify_one();
    }
}

// === impl Received ===

impl Received {
    fn over(body: Incoming, stream: Stream) -> Self {
        Self { body, _held: Held::Stream { _stream: stream } }
    }

    /// A body that came over a connection of its own, which counts as open for as long as this is kept.
    pub(super) fn alone(body: Incoming, open: Open) -> Self {
        Self { body, _held: Held::Connection { _open: open } }
    }
}

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

#[cfg(test)]
mod tests;
