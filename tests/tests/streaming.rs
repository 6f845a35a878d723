//! What upstream has sent reaches the controller at once, no faster than the controller reads, and never as less than
//! it is.
//!
//! The upstream is played by the test. Deadlines end a test that hangs; none measures anything.
//! No control plane is needed here.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code, helpers included")]

use std::io::Write;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use h2::Reason;
use http::{Response, StatusCode, header};
use shoal_tests::scripted::client::{Http, Reader, Wire};
use shoal_tests::scripted::pods::{Form, namespaces};
use shoal_tests::scripted::{PING, PONG, STREAMS, Sending, Stage};
use shoal_tests::soon;

const LIST: &str = "/api/v1/pods";
const WATCH: &str = "/api/v1/pods?watch=1";
const HTTP: [Http; 2] = [Http::One, Http::Two];

/// A Pod of the shard and one of another.
struct Pods {
    own: Vec<u8>,
    foreign: Vec<u8>,
}

impl Pods {
    fn of(form: Form) -> Self {
        let pod = |owned| form.pod(&namespaces(owned).next().unwrap(), 1, 4096);
        Self { own: pod(true), foreign: pod(false) }
    }
}

/// Ends a test that waits for what does not come.
/// Asks, and answers with a head of 200 whose body is open.
async fn open(
    stage: &mut Stage,
    client: &Wire,
    target: &str,
    form: Form,
) -> (Sending, shoal_tests::scripted::Asked) {
    let (asked, exchange) = soon("the request", stage.ask(client, target, form.of_list())).await.unwrap();
    assert_eq!(exchange.target(), target);
    assert_eq!(exchange.request.headers[header::ACCEPT_ENCODING], "identity");
    let content_type = if target == WATCH { form.of_watch() } else { form.of_list() };
    (exchange.begin(content_type).unwrap(), asked)
}

async fn reader(asked: shoal_tests::scripted::Asked) -> Reader {
    let response = soon("the head", asked).await.unwrap().unwrap();
    assert_eq!(response.status(), 200);
    assert!(!response.headers().contains_key(header::CONTENT_LENGTH));
    Reader::new(response)
}

#[tokio::test]
async fn an_item_or_event_arrives_while_the_rest_is_held() {
    let mut stage = Stage::start("an_item_or_event_arrives", STREAMS).await.unwrap();
    for http in HTTP {
        let client = stage.client(http).await.unwrap();
        held_list(&mut stage, &client).await;
        for form in Form::ALL {
            held_watch(&mut stage, &client, form).await;
        }
    }
}

async fn held_list(stage: &mut Stage, client: &Wire) {
    let (form, pods) = (Form::Json, Pods::of(Form::Json));
    let (mut sending, asked) = open(stage, client, LIST, form).await;
    let frame = form.frame(3, 0);
    sending.send([&frame.head[..], &pods.own].concat()).await.unwrap();
    let mut reader = reader(asked).await;
    soon("item 1", reader.until(&pods.own)).await.unwrap();
    sending.send([b",", &pods.foreign[..], b",", &pods.own].concat()).await.unwrap();
    sending.send(frame.tail).await.unwrap();
    sending.end().unwrap();
    assert_eq!(soon("the end", reader.rest()).await.unwrap(), form.list(&[pods.own.clone(), pods.own]));
}

async fn held_watch(stage: &mut Stage, client: &Wire, form: Form) {
    let pods = Pods::of(form);
    let (first, second) = (form.event("ADDED", &pods.own), form.event("MODIFIED", &pods.own));
    let (mut sending, asked) = open(stage, client, WATCH, form).await;
    // The head is here before there is any event.
    let mut reader = reader(asked).await;
    sending.send(first.clone()).await.unwrap();
    assert_eq!(soon("event 1", reader.until(&first)).await.unwrap(), first);
    sending.send([form.event("ADDED", &pods.foreign), second.clone()].concat()).await.unwrap();
    let both = [first, second].concat();
    assert_eq!(soon("event 2", reader.until(&both)).await.unwrap(), both);
    sending.end().unwrap();
    assert_eq!(soon("the end", reader.rest()).await.unwrap(), both);
}

