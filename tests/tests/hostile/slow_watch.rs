//! A watch whose client hardly reads, while the server has events without end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Bytes, BytesMut};
use shoal_tests::scripted::client::{self, Http, Reader, Wire};
use shoal_tests::scripted::pods::{Form, namespaces};
use shoal_tests::scripted::{Exchange, Gone, PING, PONG, STREAMS, Scripted};
use shoal_tests::{Proxy, RunDir};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio_rustls::client::TlsStream;

use crate::fixture::{JSON, Memory, ping, soon};

const WATCH: &str = "/api/v1/pods?watch=1&resourceVersion=1";
/// The same, answered with small events.
const SMALL: &str = "/api/v1/pods?watch=1&resourceVersion=1&allowWatchBookmarks=1";
/// Of one stopped watch, as many bytes may be on the way: 128 KiB from upstream, 128 KiB to the client, and what the
/// kernel has for either; it takes most.
const ON_THE_WAY: u64 = 6 << 20;
/// Of the proxy's own memory for one slow watch, in KiB. What flow control counts as 128 KiB are pieces of larger
/// buffers, with some hundred bytes of book-keeping for each; over HTTP/1.1 the answer's own buffers come on top.
const MAY_GROW: usize = 2304;
/// Events that a good reader gets meanwhile.
const MEANWHILE: u64 = 10_000;
const EVENT: usize = 1500;

/// A watch as its client sees it.
enum Watch {
    /// HTTP/1.1, read from the socket.
    One(Box<BufReader<TlsStream<tokio::net::TcpStream>>>),
    /// One of many over one connection of HTTP/2, and what is read of it and not looked at yet.
    Two(Reader, BytesMut),
}

/// The API server ends a watch whose client does not follow (apiserver's cacher, `forget`), and only it can say
/// with 410 from where to go on. So the proxy does not end it: it stops reading, and the server sees the slow client as
/// it is. What the proxy holds of each is bounded, and nobody else waits.
#[tokio::test]
async fn a_slow_watch_is_held_back_alone_and_loses_nothing() {
    slow_and_good("slow_watches", Http::One, WATCH, 40).await;
}

/// As client-go does it: all watches of a process are streams of one connection.
#[tokio::test]
async fn a_slow_watch_is_held_back_alone_on_its_connection() {
    slow_and_good("slow_watches_on_one_connection", Http::Two, WATCH, 40).await;
}

/// With the smallest events that there are: h2 counts what small frames cost while nobody reads them, and would
/// end the connection of all watches.
#[tokio::test]
async fn slow_watches_of_small_events_are_held_back_alone_as_well() {
    slow_and_good("slow_watches_of_small_events", Http::One, SMALL, 60).await;
}

/// The same on one connection.
#[tokio::test]
async fn slow_watches_of_small_events_are_held_back_alone_on_their_connection() {
    slow_and_good("slow_watches_of_small_events_on_one_connection", Http::Two, SMALL, 60).await;
}

async fn slow_and_good(test: &str, http: Http, target: &str, count: usize) {
    let dir = RunDir::for_test(test).unwrap();
    let taken = Arc::new(AtomicU64::new(0));
    let book = taken.clone();
    let upstream =
        Scripted::start(dir.path(), STREAMS, move |exchange| play(exchange, book.clone())).await.unwrap();
    let proxy = upstream.proxy(dir.path()).await.unwrap();
    let pings = Wire::connect(&proxy, Http::Two).await.unwrap();
    ping(&pings).await;

    // Over HTTP/2 the pings are on the connection of the watches.
    let open = async || match http {
        Http::One => Watch::of_its_own(&proxy, target).await,
        Http::Two => Watch::on(&pings, target).await,
    };
    let memory = Memory::of(&proxy);
    let mut slow = Vec::new();
    for _ in 0..count {
        slow.push(open().await);
    }
    let stood_at = soon("the watches to stand", stand(&mut slow, &pings, &taken)).await;
    println!("{http:?}, {count} slow watches: {} KiB each on the way", (stood_at / count as u64) >> 10);
    assert!(stood_at < ON_THE_WAY * count as u64, "{stood_at}");
    memory.grew_at_most("slow watches", count * MAY_GROW);

    let mut good = open().await;
    for number in 0..MEANWHILE {
        assert_eq!(soon("an event", good.next()).await, Some(number));
    }
    memory.grew_at_most("slow watches and a good one", count * MAY_GROW);
    // One connection for watches, one for calls: all of them are over the same.
    assert_eq!(upstream.seen().connections, 2);
    let mut late = slow.swap_remove(0);
    for number in 0..MEANWHILE {
        assert_eq!(soon("an event", late.next()).await, Some(number));
    }
}

