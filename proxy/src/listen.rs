//! Room 1: the listener. TLS, HTTP/1.1 and HTTP/2, limits, one task a connection.

pub mod tls;

use std::{
    convert::Infallible,
    future::pending,
    io,
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
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;

use crate::body::Body;

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

/// Accepts connections for as long as it is polled. An error of one connection ends that one only.
pub async fn serve<H: Handler>(
    listener: TcpListener,
    tls: TlsAcceptor,
    open: IntGauge,
    handler: Arc<H>,
) -> Infallible {
    loop {
        match listener.accept().await {
            Ok((tcp, _)) => drop(tokio::spawn(connection(tcp, tls.clone(), open.clone(), handler.clone()))),
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connection<H: Handler>(tcp: TcpStream, tls: TlsAcceptor, open: IntGauge, handler: Arc<H>) {
    open.inc();
    if let Err(error) = speak(tcp, tls, handler).await {
        tracing::debug!(error, "connection ended");
    }
    open.dec();
}

async fn speak<H: Handler>(
    tcp: TcpStream,
    tls: TlsAcceptor,
    handler: Arc<H>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    tcp.set_nodelay(true)?;
    let late = |what| io::Error::new(io::ErrorKind::TimedOut, what);
    let accepted = timeout(HANDSHAKE_TIMEOUT, tls.accept(tcp)).await;
    let stream = accepted.map_err(|_| late("no TLS handshake in time"))??;
    let asked = Arc::new(AtomicBool::new(false));
    let first = asked.clone();
    let service = service_fn(move |request| {
        first.store(true, Ordering::Relaxed);
        let handler = handler.clone();
        async move { Ok::<_, Infallible>(handler.handle(request).await) }
    });
    let http = server();
    tokio::select! {
        served = http.serve_connection(TokioIo::new(stream), service) => served,
        () = silence(&asked) => Err(late("no request in time").into()),
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
