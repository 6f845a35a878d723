//! Few large frames instead of many small ones.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Bytes, BytesMut};
use http_body::{Body as HttpBody, Frame, SizeHint};

/// With the 9 bytes of an HTTP/2 frame's head it fills one TLS record (RFC 8446, section 5.1) exactly.
const FULL: usize = (16 << 10) - 9;

/// A body whose small frames are joined as far as they are there already; nothing ever waits for more.
///
/// Each frame costs a TLS record and a system call. The API server sends a protobuf list in frames of 4 KiB.
pub struct Joined<B: HttpBody> {
    body: B,
    /// What was polled while joining and comes next.
    next: Next<B::Error>,
    /// What is joined so far, while its source has its turn.
    joining: Option<Whole>,
    /// Whether the source gets a turn before it counts as empty.
    gives_turn: bool,
    /// Whether it has had that turn.
    had_turn: bool,
}

enum Next<E> {
    Unknown,
    Frame(Frame<Bytes>),
    Error(E),
    End,
}

// === impl Joined ===

impl<B: HttpBody<Data = Bytes> + Unpin> Joined<B> {
    /// Joins the frames of a body.
    pub fn new(body: B) -> Self {
        Self { body, next: Next::Unknown, joining: None, gives_turn: false, had_turn: false }
    }

