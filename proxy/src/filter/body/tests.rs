use super::{BodyError, Filtered, Meter};
use crate::body::Gunzip;
use crate::filter::testing::{Sample, scanner};
use crate::filter::{Counts, Encoding, FilterError, Shape};
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http_body::{Body, Frame};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::Write;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

type Step = Poll<Option<Result<Frame<Bytes>, &'static str>>>;

/// An upstream that does what the test says, and counts how often it is asked.
struct Script {
    steps: VecDeque<Step>,
    polls: Rc<Cell<u32>>,
}

impl Body for Script {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Step {
        self.polls.set(self.polls.get() + 1);
        self.steps.pop_front().unwrap_or(Poll::Ready(None))
    }
}

#[derive(Default, Clone)]
struct Notes(Rc<RefCell<(Vec<Counts>, Vec<FilterError>)>>);

impl Meter for Notes {
    fn counted(&self, counts: Counts) {
        self.0.borrow_mut().0.push(counts);
    }

    fn failed(&self, error: FilterError) {
        self.0.borrow_mut().1.push(error);
    }
}

struct Run {
    body: Filtered<Script, Sample, Notes>,
    polls: Rc<Cell<u32>>,
    notes: Notes,
}

impl Run {
    fn new(shape: Shape, steps: impl IntoIterator<Item = Step>) -> Self {
        let (polls, notes) = (Rc::default(), Notes::default());
        let script = Script { steps: steps.into_iter().collect(), polls: Rc::clone(&polls) };
        let body = Filtered::new(script, scanner(Encoding::Json, shape), notes.clone());
        Self { body, polls, notes }
    }

