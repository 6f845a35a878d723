//! A connection of HTTP/2 that is kept, for tests that ask thousands of times.

use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::TokioExecutor;
use tokio::sync::Mutex;

use super::{ANSWER_BYTES, Answer, Http, RawClient, failed};
use crate::HarnessError;

/// One connection at a time, a new one where the last has ended. Requests beyond the server's number of streams wait
/// for their turn.
#[derive(Debug, Clone)]
pub struct Kept {
    client: RawClient,
    sender: Arc<Mutex<SendRequest<Full<Bytes>>>>,
}

// === impl RawClient ===

impl RawClient {
    /// Opens a connection for many requests.
    pub async fn keep(&self) -> Result<Kept, HarnessError> {
        Ok(Kept { client: self.clone(), sender: Arc::new(Mutex::new(self.dial().await?)) })
    }

    async fn dial(&self) -> Result<SendRequest<Full<Bytes>>, HarnessError> {
        let said = |error: &dyn std::fmt::Display| failed(self.authority.as_str(), error);
        let stream = self.connect(Http::Two).await.map_err(|error| said(&error))?;
        let (sender, connection) =
            http2::handshake(TokioExecutor::new(), stream).await.map_err(|error| said(&error))?;
        tokio::spawn(connection);
        Ok(sender)
    }
}

// === impl Kept ===

impl Kept {
    /// Sends a request, once, and reads the whole answer.
    pub async fn send(&self, request: Request<Vec<u8>>) -> Result<Answer, HarnessError> {
        let url = request.uri().to_string();
        let request = self.client.address_two(request.map(Full::from))?;
        let response = self.sender().await?.send_request(request).await;
        let (parts, body) = response.map_err(|error| failed(&url, &format!("{error:?}")))?.into_parts();
        #[allow(clippy::disallowed_methods, reason = "bounded")]
        let body = Limited::new(body, ANSWER_BYTES).collect().await.map_err(|error| failed(&url, &error))?;
        Ok(Answer { code: parts.status, headers: parts.headers, body: body.to_bytes() })
    }

    async fn sender(&self) -> Result<SendRequest<Full<Bytes>>, HarnessError> {
        let mut sender = self.sender.lock().await;
        if sender.ready().await.is_err() {
            *sender = self.client.dial().await?;
        }
        Ok(sender.clone())
    }
}
