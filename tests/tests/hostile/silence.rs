//! Connections that say nothing, by the thousand, and more connections than there is room for.

use std::sync::Arc;

use shoal_tests::Proxy;
use shoal_tests::scripted::client::{self, Http, Reader};
use shoal_tests::scripted::frames::PREFACE;
use shoal_tests::scripted::{STREAMS, Stage};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::task::JoinSet;

use crate::fixture::{JSON, Memory, Stand, ping, soon};

/// The first half of a TLS handshake's first record.
const HALF_A_HELLO: &[u8] = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
const HALF_A_HEAD: &[u8] = b"GET /api HTTP/1.1\r\nHost: a\r\nX-Slow: ";
const EACH: usize = 400;
/// Twice the proxy's --max-connections; it takes half of them at once.
const KINDS: [Kind; 5] = [Kind::Tcp, Kind::HalfAHello, Kind::Tls, Kind::HalfAHead, Kind::Http2];
const MAY_GROW: usize = 64 << 10;

#[derive(Debug, Clone, Copy)]
enum Kind {
    Tcp,
    HalfAHello,
    Tls,
    HalfAHead,
    Http2,
}

/// Each is cut, at its deadline (10 s) or because its place is needed, and who comes meanwhile is served.
#[tokio::test]
async fn silent_connections_are_cut_and_keep_nobody_out() {
    let stand = Arc::new(Stand::start("silent_connections").await);
    let memory = Memory::of(&stand.proxy);
    let mut silent = JoinSet::new();
    for number in 0..EACH * KINDS.len() {
        let on = stand.clone();
        silent.spawn(async move { hold(&on.proxy, KINDS[number % KINDS.len()]).await });
        if number % 100 == 99 {
            stand.serves().await;
        }
    }
    soon("all of them to be cut", silent.join_all()).await;
    stand.serves().await;
    memory.grew_at_most("2,000 silent connections", MAY_GROW);
}

/// Connects and waits to be cut. The cut may come at any time, as an error too.
async fn hold(proxy: &Proxy, kind: Kind) {
    let Ok(tcp) = client::tcp(proxy).await else { return };
    match kind {
        Kind::Tcp => cut(tcp, b"").await,
        Kind::HalfAHello => cut(tcp, HALF_A_HELLO).await,
        Kind::Tls | Kind::HalfAHead => {
            let said = if matches!(kind, Kind::Tls) { b"" } else { HALF_A_HEAD };
            if let Ok(tls) = client::secure(proxy, Http::One).await {
                cut(tls, said).await;
            }
        }
        Kind::Http2 => {
            if let Ok(tls) = client::secure(proxy, Http::Two).await {
                cut(tls, PREFACE).await;
            }
        }
    }
}

async fn cut(mut io: impl AsyncRead + AsyncWrite + Unpin, said: &[u8]) {
    let _ = io.write_all(said).await;
    let _ = io.flush().await;
    let _ = io.read_to_end(&mut Vec::new()).await;
}

/// A connection that has asked for something keeps its place; who finds none is told so and closed.
#[tokio::test]
async fn who_finds_no_place_is_told_so() {
    let line = r#"exec "$@" --max-connections=4"#;
    let mut stage = Stage::start_by(line, "no_place", STREAMS).await.unwrap();
    let mut busy = Vec::new();
    for number in 0..4 {
        let client = stage.client([Http::One, Http::Two][number % 2]).await.unwrap();
        let target = format!("/api/v1/nodes/{number}");
        let (asked, exchange) = soon("a request", stage.ask(&client, &target, JSON)).await.unwrap();
        busy.push((client, asked, exchange));
    }
    for http in [Http::One, Http::Two] {
        let late = stage.client(http).await.unwrap();
        let response = soon("an answer", late.get("/api/v1/nodes/late", JSON)).await.unwrap();
        assert_eq!(response.status(), 503, "{http:?}");
        assert_eq!(response.headers()["retry-after"], "1", "{http:?}");
        let status = soon("a Status", Reader::new(response).rest()).await.unwrap();
        let status: serde_json::Value = serde_json::from_slice(&status).unwrap();
        assert_eq!((&status["kind"], &status["code"]), (&"Status".into(), &503.into()), "{http:?}");
        let again = async { while late.get("/api/v1/nodes/late", JSON).await.is_ok() {} };
        soon("the connection to end", again).await;
    }
    // One that goes makes room for another.
    let (client, asked, exchange) = busy.remove(1);
    exchange.answer(200, JSON, "{}").await.unwrap();
    drop((client, soon("the answer", asked).await.unwrap().unwrap()));
    served(&stage).await;
    for (_, asked, exchange) in busy {
        exchange.answer(200, JSON, "{}").await.unwrap();
        assert_eq!(soon("the answer", asked).await.unwrap().unwrap().status(), 200);
    }
}

/// The place is free when the proxy has seen the end of the connection.
async fn served(stage: &Stage) {
    soon("a place", async {
        loop {
            let client = stage.client(Http::Two).await.unwrap();
            let response = client.get(shoal_tests::scripted::PING, JSON).await;
            if response.is_ok_and(|response| response.status() == 200) {
                return ping(&client).await;
            }
        }
    })
    .await;
}
