//! HTTP/2 by hand: frames as bytes and header blocks without compression, for what no library sends.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::client::{Http, secure};
use crate::{HarnessError, Proxy};

/// What a client's connection begins with (RFC 9113, section 3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Frame types (RFC 9113, section 6).
pub const DATA: u8 = 0;
/// Begins a stream.
pub const HEADERS: u8 = 1;
/// Has no meaning any more.
pub const PRIORITY: u8 = 2;
/// Ends a stream with an error.
pub const RST_STREAM: u8 = 3;
/// Of the connection.
pub const SETTINGS: u8 = 4;
/// To be answered.
pub const PING: u8 = 6;
/// Ends a connection.
pub const GOAWAY: u8 = 7;
/// Room for more bytes.
pub const WINDOW_UPDATE: u8 = 8;
/// More of a header block.
pub const CONTINUATION: u8 = 9;

/// Flag of DATA and HEADERS: the last of its stream.
pub const END_STREAM: u8 = 1;
/// Flag of HEADERS and CONTINUATION: the last of its block.
pub const END_HEADERS: u8 = 4;

/// Error codes (RFC 9113, section 7): the peer has broken a rule.
pub const PROTOCOL_ERROR: u32 = 1;
/// The peer asks for too much work.
pub const ENHANCE_YOUR_CALM: u32 = 11;

/// A frame as it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Its type.
    pub kind: u8,
    /// Its flags.
    pub flags: u8,
    /// Its stream; 0 is the connection.
    pub stream: u32,
    /// What it carries.
    pub payload: Vec<u8>,
}

/// A client that writes its frames itself. Nothing is read or answered unless a test does so.
#[derive(Debug)]
pub struct Peer {
    /// What the proxy says.
    pub hears: Ear,
    /// Where bytes go to the proxy.
    pub says: WriteHalf<TlsStream<TcpStream>>,
}

/// Reads frames.
#[derive(Debug)]
pub struct Ear(ReadHalf<TlsStream<TcpStream>>);

// === impl Frame ===

impl Frame {
    /// The error code of `RST_STREAM` or GOAWAY.
    pub fn error(&self) -> Option<u32> {
        let at = match self.kind {
            RST_STREAM => 0,
            GOAWAY => 4,
            _ => return None,
        };
        self.payload.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes)
    }
}

// === impl Peer ===

impl Peer {
    /// Connects, and sends the preface with empty settings.
    pub async fn connect(proxy: &Proxy) -> Result<Self, HarnessError> {
        let (reads, says) = split(secure(proxy, Http::Two).await?);
        let mut peer = Self { hears: Ear(reads), says };
        let hello = [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat();
        peer.say(&hello).await.map_err(|error| HarnessError::Answer {
            url: proxy.url().to_owned(),
            reason: error.to_string(),
        })?;
        Ok(peer)
    }

    /// Sends bytes; an error once the proxy has closed.
    pub async fn say(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.says.write_all(bytes).await?;
        self.says.flush().await
    }
}

// === impl Ear ===

impl Ear {
    /// The next frame; none at the end of the connection, however it ends.
    pub async fn next(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        self.0.read_exact(&mut head).await.ok()?;
        let [a, b, c, kind, flags, stream @ ..] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        self.0.read_exact(&mut payload).await.ok()?;
        Some(Frame { kind, flags, stream: u32::from_be_bytes(stream) & (u32::MAX >> 1), payload })
    }

    /// Reads on until a frame is as awaited; none if the connection ends before.
    pub async fn until(&mut self, awaited: impl Fn(&Frame) -> bool) -> Option<Frame> {
        loop {
            match self.next().await? {
                frame if awaited(&frame) => return Some(frame),
                _ => {}
            }
        }
    }

    /// The error code with which the proxy ends this stream or the whole connection; none if it just closes.
    pub async fn error(&mut self, stream: u32) -> Option<u32> {
        let is_end = |frame: &Frame| {
            frame.kind == GOAWAY && frame.error() != Some(0)
                || frame.kind == RST_STREAM && frame.stream == stream
        };
        self.until(is_end).await.and_then(|frame| frame.error())
    }
}

/// A frame as bytes. Its payload is at most 16 KiB for a peer that has not allowed more.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&[a, b, c, kind, flags][..], &stream.to_be_bytes(), payload].concat()
}

/// A GOAWAY without an error: `last` is the last stream that its sender does (RFC 9113, section 6.8).
pub fn go_away(last: u32) -> Vec<u8> {
    frame(GOAWAY, 0, 0, &[last.to_be_bytes(), [0; 4]].concat())
}

/// A header block (RFC 7541, section 6.2.2): each field as literal text, entered in no table.
pub fn block<'a>(fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            block.extend(length(text.len()));
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

/// An integer with a prefix of 7 bits (RFC 7541, section 5.1), without the bit for Huffman.
fn length(value: usize) -> Vec<u8> {
    let byte = |value: usize| u8::try_from(value).unwrap_or(u8::MAX);
    let Some(mut rest) = value.checked_sub(0x7f) else { return vec![byte(value)] };
    let mut bytes = vec![0x7f];
    while rest > 0x7f {
        bytes.push(byte(rest & 0x7f | 0x80));
        rest >>= 7;
    }
    bytes.push(byte(rest));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_and_blocks_are_as_the_rfcs_write_them() {
        assert_eq!(frame(PING, 0, 0, b"12345678"), b"\0\0\x08\x06\0\0\0\0\x0012345678");
        assert_eq!(go_away(3), b"\0\0\x08\x07\0\0\0\0\0\0\0\0\x03\0\0\0\0");
        // RFC 7541, section C.2.2, with the name as text.
        assert_eq!(block([(":path", "/a")]), b"\0\x05:path\x02/a");
        assert_eq!(length(126), [126]);
        assert_eq!(length(127), [127, 0]);
        // RFC 7541, section C.1.2, with a longer prefix.
        assert_eq!(length(1337), [127, 0xba, 0x09]);
    }
}
