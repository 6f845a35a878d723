//! A verified TLS connection to an API server that speaks HTTP/2.

use std::{io, sync::Arc, time::Duration};

use http::uri::Authority;
use hyper_util::rt::TokioIo;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::{Endpoint, UpstreamSetupError};
use crate::socket;

/// Where to connect, and whom to expect there.
pub(super) struct Target {
    /// Host and port of the server.
    pub(super) authority: Authority,
    /// The name that its certificate must carry.
    pub(super) server_name: ServerName<'static>,
    /// Trusts only the configured authorities, and speaks HTTP/2.
    http2: TlsConnector,
    /// The same for what HTTP/2 cannot do.
    http1: TlsConnector,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// No TCP or no TLS.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The server does not speak HTTP/2.
    #[error("the server did not agree to HTTP/2 (ALPN h2)")]
    NoHttp2,
    /// The HTTP/2 preface failed.
    #[error("HTTP/2: {0}")]
    Http2(hyper::Error),
    /// Too slow.
    #[error("no connection within {} s", .0.as_secs())]
    Timeout(Duration),
    /// The server closed the connection at once.
    #[error("the server closed the connection at once")]
    Closed,
}

// === impl Target ===

impl Target {
    /// Prepares connections to an endpoint.
    pub(super) fn new(endpoint: &Endpoint) -> Result<Self, UpstreamSetupError> {
        let config = client_config(&endpoint.authorities)?;
        Ok(Self {
            authority: endpoint.authority.clone(),
            server_name: endpoint.server_name.clone(),
            http2: speaking(config.clone(), b"h2"),
            http1: speaking(config, b"http/1.1"),
        })
    }

    /// The default port of `https` is 443.
    fn address(&self) -> (&str, u16) {
        let host = self.authority.host().trim_start_matches('[').trim_end_matches(']');
        (host, self.authority.port_u16().unwrap_or(443))
    }

    /// Connects and verifies the server; for HTTP/1.1, which a server need not agree to.
    pub(super) async fn connect_http1(&self) -> Result<TokioIo<TlsStream<TcpStream>>, DialError> {
        Ok(TokioIo::new(self.connect_by(&self.http1).await?))
    }

    async fn connect_by(&self, connector: &TlsConnector) -> Result<TlsStream<TcpStream>, DialError> {
        let tcp = TcpStream::connect(self.address()).await?;
        tcp.set_nodelay(true)?;
        socket::keep_alive(&tcp)?;
        Ok(connector.connect(self.server_name.clone(), tcp).await?)
    }

    /// Connects and verifies the server; for HTTP/2.
    pub(super) async fn connect(&self) -> Result<TokioIo<TlsStream<TcpStream>>, DialError> {
        let tls = self.connect_by(&self.http2).await?;
        match tls.get_ref().1.alpn_protocol() {
            Some(b"h2") => Ok(TokioIo::new(tls)),
            _ => Err(DialError::NoHttp2),
        }
    }
}

/// A TLS client that trusts the given authorities, PEM, and nobody else.
fn client_config(authorities: &[u8]) -> Result<ClientConfig, UpstreamSetupError> {
    let unusable = |error: &dyn std::fmt::Display| UpstreamSetupError::Authority(error.to_string());
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(authorities) {
        roots.add(authority.map_err(|error| unusable(&error))?).map_err(|error| unusable(&error))?;
    }
    if roots.is_empty() {
        return Err(unusable(&"no certificate in it"));
    }
    Ok(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
}

fn speaking(mut config: ClientConfig, protocol: &[u8]) -> TlsConnector {
    config.alpn_protocols = vec![protocol.to_vec()];
    TlsConnector::from(Arc::new(config))
}
