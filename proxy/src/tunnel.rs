//! A connection that has left HTTP: bytes go both ways as they come, until both sides are done or one breaks.
//!
//! ```text
//! controller ──▶ 16 KiB ──▶ API server      a side that is done is told to the other, which may go on;
//!            ◀── 16 KiB ◀──                 a buffer that is full stops who fills it
//! ```

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use prometheus::IntCounter;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, copy_bidirectional_with_sizes};

use crate::metrics::Metrics;

/// How much is on its way in one direction: what TLS puts into a record.
const BUFFER: usize = 16 << 10;

/// The bytes of tunnels, by where they come from.
pub struct Meter {
    /// From the controller.
    forwarded: IntCounter,
    /// From an API server.
    received: IntCounter,
    /// To the controller.
    sent: IntCounter,
}

/// One end, whose bytes are counted as they are read.
struct End<I> {
    io: I,
    read: Vec<IntCounter>,
}

// === impl Meter ===

impl Meter {
    /// Counts into the metrics of the proxy.
    pub fn new(metrics: &Metrics) -> Self {
        let bytes = |direction| metrics.bytes.with_label_values(&[direction]);
        Self { forwarded: bytes("forwarded"), received: bytes("received"), sent: bytes("sent") }
    }
}

/// Joins two connections once both have left HTTP.
pub async fn run(client: OnUpgrade, server: OnUpgrade, meter: Meter) {
    match tokio::try_join!(client, server) {
        Ok((client, server)) => {
            if let Err(error) = join(TokioIo::new(client), TokioIo::new(server), meter).await {
                tracing::debug!(%error, "tunnel broke");
            }
        }
        Err(error) => tracing::debug!(%error, "no tunnel"),
    }
}

async fn join<C, S>(client: C, server: S, meter: Meter) -> io::Result<()>
where
    C: AsyncRead + AsyncWrite + Unpin,
    S: AsyncRead + AsyncWrite + Unpin,
{
    let Meter { forwarded, received, sent } = meter;
    let mut client = End { io: client, read: vec![forwarded] };
    let mut server = End { io: server, read: vec![received, sent] };
    copy_bidirectional_with_sizes(&mut client, &mut server, BUFFER, BUFFER).await.map(drop)
}

// === impl End ===

impl<I: AsyncRead + Unpin> AsyncRead for End<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.io).poll_read(cx, buf);
        let bytes = buf.filled().len() - before;
        self.read.iter().for_each(|counter| counter.inc_by(bytes as u64));
        match read {
            // Without TLS' own farewell. Go's peers take it for an end all the same (crypto/tls `readRecordOrCCS`), and
            // what is spoken in a tunnel has ends of its own.
            Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(Ok(())),
            read => read,
        }
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for End<I> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;
