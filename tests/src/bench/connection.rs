//! One connection of the load: as little of the machine as possible is spent here.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::{IpAddr, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::trust;
use crate::HarnessError;

/// What client-go's transport grants a server (golang.org/x/net `http2/transport.go`).
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 1 << 30;
pub(super) const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";

type Failure = Box<dyn Error + Send + Sync>;

/// Where to connect and as whom.
#[derive(Debug, Clone)]
pub(super) struct Address {
    /// `https://127.0.0.1:<port>`.
    pub(super) url: String,
    /// The PEM file that it is verified with.
    pub(super) ca: PathBuf,
    pub(super) token: String,
}

/// Which HTTP is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    One,
    Two,
}

/// An open connection.
pub(super) struct Connection {
    sender: Sender,
    address: Address,
}

enum Sender {
    One(http1::SendRequest<Full<Bytes>>),
    Two(http2::SendRequest<Full<Bytes>>),
}

// === impl Address ===

impl Address {
    fn authority(&self) -> &str {
        self.url.trim_start_matches("https://")
    }
}

// === impl Connection ===

impl Connection {
    pub(super) async fn open(address: &Address, protocol: Protocol) -> Result<Self, HarnessError> {
        let sender = open(address, protocol).await.map_err(|error| failed(&address.url, &*error))?;
        Ok(Self { sender, address: address.clone() })
    }

    /// So many senders of one HTTP/2 connection. One of HTTP/1.1 takes one request at a time, so it stays alone.
    pub(super) fn shared(self, count: usize) -> Vec<Self> {
        match &self.sender {
            Sender::One(_) => vec![self],
            Sender::Two(sender) => {
                let clone = || Self { sender: Sender::Two(sender.clone()), address: self.address.clone() };
                std::iter::repeat_with(clone).take(count).collect()
            }
        }
    }

    /// Sends a GET and returns once the head of a 200 is there.
    pub(super) async fn get(&mut self, path: &str, accept: &str) -> Result<Incoming, HarnessError> {
        self.send(Method::GET, path, header::ACCEPT, accept, String::new()).await
    }

    /// Reads a whole response; what came, in pieces.
    pub(super) async fn read(&mut self, path: &str, accept: &str) -> Result<Vec<Bytes>, HarnessError> {
        let body = self.get(path, accept).await?;
        drain(body).await.map_err(|error| failed(path, &error))
    }

    /// Sends a merge patch and reads the answer.
    pub(super) async fn patch(&mut self, path: &str, change: String) -> Result<(), HarnessError> {
        let body = self.send(Method::PATCH, path, header::CONTENT_TYPE, MERGE_PATCH, change).await?;
        drain(body).await.map(drop).map_err(|error| failed(path, &error))
    }

    async fn send(
        &mut self,
        method: Method,
        path: &str,
        name: header::HeaderName,
        value: &str,
        body: String,
    ) -> Result<Incoming, HarnessError> {
        let url = format!("{}{path}", self.address.url);
        let mut request = Request::builder().method(method).uri(&url);
        if matches!(self.sender, Sender::One(_)) {
            request = request.uri(path).header(header::HOST, self.address.authority());
        }
        let request = request
            .header(header::AUTHORIZATION, &self.address.token)
            .header(header::USER_AGENT, "shoal-bench")
            .header(name, value)
            .body(Full::from(body))
            .map_err(|error| failed(&url, &error))?;
        let response = self.sender.send(request).await.map_err(|error| failed(&url, &error))?;
        match response.status() {
            status if status.is_success() => Ok(response.into_body()),
            status => Err(failed(&url, &*Failure::from(format!("answered {status}")))),
        }
    }
}

// === impl Sender ===

impl Sender {
    async fn send(&mut self, request: Request<Full<Bytes>>) -> hyper::Result<Response<Incoming>> {
        match self {
            Self::One(sender) => sender.send_request(request).await,
            Self::Two(sender) => sender.send_request(request).await,
        }
    }
}

async fn drain(mut body: Incoming) -> hyper::Result<Vec<Bytes>> {
    let mut pieces = Vec::new();
    while let Some(frame) = body.frame().await {
        pieces.extend(frame?.into_data());
    }
    Ok(pieces)
}

async fn open(address: &Address, protocol: Protocol) -> Result<Sender, Failure> {
    let tls = TokioIo::new(connect(address, protocol).await?);
    if protocol == Protocol::One {
        let (sender, connection) = http1::handshake(tls).await?;
        tokio::spawn(connection);
        return Ok(Sender::One(sender));
    }
    let (sender, connection) = http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .handshake(tls)
        .await?;
    tokio::spawn(connection);
    Ok(Sender::Two(sender))
}

async fn connect(address: &Address, protocol: Protocol) -> Result<TlsStream<TcpStream>, Failure> {
    let tcp = TcpStream::connect(address.authority()).await?;
    tcp.set_nodelay(true)?;
    let name = ServerName::IpAddress(IpAddr::from(tcp.peer_addr()?.ip()));
    Ok(connector(&address.ca, protocol)?.connect(name, tcp).await?)
}

fn connector(ca: &Path, protocol: Protocol) -> Result<TlsConnector, Failure> {
    let mut config = trust(ca)?;
    let alpn = if protocol == Protocol::One { "http/1.1" } else { "h2" };
    config.alpn_protocols = vec![alpn.into()];
    Ok(TlsConnector::from(Arc::new(config)))
}

fn failed(url: &str, error: &dyn Error) -> HarnessError {
    HarnessError::Answer { url: url.to_owned(), reason: error.to_string() }
}
