//! HTTP/1.1 that two servers might read in two ways, or that has no end.

use shoal_tests::scripted::client::Http;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::fixture::{Memory, Stand, codes, converse, got, owned, soon};

/// What hides behind an unclear request.
const HIDDEN: &str = "/api/v1/namespaces/default/configmaps/hidden";
/// How much the proxy may grow over any of these, in KiB.
const MAY_GROW: usize = 16 << 10;
/// A request that is no longer is on its way whole, whether the proxy reads on or not.
const ON_THE_WAY: usize = 128 << 10;

/// A create with these lines and this body, and a read behind it.
fn unclear(rest: &str) -> String {
    format!(
        "POST {} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n{rest}GET {HIDDEN} HTTP/1.1\r\nHost: a\r\n\r\n",
        owned()
    )
}

/// What two servers might read in two ways is answered with 400. What comes behind is not read: the connection is
/// closed. A log that is kept as by default grows by at most one line for each (today by none), so nobody fills a disk.
#[tokio::test]
async fn an_unclear_request_is_refused_and_the_connection_closed() {
    let stand = Stand::start("unclear_requests").await;
    for (what, rest) in [
        ("two lengths", "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello"),
        ("a list of lengths", "Content-Length: 5, 5\r\n\r\nhello"),
        ("a length with a sign", "Content-Length: +5\r\n\r\nhello"),
        ("a length in hex", "Content-Length: 0x5\r\n\r\nhello"),
        ("a negative length", "Content-Length: -5\r\n\r\nhello"),
        ("a length that is none", "Content-Length: \r\n\r\nhello"),
        ("a length of 2^64", "Content-Length: 18446744073709551616\r\n\r\nhello"),
        ("an unknown coding", "Transfer-Encoding: xchunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
        ("a coding that is not last", "Transfer-Encoding: chunked, identity\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
        ("another coding later", "Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n\r\n0\r\n\r\n"),
        ("a coding behind a tab", "Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n"),
        ("a folded line", "X-A: b\r\n c\r\nContent-Length: 5\r\n\r\nhello"),
        ("a folded coding", "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n"),
        ("NUL in a value", "X-A: b\0c\r\nContent-Length: 5\r\n\r\nhello"),
        ("NUL in a name", "X\0A: b\r\nContent-Length: 5\r\n\r\nhello"),
        ("CR in a value", "X-A: b\rc\r\nContent-Length: 5\r\n\r\nhello"),
        ("a space before the colon", "Content-Length : 5\r\n\r\nhello"),
        ("a space before the name", " Content-Length: 5\r\n\r\nhello"),
        ("a line without a colon", "Content-Length\r\n\r\nhello"),
        ("an empty name", ": 5\r\n\r\nhello"),
    ] {
        let before = stand.log_lines();
        let heard = converse(&stand.proxy, unclear(rest).as_bytes()).await;
        assert_eq!(codes(&heard), ["400"], "{what}: {heard}");
        assert!(stand.log_lines() <= before + 1, "{what}: more than a line is logged");
    }
    for (what, line) in [
        ("no version", format!("GET {HIDDEN}\r\n\r\n")),
        ("an unknown version", format!("GET {HIDDEN} HTTP/1.2\r\nHost: a\r\n\r\n")),
        ("a space in the target", format!("GET {HIDDEN} a HTTP/1.1\r\nHost: a\r\n\r\n")),
        ("a method with a control character", format!("G\x01T {HIDDEN} HTTP/1.1\r\nHost: a\r\n\r\n")),
        (
            "a coding in HTTP/1.0",
            format!("POST {HIDDEN} HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        ),
    ] {
        let heard = converse(&stand.proxy, line.as_bytes()).await;
        assert_eq!(codes(&heard), ["400"], "{what}: {heard}");
    }
    stand.serves().await;
    assert_eq!(stand.upstream.seen().requests.len(), 2, "{:?}", stand.upstream.seen().requests);
}

/// hyper reads these in the one way that RFC 9112 names (2.2, 6.3), and what goes upstream is framed anew, so
/// that nobody behind the proxy can read them in another. A coding besides a length ends the connection (6.3, rule 3).
#[tokio::test]
async fn what_is_read_in_one_way_goes_upstream_in_that_way() {
    let stand = Stand::start("read_in_one_way").await;
    let heard = converse(
        &stand.proxy,
        unclear("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n").as_bytes(),
    )
    .await;
    assert_eq!(codes(&heard), ["200"], "{heard}");
    assert!(heard.contains(&got(2)), "{heard}");
    let heard = converse(
        &stand.proxy,
        unclear("Transfer-Encoding: chunked\r\nContent-Length: 99\r\n\r\n3\r\n{ }\r\n0\r\n\r\n").as_bytes(),
    )
    .await;
    assert_eq!(codes(&heard), ["200"], "{heard}");
    assert!(heard.contains(&got(3)), "{heard}");
    assert_eq!(stand.upstream.seen().count(HIDDEN), 0);

    let last = format!("GET {HIDDEN} HTTP/1.1\nHost: a\nConnection: close\n\n");
    let request = unclear("Content-Length: 4\nContent-Length: 4\n\n{  }");
    let request = request.split_inclusive("{  }").next().unwrap().to_owned() + &last;
    let heard = converse(&stand.proxy, request.as_bytes()).await;
    assert_eq!(codes(&heard), ["200", "200"], "{heard}");
    assert!(heard.contains(&got(4)) && heard.contains(&got(0)), "{heard}");
    assert_eq!(stand.upstream.seen().count(HIDDEN), 1);
}

/// hyper takes off the last coding; what is under another would go upstream as it is. Where the body ends is
/// clear, so the connection could go on.
#[tokio::test]
async fn a_body_in_two_codings_is_refused() {
    let stand = Stand::start("two_codings").await;
    for coding in
        ["gzip, chunked", "chunked, chunked", "identity, chunked", "chunked\r\nTransfer-Encoding: chunked"]
    {
        let rest = format!("Connection: close\r\nTransfer-Encoding: {coding}\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n");
        let heard = converse(&stand.proxy, unclear(&rest).as_bytes()).await;
        assert_eq!(codes(&heard), ["400"], "{coding}: {heard}");
        assert!(heard.contains(r#""kind":"Status""#), "{coding}: {heard}");
    }
    assert!(stand.upstream.seen().requests.is_empty(), "{:?}", stand.upstream.seen().requests);
}

/// The head is upstream already, the body never gets there whole, and what the proxy holds of it is bounded.
#[tokio::test]
async fn a_body_whose_chunks_lie_is_no_body() {
    let stand = Stand::start("lying_chunks").await;
    let memory = Memory::of(&stand.proxy);
    let long = "x".repeat(1 << 20);
    for (what, chunks) in [
        ("a chunk of 2^64 bytes", "10000000000000000\r\nhello".to_owned()),
        ("a chunk with a sign", "+5\r\nhello\r\n0\r\n\r\n".to_owned()),
        ("a chunk of no size", "\r\nhello\r\n0\r\n\r\n".to_owned()),
        ("a chunk of a wrong size", "4\r\nhello\r\n0\r\n\r\n".to_owned()),
        ("a chunk that ends with LF", "5\nhello\n0\n\n".to_owned()),
        ("an extension of 1 MiB", format!("5;a={long}\r\nhello\r\n0\r\n\r\n")),
        ("1 MiB of extensions", "1;abcdefghijkl\r\n{\r\n".repeat(60_000)),
        ("a trailer of 1 MiB", format!("2\r\n{{}}\r\n0\r\nX-A: {long}\r\n\r\n")),
        ("1 MiB of trailers", format!("2\r\n{{}}\r\n0\r\n{}\r\n", "X-A: b\r\n".repeat(128 << 10))),
    ] {
        let rest = format!("Transfer-Encoding: chunked\r\n\r\n{chunks}");
        let heard = converse(&stand.proxy, unclear(&rest).as_bytes()).await;
        assert!(matches!(&codes(&heard)[..], [] | ["400"]), "{what}: {heard}");
        println!("{what}: {:?}", codes(&heard));
        assert_eq!(stand.whole(), 0, "{what}");
    }
    for (what, rest) in [
        ("no last chunk", "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"),
        ("half a chunk", "Transfer-Encoding: chunked\r\n\r\nfffffffffffffff\r\n{}"),
        ("half a body", "Content-Length: 99\r\n\r\n{}"),
    ] {
        let mut io =
            soon(what, shoal_tests::scripted::client::secure(&stand.proxy, Http::One)).await.unwrap();
        let request = unclear(rest);
        let request = request.split("GET ").next().unwrap();
        io.write_all(request.as_bytes()).await.unwrap();
        io.shutdown().await.unwrap();
        let mut heard = String::new();
        let _ = soon(what, io.read_to_string(&mut heard)).await;
        assert!(matches!(&codes(&heard)[..], [] | ["400"]), "{what}: {heard}");
        assert_eq!(stand.whole(), 0, "{what}");
    }
    stand.serves().await;
    assert_eq!(stand.upstream.seen().count(HIDDEN), 0);
    memory.grew_at_most("lying chunks", MAY_GROW);
}

/// As many frames would make many a server end the connection, and with it what others do over it.
#[tokio::test]
async fn many_small_chunks_go_upstream_as_few() {
    let stand = Stand::start("many_small_chunks").await;
    let chunks = "1\r\n{\r\n".repeat(100_000);
    let rest = format!("Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}0\r\n\r\n");
    let heard = converse(&stand.proxy, unclear(&rest).as_bytes()).await;
    assert_eq!(codes(&heard), ["200"], "{heard}");
    assert!(heard.contains(&got(100_000)), "{heard}");
    stand.serves().await;
    assert_eq!(stand.upstream.seen().connections, 1);
}

/// With 431. Only a client that is still sending when it is refused may find its connection closed and the answer lost.
#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let stand = Stand::start("large_heads").await;
    let memory = Memory::of(&stand.proxy);
    let get = |target: &str, lines: &str| format!("GET {target} HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
    let line = |bytes: usize| format!("X-A: {}\r\n", "x".repeat(bytes));
    let long = |bytes: usize| format!("{HIDDEN}?a={}", "x".repeat(bytes));
    for (what, request) in [
        ("a line of 1 MiB", get(HIDDEN, &line(1 << 20))),
        ("a line of 2 MiB", get(HIDDEN, &line(2 << 20))),
        ("1 MiB in lines of 8 KiB", get(HIDDEN, &line(8 << 10).repeat(128))),
        ("10,000 lines", get(HIDDEN, &"a: b\r\n".repeat(10_000))),
        ("a target of 64 KiB", get(&long(64 << 10), "")),
        ("a target of 65,535 bytes in a head that fits", get(&long(65_535 - HIDDEN.len() - 3), "")),
        ("a target of 2 MiB", get(&long(2 << 20), "")),
    ] {
        let heard = converse(&stand.proxy, request.as_bytes()).await;
        println!("{what}: {:?}", codes(&heard));
        let may_be_lost = request.len() > ON_THE_WAY;
        assert!(codes(&heard) == ["431"] || codes(&heard).is_empty() && may_be_lost, "{what}: {heard}");
    }
    stand.serves().await;
    assert_eq!(stand.upstream.seen().requests.len(), 2);
    memory.grew_at_most("large heads", MAY_GROW);
}
