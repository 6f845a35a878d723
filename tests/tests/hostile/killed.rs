//! A proxy that is killed in the middle of something: nobody takes the half for the whole.

use bytes::Bytes;
use http::StatusCode;
use http_body_util::Full;
use shoal_tests::scripted::client::{self, Http, Reader};
use shoal_tests::scripted::frames::{DATA, END_HEADERS, HEADERS, Peer, block, frame};
use shoal_tests::scripted::pods::{Form, namespaces};
use shoal_tests::scripted::{STREAMS, Stage};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::fixture::{JSON, owned, soon};

const BOTH: [Http; 2] = [Http::One, Http::Two];

/// In a list, and in the frame of an event.
#[tokio::test]
async fn a_half_answer_of_a_killed_proxy_is_a_broken_transfer() {
    for http in BOTH {
        for form in Form::ALL {
            for watch in [false, true] {
                let got = half(http, form, watch).await;
                println!("{http:?} {form:?} watch {watch}: broke off after {} bytes", got.len());
            }
        }
    }
}

/// Answers by half, kills, and returns what the client got before its transfer broke.
async fn half(http: Http, form: Form, watch: bool) -> Vec<u8> {
    let name = format!("killed_{http:?}_{form:?}_{watch}");
    let mut stage = Stage::start(&name, STREAMS).await.unwrap();
    let client = stage.client(http).await.unwrap();
    // All of it fits on the way: nobody reads yet.
    let pod = form.pod(&namespaces(true).next().unwrap(), 1, 2000);
    let (target, content_type, body) = if watch {
        ("/api/v1/pods?watch=1", form.of_watch(), form.event("ADDED", &pod))
    } else {
        ("/api/v1/pods", form.of_list(), form.list(&vec![form.item(&pod); 200]))
    };
    let (asked, exchange) = soon("the request", stage.ask(&client, target, form.of_list())).await.unwrap();
    let mut sending = exchange.begin(content_type).unwrap();
    let (first, second) = (if watch { body.clone() } else { Vec::new() }, body[..body.len() / 2].to_vec());
    let whole = [first.clone(), body.clone()].concat();
    sending.send([first.clone(), second].concat()).await.unwrap();
    // A protobuf list up to 8 MiB is kept to tell its length, so the client may have no head yet.
    let asked = if watch || form == Form::Json {
        let mut reader = Reader::new(soon("the head", asked).await.unwrap().unwrap());
        let some = if watch { first } else { pod };
        soon("the first half", reader.until(&some)).await.unwrap();
        stage.proxy.process().kill();
        soon("the break", reader.broken()).await
    } else {
        stage.proxy.process().kill();
        match soon("the break", asked).await.unwrap() {
            Ok(response) => soon("the break", Reader::new(response).broken()).await,
            Err(_) => Ok(Vec::new()),
        }
    };
    let got = asked.unwrap();
    assert!(got.len() < whole.len());
    got
}

/// In the body of a write: it got upstream once, and there it is no body.
#[tokio::test]
async fn a_half_write_of_a_killed_proxy_is_never_whole_and_never_repeated() {
    for http in BOTH {
        let mut stage = Stage::start(&format!("killed_in_a_write_{http:?}"), STREAMS).await.unwrap();
        let target = owned();
        let pseudo = [
            (":method", "POST"),
            (":scheme", "https"),
            (":authority", "localhost"),
            (":path", target.as_str()),
            ("content-type", JSON),
        ];
        let head = format!(
            "POST {target} HTTP/1.1\r\nHost: a\r\nContent-Type: {JSON}\r\nContent-Length: 99\r\n\r\n{{\"kind\":"
        );
        let client = match http {
            Http::One => {
                let mut io = client::secure(&stage.proxy, http).await.unwrap();
                io.write_all(head.as_bytes()).await.unwrap();
                io.flush().await.unwrap();
                Ok(io)
            }
            Http::Two => {
                let mut peer = Peer::connect(&stage.proxy).await.unwrap();
                let open = frame(HEADERS, END_HEADERS, 1, &block(pseudo));
                peer.say(&[open, frame(DATA, 0, 1, b"{\"kind\":")].concat()).await.unwrap();
                Err(peer)
            }
        };
        let mut exchange = soon("the write", stage.next()).await.unwrap();
        stage.proxy.process().kill();
        assert!(soon("the end of the body", exchange.read()).await.is_err(), "{http:?}");
        match client {
            Ok(mut io) => {
                let mut answer = Vec::new();
                let _ = soon("the break", io.read_to_end(&mut answer)).await;
                assert!(answer.is_empty(), "{http:?}");
            }
            Err(mut peer) => {
                let head = peer.hears.until(|frame| frame.kind == HEADERS);
                assert_eq!(soon("the break", head).await, None, "{http:?}");
            }
        }
        assert_eq!(stage.upstream.seen().count(&target), 1, "{http:?}");
    }
}

/// After the body of a write: the client is not told that it was done.
#[tokio::test]
async fn a_write_whose_answer_is_lost_fails_and_is_not_repeated() {
    for http in BOTH {
        let mut stage = Stage::start(&format!("killed_after_a_write_{http:?}"), STREAMS).await.unwrap();
        let client = stage.client(http).await.unwrap();
        let target = owned();
        let mut request = client.request(&target).map(|_| Full::from(Bytes::from_static(b"{}")));
        *request.method_mut() = http::Method::POST;
        request.headers_mut().insert(http::header::CONTENT_TYPE, JSON.parse().unwrap());
        let asked = tokio::spawn(async move { client.send(request).await });
        let mut exchange = soon("the write", stage.next()).await.unwrap();
        assert_eq!(exchange.read().await.unwrap(), "{}");
        stage.proxy.process().kill();
        let answer = soon("the break", asked).await.unwrap();
        assert!(answer.is_err(), "{http:?}: {:?}", answer.map(|answer| answer.status() == StatusCode::OK));
        assert_eq!(stage.upstream.seen().count(&target), 1, "{http:?}");
    }
}
