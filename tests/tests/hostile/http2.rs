//! HTTP/2 that breaks a rule of the protocol, or that asks for what the proxy does not do.

use shoal_tests::scripted::client::{self, Http, Wire};
use shoal_tests::scripted::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, Frame, HEADERS, PREFACE, PROTOCOL_ERROR, Peer, SETTINGS,
    block, frame,
};

use tokio::io::AsyncWriteExt;

use crate::fixture::{JSON, Memory, Stand, codes, converse, owned, ping, soon, talk};

const TARGET: &str = "/api/v1/namespaces/default/configmaps/odd";
/// The most that one frame carries.
const FRAME: usize = 16 << 10;
const MAY_GROW: usize = 16 << 10;
/// "431" (RFC 7541, appendix B).
const IN_HUFFMAN: [u8; 3] = [0x69, 0x90, 0xff];

type Fields<'a> = Vec<(&'a str, &'a str)>;

/// A read, with these fields behind the pseudo-fields.
fn get<'a>(more: &[(&'a str, &'a str)]) -> Fields<'a> {
    let pseudo = [(":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", TARGET)];
    [&pseudo, more].concat()
}

/// A create, with a length that may lie.
fn post<'a>(target: &'a str, length: &'a [(&'a str, &'a str)]) -> Fields<'a> {
    let pseudo = [(":method", "POST"), (":scheme", "https"), (":authority", "localhost"), (":path", target)];
    [&pseudo[..], &[("content-type", JSON)], length].concat()
}

/// A stream that is begun by one frame.
fn open(stream: u32, flags: u8, fields: Fields<'_>) -> Vec<u8> {
    frame(HEADERS, flags | END_HEADERS, stream, &block(fields))
}

/// Each ends its stream at least, and nothing of it goes upstream.
#[tokio::test]
async fn a_malformed_head_ends_its_stream() {
    let stand = Stand::start("malformed_heads").await;
    for (what, fields) in [
        ("TE that is not trailers", get(&[("te", "gzip")])),
        ("Transfer-Encoding", get(&[("transfer-encoding", "chunked")])),
        ("Connection", get(&[("connection", "close")])),
        ("Keep-Alive", get(&[("keep-alive", "5")])),
        ("Proxy-Connection", get(&[("proxy-connection", "close")])),
        ("Upgrade", get(&[("upgrade", "h2c")])),
        ("an upper-case name", get(&[("X-Upper", "a")])),
        ("an upper-case known name", get(&[("Accept", "a")])),
        ("a name with a space", get(&[("x a", "a")])),
        ("an empty name", get(&[("", "a")])),
        ("a line break in a value", get(&[("x-a", "b\r\nc: d")])),
        ("NUL in a value", get(&[("x-a", "b\0c")])),
        ("a pseudo-field behind a regular one", get(&[("accept", "a"), (":path", "/api")])),
        ("a pseudo-field twice", get(&[(":path", "/api")])),
        ("an unknown pseudo-field", get(&[(":path2", "/api")])),
        ("a pseudo-field of responses", get(&[(":status", "200")])),
        ("two lengths", get(&[("content-length", "1"), ("content-length", "2")])),
        ("a length that is none", get(&[("content-length", "x")])),
        ("a length and no body", get(&[("content-length", "5")])),
        ("no method", get(&[])[1..].to_vec()),
        ("no scheme", [&get(&[])[..1], &get(&[])[2..]].concat()),
        ("no path", get(&[])[..3].to_vec()),
        ("an empty path", [&get(&[])[..3], &[(":path", "")]].concat()),
        ("a method with a space", [&[(":method", "G T")], &get(&[])[1..]].concat()),
        ("a path with a line break", [&get(&[])[..3], &[(":path", "/api\r\n")]].concat()),
    ] {
        let mut peer = soon(what, Peer::connect(&stand.proxy)).await.unwrap();
        peer.say(&open(1, END_STREAM, fields)).await.unwrap();
        let error = soon(what, peer.hears.error(1)).await;
        assert_eq!(error, Some(PROTOCOL_ERROR), "{what}");
    }
    stand.serves().await;
    assert_eq!(stand.upstream.seen().count(TARGET), 0, "{:?}", stand.upstream.seen().requests);
}

/// The head may be upstream already; the body does not get there whole.
#[tokio::test]
async fn a_body_of_another_length_than_told_ends_its_stream() {
    let stand = Stand::start("other_lengths").await;
    let target = owned();
    for (what, told, body) in
        [("too little", "5", "{}"), ("too much", "2", "{ \"a\": 1 }"), ("nothing", "2", "")]
    {
        let mut peer = soon(what, Peer::connect(&stand.proxy)).await.unwrap();
        let head = open(1, 0, post(&target, &[("content-length", told)]));
        peer.say(&[head, frame(DATA, END_STREAM, 1, body.as_bytes())].concat()).await.unwrap();
        assert_eq!(soon(what, peer.hears.error(1)).await, Some(PROTOCOL_ERROR), "{what}");
        // The connection is as good as before.
        let fields = [&get(&[])[..3], &[(":path", shoal_tests::scripted::PING)]].concat();
        peer.say(&open(3, END_STREAM, fields)).await.unwrap();
        let ended = |frame: &Frame| frame.stream == 3 && frame.flags & END_STREAM != 0;
        assert!(soon(what, peer.hears.until(ended)).await.is_some(), "{what}");
    }
    stand.serves().await;
    assert_eq!(stand.whole(), 0);
}

