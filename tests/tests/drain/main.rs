//! TERM ends a proxy without hurting those behind it: it serves on until they have gone or their time is up, then its
//! watches end between two events and one after the other, and it exits with 0 within the grace of a pod.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code, helpers included")]

mod load;
mod lock;
mod watching;

use std::time::Duration;

use http::StatusCode;
use shoal_tests::scripted::client::{Http, Reader, Wire};
use shoal_tests::scripted::frames::{END_HEADERS, END_STREAM, GOAWAY, HEADERS, Peer, block, frame};
use shoal_tests::scripted::pods::{Form, namespaces};
use shoal_tests::scripted::{PING, PONG, STREAMS, Scripted, Sending, Stage};
use shoal_tests::{ControlPlane, Options, Proxy, ProxyArgs, RunDir, User, soon, wait_for};
use tokio::time::{Instant, timeout_at};

use crate::load::Load;
use crate::watching::Watching;

/// What Kubernetes gives a pod by default; the proxy must have exited by itself before (`terminationGracePeriodSeconds`).
const GRACE: Duration = Duration::from_secs(30);
const DEADLINE: Duration = Duration::from_mins(2);
const JSON: &str = "application/json";
/// A head by hand.
const WATCH: [(&str, &str); 4] = [
    (":method", "GET"),
    (":scheme", "https"),
    (":authority", "localhost"),
    (":path", "/api/v1/pods?watch=1"),
];
const TERM: rustix::process::Signal = rustix::process::Signal::TERM;

/// It has exited by itself before a pod's grace is over, counted from `told`.
async fn exits_well_since(proxy: &Proxy, told: Instant) {
    let exit = timeout_at(told + GRACE, proxy.process().wait()).await;
    assert_eq!(exit, Ok(0), "it must exit before it would be killed");
}

