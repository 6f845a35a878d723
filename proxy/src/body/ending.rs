//! A watch that ends between two events and never within one: when the proxy drains, and when its upstream breaks.
//!
//! A client that sees a watch end well goes on from the last event that it has. At the reset of an HTTP/2 stream
//! client-go asks for the whole state again instead (apimachinery `util/net/http.go`, `IsProbableEOF`), which on a
//! direct connection it does not when that breaks. An upstream that breaks within an event which has been passed on in
//! part is a broken transfer here too.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};

use super::BodyError;
use crate::filter::body as filtered;

/// The bytes in front of a protobuf event that tell its length (apimachinery `util/framer`).
const PREFIX: u8 = 4;

/// Follows a watch's bytes far enough to know whether an event is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boundary {
    /// JSON: an event is a line.
    Line {
        /// Whether the last byte ended a line.
        ended: bool,
    },
    /// Protobuf: an event has its length in front.
    Frame {
        /// Bytes of the length that have been read.
        prefix: u8,
        /// The length as far as it has been read, then the bytes that are left.
        left: u32,
    },
}

/// A watch body that ends at the first boundary after `told` has resolved, or at the one where its upstream broke.
pub struct Ending<B, F> {
    body: B,
    boundary: Boundary,
    told: Option<Pin<Box<F>>>,
}

// === impl Boundary ===

impl Boundary {
    /// The boundary of a watch in JSON, before its first event.
    pub const LINES: Self = Self::Line { ended: true };
    /// The boundary of a watch in protobuf, before its first event.
    pub const FRAMES: Self = Self::Frame { prefix: 0, left: 0 };

    /// Whether no event is under way.
    pub fn is_between(self) -> bool {
        matches!(self, Self::Line { ended: true } | Self::Frame { prefix: 0, .. })
    }

    /// Reads the next bytes.
    pub fn read(&mut self, mut bytes: &[u8]) {
        match self {
            Self::Line { ended } => *ended = bytes.last().map_or(*ended, |last| *last == b'\n'),
            Self::Frame { prefix, left } => {
                while let Some((byte, rest)) = bytes.split_first() {
                    if *prefix < PREFIX {
                        (*prefix, *left, bytes) = (*prefix + 1, *left << 8 | u32::from(*byte), rest);
                    } else {
                        let skipped = bytes.len().min(*left as usize);
                        *left -= u32::try_from(skipped).unwrap_or(*left);
                        bytes = bytes.get(skipped..).unwrap_or_default();
                    }
                    if *prefix == PREFIX && *left == 0 {
                        *prefix = 0;
                    }
                }
            }
        }
    }
}

// === impl Ending ===

impl<B, F> Ending<B, F> {
    /// Ends `body` after `told`.
    pub fn new(body: B, boundary: Boundary, told: F) -> Self {
        Self { body, boundary, told: Some(Box::pin(told)) }
    }
}

impl<B, F> Ending<B, F>
where
    F: Future<Output = ()>,
{
    /// Whether the end has come. Polled only between events, and never again once it has come.
    fn is_over(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(told) = &mut self.told else { return true };
        let over = told.as_mut().poll(cx).is_ready();
        if over {
            self.told = None;
        }
        over
    }
}

