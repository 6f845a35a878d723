//! A list of 500 MB adds at most 16 MiB to the proxy, whatever share of it the shard owns.
//! No control plane is needed here.
#![allow(clippy::unwrap_used, reason = "test code, helpers included")]

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use shoal_tests::meter::{Growth, Meter};
use shoal_tests::scripted::client::{Http, Reader, Wire};
use shoal_tests::scripted::pods::{Form, MARK, namespaces};
use shoal_tests::scripted::{Exchange, Gone, STREAMS, Scripted};
use shoal_tests::{Proxy, RunDir};
use tokio::time::timeout;

const POD: usize = 4096;
const NAMESPACES: usize = 40;
const BYTES: usize = 500_000_000;
const MAY_ADD_KIB: u64 = 16 << 10;
/// For all lists together; ends a test that hangs.
const DEADLINE: Duration = Duration::from_mins(15);

#[tokio::test]
async fn a_list_of_500_mb_adds_little() {
    let dir = RunDir::for_test("a_list_of_500_mb").unwrap();
    let upstream = Scripted::start(dir.path(), STREAMS, script).await.unwrap();
    let proxy = upstream.proxy(dir.path()).await.unwrap();
    timeout(DEADLINE, async {
        for form in Form::ALL {
            for owned in [0, NAMESPACES / 2, NAMESPACES] {
                let added = measure(&proxy, form, owned, BYTES).await;
                assert!(added <= MAY_ADD_KIB, "{form:?}, {owned} of {NAMESPACES} owned: {added} KiB added");
            }
        }
        in_a_row(&proxy).await;
    })
    .await
    .unwrap();
}

/// Memory does not creep up from list to list.
async fn in_a_row(proxy: &Proxy) {
    let meter = Meter::new(proxy.process().pid());
    let (before, mut all) = (meter.resident().unwrap() >> 10, Vec::new());
    for turn in 0..8 {
        measure(proxy, Form::ALL[turn % 2], NAMESPACES / 2, BYTES / 5).await;
        all.push(meter.resident().unwrap() >> 10);
    }
    println!("8 lists of {} MB in a row: {before} KiB before, then {all:?}", BYTES / 5_000_000);
    assert!(all.iter().all(|after| *after <= before + MAY_ADD_KIB), "{before} KiB before, then {all:?}");
}

/// Lists once, counts what comes, and returns how much the proxy's memory grew at its peak, in KiB.
async fn measure(proxy: &Proxy, form: Form, owned: usize, bytes: usize) -> u64 {
    let client = Wire::connect(proxy, Http::Two).await.unwrap();
    let growth = Growth::of(proxy.process()).unwrap();
    let count = bytes / POD / NAMESPACES * NAMESPACES;
    let response =
        client.get(&format!("/api/v1/pods?count={count}&owned={owned}"), form.of_list()).await.unwrap();
    let (pods, read) = drain(Reader::new(response)).await;
    let (added, before) = (growth.at_peak().unwrap() >> 10, growth.before() >> 10);
    println!(
        "{form:?}, {count} Pods, {owned} of {NAMESPACES} namespaces owned: {pods} Pods in {read} bytes, {added} KiB added to {before}"
    );
    assert_eq!(pods, count / NAMESPACES * owned);
    added
}

async fn drain(mut reader: Reader) -> (usize, usize) {
    let (mut pods, mut read) = (0, 0);
    while let Some(bytes) = reader.next().await.unwrap() {
        pods += memchr::memchr_iter(MARK, &bytes).count();
        read += bytes.len();
    }
    (pods, read)
}

/// Answers with as many Pods as the query says, made on the way.
async fn script(exchange: Exchange) {
    let (count, owned) = (number(&exchange, "count="), number(&exchange, "owned="));
    let accept = exchange.request.headers.get("accept").cloned();
    let form = if accept.is_some_and(|accept| accept == Form::Protobuf.of_list()) {
        Form::Protobuf
    } else {
        Form::Json
    };
    // A client that has gone shows in what it counted.
    let _ = list(exchange, form, count, owned).await;
}

async fn list(exchange: Exchange, form: Form, count: usize, owned: usize) -> Result<(), Gone> {
    // One Pod of each namespace, over and over: owned and foreign ones take turns.
    let names = namespaces(true).take(owned).chain(namespaces(false).take(NAMESPACES - owned));
    let mut items: Vec<_> = names.map(|name| form.item(&form.pod(&name, 1, POD))).collect();
    let foreign = items.split_off(owned);
    let mixed: Vec<_> = interleave(items, foreign);
    let frame = form.frame(count, mixed.first().map_or(0, Vec::len));
    let round: Bytes = mixed.join(frame.between).into();
    let mut sending = exchange.begin(form.of_list())?;
    let mut first = BytesMut::from(&frame.head[..]);
    first.extend_from_slice(&round);
    sending.send(first.freeze()).await?;
    for _ in 1..count / NAMESPACES {
        sending.send(frame.between).await?;
        sending.send(round.clone()).await?;
    }
    sending.send(frame.tail).await?;
    sending.end()
}

fn interleave(mut a: Vec<Vec<u8>>, mut b: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while !(a.is_empty() && b.is_empty()) {
        all.extend(a.pop().into_iter().chain(b.pop()));
    }
    all
}

fn number(exchange: &Exchange, key: &str) -> usize {
    let value = exchange.target().split(['?', '&']).find_map(|part| part.strip_prefix(key));
    value.and_then(|value| value.parse().ok()).unwrap_or_default()
}
