//! The one body type that requests and responses have inside the proxy.

mod ending;
mod gunzip;
mod joined;

use std::{
    error::Error,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::{BodyExt, Empty, Full, combinators::UnsyncBoxBody};
use prometheus::{IntCounter, IntGauge};

pub use self::{
    ending::{Boundary, Ending},
    gunzip::Gunzip,
    joined::Joined,
};

/// Why a body ended early. hyper resets the stream or cuts the connection, so that the peer sees a
/// broken transfer.
pub type BodyError = Box<dyn Error + Send + Sync>;

/// A body on its way through.
pub type Body = UnsyncBoxBody<Bytes, BodyError>;

/// A body whose bytes are counted, and that counts as open until it is dropped.
pub struct Metered<B> {
    body: B,
    bytes: IntCounter,
    _open: Option<Open>,
}

/// One more of something that is open, until it is dropped.
pub struct Open(IntGauge);

/// A body that is known whole.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// No body.
pub fn empty() -> Body {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

// === impl Metered ===

impl<B> Metered<B> {
    /// Counts the bytes of a body.
    pub fn new(body: B, bytes: IntCounter, open: Option<Open>) -> Self {
        Self { body, bytes, _open: open }
    }
}

impl<B: HttpBody<Data = Bytes> + Unpin> HttpBody for Metered<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Some(Ok(data)) = frame.as_ref().map(|frame| frame.as_ref().map(Frame::data_ref)) {
            self.bytes.inc_by(data.map_or(0, Bytes::len) as u64);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

// === impl Open ===

impl Open {
    /// Counts one more.
    pub fn one(gauge: IntGauge) -> Self {
        gauge.inc();
        Self(gauge)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.dec();
    }
}
