//! What an HTTP/2 server says, read from its frames between two TLS connections.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

use self::frames::{DATA, Frames, GOAWAY};
use super::End;
use crate::HarnessError;
use crate::bench::trust;
use crate::pki::Pki;

mod frames;

const ALPN: &[u8] = b"h2";
/// How the API server's watch cache words a 410 (apiserver `storage/cacher/watch_cache.go`). It comes as an event of a
/// watch that was answered 200, so that the audit log does not show it.
const TOO_OLD: &[u8] = b"too old resource version";

/// How often a server said what, over all connections of a relay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// GOAWAY without an error: use another connection from here on.
    pub goaways: u64,
    /// That a watch's resource version is too old.
    pub expired: u64,
}

/// Ends TLS on both sides.
pub(super) struct Tap {
    acceptor: TlsAcceptor,
    connector: TlsConnector,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    goaways: AtomicU64,
    expired: AtomicU64,
}

/// A connection to a server whose frames are counted as they are read.
pub(super) struct Tapped {
    io: client::TlsStream<TcpStream>,
    frames: Frames,
    counts: Arc<Counts>,
}

// === impl Tap ===

impl Tap {
    pub(super) fn new(pki: &Pki) -> Result<Self, HarnessError> {
        let unusable = |error: rustls::Error| HarnessError::Answer {
            url: "a tap".to_owned(),
            reason: error.to_string(),
        };
        let mut server = serving(pki).map_err(unusable)?;
        let mut client = trust(&pki.ca).map_err(unusable)?;
        server.alpn_protocols = vec![ALPN.to_vec()];
        client.alpn_protocols = vec![ALPN.to_vec()];
        let (acceptor, connector) = (Arc::new(server).into(), Arc::new(client).into());
        Ok(Self { acceptor, connector, counts: Arc::default() })
    }

    pub(super) fn seen(&self) -> Seen {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Seen { goaways: count(&self.counts.goaways), expired: count(&self.counts.expired) }
    }

    /// Both handshakes; nothing where one fails.
    pub(super) async fn between(
        &self,
        client: TcpStream,
        server: TcpStream,
    ) -> Option<(server::TlsStream<TcpStream>, Tapped)> {
        let name = ServerName::from(server.peer_addr().ok()?.ip());
        let io = self.connector.connect(name, server).await.ok()?;
        let client = self.acceptor.accept(client).await.ok()?;
        Some((client, Tapped { io, frames: Frames::default(), counts: self.counts.clone() }))
    }
}

impl std::fmt::Debug for Tap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.seen().fmt(f)
    }
}

fn serving(pki: &Pki) -> Result<ServerConfig, rustls::Error> {
    let general = |error: rustls::pki_types::pem::Error| rustls::Error::General(error.to_string());
    let cert = CertificateDer::from_pem_file(&pki.cert).map_err(general)?;
    let key = PrivateKeyDer::from_pem_file(&pki.key).map_err(general)?;
    ServerConfig::builder().with_no_client_auth().with_single_cert(vec![cert], key)
}

// === impl Counts ===

impl Counts {
    fn frame(&self, kind: u8, payload: &[u8]) {
        // The last four bytes of a GOAWAY without debug data are its error code.
        if kind == GOAWAY && payload.get(4..8) == Some(&[0; 4]) {
            self.goaways.fetch_add(1, Ordering::Relaxed);
        } else if kind == DATA && payload.windows(TOO_OLD.len()).any(|bytes| bytes == TOO_OLD) {
            self.expired.fetch_add(1, Ordering::Relaxed);
        }
    }
}

// === impl Tapped ===

impl AsyncRead for Tapped {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        let read = Pin::new(&mut this.io).poll_read(cx, buf);
        let new = buf.filled().get(before..).unwrap_or_default();
        this.frames.step(new, |kind, payload| this.counts.frame(kind, payload));
        read
    }
}

impl AsyncWrite for Tapped {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().io).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }
}

// === impl End ===

impl End for Tapped {
    fn socket(&self) -> &TcpStream {
        self.io.get_ref().0
    }
}

impl End for server::TlsStream<TcpStream> {
    fn socket(&self) -> &TcpStream {
        self.get_ref().0
    }
}
