//! One HTTP/2 connection of the load: as little of the machine as possible is spent here.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::{IpAddr, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::trust;
use crate::HarnessError;

/// What client-go's transport grants a server (golang.org/x/net `http2/transport.go`).
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 1 << 30;

type Failure = Box<dyn Error + Send + Sync>;

/// Where to connect and as whom.
#[derive(Debug, Clone)]
pub(super) struct Address {
    /// `https://127.0.0.1:<port>`.
    pub(super) url: String,
    pub(super) token: String,
    pub(super) connector: Connector,
}

/// TLS that offers HTTP/2 only.
#[derive(Clone)]
pub(super) struct Connector(TlsConnector);

/// An open connection.
pub(super) struct Connection {
    sender: SendRequest<Empty<Bytes>>,
    address: Address,
}

// === impl Connector ===

impl Connector {
    /// Trusts the authority in a PEM file.
    pub(super) fn new(ca: &Path) -> Result<Self, HarnessError> {
        let mut config = trust(ca).map_err(|error| HarnessError::Answer {
            url: ca.display().to_string(),
            reason: error.to_string(),
        })?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connector")
    }
}

// === impl Connection ===

impl Connection {
    pub(super) async fn open(address: &Address) -> Result<Self, HarnessError> {
        let sender = open(address).await.map_err(|error| failed(&address.url, &*error))?;
        Ok(Self { sender, address: address.clone() })
    }

    /// Reads a whole response and returns its size in bytes.
    pub(super) async fn get(&mut self, path: &str, accept: &str) -> Result<usize, HarnessError> {
        let url = format!("{}{path}", self.address.url);
        self.read(&url, accept).await.map_err(|error| failed(&url, &*error))
    }

    async fn read(&mut self, url: &str, accept: &str) -> Result<usize, Failure> {
        let request = Request::get(url)
            .header(header::AUTHORIZATION, &self.address.token)
            .header(header::ACCEPT, accept)
            .header(header::USER_AGENT, "shoal-bench")
            .body(Empty::new())?;
        let response = self.sender.send_request(request).await?;
        if !response.status().is_success() {
            return Err(format!("answered {}", response.status()).into());
        }
        let (mut body, mut size) = (response.into_body(), 0);
        while let Some(frame) = body.frame().await {
            size += frame?.data_ref().map_or(0, Bytes::len);
        }
        Ok(size)
    }
}

async fn open(address: &Address) -> Result<SendRequest<Empty<Bytes>>, Failure> {
    let authority = address.url.trim_start_matches("https://");
    let tcp = TcpStream::connect(authority).await?;
    tcp.set_nodelay(true)?;
    let name = ServerName::IpAddress(IpAddr::from(tcp.peer_addr()?.ip()));
    let tls = address.connector.0.connect(name, tcp).await?;
    let (sender, connection) = http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .handshake(TokioIo::new(tls))
        .await?;
    tokio::spawn(connection);
    Ok(sender)
}

fn failed(url: &str, error: &dyn Error) -> HarnessError {
    HarnessError::Answer { url: url.to_owned(), reason: error.to_string() }
}
