//! One connection of a scripted upstream.

use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use h2::server;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio_rustls::server::TlsStream;

use super::exchange::{Exchange, Open};
use super::frames::frame;
use super::peer::{Peer, Server};
use super::spliced::{Said, Spliced};
use super::{Request, Seen};

/// Orders that may wait for a connection.
const ORDERS: usize = 8;
/// Connections of HTTP/1.1 that may wait for the test.
pub(super) const SPEAKERS: usize = 1024;
/// How much of a connection's bodies may wait here. Small, so that "taken" means taken by the peer.
const SEND_BUFFER: usize = 64 << 10;

/// A frame type without a meaning.
const UNKNOWN: u8 = 0xf0;

/// A script's run over one request.
pub(super) type Played = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What every connection needs.
#[derive(Clone)]
pub(super) struct Setup {
    pub(super) book: Arc<watch::Sender<Seen>>,
    pub(super) streams: u32,
    pub(super) script: Arc<dyn Fn(Exchange) -> Played + Send + Sync>,
    pub(super) speakers: mpsc::Sender<Server>,
}

/// A handle of one connection.
#[derive(Debug, Clone)]
pub struct Line {
    number: usize,
    orders: mpsc::Sender<Order>,
    frames: mpsc::Sender<Said>,
}

#[derive(Debug)]
enum Order {
    GoAway,
    Cut,
    Silence,
}

type Connection = server::Connection<Spliced<TlsStream<TcpStream>>, Bytes>;

// === impl Line ===

impl Line {
    /// Which connection this is, counted from 1.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Sends GOAWAY as Go's server does: what runs may finish, and the connection ends after it.
    pub async fn go_away(&self) {
        let _ = self.orders.send(Order::GoAway).await;
    }

    /// Sends a frame that the library knows nothing of; returns when it has left.
    pub async fn say(&self, frame: impl Into<Bytes>) {
        let (said, left) = oneshot::channel();
        let _ = self.frames.send((frame.into(), said)).await;
        let _ = left.await;
    }

    /// Returns when everything that was sent has left.
    pub async fn flush(&self) {
        // A frame of a type that nobody knows is ignored (RFC 9113, section 4.1).
        self.say(frame(UNKNOWN, 0, 0, &[])).await;
    }

    /// From here on nothing is read or said, as if the machine had lost its power; the socket stays.
    pub async fn fall_silent(&self) {
        let _ = self.orders.send(Order::Silence).await;
    }

    /// Closes the socket under everything that runs, and returns when that is done: an exchange that is dropped
    /// earlier would reset its stream first, which is another fault.
    pub async fn cut(&self) {
        let _ = self.orders.send(Order::Cut).await;
        self.orders.closed().await;
    }
}

// === impl Setup ===

impl Setup {
    /// Answers the requests of a connection until it ends.
    pub(super) async fn speak(self, tls: TlsStream<TcpStream>) {
        if tls.get_ref().1.alpn_protocol() == Some(b"http/1.1") {
            // A test that takes none has them closed.
            let _ = self.speakers.send(Peer::new(tls)).await;
            return;
        }
        let (orders, given) = mpsc::channel(ORDERS);
        let (frames, spoken) = mpsc::channel(ORDERS);
        let mut number = 0;
        self.book.send_modify(|seen| {
            seen.connections += 1;
            number = seen.connections;
        });
        let mut http2 = server::Builder::new();
        http2.max_concurrent_streams(self.streams).max_send_buffer_size(SEND_BUFFER);
        if let Ok(connection) = http2.handshake(Spliced::new(tls, spoken)).await {
            self.drive(connection, Line { number, orders, frames }, given).await;
        }
    }

    async fn drive(&self, mut connection: Connection, line: Line, mut given: mpsc::Receiver<Order>) {
        let mut played = JoinSet::new();
        loop {
            tokio::select! {
                order = given.recv() => match order {
                    Some(Order::GoAway) => connection.graceful_shutdown(),
                    Some(Order::Silence) => pending().await,
                    Some(Order::Cut) | None => return,
                },
                accepted = connection.accept() => match accepted {
                    Some(Ok((request, respond))) => {
                        let open = self.record(&request, line.number);
                        let exchange = Exchange::new(request, respond, line.clone(), open);
                        played.spawn((self.script)(exchange));
                    }
                    _ => return,
                },
                Some(_) = played.join_next() => {}
            }
        }
    }

    fn record(&self, request: &http::Request<h2::RecvStream>, connection: usize) -> Open {
        let target = request.uri().path_and_query().map_or("/", |target| target.as_str()).to_owned();
        let method = request.method().clone();
        self.book.send_modify(|seen| seen.requests.push(Request { method, target, connection }));
        Open::one(self.book.clone())
    }
}
