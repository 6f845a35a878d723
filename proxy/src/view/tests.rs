use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderMap, Method, Response};
use http_body::{Body as HttpBody, Frame};
use http_body_util::BodyExt;
use serde_json::Value;
use shoal_api::manifest;
use shoal_sharding::slot_of;
use tokio::sync::mpsc;

use super::*;
use crate::{
    body,
    filter::{Counts, Encoding, FilterError, Lens as _, Scan, Scanner, Shape, body::Meter},
    ownership::{Ring, lens::ShardLens},
    request::KubeRequest,
};

const FILES: &str = include_str!("../testdata/ring.yaml");
/// The namespace whose slot moves.
const MOVES: &str = "moves";

struct NoMeter;

impl Meter for NoMeter {
    fn counted(&self, _: Counts) {}
    fn failed(&self, error: FilterError) {
        panic!("{error}");
    }
}

/// The events of an open watch, as a test sends them.
struct Sent(mpsc::Receiver<Bytes>);

impl HttpBody for Sent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|sent| sent.map(|bytes| Ok(Frame::data(bytes))))
    }
}

type Body = Box<Spliced<Sent, NoMeter>>;

fn view() -> Arc<View> {
    Arc::new(View::new(Arc::new(Metrics::new().unwrap())))
}

fn moving() -> Slots {
    [slot_of("hub", MOVES)].into_iter().collect()
}

fn lens() -> ShardLens {
    let ring = Arc::new(Ring::compile(&manifest::Ring::parse([FILES]).unwrap(), "kcm-0", 1).unwrap());
    let request =
        KubeRequest::parse(&Method::GET, &"/api/v1/pods?watch=1".parse().unwrap(), &HeaderMap::new());
    ShardLens::for_read(&ring, &"hub".into(), request.unwrap().target().unwrap()).unwrap()
}

fn event(kind: &str, namespace: &str, name: &str, version: u64) -> String {
    format!(
        "{{\"type\":\"{kind}\",\"object\":{{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{{\"namespace\":\
         \"{namespace}\",\"name\":\"{name}\",\"uid\":\"{name}\",\"resourceVersion\":\"{version}\"}}}}}}\n"
    )
}

fn owned(name: &str, owner: &str) -> String {
    event("ADDED", MOVES, name, 5).replace(
        "\"uid\":",
        &format!("\"ownerReferences\":[{{\"uid\":\"{owner}\",\"controller\":true}}],\"uid\":"),
    )
}

fn end(version: u64) -> String {
    format!(
        "{{\"type\":\"BOOKMARK\",\"object\":{{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{{\"resourceVersion\":\
         \"{version}\",\"annotations\":{{\"k8s.io/initial-events-end\":\"true\"}}}}}}}}\n"
    )
}

/// Opens a watch; `initial` is what its initial events are once they are asked for.
fn opened(view: &Arc<View>, query: &str, initial: &str) -> (Opened<Sent, NoMeter>, mpsc::Sender<Bytes>) {
    let (send, receive) = mpsc::channel(16);
    let initial = initial.to_owned();
    let ask: fetch::Ask = Box::new(move || {
        let response = Response::builder().header("content-type", "application/json");
        let response = response.body(body::full(initial.clone())).unwrap();
        Box::pin(async move { Ok(response) })
    });
    let opening = Opening {
        cluster: "hub".into(),
        client: "a".to_owned(),
        lens: lens(),
        query: query.to_owned(),
        ask,
        encoding: Encoding::Json,
        tables: None,
    };
    (view.open(opening, Sent(receive), NoMeter), send)
}

fn open(view: &Arc<View>, query: &str, initial: &str) -> (Body, mpsc::Sender<Bytes>) {
    match opened(view, query, initial) {
        (Opened::Watch(body), send) => (body, send),
        (Opened::Expired(event), _) => panic!("{event:?}"),
    }
}

/// A list that an open watch goes on from.
fn list(view: &Arc<View>, version: &str) {
    view.list(&"hub".into(), "a".to_owned(), lens(), true).listed(version);
}

const AT_10: &str = "watch=1&resourceVersion=10&allowWatchBookmarks=true";

/// Types, names and versions of all events that come until nothing is there.
async fn read(body: &mut Body) -> Vec<String> {
    let mut text = Vec::new();
    loop {
        tokio::select! {
            biased;
            frame = body.frame() => {
                let Some(frame) = frame else {
                    text.extend_from_slice(b"{\"type\":\"END\"}\n");
                    break;
                };
                text.extend_from_slice(&frame.unwrap().into_data().unwrap());
            }
            () = std::future::ready(()) => break,
        }
    }
    words(&text)
}

fn words(text: &[u8]) -> Vec<String> {
    let events = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let events = events.map(|line| serde_json::from_slice::<Value>(line).unwrap());
    let word = |event: Value| {
        let metadata = &event["object"]["metadata"];
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (name, version) = (word(&metadata["name"]), word(&metadata["resourceVersion"]));
        let code = event["object"]["code"].as_u64().map_or(String::new(), |code| code.to_string());
        format!("{} {name}{version}{code}", word(&event["type"])).trim_end().to_owned()
    };
    events.map(word).collect()
}

