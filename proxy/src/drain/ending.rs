//! A watch that ends when the proxy drains, between two events and never within one.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};

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

/// A watch body that ends at the first boundary after `told` has resolved.
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
    B: HttpBody<Data = Bytes> + Unpin,
    F: Future<Output = ()>,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if self.boundary.is_between() && self.is_over(cx) {
            return Poll::Ready(None);
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
        {
            self.boundary.read(data);
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

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use proptest::prelude::*;
    use tokio::sync::{mpsc, oneshot};

    use super::*;

    /// Bytes as a test sends them.
    struct Sent(mpsc::Receiver<&'static str>);

    impl HttpBody for Sent {
        type Data = Bytes;
        type Error = std::convert::Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
            self.0.poll_recv(cx).map(|sent| sent.map(|text| Ok(Frame::data(Bytes::from(text)))))
        }
    }

    #[tokio::test]
    async fn a_watch_ends_after_the_event_under_way_and_not_before() {
        let (send, receive) = mpsc::channel(4);
        let (tell, told) = oneshot::channel();
        let told = async { drop(told.await) };
        let mut body = Ending::new(Sent(receive), Boundary::LINES, told);
        send.send("{\"type\":\"ADDED\"}\n{\"type\":").await.unwrap();
        assert!(body.frame().await.is_some());
        tell.send(()).unwrap();
        send.send("\"DELETED\"}\n").await.unwrap();
        let last = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(last, "\"DELETED\"}\n");
        send.send("{\"type\":\"LATE\"}\n").await.unwrap();
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