#[tokio::test]
async fn a_protobuf_list_is_exact_when_small_and_streams_when_large() {
    let mut stage = Stage::start("a_protobuf_list_streams", STREAMS).await.unwrap();
    let (form, pods) = (Form::Protobuf, Pods::of(Form::Protobuf));
    let (own, foreign) = (form.item(&pods.own), form.item(&pods.foreign));
    let client = stage.client(Http::Two).await.unwrap();

    let (mut sending, asked) = open(&mut stage, &client, LIST, form).await;
    sending.send(form.list(&[own.clone(), foreign.clone(), own.clone()])).await.unwrap();
    sending.end().unwrap();
    let body = soon("a small list", reader(asked).await.rest()).await.unwrap();
    assert_eq!(body, form.list(&[own.clone(), own.clone()]));

    // More than the 8 MiB that are kept to find the exact length.
    let kept = 2400;
    let (mut sending, asked) = open(&mut stage, &client, LIST, form).await;
    let frame = form.frame(kept + 2, own.len());
    let sent = tokio::spawn(async move {
        sending.send([&frame.head[..], &own.repeat(kept)].concat()).await.unwrap();
        (sending, [&foreign, &own, frame.tail].concat())
    });
    let mut reader = reader(asked).await;
    soon("item 1", reader.until(&pods.own)).await.unwrap();
    let rest = tokio::spawn(reader.rest());
    let (mut sending, last) = soon("all but the end", sent).await.unwrap();
    sending.send(last).await.unwrap();
    sending.end().unwrap();
    let body = soon("a large list", rest).await.unwrap().unwrap();
    assert_eq!(shoal_tests::protobuf::items(&body).unwrap().len(), kept + 1);
}

