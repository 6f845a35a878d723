//! A wire into which a test puts frames of its own, between those of the library.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{mpsc, oneshot};

/// A frame to be sent, and who waits until it has left.
pub(super) type Said = (Bytes, oneshot::Sender<()>);

/// Carries what the library writes, and the frames given to it whenever the library has written whole ones.
pub(super) struct Spliced<S> {
    io: S,
    given: mpsc::Receiver<Said>,
    /// What is left of the frame that is being written.
    rest: Bytes,
    /// Who is told after the next flush.
    waiting: Vec<oneshot::Sender<()>>,
}

// === impl Spliced ===

impl<S: AsyncWrite + Unpin> Spliced<S> {
    pub(super) fn new(io: S, given: mpsc::Receiver<Said>) -> Self {
        Self { io, given, rest: Bytes::new(), waiting: Vec::new() }
    }

    fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.rest.is_empty() {
            let written = ready!(Pin::new(&mut self.io).poll_write(cx, &self.rest))?;
            self.rest.advance(written);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Spliced<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_rest(cx))?;
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    /// The library flushes when it has nothing more to write, so never within a frame.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_rest(cx))?;
        while let Poll::Ready(Some((frame, said))) = self.given.poll_recv(cx) {
            self.rest = frame;
            self.waiting.push(said);
            ready!(self.poll_rest(cx))?;
        }
        ready!(Pin::new(&mut self.io).poll_flush(cx))?;
        for said in self.waiting.drain(..) {
            let _ = said.send(());
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Spliced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, into)
    }
}
