//! Connections come to an end, are full or say nothing; requests are answered, and none is sent twice.
//!
//! The upstream is played by the test. Deadlines end a test that hangs; none measures anything.
//! No control plane is needed here.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code, helpers included")]

use h2::Reason;
use http::{Method, Request, StatusCode, header};
use http_body_util::Full;
use shoal_tests::scripted::client::{self, Http, Reader, Wire};
use shoal_tests::scripted::frames::{PREFACE, SETTINGS, frame, go_away};
use shoal_tests::scripted::pods::{Form, namespaces};
use shoal_tests::scripted::{Asked, Exchange, PING, PONG, STREAMS, Sending, Stage};
use shoal_tests::soon;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::Instant;

const JSON: &str = "application/json";

async fn ping(client: &Wire) {
    let response = soon("a ping", client.get(PING, JSON)).await.unwrap();
    assert_eq!(soon("a pong", Reader::new(response).rest()).await.unwrap(), PONG);
}

/// One event of the shard.
fn event() -> Vec<u8> {
    Form::Json.event("ADDED", &Form::Json.pod(&namespaces(true).next().unwrap(), 1, 2000))
}

/// A watch that is open end to end.
struct Watch {
    target: String,
    connection: usize,
    sending: Sending,
    reader: Reader,
    events: usize,
}

impl Watch {
    async fn open(stage: &mut Stage, client: &Wire, number: usize) -> Self {
        let target = format!("/api/v1/pods?watch=1&resourceVersion={number}");
        let (asked, exchange) = soon("a watch", stage.ask(client, &target, JSON)).await.unwrap();
        let connection = exchange.line().number();
        let sending = exchange.begin(JSON).unwrap();
        let reader = Reader::new(soon("its head", asked).await.unwrap().unwrap());
        Self { target, connection, sending, reader, events: 0 }
    }

    async fn bring_event(&mut self) {
        self.events += 1;
        self.sending.send(event()).await.unwrap();
        soon("an event", self.reader.until(&event().repeat(self.events))).await.unwrap();
    }

    /// It still brings an event, and ends well.
    async fn finish(mut self, stage: &Stage) {
        self.bring_event().await;
        self.sending.end().unwrap();
        assert_eq!(soon("its end", self.reader.rest()).await.unwrap(), event().repeat(self.events));
        assert_eq!(stage.upstream.seen().count(&self.target), 1);
    }
}

#[tokio::test]
async fn more_watches_than_a_connection_takes_are_all_open() {
    for (test, streams, watches) in [("watches_over_20", 20, 100), ("watches_over_100", 100, 300)] {
        let mut stage = Stage::start(test, streams).await.unwrap();
        let client = stage.client(Http::Two).await.unwrap();
        let mut open = Vec::new();
        for number in 0..watches {
            open.push(Watch::open(&mut stage, &client, number).await);
        }
        let asked = Instant::now();
        ping(&client).await;
        let answered = asked.elapsed();
        let seen = stage.upstream.seen();
        assert!(seen.open >= watches, "{}", seen.open);
        for watch in &mut open {
            watch.bring_event().await;
        }
        println!(
            "{watches} watches, {streams} a connection: {} connections; a GET took {answered:?} (aim: 50 ms)",
            seen.connections
        );
        let at_most = |connection: usize| {
            open.iter().filter(|watch| watch.connection == connection).count() <= streams as usize
        };
        assert!((1..=seen.connections).all(at_most));
        let metrics = stage.proxy.metrics().await.unwrap();
        let open_now = metrics.sum("shoal_upstream_connections", &[]);
        assert!(
            (open_now - f64::from(u32::try_from(seen.connections).unwrap())).abs() < 0.5,
            "{open_now} of {}",
            seen.connections
        );
        // As few as it takes, one for the calls, and one that was begun before the limit was known.
        assert!(seen.connections <= watches.div_ceil(streams as usize) + 2, "{}", seen.connections);
        for watch in open {
            watch.finish(&stage).await;
        }
    }
}

