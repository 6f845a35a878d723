//! One request at a scripted upstream, and the body of its answer.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Bytes, BytesMut};
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::request::Parts;
use http::{Response, header};
use tokio::sync::watch;

use super::{Line, Seen};

/// A request that waits for its answer. Dropping it resets the stream.
pub struct Exchange {
    /// The head as it arrived.
    pub request: Parts,
    body: RecvStream,
    respond: SendResponse<Bytes>,
    line: Line,
    open: Open,
}

/// The body of an answer under way. Dropping it resets the stream, so keep it to hold the stream open.
pub struct Sending {
    stream: SendStream<Bytes>,
    taken: Arc<AtomicU64>,
    _open: Open,
}

/// The stream is no more: the peer has reset it, or the connection has ended.
#[derive(Debug, thiserror::Error)]
#[error("the peer has ended the stream: {0:?}")]
pub struct Gone(Option<h2::Error>);

/// One more stream that is open, until it is dropped.
pub(super) struct Open(Arc<watch::Sender<Seen>>);

// === impl Exchange ===

impl Exchange {
    pub(super) fn new(
        request: http::Request<RecvStream>,
        respond: SendResponse<Bytes>,
        line: Line,
        open: Open,
    ) -> Self {
        let (request, body) = request.into_parts();
        Self { request, body, respond, line, open }
    }

    /// The path with the query.
    pub fn target(&self) -> &str {
        self.request.uri.path_and_query().map_or("/", |target| target.as_str())
    }

    /// The number of its stream.
    pub fn stream(&self) -> u32 {
        self.respond.stream_id().as_u32()
    }

    /// The connection that it came over.
    pub fn line(&self) -> &Line {
        &self.line
    }

    /// The request's body, to its end.
    pub async fn read(&mut self) -> Result<Bytes, Gone> {
        let mut bytes = BytesMut::new();
        while let Some(chunk) = self.body.data().await {
            let chunk = chunk?;
            self.body.flow_control().release_capacity(chunk.len())?;
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes.freeze())
    }

    /// Sends the head of a 200 and leaves the body open.
    pub fn begin(self, content_type: &str) -> Result<Sending, Gone> {
        self.head(head(200, content_type))
    }

    /// Sends a head and leaves the body open.
    pub fn head(mut self, head: Response<()>) -> Result<Sending, Gone> {
        let stream = self.respond.send_response(head, false)?;
        Ok(Sending { stream, taken: Arc::default(), _open: self.open })
    }

    /// Sends a whole answer.
    pub async fn answer(self, code: u16, content_type: &str, body: impl Into<Bytes>) -> Result<(), Gone> {
        let mut sending = self.head(head(code, content_type))?;
        sending.send(body).await?;
        sending.end()
    }

    /// Resets the stream before there is any answer.
    pub fn reset(mut self, reason: Reason) {
        self.respond.send_reset(reason);
    }
}

// === impl Sending ===

impl Sending {
    /// Sends bytes; returns when the peer has made room for the last of them.
    pub async fn send(&mut self, bytes: impl Into<Bytes>) -> Result<(), Gone> {
        let mut bytes = bytes.into();
        while !bytes.is_empty() {
            self.stream.reserve_capacity(bytes.len());
            let room = poll_fn(|cx| self.stream.poll_capacity(cx)).await.ok_or(Gone(None))??;
            let part = bytes.split_to(room.min(bytes.len()));
            if !part.is_empty() {
                self.taken.fetch_add(part.len() as u64, Ordering::Relaxed);
                self.stream.send_data(part, false)?;
            }
        }
        Ok(())
    }

    /// How many bytes the peer has made room for, also while the body is sent elsewhere.
    pub fn taken(&self) -> Arc<AtomicU64> {
        self.taken.clone()
    }

    /// Ends the body.
    pub fn end(mut self) -> Result<(), Gone> {
        Ok(self.stream.send_data(Bytes::new(), true)?)
    }

    /// Resets the stream in the middle of the body.
    pub fn reset(mut self, reason: Reason) {
        self.stream.send_reset(reason);
    }

    /// Waits until the peer resets the stream.
    pub async fn gone(&mut self) -> Result<Reason, Gone> {
        Ok(poll_fn(|cx| self.stream.poll_reset(cx)).await?)
    }
}

// === impl Gone ===

impl From<h2::Error> for Gone {
    fn from(error: h2::Error) -> Self {
        Self(Some(error))
    }
}

// === impl Open ===

impl Open {
    pub(super) fn one(book: Arc<watch::Sender<Seen>>) -> Self {
        book.send_modify(|seen| seen.open += 1);
        Self(book)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.send_modify(|seen| seen.open -= 1);
    }
}

/// A head with a media type; none if that is empty.
fn head(code: u16, content_type: &str) -> Response<()> {
    let mut head = Response::new(());
    *head.status_mut() = http::StatusCode::from_u16(code).unwrap_or_default();
    if let Ok(value) = content_type.parse()
        && !content_type.is_empty()
    {
        head.headers_mut().insert(header::CONTENT_TYPE, value);
    }
    head
}