/// What a client reads that always reads.
fn reading(mut body: Body) -> tokio::task::JoinHandle<Vec<String>> {
    tokio::spawn(async move {
        let mut text = Vec::new();
        while let Some(frame) = body.frame().await {
            text.extend_from_slice(&frame.unwrap().into_data().unwrap());
        }
        words(&text)
    })
}

#[tokio::test(start_paused = true)]
async fn a_slot_comes_with_children_first_and_a_bookmark_behind() {
    let view = view();
    let parents = event("ADDED", MOVES, "parent", 4) + &end(20);
    let children = owned("child", "parent") + &end(21);
    let (first, first_sends) = open(&view, AT_10, &parents);
    let (second, second_sends) = open(&view, AT_10, &children);
    let seen = Arc::new(Mutex::new(Vec::new()));
    for mut body in [first, second] {
        let seen = seen.clone();
        tokio::spawn(async move {
            while let Some(frame) = body.frame().await {
                seen.lock().extend(words(&frame.unwrap().into_data().unwrap()));
            }
        });
    }
    first_sends.send(event("ADDED", "other", "x", 12).into()).await.unwrap();
    view.prepare(moving()).await;
    assert!(view.shown().is_empty() && seen.lock().is_empty());
    view.show(moving()).await;
    assert_eq!(view.shown(), moving());
    let seen = seen.lock().clone();
    assert_eq!(seen[..2], ["ADDED child5", "ADDED parent4"]);
    let mut marks = seen[2..].to_vec();
    marks.sort();
    assert_eq!(marks, ["BOOKMARK 10", "BOOKMARK 12"]);
    drop((first_sends, second_sends));
}