#[tokio::test]
async fn a_burst_of_watches_is_open_as_well() {
    let mut stage = Stage::start("a_burst_of_watches", 20).await.unwrap();
    let client = stage.client(Http::Two).await.unwrap();
    let burst = (0..100).map(|number| {
        let client = client.clone();
        let target = format!("/api/v1/pods?watch=1&resourceVersion={number}");
        tokio::spawn(async move { client.get(&target, JSON).await })
    });
    let burst: Vec<Asked> = burst.collect();
    let mut held = Vec::new();
    for _ in &burst {
        held.push(soon("a watch", stage.next()).await.unwrap().begin(JSON).unwrap());
        ping(&client).await;
    }
    for asked in burst {
        let response = soon("its head", asked).await.unwrap().unwrap();
        assert_eq!(response.status(), StatusCode::OK);
    }
    assert_eq!(held.len(), 100);
    // Not one for each handful that came before a connection's limit was known.
    let connections = stage.upstream.seen().connections;
    assert!(connections <= 100_usize.div_ceil(20) + 3, "{connections}");
}

#[tokio::test]
async fn going_away_ends_nothing_that_runs_and_repeats_nothing() {
    let mut stage = Stage::start("going_away", STREAMS).await.unwrap();
    let client = stage.client(Http::Two).await.unwrap();
    let (mut watches, mut writes) = (Vec::new(), 0);
    for round in 0..10 {
        let target = format!("/api/v1/pods?watch=1&resourceVersion=line-{round}");
        let (asked, exchange) = soon("a watch", stage.ask(&client, &target, JSON)).await.unwrap();
        let line = exchange.line().clone();
        let sending = exchange.begin(JSON).unwrap();
        let reader = Reader::new(soon("its head", asked).await.unwrap().unwrap());
        watches.push(Watch { target, connection: line.number(), sending, reader, events: 0 });
        line.go_away().await;
        // Until the news has arrived, requests may still take the old connection; each is answered all the same.
        loop {
            let next = watches.len() * 100 + writes;
            let watch = Watch::open(&mut stage, &client, next).await;
            let moved = watch.connection != line.number();
            watches.push(watch);
            write_on_a_line_that_goes(&mut stage, &client, writes).await;
            writes += 1;
            if moved {
                break;
            }
        }
    }
    println!("{} watches and {writes} writes over 10 GOAWAYs", watches.len());
    for watch in watches {
        watch.finish(&stage).await;
    }
}

/// A write is answered, and arrives once, although its connection is told to end before, while or after it is sent.
async fn write_on_a_line_that_goes(stage: &mut Stage, client: &Wire, number: usize) {
    let (target, asked, exchange) = write(stage, client, number).await;
    exchange.line().go_away().await;
    exchange.answer(201, JSON, PONG).await.unwrap();
    assert_eq!(soon("the answer", asked).await.unwrap().unwrap().status(), StatusCode::CREATED);
    assert_eq!(stage.upstream.seen().count(&target), 1);
}

/// Sends a create that the shard may do, and takes it at the upstream.
async fn write(stage: &mut Stage, client: &Wire, number: usize) -> (String, Asked, Exchange) {
    let namespace = namespaces(true).nth(number).unwrap();
    let target = format!("/api/v1/namespaces/{namespace}/configmaps");
    let mut request = client.request(&target);
    *request.method_mut() = Method::POST;
    request.headers_mut().insert(header::CONTENT_TYPE, JSON.parse().unwrap());
    let body = format!(
        r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"a","namespace":"{namespace}"}}}}"#
    );
    let request: Request<Full<_>> = request.map(|_| Full::from(body.clone().into_bytes()));
    let client = client.clone();
    let asked = tokio::spawn(async move { client.send(request).await });
    let mut exchange = soon("the write", stage.next()).await.unwrap();
    assert_eq!(exchange.target(), target);
    assert_eq!(exchange.read().await.unwrap(), body);
    (target, asked, exchange)
}