    /// The same for a source that hands over one frame at a time though it has more: hyper does so with the chunks of
    /// an HTTP/1.1 body, from a task of its own. It runs once before what is there goes on.
    pub fn in_turns(body: B) -> Self {
        Self { gives_turn: true, ..Self::new(body) }
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Next<B::Error>> {
        match std::mem::replace(&mut self.next, Next::Unknown) {
            Next::Unknown => Pin::new(&mut self.body).poll_frame(cx).map(Next::of),
            known => Poll::Ready(known),
        }
    }

    /// Adds what is there; the first frame that does not fit comes next.
    fn join(&mut self, mut joined: Whole, cx: &mut Context<'_>) -> Poll<Bytes> {
        while joined.len() < FULL && !self.body.is_end_stream() {
            match self.poll_next(cx) {
                Poll::Ready(Next::Frame(frame))
                    if frame.data_ref().is_some_and(|data| joined.takes(data)) =>
                {
                    joined.add(&frame.into_data().unwrap_or_default());
                    self.had_turn = false;
                }
                Poll::Ready(next) => {
                    self.next = next;
                    break;
                }
                Poll::Pending if self.gives_turn && !self.had_turn => {
                    (self.joining, self.had_turn) = (Some(joined), true);
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Poll::Pending => break,
            }
        }
        self.had_turn = false;
        Poll::Ready(joined.into_bytes())
    }
}

impl<B: HttpBody<Data = Bytes> + Unpin> HttpBody for Joined<B>
where
    B::Error: Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if let Some(joined) = self.joining.take() {
            return self.join(joined, cx).map(|data| Some(Ok(Frame::data(data))));
        }
        match ready!(self.poll_next(cx)) {
            Next::Frame(frame) => match frame.into_data() {
                Ok(data) => self.join(Whole::One(data), cx).map(|data| Some(Ok(Frame::data(data)))),
                Err(trailers) => Poll::Ready(Some(Ok(trailers))),
            },
            Next::Error(error) => Poll::Ready(Some(Err(error))),
            Next::End | Next::Unknown => {
                self.next = Next::End;
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self.next {
            Next::Unknown => self.joining.is_none() && self.body.is_end_stream(),
            Next::End => true,
            Next::Frame(_) | Next::Error(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self.next {
            Next::Unknown if self.joining.is_none() => self.body.size_hint(),
            _ => SizeHint::default(),
        }
    }
}

// === impl Next ===

impl<E> Next<E> {
    fn of(polled: Option<Result<Frame<Bytes>, E>>) -> Self {
        match polled {
            Some(Ok(frame)) => Self::Frame(frame),
            Some(Err(error)) => Self::Error(error),
            None => Self::End,
        }
    }
}

/// A frame, copied only once a second one joins it.
enum Whole {
    One(Bytes),
    Many(BytesMut),
}

// === impl Whole ===

impl Whole {
    fn len(&self) -> usize {
        match self {
            Self::One(bytes) => bytes.len(),
            Self::Many(bytes) => bytes.len(),
        }
    }

    fn takes(&self, more: &Bytes) -> bool {
        self.len() + more.len() <= FULL
    }

    fn add(&mut self, more: &Bytes) {
        if let Self::One(first) = self {
            let mut all = BytesMut::with_capacity(FULL);
            all.extend_from_slice(first);
            *self = Self::Many(all);
        }
        if let Self::Many(all) = self {
            all.extend_from_slice(more);
        }
    }

    fn into_bytes(self) -> Bytes {
        match self {
            Self::One(bytes) => bytes,
            Self::Many(bytes) => bytes.freeze(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::VecDeque, task::Waker};

    use http::HeaderMap;

    use super::*;

    type Polled = Poll<Option<Result<Frame<Bytes>, &'static str>>>;

    /// Gives what a test says, one answer a poll.
    struct Scripted(VecDeque<Polled>);

    impl HttpBody for Scripted {
        type Data = Bytes;
        type Error = &'static str;

        fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Polled {
            self.0.pop_front().expect("polled after the end")
        }
    }

    fn data(size: usize) -> Polled {
        Poll::Ready(Some(Ok(Frame::data(Bytes::from(vec![b'a'; size])))))
    }

    fn trailers() -> Polled {
        Poll::Ready(Some(Ok(Frame::trailers(HeaderMap::new()))))
    }

    /// What comes out: sizes of data frames, and words for the rest.
    fn seen(script: impl IntoIterator<Item = Polled>) -> Vec<String> {
        polled(Joined::new(Scripted(script.into_iter().collect())))
    }

    fn polled(mut body: Joined<Scripted>) -> Vec<String> {
        let mut cx = Context::from_waker(Waker::noop());
        let mut seen = Vec::new();
        loop {
            let word = match Pin::new(&mut body).poll_frame(&mut cx) {
                Poll::Pending => "pending".to_owned(),
                Poll::Ready(Some(Ok(frame))) => {
                    frame.data_ref().map_or("trailers".to_owned(), |data| data.len().to_string())
                }
                Poll::Ready(Some(Err(error))) => error.to_owned(),
                Poll::Ready(None) => return seen,
            };
            seen.push(word);
        }
    }

    #[test]
    fn what_is_there_is_joined_and_nothing_waits() {
        let script = [data(1), data(2), Poll::Pending, Poll::Pending, data(4), Poll::Ready(None)];
        assert_eq!(seen(script), ["3", "pending", "4"]);
    }

    #[test]
    fn a_source_gets_one_turn_for_more() {
        let script =
            [data(1), Poll::Pending, data(2), Poll::Pending, Poll::Pending, data(4), Poll::Ready(None)];
        let body = Joined::in_turns(Scripted(script.into()));
        assert_eq!(polled(body), ["pending", "pending", "3", "4"]);
        let script = [data(1), Poll::Pending, Poll::Ready(Some(Err("cut"))), Poll::Ready(None)];
        assert_eq!(polled(Joined::in_turns(Scripted(script.into()))), ["pending", "1", "cut"]);
    }

    #[test]
    fn what_is_joined_still_comes() {
        let mut body = Joined::in_turns(Scripted([data(1), Poll::Pending, Poll::Ready(None)].into()));
        assert!(Pin::new(&mut body).poll_frame(&mut Context::from_waker(Waker::noop())).is_pending());
        assert!(!body.is_end_stream());
        assert_eq!(body.size_hint().exact(), None);
    }

    #[test]
    fn a_joined_frame_fills_one_record_at_most() {
        let script = [data(FULL - 1), data(1), data(FULL - 1), data(2), data(3), Poll::Ready(None)];
        assert_eq!(seen(script), [FULL.to_string(), (FULL - 1).to_string(), "5".to_owned()]);
        let large = 64 << 10;
        assert_eq!(seen([data(large), data(1), Poll::Ready(None)]), [large.to_string(), "1".to_owned()]);
    }

    #[test]
    fn errors_and_trailers_keep_their_place() {
        assert_eq!(seen([data(1), data(1), Poll::Ready(Some(Err("cut"))), Poll::Ready(None)]), ["2", "cut"]);
        assert_eq!(seen([data(1), trailers(), Poll::Ready(None)]), ["1", "trailers"]);
    }

    #[test]
    fn the_end_is_known_with_the_last_frame() {
        let mut body = Joined::new(Scripted([data(1), Poll::Ready(None)].into()));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(!body.is_end_stream());
        assert!(Pin::new(&mut body).poll_frame(&mut cx).is_ready());
        assert!(body.is_end_stream());
    }
}
