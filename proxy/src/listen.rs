//! Room 1: the listener. TLS, HTTP/1.1 and HTTP/2, limits, one task a connection.

pub mod files;
mod places;
pub mod takeover;
pub mod tls;
pub mod token;

use std::{convert::Infallible, future::pending, io, pin::pin, sync::Arc, time::Duration};

use http::{Request, Response, StatusCode, header};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use prometheus::IntGauge;
use tokio::{
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use self::places::Places;
use self::{places::Place, takeover::takeover};
use crate::{
    body::{Body, Open},
    drain::Drain,
    identity::Attendance,
    request::accept::StatusEncoding,
    respond::Refusal,
    socket,
};

/// Longer is no controller's handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection may take for its first request.
const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection may be idle on HTTP/1.1, as at the API server (apiserver `server/secure_serving.go`,
/// `IdleTimeout`). hyper counts the time for a request's head from the end of the one before.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// The size of a request's head; tokens and impersonation headers fit easily.
const HEADER_BYTES: u32 = 64 << 10;
/// Requests at once on one HTTP/2 connection. client-go has one connection for all of them.
const STREAMS: u32 = 1000;
/// How much of one response may wait for a slow reader.
const SEND_BUFFER: usize = 128 << 10;
/// A peer that is silent this long is asked whether it lives, as client-go asks its server.
const PING_AFTER: Duration = Duration::from_secs(30);
/// How long to wait when the process has no file handles left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What answers the requests of a connection.
pub trait Handler: Send + Sync + 'static {
    /// Answers one request; a refusal is an answer too.
    fn handle(&self, request: Request<Incoming>) -> impl Future<Output = Response<Body>> + Send;
}

/// How connections are protected.
#[derive(Clone)]
pub enum Security {
    /// Not at all; for the loopback interface only.
    Plain,
    /// By the listener's own authority.
    Tls(TlsAcceptor),
}

/// Where connections come from.
pub trait Accept: Send + Sync + 'static {
    /// The next connection.
    fn accept(&self) -> impl Future<Output = io::Result<TcpStream>> + Send;
}

/// A listener and what it needs.
pub struct Listener<A, H> {
    /// Where connections come from.
    pub socket: A,
    /// How they are protected.
    pub security: Security,
    /// How many there may be at once.
    pub places: Places,
    /// How many there are.
    pub open: IntGauge,
    /// That there are some.
    pub attendance: Attendance,
    /// When they end.
    pub drain: Drain,
    /// What answers their requests.
    pub handler: Arc<H>,
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

// === impl Accept ===

impl Accept for TcpListener {
    async fn accept(&self) -> io::Result<TcpStream> {
        self.accept().await.map(|(tcp, _)| tcp)
    }
}

// === impl Listener ===

impl<A: Accept, H: Handler> Listener<A, H> {
    /// Accepts connections until the proxy drains; `tracker` tells when the last of them has ended.
    /// No error ends it: one of a connection ends that connection, one of accepting is waited out.
    pub async fn serve(self, tracker: TaskTracker) {
        let this = Arc::new(self);
        let mut accepting = true;
        loop {
            tokio::select! {
                biased;
                () = this.drain.closing() => return,
                accepted = this.socket.accept() => match accepted {
                    Ok(tcp) => {
                        accepting = true;
                        this.welcome(tcp, &tracker);
                    }
                    Err(error) => {
                        if accepting {
                            tracing::warn!(%error, "cannot accept connections; goes on trying");
                        }
                        accepting = false;
                        sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
    }

    /// Gives a connection its place and its task.
    fn welcome(self: &Arc<Self>, tcp: TcpStream, tracker: &TaskTracker) {
        let Some(place) = self.places.take() else {
            tracing::debug!("connection closed: there is no place for it");
            return;
        };
        tracker.spawn(self.clone().connection(tcp, place));
    }

    async fn connection(self: Arc<Self>, tcp: TcpStream, place: Place) {
        let (_open, _attending) = (Open::one(self.open.clone()), self.attendance.one());
        let ended = tokio::select! {
            // First, so that no request is begun that this would cut.
            biased;
            () = place.cut() => Err("it has asked nothing, and its place was needed".into()),
            () = self.drain.forced() => Err("cut, since the proxy ends".into()),
            ended = self.speak(tcp, &place) => ended,
        };
        if let Err(error) = ended {
            tracing::debug!(error, "connection ended");
        }
    }

    async fn speak(&self, tcp: TcpStream, place: &Place) -> Result<(), Failure> {
        tcp.set_nodelay(true)?;
        socket::keep_alive(&tcp)?;
        match &self.security {
            Security::Plain => self.converse(TokioIo::new(tcp), place).await,
            Security::Tls(acceptor) => {
                let late = |_| io::Error::new(io::ErrorKind::TimedOut, "no TLS handshake in time");
                let tls = timeout(HANDSHAKE_TIMEOUT, acceptor.accept(tcp)).await.map_err(late)??;
                self.converse(TokioIo::new(tls), place).await
            }
        }
    }

    /// Answers requests until the peer ends the connection or the proxy does, or one of them takes it over.
    async fn converse<I>(&self, io: I, place: &Place) -> Result<(), Failure>
    where
        I: hyper::rt::Read + hyper::rt::Write + Send + Unpin + 'static,
    {
        let turned_away = CancellationToken::new();
        let (takeover, mut left) = takeover();
        let service = service_fn(|mut request: Request<Incoming>| {
            place.asked();
            if request.headers().contains_key(header::UPGRADE) {
                request.extensions_mut().insert(takeover.clone());
            }
            if !place.is_seat() {
                turned_away.cancel();
            }
            let (handler, is_seat) = (self.handler.clone(), place.is_seat());
            // Boxed, since hyper keeps the room of this future for as long as the response's body runs.
            let answer = move |request| Box::pin(async move { handler.handle(request).await });
            async move { Ok::<_, Infallible>(if is_seat { answer(request).await } else { no_place(&request) }) }
        });
        let server = server();
        let mut connection = pin!(server.serve_connection_with_upgrades(io, service));
        let ended = tokio::select! {
            ended = connection.as_mut() => Some(ended),
            () = silence(place) => return Err("no request in time".into()),
            () = turned_away.cancelled() => None,
            () = self.drain.closing() => None,
        };
        if let Some(ended) = ended {
            ended?;
        } else {
            connection.as_mut().graceful_shutdown();
            connection.await?;
        }
        left.run().await;
        Ok(())
    }
}

/// Ends when a connection's first request is late. hyper waits for ever for the bytes that tell which HTTP is spoken,
/// and on HTTP/2 for the first request.
async fn silence(place: &Place) {
    sleep(FIRST_REQUEST_TIMEOUT).await;
    if place.has_asked() {
        pending::<()>().await;
    }
}

/// What a connection is told for which there is no place.
fn no_place(request: &Request<Incoming>) -> Response<Body> {
    let message = "this proxy has as many connections as --max-connections and the limit of open files allow, and all \
                   are in use: close some of them, or raise the limit";
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message)
        .retry_after(1)
        .into_response(StatusEncoding::wanted(request.headers()))
}

fn server() -> auto::Builder<TokioExecutor> {
    let mut server = auto::Builder::new(TokioExecutor::new());
    server
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_TIMEOUT)
        .max_buf_size(HEADER_BYTES as usize);
    server
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(HEADER_BYTES)
        .max_concurrent_streams(STREAMS)
        .max_send_buf_size(SEND_BUFFER)
        .keep_alive_interval(PING_AFTER);
    server
}

#[cfg(test)]
mod tests;