/// It says so to whoever asks whether it is ready.
async fn is_draining(proxy: &Proxy) {
    let draining = || async {
        match proxy.page("/readyz").await {
            Ok((StatusCode::SERVICE_UNAVAILABLE, page)) if page.contains("draining") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    };
    wait_for("the drain to show", DEADLINE, draining).await.unwrap();
}

async fn pings(client: &Wire) -> bool {
    match soon("a ping", client.get(PING, JSON)).await {
        Ok(response) => soon("a pong", Reader::new(response).rest()).await.is_ok_and(|body| body == PONG),
        Err(_) => false,
    }
}

#[tokio::test]
async fn term_under_load_truncates_nothing_and_lets_the_lock_go() {
    let dir = RunDir::for_test("drain_under_load").unwrap();
    let plane = ControlPlane::start(dir.path(), Options::default()).await.unwrap();
    load::prepare(&plane).await;
    let upstreams = [("hub", plane.kubeconfig(&User::CONTROLLER_MANAGER).unwrap())];
    let config = shoal_tests::ring::example();
    let args = ProxyArgs { shard: "kcm-0", config: &config, upstreams: &upstreams, dir: dir.path() };
    let proxy = Proxy::start(args).await.unwrap();
    let manager = lock::leader(&plane, &proxy).await;
    let watching = Watching::start(&plane, &proxy).await;
    let mut load = Load::start(&plane, &proxy).await;
    load.until(200).await;

    let told = Instant::now();
    proxy.process().signal(TERM);
    manager.process().signal(TERM);
    lock::is_released(&plane).await;
    is_draining(&proxy).await;
    lock::can_be_written_late(&plane, &proxy, told).await;

    exits_well_since(&proxy, told).await;
    let (load, watches) = (load.finish().await, watching.finish().await);
    println!("{load:?}\n{watches:?}");
    assert_eq!((load.truncated, load.refused), (0, 0), "a short answer without an error, or none");
    assert!(load.whole > 1000, "served on after TERM: {load:?}");
    assert_eq!((watches.clean, watches.within_an_event), (watching::COUNT, 0), "{watches:?}");
    assert!(
        watches.events > watching::COUNT * (load::OBJECTS + 100),
        "the watches saw the load: {watches:?}"
    );
}

#[tokio::test]
async fn thousands_of_idle_watches_end_one_after_the_other() {
    let dir = RunDir::for_test("drain_idle_watches").unwrap();
    let script = |exchange: shoal_tests::scripted::Exchange| async move {
        if let Ok(mut sending) = exchange.begin(JSON) {
            let _ = sending.gone().await;
        }
    };
    let upstream = Scripted::start(dir.path(), STREAMS, script).await.unwrap();
    let proxy = upstream.proxy(dir.path()).await.unwrap();
    let ends = watching::idle(&proxy, 10_000).await;
    let mut peer = Peer::connect(&proxy).await.unwrap();
    peer.say(&frame(HEADERS, END_STREAM | END_HEADERS, 1, &block(WATCH))).await.unwrap();
    let told = Instant::now();
    proxy.process().signal(TERM);
    let goaway = soon("a GOAWAY", peer.hears.until(|frame| frame.kind == GOAWAY)).await;
    assert_eq!(goaway.unwrap().error(), Some(0));
    exits_well_since(&proxy, told).await;
    let ends = soon("every watch to end", ends.collect()).await;
    assert_eq!((ends.clean, ends.broken), (10_000, 0));
    println!("{} watches ended over {:?}", ends.clean, ends.spread);
    // A slow machine can only stretch it.
    assert!(ends.spread > Duration::from_secs(2), "all at once: {:?}", ends.spread);
}

#[tokio::test]
async fn nobody_connected_is_nobody_to_wait_for() {
    let stage = Stage::start("drain_nobody", STREAMS).await.unwrap();
    stage.proxy.process().signal(TERM);
    assert_eq!(soon("its exit", stage.proxy.process().wait()).await, 0);
}

#[tokio::test]
async fn a_draining_proxy_serves_until_its_client_has_gone() {
    let stage = Stage::start("drain_serves", STREAMS).await.unwrap();
    let client = stage.client(Http::Two).await.unwrap();
    assert!(pings(&client).await);
    assert_eq!(stage.proxy.drain().await.unwrap(), (StatusCode::OK, "draining\n".to_owned()));
    is_draining(&stage.proxy).await;
    assert!(pings(&client).await, "the connection that was there");
    let later = stage.client(Http::One).await.unwrap();
    assert!(pings(&later).await, "a new one: a controller's last write may need it");
    drop((client, later));
    assert_eq!(soon("its exit", stage.proxy.process().wait()).await, 0);
}

/// A watch, open end to end, that has brought one event.
async fn watch(stage: &mut Stage, client: &Wire, number: usize) -> (Sending, Reader) {
    let target = format!("/api/v1/pods?watch=1&resourceVersion={number}");
    let (asked, exchange) = stage.ask(client, &target, JSON).await.unwrap();
    let mut sending = exchange.begin(JSON).unwrap();
    let mut reader = Reader::new(soon("a head", asked).await.unwrap().unwrap());
    let event = Form::Json.event("ADDED", &Form::Json.pod(&namespaces(true).next().unwrap(), 1, 2000));
    sending.send(event.clone()).await.unwrap();
    soon("an event", reader.until(&event)).await.unwrap();
    (sending, reader)
}

/// A drain that runs its course ends them well.
#[tokio::test]
async fn a_second_term_cuts_what_is_left() {
    let mut stage = Stage::start("drain_second_term", STREAMS).await.unwrap();
    let client = stage.client(Http::Two).await.unwrap();
    let mut watches = Vec::new();
    for number in 0..3 {
        watches.push(watch(&mut stage, &client, number).await);
    }
    // A drain that was asked for elsewhere is no first TERM: a preStop hook may have done it.
    stage.proxy.drain().await.unwrap();
    stage.proxy.process().signal(TERM);
    is_told_twice(&stage.proxy).await;
    assert!(pings(&client).await, "the first TERM");
    stage.proxy.process().signal(TERM);
    for (_sending, reader) in watches {
        soon("a broken transfer", reader.broken()).await.unwrap();
    }
    assert_eq!(soon("its exit", stage.proxy.process().wait()).await, 0);
}

/// Its log says that TERM has arrived; what a drain looks like it did before.
async fn is_told_twice(proxy: &Proxy) {
    let told = || async {
        let log = std::fs::read_to_string(proxy.process().log_path()).unwrap();
        if log.contains("\"draining\"") { Ok(()) } else { Err("not yet") }
    };
    wait_for("TERM to arrive", DEADLINE, told).await.unwrap();
}
