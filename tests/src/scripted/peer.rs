//! One end of a connection on which HTTP/1.1 is written and read by hand, and what comes after it.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::{client, server};

/// Whoever speaks to whom is tested.
#[derive(Debug)]
pub struct Peer<S> {
    /// The connection; what came with a head is not in it any more.
    io: S,
    /// What has come and nobody has taken.
    got: Vec<u8>,
}

/// An upstream's end.
pub type Server = Peer<server::TlsStream<TcpStream>>;
/// A client's end.
pub type Client = Peer<client::TlsStream<TcpStream>>;

// === impl Peer ===

impl<S: AsyncRead + AsyncWrite + Unpin> Peer<S> {
    /// Takes a connection over.
    pub fn new(io: S) -> Self {
        Self { io, got: Vec::new() }
    }

    /// Sends bytes.
    pub async fn say(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.io.write_all(bytes.as_ref()).await?;
        self.io.flush().await
    }

    /// Has nothing more to say, and listens on.
    pub async fn finish(&mut self) -> io::Result<()> {
        self.io.shutdown().await
    }

    /// Hears a head, to its empty line.
    pub async fn head(&mut self) -> io::Result<String> {
        let end = loop {
            if let Some(at) = self.got.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            if self.io.read_buf(&mut self.got).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        };
        let rest = self.got.split_off(end);
        let head = std::mem::replace(&mut self.got, rest);
        Ok(String::from_utf8_lossy(&head).into_owned())
    }

    /// Hears exactly so many bytes.
    pub async fn hear(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.got.len() < length {
            if self.io.read_buf(&mut self.got).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let rest = self.got.split_off(length);
        Ok(std::mem::replace(&mut self.got, rest))
    }

    /// Hears all until the other has nothing more to say, or is gone without a farewell.
    pub async fn rest(&mut self) -> io::Result<Vec<u8>> {
        match self.io.read_to_end(&mut self.got).await {
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => Err(error),
            _ => Ok(std::mem::take(&mut self.got)),
        }
    }

    /// The connection, to be read and written in ways of its own; what came with a head and was not heard is lost.
    pub fn into_io(self) -> S {
        self.io
    }
}
