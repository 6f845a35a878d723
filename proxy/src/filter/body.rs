//! The filter as a body: upstream's bytes are read only when the client wants some and nothing waits to be sent.

use super::{Counts, FilterError, Lens, Out, Scan, Scanner};
use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use std::error::Error as StdError;
use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Told what a body did, so that metrics can be kept elsewhere.
pub trait Meter {
    /// Objects and bytes were counted; called after each chunk that held any.
    fn counted(&self, counts: Counts);

    /// The filter gave up.
    fn failed(&self, error: FilterError);
}

/// Why a filtered body broke off. The client must see a broken transfer, never a short answer.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// Upstream's bytes could not be filtered.
    #[error("proxy: {0}")]
    Filter(#[from] FilterError),
    /// Upstream broke off; the client should ask again.
    #[error("upstream: the body broke off: {0}")]
    Upstream(#[source] Box<dyn StdError + Send + Sync>),
}

/// A response body that shows a controller only what its [`Lens`] allows.
///
/// Lists and broken transfers end in an error. A watch that cannot be read further ends with one `ERROR` event, which is what
/// clients act on, and then cleanly; a watch that upstream breaks off ends in an error. Trailers pass. The length is unknown:
/// take `Content-Length` out of the head.
#[derive(Debug)]
pub struct Filtered<B, L, M> {
    upstream: B,
    scanner: Scanner<L>,
    meter: M,
    out: Out,
    end: End,
}

/// What is left to say when nothing waits to be sent.
#[derive(Debug)]
enum End {
    /// Upstream has more.
    Open,
    Trailers(http::HeaderMap),
    Failed(FilterError),
    Closed,
}

// === impl Filtered ===

impl<B, L: Lens, M: Meter> Filtered<B, L, M> {
    /// Filters `upstream`.
    pub fn new(upstream: B, scanner: Scanner<L>, meter: M) -> Self {
        Self { upstream, scanner, meter, out: Out::default(), end: End::Open }
    }

    /// Whether something that was read waits to be sent.
    pub fn is_ready(&self) -> bool {
        !self.out.is_empty()
    }

    fn data(&mut self, chunk: Bytes) {
        let result = self.scanner.push(chunk, &mut self.out);
        self.settle(result, End::Open);
    }

    fn finish(&mut self, trailers: Option<http::HeaderMap>) {
        let result = self.scanner.finish(&mut self.out);
        self.settle(result, trailers.map_or(End::Closed, End::Trailers));
    }

    /// Tells the meter, and decides what comes after the bytes at hand.
    fn settle(&mut self, result: Result<(), FilterError>, next: End) {
        let counts = self.out.take_counts();
        if counts != Counts::default() {
            self.meter.counted(counts);
        }
        self.end = match result {
            Ok(()) => next,
            Err(error) => self.fail(error),
        };
    }

    /// A watch that upstream cut within an event is a broken transfer; any other failure of a watch is told by an event.
    fn fail(&mut self, error: FilterError) -> End {
        self.meter.failed(error);
        match self.scanner.farewell(error) {
            Some(event) if error != FilterError::Truncated => {
                self.out.append(event);
                self.out.seal();
                End::Closed
            }
            _ => End::Failed(error),
        }
    }

    /// What is left to say after the bytes.
    fn last(&mut self) -> Option<Result<Frame<Bytes>, BodyError>> {
        match mem::replace(&mut self.end, End::Closed) {
            End::Trailers(trailers) => Some(Ok(Frame::trailers(trailers))),
            End::Failed(error) => Some(Err(error.into())),
            End::Open | End::Closed => None,
        }
    }

    fn upstream_failed(&mut self, error: impl Into<Box<dyn StdError + Send + Sync>>) -> BodyError {
        self.end = End::Closed;
        BodyError::Upstream(error.into())
    }
}

impl<B, L, M> Filtered<B, L, M>
where
    B: Body + Unpin,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
    L: Lens,
    M: Meter,
{
    /// Reads until there is something to send, or nothing more will come. An error here is known before any byte is sent,
    /// so the client can still be told what is wrong. Not for watches, whose head must not wait for an event.
    pub async fn begin(&mut self) -> Result<(), BodyError> {
        poll_fn(|cx| self.poll_fill(cx)).await?;
        if let End::Failed(error) = self.end { Err(error.into()) } else { Ok(()) }
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BodyError>> {
        while self.out.is_empty() && matches!(self.end, End::Open) {
            match ready!(Pin::new(&mut self.upstream).poll_frame(cx)) {
                None => self.finish(None),
                Some(Err(error)) => return Poll::Ready(Err(self.upstream_failed(error))),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(mut data) => self.data(data.copy_to_bytes(data.remaining())),
                    Err(frame) => self.finish(frame.into_trailers().ok()),
                },
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<B, L, M> Body for Filtered<B, L, M>
where
    B: Body + Unpin,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
    L: Lens + Unpin,
    M: Meter + Unpin,
{
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        if let Err(error) = ready!(this.poll_fill(cx)) {
            return Poll::Ready(Some(Err(error)));
        }
        match this.out.pop() {
            Some(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            None => Poll::Ready(this.last()),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.end, End::Closed) && self.out.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

#[cfg(test)]
mod tests;