    fn poll(&mut self) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        Pin::new(&mut self.body).poll_frame(&mut Context::from_waker(Waker::noop()))
    }

    fn data(&mut self) -> String {
        match self.poll() {
            Poll::Ready(Some(Ok(frame))) => String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    fn error(&mut self) -> BodyError {
        match self.poll() {
            Poll::Ready(Some(Err(error))) => error,
            other => panic!("{other:?}"),
        }
    }

    fn ended(&mut self) -> bool {
        matches!(self.poll(), Poll::Ready(None)) && self.body.is_end_stream()
    }
}

fn send(data: &str) -> Step {
    Poll::Ready(Some(Ok(Frame::data(Bytes::copy_from_slice(data.as_bytes())))))
}

const A: &str = "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}\n";
const HIDDEN: &str = "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"x\"}}}\n";

#[test]
fn an_event_arrives_while_upstream_holds_the_body_open() {
    let mut run = Run::new(Shape::Watch, [send(HIDDEN), send(A), Poll::Pending, send(A)]);
    assert_eq!(run.data(), A);
    assert!(run.poll().is_pending());
    assert_eq!(run.data(), A);
    assert!(run.ended());
}

#[test]
fn upstream_is_not_read_while_something_waits() {
    let big = format!(
        "{{\"items\":[{{\"a\":\"{0}\"}},{{\"metadata\":{{\"name\":\"x\"}}}},{{\"b\":\"{0}\"}}]}}",
        "y".repeat(1 << 15)
    );
    let mut run = Run::new(Shape::List, [send(&big)]);
    run.data();
    run.data();
    assert_eq!(run.polls.get(), 1);
}

#[test]
fn counts_reach_the_meter() {
    let mut run = Run::new(Shape::Watch, [send(HIDDEN), send(A)]);
    run.data();
    let counts: Vec<_> = run.notes.0.borrow().0.iter().map(|counts| (counts.kept, counts.hidden)).collect();
    assert_eq!(counts, [(0, 1), (1, 0)]);
}

#[test]
fn a_list_that_ends_early_is_a_broken_transfer() {
    let mut run = Run::new(Shape::List, [send("{\"items\":[")]);
    assert_eq!(run.data(), "{\"items\":[");
    assert!(matches!(run.error(), BodyError::Filter(FilterError::Truncated)));
    assert!(run.ended());
}

#[test]
fn what_upstream_breaks_off_is_no_clean_end() {
    for shape in [Shape::List, Shape::Watch] {
        let mut run = Run::new(shape, [Poll::Ready(Some(Err("reset")))]);
        assert!(matches!(run.error(), BodyError::Upstream(_)));
        assert!(run.ended());
    }
    let mut run = Run::new(Shape::Watch, [send("{\"type\":")]);
    assert!(matches!(run.error(), BodyError::Filter(FilterError::Truncated)));
}

#[test]
fn a_list_that_cannot_be_read_is_known_before_a_byte_is_sent() {
    let begun = |steps: Vec<Step>| {
        let mut run = Run::new(Shape::List, steps);
        let begun = pin!(run.body.begin()).poll(&mut Context::from_waker(Waker::noop()));
        (run, begun)
    };
    for bad in [vec![], vec![send("")], vec![send("nonsense")], vec![send("{\"kind\":\"Pod\",\"items\":7}")]]
    {
        assert!(matches!(begun(bad).1, Poll::Ready(Err(BodyError::Filter(_)))));
    }
    let broken = begun(vec![Poll::Ready(Some(Err("reset")))]).1;
    assert!(matches!(broken, Poll::Ready(Err(BodyError::Upstream(_)))));
    assert!(begun(vec![Poll::Pending]).1.is_pending());
    let (mut run, good) = begun(vec![send("{\"items\":["), Poll::Pending]);
    assert!(matches!(good, Poll::Ready(Ok(()))));
    assert_eq!(run.data(), "{\"items\":[");
}

#[test]
fn a_watch_that_cannot_be_read_ends_with_an_error_event() {
    let mut run = Run::new(Shape::Watch, [send(&(A.to_owned() + "nonsense ")), send(A)]);
    assert_eq!(run.data(), A);
    assert!(run.data().starts_with("{\"type\":\"ERROR\","));
    assert!(run.ended());
    assert_eq!(run.notes.0.borrow().1.len(), 1);
}

/// A list of one string that never ends: a gigabyte in two megabytes.
#[test]
fn a_bomb_ends_at_the_limit_of_one_piece() {
    let member = |text: &[u8]| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    };
    let head = member(br#"{"items":[{"a":""#);
    let bomb = [head, member(&vec![b'a'; 1 << 20]).repeat(1 << 10)].concat();
    let steps = [Poll::Ready(Some(Ok(Frame::data(Bytes::from(bomb)))))].into();
    let polls = Rc::default();
    let upstream = Gunzip::gzip(Script { steps, polls: Rc::clone(&polls) });
    let mut body = Filtered::new(upstream, scanner(Encoding::Json, Shape::List), Notes::default());
    let cx = &mut Context::from_waker(Waker::noop());
    let Poll::Ready(Some(Ok(first))) = Pin::new(&mut body).poll_frame(cx) else { panic!("no frame") };
    assert_eq!(first.into_data().unwrap(), r#"{"items":["#);
    let Poll::Ready(Some(Err(error))) = Pin::new(&mut body).poll_frame(cx) else { panic!("no error") };
    assert!(matches!(error, BodyError::Filter(FilterError::TooLarge)), "{error}");
    assert_eq!(polls.get(), 1);
}

#[test]
fn trailers_pass_after_a_complete_body() {
    let trailers = http::HeaderMap::from_iter([(http::header::WARNING, http::HeaderValue::from_static("w"))]);
    let step = || Poll::Ready(Some(Ok(Frame::trailers(trailers.clone()))));
    let mut run = Run::new(Shape::List, [send("{\"items\":[]}"), step()]);
    run.data();
    let Poll::Ready(Some(Ok(frame))) = run.poll() else { panic!("no frame") };
    assert_eq!(frame.into_trailers().unwrap(), trailers);
    assert!(run.ended());
    assert!(matches!(Run::new(Shape::List, [step()]).error(), BodyError::Filter(FilterError::Truncated)));
}

#[test]
fn a_body_is_small_and_an_idle_watch_holds_no_buffer() {
    assert!(size_of::<Filtered<(), Sample, ()>>() <= 576);
    let mut run = Run::new(Shape::Watch, [send(&A[..20]), send(&A[20..]), Poll::Pending]);
    assert_eq!(run.data(), A);
    assert!(run.poll().is_pending());
    assert_eq!(run.body.scanner.held_bytes() + run.body.out.held_bytes(), 0);
}