/// Looks at each now and then, until nothing more is taken from upstream.
async fn stand(slow: &mut [Watch], pings: &Wire, taken: &AtomicU64) -> u64 {
    let (mut last, mut same) = (0, 0);
    while same < 50 {
        for _ in 0..4 {
            ping(pings).await;
        }
        for watch in &mut *slow {
            watch.look().await;
        }
        let now = taken.load(Ordering::Relaxed);
        same = if now == last { same + 1 } else { 0 };
        last = now;
    }
    last
}

// === impl Watch ===

impl Watch {
    async fn of_its_own(proxy: &Proxy, target: &str) -> Self {
        let mut tls = soon("TLS", client::secure(proxy, Http::One)).await.unwrap();
        let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\nAccept: {JSON}\r\n\r\n");
        tls.write_all(request.as_bytes()).await.unwrap();
        tls.flush().await.unwrap();
        let mut status = [0; 12];
        soon("a head", tls.read_exact(&mut status)).await.unwrap();
        assert_eq!(&status, b"HTTP/1.1 200");
        // A small buffer: a slow client has no other.
        Self::One(Box::new(BufReader::with_capacity(2048, tls)))
    }

    async fn on(wire: &Wire, target: &str) -> Self {
        let response = soon("a head", wire.get(target, JSON)).await.unwrap();
        assert_eq!(response.status(), 200);
        Self::Two(Reader::new(response), BytesMut::new())
    }

    /// Reads at most a little, once; what was read is for the numbers.
    async fn look(&mut self) {
        match self {
            Self::One(io) => assert!(!io.fill_buf().await.unwrap().is_empty()),
            Self::Two(_, read) if read.is_empty() => self.read_on().await,
            Self::Two(..) => {}
        }
    }

    /// The number of the next event; chunk sizes and the head are lines as well, and skipped.
    async fn next(&mut self) -> Option<u64> {
        loop {
            let line = self.line().await?;
            let text = String::from_utf8_lossy(&line);
            if let Some(number) = text.split("web-").nth(1).and_then(|text| text.get(..8)) {
                return number.parse().ok();
            }
        }
    }

    async fn line(&mut self) -> Option<Vec<u8>> {
        if let Self::One(io) = self {
            let mut line = Vec::new();
            return (io.read_until(b'\n', &mut line).await.unwrap() > 0).then_some(line);
        }
        loop {
            if let Self::Two(_, read) = self
                && let Some(end) = read.iter().position(|byte| *byte == b'\n')
            {
                return Some(read.split_to(end + 1).to_vec());
            }
            self.read_on().await;
        }
    }

    async fn read_on(&mut self) {
        if let Self::Two(reader, read) = self {
            read.extend_from_slice(&reader.next().await.unwrap().unwrap());
        }
    }
}

async fn play(exchange: Exchange, taken: Arc<AtomicU64>) {
    if exchange.target() == PING {
        // Whoever is gone needs no answer.
        let _ = exchange.answer(200, JSON, PONG).await;
        return;
    }
    let _ = events(exchange, taken).await;
}

/// Events without end, each in a frame of its own.
async fn events(exchange: Exchange, taken: Arc<AtomicU64>) -> Result<(), Gone> {
    let (namespace, small) = (namespaces(true).next().unwrap(), exchange.target() == SMALL);
    let mut sending = exchange.begin(JSON)?;
    for number in 0.. {
        let event: Bytes = if small {
            bookmark(number).into()
        } else {
            Form::Json.event("ADDED", &Form::Json.pod(&namespace, number, EVENT)).into()
        };
        let length = event.len() as u64;
        sending.send(event).await?;
        taken.fetch_add(length, Ordering::Relaxed);
    }
    Ok(())
}

fn bookmark(number: usize) -> String {
    let metadata = format!(r#"{{"name":"web-{number:08}","resourceVersion":"7"}}"#);
    format!(r#"{{"type":"BOOKMARK","object":{{"kind":"Pod","apiVersion":"v1","metadata":{metadata}}}}}"#)
        + "\n"
}
