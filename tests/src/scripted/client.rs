//! A client on the wire, for tests of single bytes: one connection to a proxy, over HTTP/1.1 or HTTP/2.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::{HarnessError, Proxy};

/// The kernel's share of what a client has not read: small, so that a reader that stops is soon felt.
const SOCKET_BUFFER: u32 = 128 << 10;
/// How much of one HTTP/2 response this client takes unread.
const STREAM_WINDOW: u32 = 256 << 10;
/// Room for many streams that are not read.
const CONNECTION_WINDOW: u32 = 64 << 20;

/// Which HTTP a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Http {
    /// HTTP/1.1: one request at a time.
    One,
    /// HTTP/2.
    Two,
}

/// One connection to a proxy. Clones share it.
#[derive(Debug, Clone)]
pub struct Wire {
    base: String,
    sender: Sender,
}

#[derive(Debug, Clone)]
enum Sender {
    One(Arc<tokio::sync::Mutex<http1::SendRequest<Full<Bytes>>>>),
    Two(http2::SendRequest<Full<Bytes>>),
}

/// With TLS or without.
trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Socket for S {}

/// A response as it arrives.
#[derive(Debug)]
pub struct Reader {
    body: Incoming,
    got: Vec<u8>,
}

// === impl Wire ===

impl Wire {
    /// Connects to a proxy, by TLS unless it has none.
    pub async fn connect(proxy: &Proxy, http: Http) -> Result<Self, HarnessError> {
        let socket: Box<dyn Socket> = if proxy.url().starts_with("http://") {
            Box::new(tcp(proxy).await?)
        } else {
            Box::new(secure(proxy, http).await?)
        };
        let io = TokioIo::new(socket);
        let failed = |error: hyper::Error| unusable(proxy, &error);
        let sender = match http {
            Http::One => {
                let (sender, connection) = http1::handshake(io).await.map_err(failed)?;
                tokio::spawn(connection);
                Sender::One(Arc::new(sender.into()))
            }
            Http::Two => {
                let mut builder = http2::Builder::new(TokioExecutor::new());
                builder
                    .initial_stream_window_size(STREAM_WINDOW)
                    .initial_connection_window_size(CONNECTION_WINDOW);
                let (sender, connection) = builder.handshake(io).await.map_err(failed)?;
                tokio::spawn(connection);
                Sender::Two(sender)
            }
        };
        Ok(Self { base: proxy.url().to_owned(), sender })
    }

    /// Asks for `target`, accepting `accept`; returns when the head has arrived.
    pub async fn get(&self, target: &str, accept: &str) -> Result<Response<Incoming>, hyper::Error> {
        let mut request = self.request(target);
        if let Ok(accept) = accept.parse() {
            request.headers_mut().insert(http::header::ACCEPT, accept);
        }
        self.send(request).await
    }

    /// A GET for `target`, to be changed.
    pub fn request(&self, target: &str) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::default());
        let uri: Uri = format!("{}{target}", self.base).parse().unwrap_or_default();
        if let (Sender::One(_), Some(host)) = (&self.sender, uri.authority())
            && let Ok(host) = host.as_str().parse()
        {
            request.headers_mut().insert(http::header::HOST, host);
        }
        *request.uri_mut() = match self.sender {
            Sender::One(_) => target.parse().unwrap_or_default(),
            Sender::Two(_) => uri,
        };
        request
    }

    /// Sends a request; returns when the head of the response has arrived.
    pub async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, hyper::Error> {
        match &self.sender {
            Sender::One(sender) => {
                let mut sender = sender.lock().await;
                sender.ready().await?;
                sender.send_request(request).await
            }
            Sender::Two(sender) => {
                let mut sender = sender.clone();
                sender.ready().await?;
                sender.send_request(request).await
            }
        }
    }
}

// === impl Reader ===

impl Reader {
    /// Reads the body of a response.
    pub fn new(response: Response<Incoming>) -> Self {
        Self { body: response.into_body(), got: Vec::new() }
    }

    /// Reads on until `awaited` has arrived, and returns everything so far. Says so if the body ends before.
    pub async fn until(&mut self, awaited: &[u8]) -> Result<&[u8], String> {
        while !self.has(awaited) {
            match self.next().await.map_err(|error| format!("broke off: {error}"))? {
                Some(bytes) => self.got.extend_from_slice(&bytes),
                None => return Err(format!("ended without it: {}", String::from_utf8_lossy(&self.got))),
            }
        }
        Ok(&self.got)
    }

    /// Reads to the end and returns the whole body.
    pub async fn rest(mut self) -> Result<Vec<u8>, hyper::Error> {
        while let Some(bytes) = self.next().await? {
            self.got.extend_from_slice(&bytes);
        }
        Ok(self.got)
    }

    /// Reads until the transfer breaks and returns what came before; an error if it ends well.
    pub async fn broken(mut self) -> Result<Vec<u8>, String> {
        loop {
            match self.next().await {
                Ok(Some(bytes)) => self.got.extend_from_slice(&bytes),
                Ok(None) => return Err(format!("a clean end after {} bytes", self.got.len())),
                Err(_) => return Ok(self.got),
            }
        }
    }

    /// The next bytes, which are not kept; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, hyper::Error> {
        while let Some(frame) = self.body.frame().await {
            if let Ok(bytes) = frame?.into_data() {
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }

    fn has(&self, awaited: &[u8]) -> bool {
        awaited.is_empty() || self.got.windows(awaited.len()).any(|window| window == awaited)
    }
}

/// A plain TCP connection to a proxy.
pub async fn tcp(proxy: &Proxy) -> Result<TcpStream, HarnessError> {
    let address = proxy.url().trim_start_matches("https://").trim_start_matches("http://").parse();
    let address: SocketAddr = address.map_err(|error| unusable(proxy, &error))?;
    let socket = TcpSocket::new_v4().map_err(|error| unusable(proxy, &error))?;
    socket.set_recv_buffer_size(SOCKET_BUFFER).map_err(|error| unusable(proxy, &error))?;
    socket.connect(address).await.map_err(|error| unusable(proxy, &error))
}

/// A TLS connection to a proxy that has agreed to `http`.
pub async fn secure(proxy: &Proxy, http: Http) -> Result<TlsStream<TcpStream>, HarnessError> {
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_file(proxy.ca()).map_err(|error| unusable(proxy, &error))?;
    roots.add(authority).map_err(|error| unusable(proxy, &error))?;
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = match http {
        Http::One => vec![b"http/1.1".to_vec()],
        Http::Two => vec![b"h2".to_vec()],
    };
    let name = ServerName::from(std::net::IpAddr::from([127, 0, 0, 1]));
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, tcp(proxy).await?).await.map_err(|error| unusable(proxy, &error))
}

fn unusable(proxy: &Proxy, error: &dyn std::error::Error) -> HarnessError {
    HarnessError::Answer { url: proxy.url().to_owned(), reason: error.to_string() }
}