#[tokio::test(start_paused = true)]
async fn what_happens_between_fetch_and_show_is_shown_once_and_in_order() {
    let view = view();
    let initial = event("ADDED", MOVES, "a", 4) + &event("ADDED", MOVES, "b", 5) + &end(20);
    let (mut body, sends) = open(&view, AT_10, &initial);
    view.prepare(moving()).await;
    for (kind, name, version) in
        [("MODIFIED", "a", 15), ("MODIFIED", "a", 25), ("DELETED", "b", 26), ("ADDED", "c", 27)]
    {
        sends.send(event(kind, MOVES, name, version).into()).await.unwrap();
    }
    assert_eq!(read(&mut body).await, [""; 0]);
    let reads = reading(body);
    view.show(moving()).await;
    sends.send(event("MODIFIED", MOVES, "a", 28).into()).await.unwrap();
    drop(sends);
    let mut told = reads.await.unwrap();
    told[..2].sort();
    assert_eq!(told, ["ADDED a25", "ADDED c27", "BOOKMARK 27", "MODIFIED a28"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_cannot_be_told_ends_and_holds_nothing_up() {
    for (query, initial) in [
        ("watch=1&resourceVersion=10", end(20)),
        ("watch=1&allowWatchBookmarks=true", end(20)),
        (AT_10, "{\"type\":\"ERROR\",\"object\":{}}\n".to_owned()),
    ] {
        let view = view();
        let (mut body, _sends) = open(&view, query, &initial);
        view.show(moving()).await;
        assert_eq!(read(&mut body).await, ["ERROR 410", "END"], "{query}");
        assert_eq!(view.metrics.view.forced_relists.get(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_begins_anew() {
    let view = view();
    let (mut body, _sends) = open(&view, AT_10, &(event("ADDED", MOVES, "a", 4) + &end(20)));
    view.show(moving()).await;
    assert_eq!(read(&mut body).await, ["ERROR 410", "END"]);
}

#[tokio::test(start_paused = true)]
async fn a_change_waits_for_clients_that_begin_anew() {
    let view = view();
    let (mut body, _sends) = open(&view, AT_10, &(event("ADDED", MOVES, "a", 4) + &end(20)));
    let ended = view.show(moving()).await;
    assert!(!ended.is_empty());
    assert_eq!(read(&mut body).await, ["ERROR 410", "END"]);
    drop(body);
    let begun = tokio::time::Instant::now();
    let comes_back = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        list(&view, "30");
        open(&view, "watch=1&allowWatchBookmarks=true&resourceVersion=30", &end(40))
    };
    let ((), _watch) = tokio::join!(view.caught_up(&ended), comes_back);
    assert_eq!(begun.elapsed().as_secs(), 1);
    let (again, begun) = (view.show(Slots::NONE).await, tokio::time::Instant::now());
    view.caught_up(&again).await;
    assert_eq!(begun.elapsed(), Duration::ZERO, "all were told");
    view.caught_up(&Ended { next: u64::MAX, ..ended }).await;
    assert_eq!(begun.elapsed(), CATCH_UP, "who does not come back is not waited for");
}

#[tokio::test(start_paused = true)]
async fn a_slot_that_is_frozen_and_comes_back_is_told_by_the_difference() {
    let view = view();
    view.show(moving()).await;
    list(&view, "10");
    let initial = event("ADDED", MOVES, "a", 30) + &end(40);
    let (mut body, sends) = open(&view, AT_10, &initial);
    sends.send((event("ADDED", MOVES, "a", 11) + &event("ADDED", MOVES, "b", 12)).into()).await.unwrap();
    assert_eq!(read(&mut body).await, ["ADDED a11", "ADDED b12"]);
    view.lose(moving(), HandoverMode::Freeze).await;
    assert_eq!((view.frozen(), view.shown()), (moving(), moving()));
    sends.send((event("MODIFIED", MOVES, "a", 13) + &event("DELETED", MOVES, "b", 14)).into()).await.unwrap();
    assert_eq!(read(&mut body).await, [""; 0]);
    let reads = reading(body);
    view.show(moving()).await;
    drop(sends);
    assert_eq!(reads.await.unwrap(), ["DELETED b14", "ADDED a30", "BOOKMARK 14"]);
    assert!(view.frozen().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_next_watch_knows_what_its_client_was_not_told() {
    let view = view();
    view.show(moving()).await;
    let first = "watch=1&sendInitialEvents=true&allowWatchBookmarks=true";
    let (mut body, sends) = open(&view, first, "");
    sends.send((event("ADDED", MOVES, "b", 12) + &end(13)).into()).await.unwrap();
    assert_eq!(read(&mut body).await.len(), 2);
    view.lose(moving(), HandoverMode::Freeze).await;
    sends.send(event("DELETED", MOVES, "b", 14).into()).await.unwrap();
    assert_eq!(read(&mut body).await, [""; 0]);
    drop(body);
    let (body, sends) = open(&view, "watch=1&resourceVersion=14&allowWatchBookmarks=true", &end(40));
    let reads = reading(body);
    view.show(moving()).await;
    drop(sends);
    assert_eq!(reads.await.unwrap(), ["DELETED b14", "BOOKMARK 14"]);
}

#[tokio::test(start_paused = true)]
async fn evicted_slots_are_told_as_deleted() {
    let view = view();
    view.show(moving()).await;
    list(&view, "10");
    let (mut body, sends) = open(&view, AT_10, &(event("ADDED", MOVES, "a", 11) + &end(40)));
    sends.send((event("ADDED", MOVES, "a", 11) + &event("ADDED", "other", "x", 12)).into()).await.unwrap();
    assert_eq!(read(&mut body).await, ["ADDED a11"]);
    let reads = reading(body);
    view.lose(moving(), HandoverMode::Evict).await;
    drop(sends);
    assert!(view.shown().is_empty());
    assert_eq!(reads.await.unwrap(), ["DELETED a12", "BOOKMARK 12"]);
}

#[tokio::test(start_paused = true)]
async fn who_resumes_from_before_a_change_is_sent_back() {
    let view = view();
    let listed = |version: &str| {
        let lens = view.list(&"hub".into(), "a".to_owned(), lens(), true);
        lens.listed(version);
        lens
    };
    let resumes = |version: u64| {
        let query = format!("watch=1&resourceVersion={version}&allowWatchBookmarks=true");
        match opened(&view, &query, "").0 {
            Opened::Watch(_) => Vec::new(),
            Opened::Expired(event) => words(&event),
        }
    };
    let before = listed("10");
    assert_eq!(resumes(10), [""; 0]);
    let late = view.list(&"hub".into(), "a".to_owned(), lens(), true);
    let token = before.token("t").unwrap();
    assert_eq!(view.page(&token), Some("t"));
    view.show(moving()).await;
    assert_eq!(view.page(&token), None);
    assert_eq!((resumes(10), resumes(11)), (vec!["ERROR 410".to_owned()], vec![]));
    // Its answer had begun before the change, so it lacks the slot.
    late.listed("15");
    assert_eq!(resumes(15), ["ERROR 410"]);
    listed("15");
    assert_eq!(resumes(15), [""; 0]);
}

#[test]
fn lists_show_what_the_view_shows_when_their_answer_begins() {
    let view = view();
    let list = view.list(&"hub".into(), "a".to_owned(), lens(), true);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(view.show(moving()));
    let later = view.list(&"hub".into(), "a".to_owned(), lens(), true);
    let body = format!(
        r#"{{"metadata":{{"resourceVersion":"7"}},"items":[{{"metadata":{{"namespace":"{MOVES}","name":"a"}}}}]}}"#
    );
    for (lens, shows) in [(list, false), (later, true)] {
        let (mut scanner, mut out) =
            (Scanner::new(Encoding::Json, Shape::List, lens), crate::filter::Out::default());
        scanner.push(Bytes::from(body.clone()), &mut out).unwrap();
        let passed: Vec<u8> = std::iter::from_fn(|| out.pop()).flatten().collect();
        assert_eq!(String::from_utf8(passed).unwrap().contains(MOVES), shows);
    }
}
