//! Requests that leave HTTP: exec, attach, port-forward, what is proxied, and watches over WebSocket.
//!
//! They walk like any other. What differs is the end: 101 makes a tunnel of the client's connection, and any other
//! answer closes it, since what the client goes on to send was meant for the tunnel (CVE-2018-1002105).

use std::time::Duration;

use http::{HeaderValue, Response, StatusCode, header, request::Parts};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy, sink},
    time::timeout,
};

use crate::{
    body::{self, Body, Open},
    listen::takeover::Takeover,
    metrics::Metrics,
    request::upgrade::Protocol,
    respond::Refusal,
    tunnel::{self, Meter},
    upstream::Received,
};

/// How long a client that was refused may take to stop sending.
const FAREWELL_TIME: Duration = Duration::from_secs(5);
/// How much it may send until then.
const FAREWELL_BYTES: u64 = 3 << 20;

/// The way of a client out of HTTP.
#[derive(Clone)]
pub(super) struct Exit {
    client: OnUpgrade,
    takeover: Takeover,
}

// === impl Exit ===

impl Exit {
    /// Takes it out of the head of a request; none if the request asks for no upgrade, or on HTTP/1.0.
    pub(super) fn take(parts: &mut Parts) -> Option<Self> {
        let takeover = parts.extensions.remove()?;
        Some(Self { client: parts.extensions.remove()?, takeover })
    }

    /// Makes the tunnel of a server's 101, whose head goes to the client as it came.
    pub(super) fn tunnel(
        self,
        protocol: Protocol,
        mut response: Response<Received>,
        metrics: &Metrics,
    ) -> Result<Response<Body>, Refusal> {
        let server = response.extensions_mut().remove();
        let Some(server) = server.filter(|_| protocol.is_agreed(response.headers())) else {
            return Err(unasked(&response));
        };
        let (head, received) = response.into_parts();
        let (meter, open) = (Meter::new(metrics), Open::one(metrics.streams.with_label_values(&["connect"])));
        self.takeover.give(Box::pin(async move {
            tunnel::run(self.client, server, meter).await;
            drop((received, open));
        }));
        Ok(Response::from_parts(head, body::empty()))
    }

    /// Ends the connection with an answer that is no tunnel. Nobody is given what the client still sends; it is read for
    /// a while, since a client whose connection is reset would not see why.
    pub(super) fn close(self, response: &mut Response<Body>) {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        self.takeover.give(Box::pin(async move {
            let Ok(client) = self.client.await else { return };
            let mut client = TokioIo::new(client);
            if client.shutdown().await.is_ok() {
                let (mut rest, mut nobody) = (client.take(FAREWELL_BYTES), sink());
                let _ = timeout(FAREWELL_TIME, copy(&mut rest, &mut nobody)).await;
            }
        }));
    }
}

/// An upgrade without a way out.
pub(super) fn no_exit() -> Refusal {
    bad_request("only a connection that speaks HTTP/1.1 can be upgraded")
}

/// A watch whose events would come in a form that no filter reads.
pub(super) fn unfilterable() -> Refusal {
    bad_request(
        "this shard is shown only its own objects, and a watch over WebSocket cannot be filtered: send it without \
         Upgrade",
    )
}

/// A server that leaves HTTP for what nobody asked it.
pub(super) fn unasked(response: &Response<Received>) -> Refusal {
    let protocol = response.headers().get(header::UPGRADE).and_then(|value| value.to_str().ok());
    let protocol = protocol.unwrap_or("nothing that it names");
    let message = format!("upstream switched to {protocol}, which is not what it was asked for");
    Refusal::new(StatusCode::BAD_GATEWAY, "InternalError", message)
}

fn bad_request(why: &str) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, "BadRequest", why)
}
