//! Floods of frames that cost their sender nothing.

use std::sync::atomic::{AtomicU64, Ordering};

use shoal_tests::meter::Meter;
use shoal_tests::scripted::PING as TARGET;
use shoal_tests::scripted::client::{Http, Wire};
use shoal_tests::scripted::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, ENHANCE_YOUR_CALM, GOAWAY, HEADERS, PING, PRIORITY, Peer,
    RST_STREAM, SETTINGS, WINDOW_UPDATE, block, frame,
};
use tokio::io::AsyncWriteExt;

use crate::fixture::{Memory, Stand, owned, ping, soon};

/// By how much the proxy may grow over all floods, in KiB.
const MAY_GROW: usize = 50 << 10;
/// Flag of DATA.
const PADDED: u8 = 8;
/// Frames that are written at once.
const AT_ONCE: usize = 1000;
/// So many answers to another client without a byte more taken: the proxy takes no more.
const STILL: usize = 200;

/// A read, and at once the end of it.
fn opened_and_reset(stream: u32) -> Vec<u8> {
    let pseudo = [(":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", TARGET)];
    let head = frame(HEADERS, END_STREAM | END_HEADERS, stream, &block(pseudo));
    // 8 is CANCEL.
    [head, frame(RST_STREAM, 0, stream, &[0, 0, 0, 8])].concat()
}

/// 100,000 reads that are given up at once (CVE-2023-44487) end their own connection. What gets upstream of it ends
/// nothing there. The proxy's CPU time is shown: on a shared machine no limit for it would hold.
#[tokio::test]
async fn a_rapid_reset_ends_its_own_connection_only() {
    let stand = Stand::start("rapid_reset").await;
    let others = Wire::connect(&stand.proxy, Http::Two).await.unwrap();
    ping(&others).await;
    let memory = Memory::of(&stand.proxy);
    let meter = Meter::new(stand.proxy.process().pid());
    let idle = meter.cpu().unwrap();
    let mut peer = Peer::connect(&stand.proxy).await.unwrap();
    let mut streams = (0..100_000).map(|index| index * 2 + 1);
    let flood = async {
        loop {
            let batch: Vec<u8> = streams.by_ref().take(AT_ONCE).flat_map(opened_and_reset).collect();
            if batch.is_empty() || peer.says.write_all(&batch).await.is_err() {
                break;
            }
        }
        streams.next()
    };
    let (next, end) = soon("the end of the flood", async { tokio::join!(flood, peer.hears.error(0)) }).await;
    let cpu = meter.cpu().unwrap().saturating_sub(idle);
    println!("rapid reset: the connection ended before stream {next:?}, after {cpu:.2?} of the proxy's CPU");
    assert_eq!(end, Some(ENHANCE_YOUR_CALM));
    // Their connection is the same as before, and so is the one upstream.
    ping(&others).await;
    stand.serves().await;
    let seen = stand.upstream.seen();
    println!("upstream saw {} requests over {} connections", seen.requests.len(), seen.connections);
    assert_eq!(seen.connections, 1);
    memory.grew_at_most("rapid reset", MAY_GROW);
}

/// The same slowly: each request is upstream before it is given up.
#[tokio::test]
async fn requests_that_are_given_up_end_upstream_as_well() {
    let stand = Stand::start("given_up").await;
    let others = Wire::connect(&stand.proxy, Http::Two).await.unwrap();
    let mut peer = Peer::connect(&stand.proxy).await.unwrap();
    for index in 0..2000 {
        peer.say(&opened_and_reset(index * 2 + 1)).await.unwrap();
        ping(&others).await;
    }
    soon("all streams to end", stand.upstream.until(|seen| seen.open == 0)).await;
    assert_eq!(stand.upstream.seen().connections, 1);
}

/// How a flood ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The proxy closes the connection.
    Closed,
    /// The proxy takes it all.
    Taken,
    /// The proxy takes no more until its answers are read.
    Stopped,
}

struct Flood {
    what: &'static str,
    /// Sent once.
    first: Vec<u8>,
    /// Sent over and over.
    again: Vec<u8>,
    times: usize,
    /// How it ends for a client that reads the answers, and for one that does not.
    ends: [End; 2],
}

