//! A proxy that has run out of file handles, or of room for its log.

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use shoal_tests::Proxy;
use shoal_tests::scripted::PING;
use shoal_tests::scripted::client::{self, Http, Wire};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::fixture::{Stand, codes, converse, foreign, ping, soon};

/// Handles run out under a proxy that counted on more: accepting fails for a while, and goes on.
#[tokio::test]
async fn a_proxy_whose_file_handles_run_out_goes_on() {
    let stand = Stand::start("file_handles_run_out").await;
    let others = Wire::connect(&stand.proxy, Http::Two).await.unwrap();
    ping(&others).await;
    let pid = Pid::from_raw(stand.proxy.process().pid().cast_signed());
    let few = Rlimit { current: Some(48), maximum: Some(48) };
    prlimit(pid, Resource::Nofile, few).unwrap();
    for _ in 0..3 {
        let (mut held, failures) = (Vec::new(), || stand.log().matches("cannot accept").count());
        let before = failures();
        for _ in 0..100 {
            held.push(soon("a connection", client::tcp(&stand.proxy)).await.unwrap());
        }
        // Who is connected is served meanwhile.
        let failing = async {
            while failures() == before {
                ping(&others).await;
            }
        };
        soon("accepting to fail", failing).await;
        drop(held);
        stand.serves().await;
    }
    ping(&others).await;
    assert!(stand.log_lines() < 100, "a line for each failure fills disks: {}", stand.log_lines());
}

/// Whoever finds no room is turned away or waits, and once there is room all are served again.
#[tokio::test]
async fn a_proxy_without_file_handles_recovers() {
    let line = r#"ulimit -n 64; exec "$@""#;
    let stand = Stand::start_by(line, "no_file_handles").await;
    stand.serves().await;
    for round in 0..3 {
        let mut held = Vec::new();
        for _ in 0..200 {
            held.push(soon("a connection", client::tcp(&stand.proxy)).await.unwrap());
        }
        // The kernel takes connections that the proxy does not; one that is silent yields.
        stand.serves().await;
        assert_eq!(stand.proxy.process().exit_code(), None);
        assert!(stand.proxy.metrics().await.is_ok(), "round {round}");
        drop(held);
        stand.serves().await;
    }
    assert!(stand.log_lines() < 100, "a line for each failure fills disks: {}", stand.log_lines());
}

/// Connections that have all asked for something and stay, more of them than there are handles.
#[tokio::test]
async fn more_busy_connections_than_file_handles_are_shed() {
    let line = r#"ulimit -n 64; exec "$@""#;
    let stand = Stand::start_by(line, "few_file_handles").await;
    let (mut busy, mut turned_away) = (Vec::new(), 0);
    for _ in 0..100 {
        match soon("an answer", ask(&stand.proxy)).await {
            Some((io, code)) if code == "200" => busy.push(io),
            Some((_, code)) => {
                assert_eq!(code, "503");
                turned_away += 1;
            }
            None => turned_away += 1,
        }
    }
    println!("64 file handles: {} connections served, {turned_away} turned away", busy.len());
    assert!(busy.len() >= 8 && turned_away > 0);
    assert!(stand.proxy.metrics().await.is_ok());
    drop(busy);
    let again = async { while ask(&stand.proxy).await.is_none_or(|(_, code)| code != "200") {} };
    soon("room again", again).await;
    stand.serves().await;
}

/// Asks over a connection of its own, which stays open; none if the proxy closes it.
async fn ask(proxy: &Proxy) -> Option<(TlsStream<TcpStream>, String)> {
    let mut tls = client::secure(proxy, Http::One).await.ok()?;
    tls.write_all(format!("GET {PING} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).await.ok()?;
    tls.flush().await.ok()?;
    let mut line = [0; 12];
    tls.read_exact(&mut line).await.ok()?;
    Some((tls, String::from_utf8_lossy(&line[9..]).into_owned()))
}

/// Each line of the log is lost; nothing else is.
#[tokio::test]
async fn a_full_log_ends_nothing() {
    let line = r#"exec "$@" --log=trace 2>/dev/full"#;
    let stand = Stand::start_by(line, "full_log").await;
    let request = format!("DELETE {}/a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", foreign());
    for _ in 0..10 {
        stand.serves().await;
        // A foreign write is refused, with a line in the log.
        let heard = converse(&stand.proxy, request.as_bytes()).await;
        assert_eq!(codes(&heard), ["409"], "{heard}");
    }
    assert_eq!(stand.proxy.process().exit_code(), None);
}
