//! How a scripted upstream receives connections, and what is wrong with it.

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::line::Setup;
use crate::HarnessError;
use crate::pki::Pki;

/// Connections that the kernel takes for an upstream that is slow to accept.
const BACKLOG: u32 = 1024;
/// What Go's TLS server says to a client that does not speak TLS, and here to one that does.
const PLAIN: &[u8] = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";

/// What becomes of a new connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// It is served.
    Open,
    /// Nobody listens.
    Shut,
    /// The listener's queue is full, and nobody takes from it.
    Full,
    /// It is accepted, and then nothing is said.
    Silent,
    /// It hears plain text in place of TLS.
    Plain,
    /// The certificate is of an authority that nobody trusts.
    Stranger,
    /// The server speaks HTTP/1.1 only: it agrees to no protocol.
    Http1,
}

/// An order to turn the door, and who waits for it.
pub(super) type Turn = (Door, oneshot::Sender<()>);

/// Whoever stands at the door.
pub(super) struct Porter {
    address: SocketAddr,
    served: TlsAcceptor,
    stranger: TlsAcceptor,
    http1: TlsAcceptor,
    setup: Setup,
}

// === impl Porter ===

impl Porter {
    /// Certificates go to `dir`.
    pub(super) fn new(
        address: SocketAddr,
        pki: &Pki,
        dir: &Path,
        setup: Setup,
    ) -> Result<Self, HarnessError> {
        let stranger = Pki::create(&dir.join("stranger"))?;
        Ok(Self {
            address,
            served: acceptor(pki, &[b"h2", b"http/1.1"])?,
            stranger: acceptor(&stranger, &[b"h2"])?,
            http1: acceptor(pki, &[])?,
            setup,
        })
    }

    /// Accepts connections until it is aborted, which ends them all. To turn the door ends them too.
    pub(super) async fn stand(self: Arc<Self>, listener: TcpListener, mut turns: mpsc::Receiver<Turn>) {
        let (mut door, mut lines) = (Door::Open, JoinSet::new());
        let mut listener = Some(listener);
        loop {
            tokio::select! {
                Some((to, done)) = turns.recv() => {
                    lines.shutdown().await;
                    // The port must be free before it is taken again.
                    drop(listener.take());
                    door = to;
                    listener = self.listen(door, &mut lines).await.ok().flatten();
                    let _ = done.send(());
                }
                tcp = accepted(listener.as_ref().filter(|_| door != Door::Full)) => {
                    lines.spawn(self.clone().receive(door, tcp));
                }
                Some(_) = lines.join_next() => {}
            }
        }
    }

    async fn listen(&self, door: Door, lines: &mut JoinSet<()>) -> io::Result<Option<TcpListener>> {
        if door == Door::Shut {
            return Ok(None);
        }
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind(self.address)?;
        let listener = socket.listen(if door == Door::Full { 0 } else { BACKLOG })?;
        if door == Door::Full {
            // A queue of length 0 takes one.
            let first = TcpStream::connect(self.address).await?;
            lines.spawn(hold(first));
        }
        Ok(Some(listener))
    }

    async fn receive(self: Arc<Self>, door: Door, mut tcp: TcpStream) {
        let _ = tcp.set_nodelay(true);
        let acceptor = match door {
            Door::Open => &self.served,
            Door::Stranger => &self.stranger,
            Door::Http1 => &self.http1,
            Door::Plain => {
                let _ = tcp.write_all(PLAIN).await;
                return;
            }
            Door::Shut | Door::Full | Door::Silent => return hold(tcp).await,
        };
        if let Ok(tls) = acceptor.accept(tcp).await {
            self.setup.clone().speak(tls).await;
        }
    }
}

/// The next connection; for ever if nobody listens or accepting fails.
async fn accepted(listener: Option<&TcpListener>) -> TcpStream {
    let Some(listener) = listener else { return pending().await };
    match listener.accept().await {
        Ok((tcp, _)) => tcp,
        Err(_) => pending().await,
    }
}

async fn hold(_tcp: TcpStream) {
    pending::<()>().await;
}

fn acceptor(pki: &Pki, protocols: &[&[u8]]) -> Result<TlsAcceptor, HarnessError> {
    let unusable = |reason: String| HarnessError::Answer { url: pki.cert.display().to_string(), reason };
    let cert = CertificateDer::from_pem_file(&pki.cert).map_err(|error| unusable(error.to_string()))?;
    let key = PrivateKeyDer::from_pem_file(&pki.key).map_err(|error| unusable(error.to_string()))?;
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![cert], key);
    let mut config = config.map_err(|error| unusable(error.to_string()))?;
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(TlsAcceptor::from(Arc::new(config)))
}