#[tokio::test]
async fn a_write_is_delivered_as_often_as_the_server_says() {
    let mut stage = Stage::start("a_write_is_delivered_once", STREAMS).await.unwrap();
    let client = stage.client(Http::Two).await.unwrap();
    let may_be_done = (StatusCode::BAD_GATEWAY, None);
    let not_done = (StatusCode::SERVICE_UNAVAILABLE, Some("1"));
    // Read whole at the server, and then: what the client is told. Only what was certainly not done may be repeated,
    // and only by the client.
    for (number, (fault, told)) in [
        (Fault::Reset(Reason::INTERNAL_ERROR), may_be_done),
        (Fault::Reset(Reason::CANCEL), may_be_done),
        (Fault::GoAwayAbove, may_be_done),
        (Fault::GoAwayBelow, not_done),
        (Fault::Reset(Reason::REFUSED_STREAM), not_done),
        (Fault::Cut, may_be_done),
    ]
    .into_iter()
    .enumerate()
    {
        let (target, asked, exchange) = write(&mut stage, &client, number).await;
        fault.strike(exchange).await;
        let response = soon("the answer", asked).await.unwrap().unwrap();
        let retry = response.headers().get(header::RETRY_AFTER).map(|value| value.to_str().unwrap());
        assert_eq!((response.status(), retry), told, "{fault:?}");
        ping(&client).await;
        println!("{fault:?}: {} delivery, then {} {retry:?}", stage.upstream.seen().count(&target), told.0);
        assert_eq!(stage.upstream.seen().count(&target), 1, "{fault:?}");
        if told == not_done {
            let (_, asked, exchange) = write(&mut stage, &client, number).await;
            exchange.answer(201, JSON, PONG).await.unwrap();
            assert_eq!(soon("the answer", asked).await.unwrap().unwrap().status(), StatusCode::CREATED);
            assert_eq!(stage.upstream.seen().count(&target), 2, "{fault:?}");
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Fault {
    Reset(Reason),
    Cut,
    /// Says that the stream is done still, and cuts.
    GoAwayAbove,
    /// Says that the stream is not done.
    GoAwayBelow,
}

impl Fault {
    async fn strike(self, exchange: Exchange) {
        let last = match self {
            Self::Reset(reason) => return exchange.reset(reason),
            Self::Cut => return exchange.line().cut().await,
            Self::GoAwayAbove => exchange.stream(),
            Self::GoAwayBelow => exchange.stream().saturating_sub(2),
        };
        exchange.line().say(go_away(last)).await;
        exchange.line().cut().await;
    }
}

#[tokio::test]
async fn a_client_that_says_too_little_or_too_much_is_closed() {
    let stage = Stage::start("a_silent_client_is_closed", STREAMS).await.unwrap();
    let tcp = async || client::tcp(&stage.proxy).await.unwrap();
    let tls = async |http| client::secure(&stage.proxy, http).await.unwrap();
    let half_head = b"GET /api HTTP/1.1\r\nHost: a\r\nX-Slow: ";
    let greeting = [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat();
    // All at once: the proxy's limits are 10 s each.
    let closed = tokio::join!(
        closed("no handshake", tcp().await, b""),
        closed("no byte of HTTP/1.1", tls(Http::One).await, b""),
        closed("half a head", tls(Http::One).await, half_head),
        closed("no byte of HTTP/2", tls(Http::Two).await, b""),
        closed("half a preface", tls(Http::Two).await, b"PRI * HTTP/2.0\r\n"),
        closed("a preface and no request", tls(Http::Two).await, &greeting),
        endless(tls(Http::One).await),
    );
    let ((), (), (), (), (), (), ()) = closed;
    ping(&stage.client(Http::One).await.unwrap()).await;
    assert_eq!(stage.upstream.seen().requests.len(), 1);
}

/// Says something, then nothing, and waits until the proxy closes.
async fn closed(what: &str, mut io: impl AsyncRead + AsyncWrite + Unpin, said: &[u8]) {
    io.write_all(said).await.unwrap();
    io.flush().await.unwrap();
    // A close without a farewell is an error to TLS, and a close to us.
    let _ = soon(what, io.read_to_end(&mut Vec::new())).await;
}

/// A head without an end is cut off after 64 KiB, not read.
async fn endless(mut io: impl AsyncRead + AsyncWrite + Unpin) {
    let mut written = 0;
    io.write_all(b"GET /api HTTP/1.1\r\nX-Long: ").await.unwrap();
    while written < 64 << 20 && io.write_all(&[b'x'; 4096]).await.is_ok() {
        written += 4096;
    }
    assert!(written < 16 << 20, "{written} bytes of a head were read");
}
