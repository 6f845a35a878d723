//! The objects of slots that come, by a request of its own: the initial events of a watch, which come in the form that the
//! open watch has.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Response, header, request::Parts as Head};
use http_body::Body as _;
use http_body_util::BodyExt;
use parking_lot::Mutex;
use shoal_sharding::Slots;
use tokio::time::timeout;

use super::splice::Object;
use crate::{
    body::{self, Body},
    filter::{Encoding, Lens, Out, Scan, Scanner, Shape, Verdict, View, event},
    ownership::lens::{Deciding, ShardLens},
    request::{accept::BodyType, query::Query},
    upstream::{Traffic, Upstream},
};

/// How long it may take in all.
const TIME: Duration = Duration::from_secs(30);

/// Asks for the initial events of an open watch once more.
pub type Ask = Box<dyn Fn() -> BoxFuture<'static, Result<Response<Body>, FetchError>> + Send + Sync>;

/// All objects of some slots.
pub(super) struct Fetched {
    /// The version that they are of.
    pub(super) version: u64,
    /// The objects.
    pub(super) objects: Vec<Object>,
    /// What they take, in bytes.
    pub(super) bytes: u64,
}

/// Why objects cannot be fetched. Clients have to ask for everything then.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// Its target cannot be written.
    #[error("the request cannot be put: {0}")]
    Target(String),
    /// Upstream did not answer, or broke off.
    #[error("upstream: {0}")]
    Upstream(String),
    /// The answer is none that can be spliced in.
    #[error("upstream answered with {0}: it may not know sendInitialEvents, or the form is another one")]
    Answer(http::StatusCode),
    /// The answer ended before the initial events did.
    #[error("upstream: the initial events ended early")]
    Early,
    /// It took too long.
    #[error("upstream: the initial events are not all there after {} s", TIME.as_secs())]
    Late,
}

/// Keeps the objects of some slots.
struct Taking<'a> {
    lens: &'a ShardLens,
    slots: Slots,
    encoding: Encoding,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    objects: Vec<Object>,
    bytes: u64,
    slot: Option<shoal_sharding::Slot>,
    /// The version of the bookmark that ended the initial events.
    version: Option<u64>,
    failed: bool,
}

/// Asks an API server as the watch did whose head this is, as it went upstream.
pub fn asking(upstream: Arc<Upstream>, head: Head) -> Ask {
    Box::new(move || {
        let (upstream, head) = (upstream.clone(), from_the_beginning(&head));
        Box::pin(async move {
            let sent = upstream.send(head?, body::empty(), Traffic::Watch).await;
            let response = sent.map_err(|error| FetchError::Upstream(error.to_string()))?;
            Ok(response.map(|body| body.map_err(Into::into).boxed_unsync()))
        })
    })
}

/// All objects of these slots. They are of a version at least as new as when this was called.
pub(super) async fn objects(
    ask: &Ask,
    lens: &ShardLens,
    encoding: Encoding,
    slots: Slots,
) -> Result<Fetched, FetchError> {
    timeout(TIME, read(ask, lens, encoding, slots)).await.unwrap_or(Err(FetchError::Late))
}

async fn read(ask: &Ask, lens: &ShardLens, encoding: Encoding, slots: Slots) -> Result<Fetched, FetchError> {
    let response = ask().await?;
    let headers = response.headers();
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let wanted = if encoding == Encoding::Json { BodyType::Json } else { BodyType::Protobuf };
    let is_coded = headers.contains_key(header::CONTENT_ENCODING);
    if !response.status().is_success() || BodyType::of(content_type) != wanted || is_coded {
        return Err(FetchError::Answer(response.status()));
    }
    let taking = Taking { lens, slots, encoding, taken: Mutex::default() };
    let (mut scanner, mut out) = (Scanner::new(encoding, Shape::Watch, &taking), Out::default());
    let mut body = response.into_body();
    while !body.is_end_stream() {
        let Some(frame) = body.frame().await else { break };
        let frame = frame.map_err(|error| FetchError::Upstream(error.to_string()))?;
        let Ok(data) = frame.into_data() else { break };
        let read = scanner.push(data, &mut out);
        read.map_err(|error| FetchError::Upstream(error.to_string()))?;
        while out.pop().is_some() {}
        if let Some(fetched) = taking.fetched() {
            return Ok(fetched);
        }
    }
    Err(FetchError::Early)
}

/// The same watch from the beginning. Without a version, what comes is as new as the request.
fn from_the_beginning(head: &Head) -> Result<Head, FetchError> {
    let mut query = Query::new(head.uri.query());
    for key in ["resourceVersion", "timeoutSeconds", "limit", "continue"] {
        query.remove(key);
    }
    for (key, value) in [
        ("watch", "1"),
        ("sendInitialEvents", "true"),
        ("resourceVersionMatch", "NotOlderThan"),
        ("allowWatchBookmarks", "true"),
    ] {
        query.set(key, value);
    }
    let target = query.path_and_query(head.uri.path());
    let mut head = head.clone();
    head.uri = target.map_err(|error| FetchError::Target(error.to_string()))?.into();
    head.headers.remove(header::CONTENT_LENGTH);
    Ok(head)
}

// === impl Taking ===

impl Taking<'_> {
    fn fetched(&self) -> Option<Fetched> {
        let mut taken = self.taken.lock();
        let version = taken.version.filter(|_| !taken.failed)?;
        Some(Fetched { version, objects: std::mem::take(&mut taken.objects), bytes: taken.bytes })
    }
}

impl Lens for Taking<'_> {
    const FOLLOWS: bool = true;

    fn verdict(&self, view: View<'_>) -> Verdict<'_> {
        match self.lens.deciding(view) {
            Deciding::Slot(slot) if self.slots.contains(slot) => {
                self.taken.lock().slot = Some(slot);
                Verdict::Hold
            }
            _ => Verdict::Drop,
        }
    }

    fn hold(&self, bytes: &[u8]) {
        let mut taken = self.taken.lock();
        match (event::read(bytes, self.encoding), taken.slot) {
            (Ok(event), Some(slot)) => {
                taken.bytes += bytes.len() as u64;
                taken.objects.push(Object { slot, event, bytes: Bytes::copy_from_slice(bytes) });
            }
            _ => taken.failed = true,
        }
    }

    fn bookmark(&self, version: &str, ends_initial: bool) {
        if ends_initial {
            self.taken.lock().version = version.parse().ok();
        }
    }
}