#[tokio::test]
async fn a_cut_list_is_a_broken_transfer_and_a_cut_watch_ends_between_two_events() {
    let mut stage = Stage::start("a_cut_list_is_broken", STREAMS).await.unwrap();
    for http in HTTP {
        for form in Form::ALL {
            let pods = Pods::of(form);
            let item = form.item(&pods.own);
            let list = form.list(&[item.clone(), item.clone(), item]);
            let event = form.event("ADDED", &pods.own);
            for cut in [Cut::Reset, Cut::End, Cut::Connection] {
                let half = &list[..list.len() / 2];
                let body = cut_after(&mut stage, http, LIST, form, half, cut).await;
                assert!(list.starts_with(&body) || form == Form::Protobuf, "{http:?} {form:?} {cut:?}");
                let halves = [&event[..], &event[..event.len() / 2]].concat();
                let body = cut_after(&mut stage, http, WATCH, form, &halves, cut).await;
                assert_eq!(body, event, "{http:?} {form:?} {cut:?}");
            }
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Cut {
    Reset,
    /// A clean end in the wrong place.
    End,
    Connection,
}

/// Sends `half`, cuts, and returns what the client got.
async fn cut_after(
    stage: &mut Stage,
    http: Http,
    target: &str,
    form: Form,
    half: &[u8],
    cut: Cut,
) -> Vec<u8> {
    let client = stage.client(http).await.unwrap();
    let asked = soon("the request", stage.ask(&client, target, form.of_list())).await;
    let (asked, exchange) = asked.unwrap();
    let line = exchange.line().clone();
    let content_type = if target == WATCH { form.of_watch() } else { form.of_list() };
    let mut sending = exchange.begin(content_type).unwrap();
    sending.send(half.to_vec()).await.unwrap();
    let mut reader = reader(asked).await;
    if target == WATCH {
        soon("event 1", reader.until(&half[..half.len() * 2 / 3 - 1])).await.unwrap();
    }
    match cut {
        Cut::Reset => sending.reset(Reason::INTERNAL_ERROR),
        Cut::End => sending.end().unwrap(),
        Cut::Connection => line.cut().await,
    }
    if target == WATCH && !matches!(cut, Cut::End) {
        // Upstream broke within an event of which the client has seen nothing: it can go on from the one before.
        return soon("the end", reader.rest()).await.unwrap();
    }
    soon("the break", reader.broken()).await.unwrap()
}

#[tokio::test]
async fn what_cannot_be_read_is_refused_before_the_head() {
    let mut stage = Stage::start("unreadable_is_refused", STREAMS).await.unwrap();
    let client = stage.client(Http::Two).await.unwrap();
    for form in Form::ALL {
        let pod = Pods::of(form).foreign;
        let other = if form == Form::Json { Form::Protobuf } else { Form::Json };
        let (list, item) = (form.list(&[form.item(&pod)]), pod.clone());
        let cases: [(&str, &str, Vec<u8>); 7] = [
            ("nothing", form.of_list(), Vec::new()),
            ("garbage", form.of_list(), b"no list of anything".to_vec()),
            ("one object", form.of_list(), item),
            ("the other form", other.of_list(), list.clone()),
            ("a wrong content type", "text/html", list.clone()),
            ("no content type", "", if form == Form::Json { vec![b'['] } else { list.clone() }),
            ("CBOR", "application/cbor", list.clone()),
        ];
        for (what, content_type, body) in cases {
            let (asked, exchange) = soon(what, stage.ask(&client, LIST, form.of_list())).await.unwrap();
            // The proxy may reset the stream before it has the whole answer.
            let _ = exchange.answer(200, content_type, body).await;
            refused(soon(what, asked).await.unwrap().unwrap(), form, what).await;
        }
        let (asked, exchange) = soon("zstd", stage.ask(&client, LIST, form.of_list())).await.unwrap();
        let held = exchange.head(coded("zstd", form.of_list())).unwrap();
        refused(soon("zstd", asked).await.unwrap().unwrap(), form, "zstd").await;
        drop(held);
        let (asked, exchange) = soon("no gzip", stage.ask(&client, LIST, form.of_list())).await.unwrap();
        let mut held = exchange.head(coded("gzip", form.of_list())).unwrap();
        let _ = held.send(list_in(form)).await;
        refused(soon("no gzip", asked).await.unwrap().unwrap(), form, "no gzip").await;
    }
}

/// A head that says how the body is coded.
fn coded(coding: &str, content_type: &str) -> Response<()> {
    let head = Response::builder().header("content-type", content_type).header("content-encoding", coding);
    head.header("vary", "Accept-Encoding").body(()).unwrap()
}

fn list_in(form: Form) -> Vec<u8> {
    form.list(&[form.item(&Pods::of(form).own)])
}

fn member(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A server may close a member at each flush; what is in it arrives before the next one begins.
#[tokio::test]
async fn gzip_that_nobody_asked_for_comes_out_while_it_streams() {
    let mut stage = Stage::start("gzip_comes_out", STREAMS).await.unwrap();
    for (http, form) in HTTP.into_iter().flat_map(|http| Form::ALL.map(|form| (http, form))) {
        let client = stage.client(http).await.unwrap();
        let Pods { own, foreign } = Pods::of(form);
        let (asked, exchange) = soon("a watch", stage.ask(&client, WATCH, form.of_list())).await.unwrap();
        let mut sending = exchange.head(coded("gzip", form.of_watch())).unwrap();
        let response = soon("the head", asked).await.unwrap().unwrap();
        assert!(!response.headers().contains_key(header::CONTENT_ENCODING));
        assert_eq!(response.headers()[header::VARY], "Accept-Encoding");
        let (mut reader, shown) = (Reader::new(response), form.event("ADDED", &own));
        let mut seen = Vec::new();
        for _ in 0..3 {
            sending.send(member(&form.event("ADDED", &foreign))).await.unwrap();
            sending.send(member(&shown)).await.unwrap();
            seen.extend_from_slice(&shown);
            soon("the event", reader.until(&seen)).await.unwrap();
        }
        sending.end().unwrap();
        assert_eq!(soon("the end", reader.rest()).await.unwrap(), seen, "{http:?} {form:?}");

        let (asked, exchange) = soon("a list", stage.ask(&client, LIST, form.of_list())).await.unwrap();
        let body = [member(b""), member(&list_in(form))].concat();
        let mut sending = exchange.head(coded("gzip", form.of_list())).unwrap();
        sending.send(body).await.unwrap();
        sending.end().unwrap();
        let response = soon("the list", asked).await.unwrap().unwrap();
        assert_eq!(soon("the list", Reader::new(response).rest()).await.unwrap(), list_in(form));
    }
}

/// A 502 Status in the caller's own encoding.
async fn refused(response: Response<hyper::body::Incoming>, form: Form, what: &str) {
    assert_eq!(response.status(), StatusCode::BAD_GATEWAY, "{what}");
    assert_eq!(response.headers()[header::CONTENT_TYPE], form.of_list(), "{what}");
    let body = soon(what, Reader::new(response).rest()).await.unwrap();
    assert!(!body.contains(&b'~'), "{what}: a Pod passed");
    match form {
        Form::Json => assert!(body.starts_with(br#"{"apiVersion":"v1","#), "{what}"),
        Form::Protobuf => assert_eq!(shoal_tests::protobuf::status(&body).unwrap().code, Some(502), "{what}"),
    }
}

#[tokio::test]
async fn a_watch_that_cannot_be_read_ends_with_an_error_event() {
    let mut stage = Stage::start("an_unreadable_watch_ends", STREAMS).await.unwrap();
    let client = stage.client(Http::Two).await.unwrap();
    for form in Form::ALL {
        let event = form.event("ADDED", &Pods::of(form).own);
        let (mut sending, asked) = open(&mut stage, &client, WATCH, form).await;
        sending.send([&event[..], &[0xff; 64]].concat()).await.unwrap();
        let body = soon("the end", reader(asked).await.rest()).await.unwrap();
        let last = body.strip_prefix(&event[..]).unwrap();
        assert!(last.windows(5).any(|window| window == b"ERROR"), "{form:?}");
        let message = b"shoal: the watch cannot be filtered";
        assert!(last.windows(message.len()).any(|window| window == message), "{form:?}");
    }
}

/// Of a list whose reader has stopped, as many bytes may be on the way. At the proxy: 512 KiB from upstream, 128 KiB to the
/// client; the rest is the kernel's, most of it over HTTP/1.1, where it alone makes the proxy wait.
const ON_THE_WAY: u64 = 6 << 20;
const CHUNK: usize = 64;
const CHUNKS: usize = 256;

#[tokio::test]
async fn a_slow_reader_stops_upstream_and_nobody_else() {
    let mut stage = Stage::start("a_slow_reader_stops_upstream", STREAMS).await.unwrap();
    for http in HTTP {
        let client = stage.client(http).await.unwrap();
        let others = if http == Http::Two { client.clone() } else { stage.client(http).await.unwrap() };
        let (mut sending, asked) = open(&mut stage, &client, LIST, Form::Json).await;
        let taken = sending.taken();
        let own = [&Pods::of(Form::Json).own[..], b","].concat();
        let (chunk, frame) = (Bytes::from(own.repeat(CHUNK)), Form::Json.frame(0, 0));
        let end = [&own[..own.len() - 1], frame.tail].concat();
        let total = frame.head.len() + chunk.len() * CHUNKS + end.len();
        let sent = tokio::spawn(async move {
            sending.send(frame.head).await.unwrap();
            for _ in 0..CHUNKS {
                sending.send(chunk.clone()).await.unwrap();
            }
            sending.send(end).await.unwrap();
            sending.end().unwrap();
        });
        let reader = reader(asked).await;
        let stood_at =
            soon("upstream to stand still", still(&others, || taken.load(Ordering::Relaxed))).await;
        println!("{http:?}: {} KiB of {} on the way", stood_at >> 10, total >> 10);
        assert!(stood_at < ON_THE_WAY, "{stood_at} bytes were taken, and nobody read");
        assert_eq!(soon("the rest", reader.rest()).await.unwrap().len(), total);
        sent.await.unwrap();
    }
}

/// Pings until a count has not changed over many of them, and returns it.
async fn still(client: &Wire, count: impl Fn() -> u64) -> u64 {
    let (mut last, mut same) = (count(), 0);
    while same < 200 {
        let response = client.get(PING, "application/json").await.unwrap();
        assert_eq!(Reader::new(response).rest().await.unwrap(), PONG);
        same = if count() == last { same + 1 } else { 0 };
        last = count();
    }
    last
}
