//! A relay of TCP connections that cuts or holds them when told to.

use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

pub use self::tap::Seen;
use self::tap::Tap;
use crate::HarnessError;
use crate::pki::Pki;

mod tap;

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// By RST, both ways.
    Reset,
    /// By FIN, both ways, with what had been relayed.
    Close,
}

/// A relay on loopback. Dropping it cuts what it holds.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    order: watch::Sender<Order>,
    tap: Option<Arc<Tap>>,
    accepting: tokio::task::JoinHandle<()>,
}

/// What connections are to do.
#[derive(Debug, Clone, Copy)]
struct Order {
    /// How often they were cut, and how the last time.
    cuts: u64,
    cut: Cut,
    /// No byte moves, and nothing is dialed.
    still: bool,
}

/// One connection's view of the orders.
struct Orders {
    order: watch::Receiver<Order>,
    /// Cuts that were before it.
    past: u64,
}

/// Where a connection's other end connects.
#[derive(Clone)]
struct Way {
    target: SocketAddr,
    tap: Option<Arc<Tap>>,
}

/// One side of a relayed connection.
trait End: AsyncRead + AsyncWrite + Unpin {
    fn socket(&self) -> &TcpStream;
}

// === impl Relay ===

impl Relay {
    /// Relays connections to `target`, which need not listen yet.
    pub async fn start(target: SocketAddr) -> Result<Self, HarnessError> {
        Self::through(Way { target, tap: None }).await
    }

    /// The same between a client and a server that speak HTTP/2 over TLS, both ends of which are here, with the
    /// certificates of `pki`: so it sees what the server says.
    pub async fn tapping(target: SocketAddr, pki: &Pki) -> Result<Self, HarnessError> {
        Self::through(Way { target, tap: Some(Arc::new(Tap::new(pki)?)) }).await
    }

    async fn through(way: Way) -> Result<Self, HarnessError> {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let failed = |error: std::io::Error| HarnessError::Answer {
            url: format!("a relay to {}", way.target),
            reason: error.to_string(),
        };
        let listener = TcpListener::bind(any).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (order, _) = watch::channel(Order { cuts: 0, cut: Cut::Close, still: false });
        let tap = way.tap.clone();
        let accepting = tokio::spawn(accept(listener, way, order.clone()));
        Ok(Self { address, order, tap, accepting })
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections it holds.
    pub fn held(&self) -> usize {
        // One receiver a connection.
        self.order.receiver_count()
    }

    /// Cuts every connection that it holds and returns how many they were; new ones are taken as before.
    pub fn cut(&self, cut: Cut) -> usize {
        let held = self.held();
        self.order.send_modify(|order| *order = Order { cuts: order.cuts + 1, cut, ..*order });
        held
    }

    /// From here on no byte moves: a black hole. New connections are accepted, and that is all.
    pub fn hold(&self) {
        self.order.send_modify(|order| order.still = true);
    }

    /// Ends [`Relay::hold`]; nothing was lost but time.
    pub fn release(&self) {
        self.order.send_modify(|order| order.still = false);
    }

    /// What the server said through [`Relay::tapping`]; nothing for another.
    pub fn seen(&self) -> Seen {
        self.tap.as_ref().map(|tap| tap.seen()).unwrap_or_default()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut(Cut::Close);
    }
}

// === impl Orders ===

impl Orders {
    fn of(order: &watch::Sender<Order>) -> Self {
        let order = order.subscribe();
        let past = order.borrow().cuts;
        Self { order, past }
    }

    /// Does `work`, but nothing of it while all is to be still. A cut ends it.
    async fn steer<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Cut> {
        let mut work = pin!(work);
        loop {
            let now = *self.order.borrow_and_update();
            if now.cuts > self.past {
                return Err(now.cut);
            }
            tokio::select! {
                done = &mut work, if !now.still => return Ok(done),
                changed = self.order.changed() => changed.map_err(|_| Cut::Close)?,
            }
        }
    }
}

// === impl End ===

impl End for TcpStream {
    fn socket(&self) -> &TcpStream {
        self
    }
}

async fn accept(listener: TcpListener, way: Way, order: watch::Sender<Order>) {
    // An accept fails when the peer is gone again or descriptors run out; the next may not.
    loop {
        if let Ok((client, _)) = listener.accept().await {
            tokio::spawn(way.clone().relay(client, Orders::of(&order)));
        }
    }
}

// === impl Way ===

impl Way {
    async fn relay(self, client: TcpStream, mut orders: Orders) {
        let Ok(Ok(server)) = orders.steer(TcpStream::connect(self.target)).await else { return };
        // The relay is to add no delay of its own.
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let Some(tap) = self.tap else { return carry(client, server, orders).await };
        if let Ok(Some((client, server))) = orders.steer(tap.between(client, server)).await {
            carry(client, server, orders).await;
        }
    }
}

async fn carry(mut client: impl End, mut server: impl End, mut orders: Orders) {
    if orders.steer(copy_bidirectional(&mut client, &mut server)).await.is_err_and(|cut| cut == Cut::Reset) {
        let _ = (client.socket().set_zero_linger(), server.socket().set_zero_linger());
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// A connection through a relay, both its ends, after one byte each way.
    async fn connected() -> (Relay, TcpStream, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let relay = Relay::start(listener.local_addr().unwrap()).await.unwrap();
        let mut client = TcpStream::connect(relay.address()).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        client.write_all(b"?").await.unwrap();
        assert_eq!(server.read_u8().await.unwrap(), b'?');
        server.write_all(b"!").await.unwrap();
        assert_eq!(client.read_u8().await.unwrap(), b'!');
        (relay, client, server)
    }

    #[tokio::test]
    async fn a_close_is_an_end_on_both_sides() {
        let (relay, mut client, mut server) = connected().await;
        assert_eq!(relay.cut(Cut::Close), 1);
        assert_eq!(client.read(&mut [0]).await.unwrap(), 0);
        assert_eq!(server.read(&mut [0]).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_reset_is_an_error_on_both_sides() {
        let (relay, mut client, mut server) = connected().await;
        assert_eq!(relay.cut(Cut::Reset), 1);
        let kinds =
            [client.read(&mut [0]).await, server.read(&mut [0]).await].map(|read| read.unwrap_err().kind());
        assert_eq!(kinds, [ErrorKind::ConnectionReset; 2]);
    }

    #[tokio::test]
    async fn a_cut_spares_later_connections() {
        let (relay, ..) = connected().await;
        relay.cut(Cut::Reset);
        let later = TcpStream::connect(relay.address()).await.unwrap();
        assert!(later.peer_addr().is_ok());
    }

    #[tokio::test]
    async fn a_held_connection_moves_nothing_and_loses_nothing() {
        let (relay, mut client, mut server) = connected().await;
        relay.hold();
        client.write_all(b"?").await.unwrap();
        let mut late = TcpStream::connect(relay.address()).await.unwrap();
        // The relay has accepted it, and has run since it was told to hold.
        while relay.held() < 2 {
            tokio::task::yield_now().await;
        }
        assert_eq!(server.try_read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
        relay.release();
        assert_eq!(server.read_u8().await.unwrap(), b'?');
        relay.hold();
        relay.cut(Cut::Close);
        assert_eq!(client.read(&mut [0]).await.unwrap() + late.read(&mut [0]).await.unwrap(), 0);
    }
}
