//! How tunnels run and end.

use std::future::poll_fn;
use std::pin::Pin;

use shoal_tests::meter::Growth;
use shoal_tests::scripted::Stage;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::fixture::{SWITCHES, asked, exec, forgotten, soon, stage, tunnel, websocket};

/// How much goes through in one direction.
const MUCH: usize = 64 << 20;
const PIECE: usize = 64 << 10;
/// How much the proxy may grow, in bytes.
const MAY_GROW: u64 = 4 << 20;

#[tokio::test]
async fn a_side_that_is_done_does_not_end_the_other() {
    let stage = stage("upgrade_half_close").await;
    let (mut client, mut server) = tunnel(&stage).await;
    client.say("ls\n").await.unwrap();
    client.finish().await.unwrap();
    assert_eq!(soon("what the client said", server.rest()).await.unwrap(), b"ls\n");
    for line in ["a\n", "b\n"] {
        server.say(line).await.unwrap();
        assert_eq!(soon("a line", client.hear(2)).await.unwrap(), line.as_bytes());
    }
    server.finish().await.unwrap();
    assert_eq!(soon("the server's end", client.rest()).await.unwrap(), b"");
    forgotten(&stage).await;

    let (mut client, mut server) = tunnel(&stage).await;
    server.say("bye").await.unwrap();
    server.finish().await.unwrap();
    assert_eq!(soon("the server's end", client.rest()).await.unwrap(), b"bye");
    client.say("still here").await.unwrap();
    assert_eq!(soon("what the client said", server.hear(10)).await.unwrap(), b"still here");
    client.finish().await.unwrap();
    assert_eq!(soon("the client's end", server.rest()).await.unwrap(), b"");
    forgotten(&stage).await;
}

/// Bytes that come right behind a head are the tunnel's.
#[tokio::test]
async fn what_comes_with_the_heads_is_not_lost() {
    let stage = stage("upgrade_early").await;
    let (mut client, mut server, _) = asked(&stage, &(websocket(&exec(true)) + "early")).await;
    server.say(format!("{SWITCHES}at once")).await.unwrap();
    soon("the 101", client.head()).await.unwrap();
    assert_eq!(soon("the server's words", client.hear(7)).await.unwrap(), b"at once");
    assert_eq!(soon("the client's words", server.hear(5)).await.unwrap(), b"early");
}

#[tokio::test]
async fn whoever_breaks_ends_both() {
    let stage = stage("upgrade_breaks").await;
    let (mut client, server) = tunnel(&stage).await;
    drop(server);
    assert_eq!(soon("the server's end", client.rest()).await.unwrap_or_default(), b"");
    drop(client);
    forgotten(&stage).await;
    let (client, mut server) = tunnel(&stage).await;
    drop(client);
    assert_eq!(soon("the client's end", server.rest()).await.unwrap_or_default(), b"");
    drop(server);
    forgotten(&stage).await;
}

#[tokio::test]
async fn a_client_that_goes_before_the_answer_leaves_nothing() {
    let stage = stage("upgrade_gone").await;
    let (client, mut server, _) = asked(&stage, &websocket(&exec(true))).await;
    drop(client);
    assert_eq!(soon("the proxy to give up", server.rest()).await.unwrap_or_default(), b"");
    forgotten(&stage).await;
}

#[tokio::test]
async fn much_passes_both_ways_at_once_and_the_proxy_holds_none_of_it() {
    let stage = stage("upgrade_much").await;
    let (client, server) = tunnel(&stage).await;
    let before = Growth::of(stage.proxy.process()).unwrap();
    let (client, server) = (Box::pin(pump(client.into_io())), Box::pin(pump(server.into_io())));
    let (up, down) = soon("both to be done", async { tokio::join!(client, server) }).await;
    assert_eq!((up, down), (MUCH, MUCH));
    let grown = before.at_peak().unwrap();
    assert!(grown <= MAY_GROW, "{grown}");
    forgotten(&stage).await;
    let metrics = stage.proxy.metrics().await.unwrap();
    let bytes = |direction: &str| metrics.sum("shoal_bytes_total", &[&format!(r#"direction="{direction}""#)]);
    #[allow(clippy::cast_precision_loss, reason = "far below 2^53")]
    let much = MUCH as f64;
    assert_eq!((bytes("forwarded"), bytes("received") >= much, bytes("sent") >= much), (much, true, true));
}

/// Says much while it hears all, and returns how much it heard. What is heard is in order, or it panics.
async fn pump(io: impl AsyncRead + AsyncWrite) -> usize {
    let (mut hears, mut says) = tokio::io::split(io);
    let speak = async {
        for number in 0..MUCH / PIECE {
            let byte = u8::try_from(number % 251).unwrap();
            says.write_all(&vec![byte; PIECE]).await.unwrap();
        }
        says.shutdown().await.unwrap();
    };
    let listen = async {
        let (mut count, mut piece) = (0, vec![0; PIECE]);
        loop {
            let got = hears.read(&mut piece).await.unwrap();
            if got == 0 {
                return count;
            }
            for byte in &piece[..got] {
                assert_eq!(usize::from(*byte), count / PIECE % 251);
                count += 1;
            }
        }
    };
    tokio::join!(speak, listen).1
}

/// A reader that stops is felt at the other end; the proxy does not buffer for it.
#[tokio::test]
async fn who_is_not_read_is_stopped() {
    let stage = stage("upgrade_backpressure").await;
    for from_client in [true, false] {
        let (client, server) = tunnel(&stage).await;
        let before = Growth::of(stage.proxy.process()).unwrap();
        let (client, server) = (client.into_io(), server.into_io());
        let sent = if from_client {
            until_stopped(client, &server, &stage).await
        } else {
            until_stopped(server, &client, &stage).await
        };
        let grown = before.at_peak().unwrap();
        println!("{sent} bytes on their way, {grown} bytes added");
        assert!(grown <= MAY_GROW, "{grown}");
    }
}

/// Writes until nothing more is taken, although the proxy had its turn again and again. `_unread` stays open.
async fn until_stopped<U>(mut io: impl AsyncWrite + Unpin, _unread: &U, stage: &Stage) -> usize {
    let (mut sent, mut stopped, piece) = (0, 0, vec![0; PIECE]);
    while stopped < 20 {
        let written = poll_fn(|cx| {
            std::task::Poll::Ready(match Pin::new(&mut io).poll_write(cx, &piece) {
                std::task::Poll::Ready(written) => written.unwrap(),
                std::task::Poll::Pending => 0,
            })
        });
        match written.await {
            0 => {
                // The proxy has had its turn once it has answered.
                stage.proxy.metrics().await.unwrap();
                stopped += 1;
            }
            written => (sent, stopped) = (sent + written, 0),
        }
        assert!(sent < MUCH, "nobody stops who writes");
    }
    sent
}
