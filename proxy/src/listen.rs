//! Room 1: the listener. TLS, HTTP/1.1 and HTTP/2, limits, one task a connection.

pub mod tls;
pub mod token;

use std::{
    convert::Infallible,
    future::pending,
    io,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http::{Request, Response};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use prometheus::IntGauge;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::task::TaskTracker;

use crate::{
    body::{Body, Open},
    drain::Drain,
};

/// Longer is no controller's handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the head of a request may take on HTTP/1.1, and that of a connection's first request on any.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
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

/// A listener and what it needs.
pub struct Listener<H> {
    /// Where connections come from.
    pub socket: TcpListener,
    /// How they are protected.
    pub security: Security,
    /// How many there may be at once; more wait in the kernel's queue.
    pub connections: Arc<Semaphore>,
    /// How many there are.
    pub open: IntGauge,
    /// When they end.
    pub drain: Drain,
    /// What answers their requests.
    pub handler: Arc<H>,
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

// === impl Listener ===

impl<H: Handler> Listener<H> {
    /// Accepts connections until the proxy drains; `tracker` tells when the last of them has ended.
    /// An error of one connection ends that one only.
    pub async fn serve(self, tracker: TaskTracker) {
        let this = Arc::new(self);
        loop {
            tokio::select! {
                biased;
                () = this.drain.closing() => return,
                accepted = this.accept() => match accepted {
                    Ok((tcp, permit)) => drop(tracker.spawn(this.clone().connection(tcp, permit))),
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection");
                        sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
    }

    async fn accept(&self) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
        let permit = self.connections.clone().acquire_owned().await.map_err(io::Error::other)?;
        let (tcp, _) = self.socket.accept().await?;
        Ok((tcp, permit))
    }

    async fn connection(self: Arc<Self>, tcp: TcpStream, _permit: OwnedSemaphorePermit) {
        let _open = Open::one(self.open.clone());
        if let Err(error) = self.speak(tcp).await {
            tracing::debug!(error, "connection ended");
        }
    }

    async fn speak(&self, tcp: TcpStream) -> Result<(), Failure> {
        tcp.set_nodelay(true)?;
        match &self.security {
            Security::Plain => self.converse(TokioIo::new(tcp)).await,
            Security::Tls(acceptor) => {
                let late = |_| io::Error::new(io::ErrorKind::TimedOut, "no TLS handshake in time");
                let tls = timeout(HANDSHAKE_TIMEOUT, acceptor.accept(tcp)).await.map_err(late)??;
                self.converse(TokioIo::new(tls)).await
            }
        }
    }

    /// Answers requests until the peer ends the connection or the proxy does.
    async fn converse<I>(&self, io: I) -> Result<(), Failure>
    where
        I: hyper::rt::Read + hyper::rt::Write + Unpin + 'static,
    {
        let asked = AtomicBool::new(false);
        let service = service_fn(|request| {
            asked.store(true, Ordering::Relaxed);
            let handler = self.handler.clone();
            async move { Ok::<_, Infallible>(handler.handle(request).await) }
        });
        let server = server();
        let mut connection = pin!(server.serve_connection(io, service));
        tokio::select! {
            ended = connection.as_mut() => return ended,
            () = silence(&asked) => return Err("no request in time".into()),
            () = self.drain.closing() => connection.as_mut().graceful_shutdown(),
        }
        tokio::select! {
            ended = connection => ended,
            () = self.drain.forced() => Err("cut, since the proxy ends".into()),
        }
    }
}

/// Ends when a connection's first request is late. hyper waits for ever for the bytes that tell which HTTP is spoken,
/// and on HTTP/2 for the first request.
async fn silence(asked: &AtomicBool) {
    sleep(HEADER_TIMEOUT).await;
    if asked.load(Ordering::Relaxed) {
        pending::<()>().await;
    }
}

fn server() -> auto::Builder<TokioExecutor> {
    let mut server = auto::Builder::new(TokioExecutor::new());
    server
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
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