fn floods() -> Vec<Flood> {
    let target = owned();
    let pseudo =
        [(":method", "POST"), (":scheme", "https"), (":authority", "localhost"), (":path", target.as_str())];
    let block = block(pseudo.into_iter().chain([("content-type", "application/json")]));
    let (open, unfinished) = (frame(HEADERS, END_HEADERS, 1, &block), frame(HEADERS, 0, 1, &block));
    let flood =
        |what, first: &[u8], again, times, ends| Flood { what, first: first.to_vec(), again, times, ends };
    let (closed, taken) = ([End::Closed; 2], [End::Taken; 2]);
    let million = 1_000_000;
    vec![
        flood("large CONTINUATION", &unfinished, frame(CONTINUATION, 0, 1, &[b'x'; 16 << 10]), 4096, closed),
        flood("small CONTINUATION", &unfinished, frame(CONTINUATION, 0, 1, b"x"), million, closed),
        flood("empty CONTINUATION", &unfinished, frame(CONTINUATION, 0, 1, b""), million, closed),
        flood("empty DATA", &open, frame(DATA, 0, 1, b""), million, closed),
        flood(
            "padded empty DATA",
            &open,
            frame(DATA, PADDED, 1, &[&[63][..], &[0; 63]].concat()),
            million,
            closed,
        ),
        flood("DATA of no stream", b"", frame(DATA, 0, 9, b"x"), million, closed),
        flood(
            "SETTINGS",
            b"",
            frame(SETTINGS, 0, 0, &[0, 1, 0, 0, 0x10, 0]),
            million,
            [End::Taken, End::Stopped],
        ),
        flood("PING", b"", frame(PING, 0, 0, &[0; 8]), million, [End::Taken, End::Stopped]),
        flood("answers to no PING", b"", frame(PING, 1, 0, &[0; 8]), million, taken),
        flood("PRIORITY", b"", frame(PRIORITY, 0, 3, &[0, 0, 0, 5, 0]), million, taken),
        flood("frames of no known type", b"", frame(0x77, 0, 0, b"x"), million, taken),
        flood("WINDOW_UPDATE by 1", &open, frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]), million, taken),
        flood("WINDOW_UPDATE by 0", b"", frame(WINDOW_UPDATE, 0, 0, &[0; 4]), million, closed),
        flood(
            "WINDOW_UPDATE by too much",
            b"",
            frame(WINDOW_UPDATE, 0, 0, &[0x7f, 255, 255, 255]),
            million,
            closed,
        ),
        flood("RST_STREAM of no stream", b"", frame(RST_STREAM, 0, 9, &[0; 4]), million, closed),
        flood("GOAWAY", b"", frame(GOAWAY, 0, 0, &[0; 8]), million, closed),
    ]
}

/// Others go on, over the same connection upstream, and memory stays.
///
/// What breaks a rule of HTTP/2, or has no end, closes its connection. A million PING or SETTINGS frames do not: each is
/// in order, and asks for an answer. h2 takes them one by one and keeps no more than one answer back, so a client that
/// does not read the answers is not read any more, and one that does has only its own bandwidth to spend.
/// What may be ignored (answers to no PING, PRIORITY, unknown types, small steps of the window) is read and dropped.
#[tokio::test]
async fn a_flood_of_frames_is_contained() {
    let stand = Stand::start("floods").await;
    let others = Wire::connect(&stand.proxy, Http::Two).await.unwrap();
    ping(&others).await;
    let memory = Memory::of(&stand.proxy);
    for flood in floods() {
        for (reads, awaited) in [true, false].into_iter().zip(flood.ends) {
            let end = send(&stand, &others, &flood, reads).await;
            println!("{}, {}: {end:?}", flood.what, if reads { "answers read" } else { "answers not read" });
            assert_eq!(end, awaited, "{}", flood.what);
            ping(&others).await;
        }
    }
    stand.serves().await;
    assert_eq!(stand.whole(), 0);
    assert_eq!(stand.upstream.seen().connections, 1);
    memory.grew_at_most("floods", MAY_GROW);
}

async fn send(stand: &Stand, others: &Wire, flood: &Flood, reads: bool) -> End {
    let mut peer = soon(flood.what, Peer::connect(&stand.proxy)).await.unwrap();
    let taken = AtomicU64::new(0);
    let sent = async {
        let batch = flood.again.repeat(AT_ONCE.min(flood.times));
        peer.says.write_all(&flood.first).await?;
        for _ in 0..flood.times / AT_ONCE.min(flood.times) {
            peer.says.write_all(&batch).await?;
            taken.fetch_add(1, Ordering::Relaxed);
        }
        peer.says.flush().await
    };
    let heard = async {
        // With its pings answered elsewhere, nothing but an end of the connection ends this.
        while reads && peer.hears.next().await.is_some() {}
        if !reads {
            still(others, &taken).await;
        }
    };
    tokio::select! {
        sent = soon(flood.what, sent) => if sent.is_ok() { End::Taken } else { End::Closed },
        () = soon(flood.what, heard) => if reads { End::Closed } else { End::Stopped },
    }
}

/// Pings until a count has not changed over many of them.
async fn still(others: &Wire, count: &AtomicU64) {
    let (mut last, mut same) = (count.load(Ordering::Relaxed), 0);
    while same < STILL {
        ping(others).await;
        let now = count.load(Ordering::Relaxed);
        same = if now == last { same + 1 } else { 0 };
        last = now;
    }
}