impl<B, F> HttpBody for Ending<B, F>
where
    B: HttpBody<Data = Bytes, Error = BodyError> + Unpin,
    F: Future<Output = ()>,
{
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.boundary.is_between() && self.is_over(cx) {
            return Poll::Ready(None);
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => frame.data_ref().iter().for_each(|data| self.boundary.read(data)),
            Some(Err(error)) if self.boundary.is_between() && is_of_upstream(error) => {
                self.told = None;
                return Poll::Ready(None);
            }
            Some(Err(_)) | None => {}
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

/// Whether it was the upstream that broke, and not that what came could not be read.
fn is_of_upstream(error: &BodyError) -> bool {
    let filtered = error.downcast_ref::<filtered::BodyError>();
    error.is::<hyper::Error>() || matches!(filtered, Some(filtered::BodyError::Upstream(_)))
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use proptest::prelude::*;
    use tokio::sync::{mpsc, oneshot};

    use super::*;

    /// Bytes and errors as a test sends them.
    struct Sent(mpsc::Receiver<Result<&'static str, BodyError>>);

    impl HttpBody for Sent {
        type Data = Bytes;
        type Error = BodyError;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
            self.0.poll_recv(cx).map(|sent| sent.map(|text| text.map(|text| Frame::data(Bytes::from(text)))))
        }
    }

    #[tokio::test]
    async fn a_watch_ends_after_the_event_under_way_and_not_before() {
        let (send, receive) = mpsc::channel(4);
        let (tell, told) = oneshot::channel();
        let told = async { drop(told.await) };
        let mut body = Ending::new(Sent(receive), Boundary::LINES, told);
        send.send(Ok("{\"type\":\"ADDED\"}\n{\"type\":")).await.unwrap();
        assert!(body.frame().await.is_some());
        tell.send(()).unwrap();
        send.send(Ok("\"DELETED\"}\n")).await.unwrap();
        let last = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(last, "\"DELETED\"}\n");
        send.send(Ok("{\"type\":\"LATE\"}\n")).await.unwrap();
        assert!(body.frame().await.is_none());
        assert!(body.frame().await.is_none());
    }

    #[tokio::test]
    async fn an_idle_watch_is_woken_to_end() {
        let (_send, receive) = mpsc::channel(1);
        let (tell, told) = oneshot::channel();
        let mut body = Ending::new(Sent(receive), Boundary::LINES, async { drop(told.await) });
        let ended = tokio::spawn(async move { body.frame().await.is_none() });
        tokio::task::yield_now().await;
        tell.send(()).unwrap();
        assert!(ended.await.unwrap());
    }

    async fn after(text: &'static str, error: BodyError) -> Option<Result<Frame<Bytes>, BodyError>> {
        let (send, receive) = mpsc::channel(4);
        let mut body = Ending::new(Sent(receive), Boundary::LINES, std::future::pending());
        send.send(Ok(text)).await.unwrap();
        send.send(Err(error)).await.unwrap();
        body.frame().await.unwrap().unwrap();
        let last = body.frame().await;
        assert!(last.is_some() || body.frame().await.is_none());
        last
    }

    #[tokio::test]
    async fn an_upstream_that_breaks_between_two_events_ends_the_watch_and_within_one_breaks_it() {
        let broken = || filtered::BodyError::Upstream("cut".into()).into();
        assert!(after("{}\n", broken()).await.is_none());
        assert!(after("{}\n{", broken()).await.unwrap().is_err());
    }

    #[tokio::test]
    async fn what_cannot_be_read_breaks_the_watch_wherever_it_is() {
        let unreadable = || filtered::BodyError::from(crate::filter::FilterError::Truncated).into();
        assert!(after("{}\n", unreadable()).await.unwrap().is_err());
    }

    proptest! {
        /// Whatever the chunks, a boundary is exactly where a frame ends.
        #[test]
        fn a_frame_ends_where_its_length_says(lengths in prop::collection::vec(0_usize..600, 1..6), cut in 1_usize..50) {
            let (mut bytes, mut ends) = (Vec::new(), vec![0]);
            for length in lengths {
                bytes.extend(u32::try_from(length).unwrap().to_be_bytes());
                bytes.extend(vec![0xff; length]);
                ends.push(bytes.len());
            }
            let (mut boundary, mut read) = (Boundary::FRAMES, 0);
            for chunk in bytes.chunks(cut) {
                boundary.read(chunk);
                read += chunk.len();
                prop_assert_eq!(boundary.is_between(), ends.contains(&read), "after {} of {:?}", read, ends);
            }
        }
    }
}