/// Over TLS only what ALPN has agreed to is spoken, and nothing is tunnelled.
#[tokio::test]
async fn another_protocol_is_refused() {
    let stand = Stand::start("other_protocols").await;
    let upgrade = format!(
        "GET {TARGET} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\n\
         HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n"
    );
    let heard = converse(&stand.proxy, upgrade.as_bytes()).await;
    assert_eq!(codes(&heard), ["400"], "{heard}");
    // No TLS at all: HTTP/2 by prior knowledge, HTTP/1.1, and what is neither.
    let hello = [PREFACE, &frame(SETTINGS, 0, 0, &[]), &open(1, END_STREAM, get(&[]))].concat();
    for said in [&hello[..], upgrade.as_bytes(), &[0xff; 4096]] {
        let heard = talk(client::tcp(&stand.proxy).await.unwrap(), said).await;
        assert!(codes(&heard).is_empty() && heard.len() < 64, "{heard}");
    }
    for request in
        ["CONNECT localhost:443 HTTP/1.1", "CONNECT /api HTTP/1.1", "CONNECT localhost:443 HTTP/1.0"]
    {
        let heard = converse(
            &stand.proxy,
            format!("{request}\r\nHost: a\r\nConnection: close\r\n\r\nhello").as_bytes(),
        )
        .await;
        assert!(matches!(&codes(&heard)[..], ["400"] | []), "{request}: {heard}");
        println!("{request}: {:?}", codes(&heard));
    }
    let connect = vec![(":method", "CONNECT"), (":authority", "localhost:443")];
    let extended = [&[(":method", "CONNECT"), (":protocol", "websocket")], &get(&[])[1..]].concat();
    for (what, fields) in [("CONNECT", connect), ("extended CONNECT", extended)] {
        let mut peer = Peer::connect(&stand.proxy).await.unwrap();
        peer.say(&open(1, 0, fields)).await.unwrap();
        let answer = |frame: &Frame| frame.stream == 1 || frame.error().is_some();
        let answer = soon(what, peer.hears.until(answer)).await.unwrap();
        println!("{what}: {answer:?}");
        // 0x88 is ":status: 200".
        assert_ne!(answer.payload.first(), Some(&0x88), "{what}");
    }
    stand.serves().await;
    assert_eq!(stand.upstream.seen().requests.len(), 2, "{:?}", stand.upstream.seen().requests);
}

/// Refused with 431 while it is near the limit, by an end of the connection beyond.
#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let stand = Stand::start("large_heads_2").await;
    let memory = Memory::of(&stand.proxy);
    let (large, larger) = ("x".repeat(1 << 20), "x".repeat(2 << 20));
    let (many, long) = (vec![("a", "b"); 10_000], format!("{TARGET}?a={}", "x".repeat(64 << 10)));
    for (what, fields) in [
        ("a field of 1 MiB", get(&[("x-a", &large)])),
        ("a field of 2 MiB", get(&[("x-a", &larger)])),
        ("10,000 fields", get(&many)),
        ("a target of 64 KiB", [&get(&[])[..3], &[(":path", long.as_str())]].concat()),
    ] {
        let mut peer = soon(what, Peer::connect(&stand.proxy)).await.unwrap();
        let bytes = in_frames(1, &block(fields));
        let said = async {
            // A proxy that has heard enough closes.
            let _ = peer.says.write_all(&bytes).await;
            let _ = peer.says.flush().await;
        };
        let answer = |frame: &Frame| frame.stream == 1 || frame.error().is_some();
        let ((), answer) = soon(what, async { tokio::join!(said, peer.hears.until(answer)) }).await;
        let is_431 =
            answer.as_ref().is_some_and(|frame| frame.payload.windows(3).any(|text| text == IN_HUFFMAN));
        println!("{what}: 431 {is_431}, else {:?}", answer.as_ref().and_then(Frame::error));
        assert!(is_431 || answer.is_none_or(|frame| frame.error().is_some_and(|code| code != 0)), "{what}");
    }
    ping(&Wire::connect(&stand.proxy, Http::Two).await.unwrap()).await;
    assert_eq!(stand.upstream.seen().requests.len(), 1);
    memory.grew_at_most("large heads over HTTP/2", MAY_GROW);
}

/// A header block in as many frames as it takes.
fn in_frames(stream: u32, block: &[u8]) -> Vec<u8> {
    let (mut bytes, parts) = (Vec::new(), block.chunks(FRAME));
    let last = parts.len() - 1;
    for (index, part) in parts.enumerate() {
        let (kind, end) = if index == 0 { (HEADERS, END_STREAM) } else { (CONTINUATION, 0) };
        let flags = if index == last { end | END_HEADERS } else { end };
        bytes.extend(frame(kind, flags, stream, part));
    }
    bytes
}
