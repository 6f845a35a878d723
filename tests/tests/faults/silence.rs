//! Nothing comes any more, and nobody says so.

use h2::Reason;
use http_body_util::BodyExt;
use shoal_tests::scripted::client::{self, Http};
use shoal_tests::scripted::pods::Form as Coding;
use shoal_tests::scripted::{STREAMS, Stage};
use shoal_tests::soon;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::before_the_head::BROKEN_ONCE;
use crate::form::Form;
use crate::matrix::{ask, ask_all, compare, ping, settled};

/// The proxy asks a silent connection after 30 s whether it is alive, and gives it 15 s. Then it is as if it were cut.
#[tokio::test]
async fn a_dead_server_is_noticed_and_what_may_be_is_asked_again() {
    let mut stage = Stage::start("dead_server", STREAMS).await.unwrap();
    let client = stage.client(Http::Two).await.unwrap();
    let (list, watch) = (Form::List(Coding::Json), Form::Watch(Coding::Json));
    let (mut begun, mut sendings, mut lines) = (Vec::new(), Vec::new(), Vec::new());
    for (form, number) in [(list, 1), (watch, 2)] {
        begun.push(ask(&client, form, number));
        let exchange = soon("what begins", stage.next()).await.unwrap();
        lines.push(exchange.line().clone());
        sendings.push(form.answer().begin(exchange).await.unwrap());
    }
    let asked = ask_all(&client, 10);
    let mut unanswered = Vec::new();
    for _ in &asked {
        unanswered.push(soon("what is never answered", stage.next()).await.unwrap());
    }
    assert!(unanswered.iter().all(|exchange| exchange.line().number() <= lines.len()));
    for line in &lines {
        line.fall_silent().await;
    }
    let seen = settled(&mut stage, asked).await;
    compare("dead_server, before the head", &seen, BROKEN_ONCE);
    let seen = settled(&mut stage, begun).await;
    compare("dead_server, in the body", &seen, BEGUN);
    ping(&stage).await;
}

const BEGUN: &str = "
    LIST json       broken                                 1
    WATCH json      ends between events                    1
";

/// The server sends a half and never the rest: the client decides how long it waits, and the server hears of it.
#[tokio::test]
async fn a_client_that_gives_up_frees_the_server() {
    let mut stage = Stage::start("client_gives_up", STREAMS).await.unwrap();
    for http in [Http::One, Http::Two] {
        for (number, form) in Form::ALL.into_iter().enumerate() {
            let client = stage.client(http).await.unwrap();
            let request = form.request(&client, number);
            let asked = tokio::spawn(async move {
                let mut body = client.send(request).await.unwrap().into_body();
                while body.frame().await.is_some() {}
            });
            let mut exchange = soon("the request", stage.next()).await.unwrap();
            exchange.read().await.unwrap();
            let mut sending = form.answer().begin(exchange).await.unwrap();
            asked.abort();
            let reason = soon(form.name(), sending.gone()).await.unwrap();
            assert_eq!(reason, Reason::CANCEL, "{http:?} {}", form.name());
        }
    }
    soon("the streams' end", stage.upstream.until(|seen| seen.open == 0)).await;
}

/// A client that says that it will say no more is gone, on HTTP/1.1: nobody reads for it.
#[tokio::test]
async fn a_client_that_half_closes_frees_the_server() {
    let mut stage = Stage::start("client_half_closes", STREAMS).await.unwrap();
    let mut tls = client::secure(&stage.proxy, Http::One).await.unwrap();
    tls.write_all(b"GET /api/v1/pods?watch=1 HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    let exchange = soon("the watch", stage.next()).await.unwrap();
    let mut sending = Form::Watch(Coding::Json).answer().begin(exchange).await.unwrap();
    tls.shutdown().await.unwrap();
    soon("the stream's end", sending.gone()).await.unwrap();
    // A close without a farewell is an error to TLS, and a close to us.
    let _ = soon("the close", tls.read_to_end(&mut Vec::new())).await;
    ping(&stage).await;
}
