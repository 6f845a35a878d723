//! A request that asks to leave HTTP, over a connection of its own that speaks HTTP/1.1.

use std::sync::Arc;

use http::{HeaderValue, Request, Response, StatusCode, Uri, Version, header, request::Parts};
use hyper::client::conn::http1;
use tokio::time::timeout;

use super::{
    DialError, Traffic, Upstream, UpstreamError, headers, in_time,
    pool::{DIAL_TIMEOUT, Received},
};
use crate::{
    body::{Body, Open},
    request::{hop, upgrade::Protocol},
};

// === impl Upstream ===

impl Upstream {
    /// Asks for an upgrade. Once the future resolves the response's head has arrived: 101, and then what comes is in its
    /// [`hyper::upgrade::OnUpgrade`], or any other answer. It is asked once, since what it starts may have begun.
    pub async fn upgrade(
        &self,
        mut parts: Parts,
        body: Body,
        protocol: Protocol,
        traffic: Traffic,
    ) -> Result<Response<Received>, UpstreamError> {
        let address = self.address(&parts.uri)?;
        headers::strip(&mut parts.headers);
        parts.headers.insert(header::HOST, host(&address)?);
        parts.headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        parts.headers.insert(header::UPGRADE, HeaderValue::from_static(protocol.token()));
        // HTTP/1.1 names the server in Host only.
        parts.uri = address.path_and_query().cloned().map_or(address, Uri::from);
        parts.version = Version::HTTP_11;
        in_time(traffic, self.ask(Request::from_parts(parts, body))).await
    }

    async fn ask(&self, request: Request<Body>) -> Result<Response<Received>, UpstreamError> {
        let target = self.target.load_full();
        let dialed = timeout(DIAL_TIMEOUT, target.connect_http1()).await;
        let io = dialed.unwrap_or(Err(DialError::Timeout(DIAL_TIMEOUT))).map_err(Arc::new)?;
        let open = Open::one(self.tunnels.clone());
        let (mut sender, connection) = http1::handshake(io).await.map_err(UpstreamError::of)?;
        // It ends with the answer's body, with whoever waits for it, or when it has handed its socket over.
        tokio::spawn(connection.with_upgrades());
        let mut response = sender.send_request(request).await.map_err(UpstreamError::of)?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            hop::end(response.headers_mut());
        }
        Ok(response.map(|body| Received::alone(body, open)))
    }
}

fn host(address: &Uri) -> Result<HeaderValue, http::Error> {
    let host = address.authority().map_or("", |authority| authority.as_str());
    HeaderValue::from_str(host).map_err(Into::into)
}
