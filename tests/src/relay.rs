//! A relay of TCP connections that cuts them when told to.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::HarnessError;

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
    /// How often it has cut, and how it did last.
    order: watch::Sender<Order>,
    accepting: tokio::task::JoinHandle<()>,
}

#[derive(Debug, Clone, Copy)]
struct Order {
    round: u64,
    cut: Cut,
}

// === impl Relay ===

impl Relay {
    /// Relays connections to `target`, which need not listen yet.
    pub async fn start(target: SocketAddr) -> Result<Self, HarnessError> {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let failed = |error: std::io::Error| HarnessError::Answer {
            url: format!("a relay to {target}"),
            reason: error.to_string(),
        };
        let listener = TcpListener::bind(any).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (order, _) = watch::channel(Order { round: 0, cut: Cut::Close });
        let accepting = tokio::spawn(accept(listener, target, order.clone()));
        Ok(Self { address, order, accepting })
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
        self.order.send_modify(|order| *order = Order { round: order.round + 1, cut });
        held
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut(Cut::Close);
    }
}

async fn accept(listener: TcpListener, target: SocketAddr, order: watch::Sender<Order>) {
    // An accept fails when the peer is gone again or descriptors run out; the next may not.
    loop {
        if let Ok((client, _)) = listener.accept().await {
            tokio::spawn(relay(client, target, order.subscribe()));
        }
    }
}

async fn relay(mut client: TcpStream, target: SocketAddr, mut order: watch::Receiver<Order>) {
    let Ok(mut server) = TcpStream::connect(target).await else { return };
    // The relay is to add no delay of its own.
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    tokio::select! {
        _ = copy_bidirectional(&mut client, &mut server) => {}
        _ = order.changed() => {
            if order.borrow().cut == Cut::Reset {
                let _ = (client.set_zero_linger(), server.set_zero_linger());
            }
        }
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
}
