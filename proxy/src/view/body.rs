//! The body of an open watch: what upstream tells, through the filter, and between two of its events what is made here.

use std::{
    error::Error as StdError,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};

use super::{
    Seat,
    watching::{Next, Watching},
};
use crate::filter::{
    Scanner,
    body::{BodyError, Filtered, Meter},
};

/// A watch into which other events are spliced.
pub struct Spliced<B, M> {
    watch: Filtered<B, Arc<Watching>, M>,
    seat: Seat,
}

// === impl Spliced ===

impl<B, M: Meter> Spliced<B, M> {
    /// Filters `upstream` by what its place in the view shows.
    pub(super) fn new(
        upstream: B,
        scanner: impl FnOnce(Arc<Watching>) -> Scanner<Arc<Watching>>,
        seat: Seat,
        meter: M,
    ) -> Self {
        Self { watch: Filtered::new(upstream, scanner(seat.watching.clone()), meter), seat }
    }
}

impl<B, M> HttpBody for Spliced<B, M>
where
    B: HttpBody + Unpin,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
    M: Meter + Unpin,
{
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = self.get_mut();
        let watching = &this.seat.watching;
        // What was read comes before what was made after it.
        if !this.watch.is_ready() {
            match watching.next(cx.waker()) {
                Next::Event(event) => return Poll::Ready(Some(Ok(Frame::data(event)))),
                Next::End => {
                    watching.paid();
                    return Poll::Ready(None);
                }
                Next::Watch => this.seat.settle(),
            }
        }
        let _turn = watching.turn();
        Pin::new(&mut this.watch).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.watch.is_end_stream() && !self.seat.watching.is_waiting()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}
