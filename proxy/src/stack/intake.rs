//! A request on its way upstream: its limits, and the few edits that it may get.

mod options;

use std::{
    borrow::Cow,
    error::Error,
    fmt::Display,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header, request::Parts};
use http_body::Body as HttpBody;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::time::timeout;
use tower_http::timeout::TimeoutBody;

use crate::{
    body::{self, Body, BodyError, Joined},
    election::LockNames,
    filter::{
        Encoding,
        object::{
            self, OwnedView,
            demand::{self, Carrier, Demand},
        },
    },
    request::{
        KubeRequest,
        accept::BodyType,
        path::{Target, Verb},
        query::Query,
        selector,
    },
    respond::Refusal,
    upstream::user_agent::{self, Claim},
};

/// The API server takes no more (apiserver `server/config.go`, `MaxRequestBodyBytes`).
const BODY_BYTES: usize = 3 << 20;
const FIELD_SELECTOR: &str = "fieldSelector";
const TIMEOUT: &str = "timeout";
/// How long a body may pause.
const BODY_PAUSE: Duration = Duration::from_secs(30);
/// How long a body that is read here may take in all. One that goes on as it comes has the upstream's deadline, which is
/// the same.
const READ_TIME: Duration = Duration::from_secs(65);
/// How long the rest of a refused request's body may take in all.
const DISCARD_TIME: Duration = Duration::from_secs(5);

/// A request on its way.
pub(super) struct Onward {
    /// The head.
    pub(super) parts: Parts,
    /// The body, within its limits.
    pub(super) body: Body,
    /// Whether the body came whole.
    pub(super) cut: Cut,
    /// The body once it has been read.
    read: Option<Bytes>,
    /// The body before its object was given a name here.
    nameless: Option<Bytes>,
    /// The body before anything was demanded of its object here, and what was.
    free: Option<Bytes>,
    demands: Demand,
    /// Whether the body came in YAML and is JSON now.
    was_yaml: bool,
}

/// Why a body ended early, if it did. It fails while it is sent, and the transport keeps the reason to itself: without
/// this the client would be told that the connection broke and that its write may have been done.
#[derive(Clone, Default)]
pub(super) struct Cut(Arc<OnceLock<Refusal>>);

// === impl Onward ===

impl Onward {
    /// Takes a request over from the listener.
    pub(super) fn new<B>(request: &KubeRequest, parts: Parts, body: B) -> Result<Self, Refusal>
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<BodyError>,
    {
        if request.upgrade.is_some() && !body.is_end_stream() {
            return Err(bad_request(
                &"a request for an upgrade has no body: send what follows after the 101",
            ));
        }
        if has_unknown_coding(&parts.headers) {
            return Err(unknown_coding());
        }
        let unbounded = request.target().is_some_and(Target::is_proxied);
        if !unbounded && body.size_hint().lower() > BODY_BYTES as u64 {
            return Err(too_large());
        }
        let body = match body.map_err(Into::into) {
            body if body.is_end_stream() => body::empty(),
            body if unbounded => TimeoutBody::new(BODY_PAUSE, body).boxed_unsync(),
            body => TimeoutBody::new(BODY_PAUSE, Limited::new(body, BODY_BYTES)).boxed_unsync(),
        };
        let cut = Cut::default();
        Ok(Self {
            parts,
            body: cut.watch(body),
            cut,
            read: None,
            nameless: None,
            free: None,
            demands: Demand::default(),
            was_yaml: false,
        })
    }

    /// The names of the object in the body; without one the API server is asked to choose it.
    pub(super) async fn names(&mut self, request: &KubeRequest) -> Result<OwnedView, Refusal> {
        let (bytes, encoding) = self.object(request).await?;
        object::view(&bytes, encoding?).map_err(|error| unreadable(&error))
    }

    /// The identity that a lock in the body is held by; none if it says none, or is no whole object.
    pub(super) async fn lock_holder(&mut self, request: &KubeRequest) -> Result<Option<String>, Refusal> {
        let bytes = self.read().await?;
        Ok(match request.body {
            BodyType::Protobuf => object::lock_holder(&bytes, Encoding::Protobuf),
            BodyType::Yaml | BodyType::ApplyYaml => {
                object::json_of_yaml(&bytes).ok().and_then(|json| object::lock_holder(&json, Encoding::Json))
            }
            _ => object::lock_holder(&bytes, Encoding::Json),
        })
    }

    /// Puts a name into the object in the body, which came without one; or another in place of that.
    pub(super) async fn give_name(&mut self, request: &KubeRequest, name: &str) -> Result<(), Refusal> {
        let (bytes, encoding) = self.object(request).await?;
        let nameless = self.nameless.take().unwrap_or(bytes);
        let named = object::give_name(&nameless, encoding?, name);
        self.replace(named.map_err(|error| unreadable(&error))?);
        self.nameless = Some(nameless);
        Ok(())
    }

    /// The same request once more, if its object got its name here: another one can be given to it.
    pub(super) fn again(&self) -> Option<Self> {
        self.nameless.as_ref()?;
        self.copy()
    }

    /// What a write demands of its object by itself. The options of a delete may stand in its query, which the server
    /// reads only where there is no body. None of a write that has no place for it.
    pub(super) async fn demanded(&mut self, request: &KubeRequest) -> Result<Option<Demand>, Refusal> {
        let Some(carrier) = carrier(request) else { return Ok(None) };
        let (bytes, encoding) = self.demanding(request).await?;
        if carrier == Carrier::Options && bytes.is_empty() {
            return options::demanded(&Query::new(self.parts.uri.query())).map(Some);
        }
        let demanded = match request.body {
            _ if bytes.is_empty() => Ok(Demand::default()),
            BodyType::JsonPatch => object::demanded_in_json_patch(&bytes),
            _ => demand::demanded(&bytes, encoding?, carrier),
        };
        demanded.map(Some).map_err(|error| unreadable(&error))
    }

    /// Lets a write demand that of its object, beside what it demands by itself. An eviction without a body is none.
    pub(super) async fn demand(&mut self, request: &KubeRequest, demand: &Demand) -> Result<(), Refusal> {
        let Some(carrier) = carrier(request) else { return Ok(()) };
        let (bytes, encoding) = self.demanding(request).await?;
        let free = self.free.take().unwrap_or(bytes);
        self.demands.add(demand);
        let demand = &self.demands.clone();
        let demanding = match carrier {
            Carrier::Options if free.is_empty() => {
                self.is_json();
                options::body(&Query::new(self.parts.uri.query()), demand)?
            }
            _ if free.is_empty() => return Ok(()),
            _ if request.body == BodyType::JsonPatch => {
                object::demand_in_json_patch(&free, demand).map_err(|error| unreadable(&error))?
            }
            carrier => {
                demand::demand(&free, encoding?, carrier, demand).map_err(|error| unreadable(&error))?
            }
        };
        self.replace(demanding);
        self.free = Some(free);
        Ok(())
    }

    /// The body that holds a demand, and how it is written. One that is a patch is written as JSON, or YAML that becomes
    /// JSON: server-side apply takes both.
    async fn demanding(
        &mut self,
        request: &KubeRequest,
    ) -> Result<(Bytes, Result<Encoding, Refusal>), Refusal> {
        match request.body {
            BodyType::MergePatch | BodyType::StrategicMergePatch | BodyType::JsonPatch => {
                Ok((self.read().await?, Ok(Encoding::Json)))
            }
            BodyType::ApplyYaml => {
                let bytes = self.read().await?;
                if !self.was_yaml && object::view(&bytes, Encoding::Json).is_err() {
                    let json = object::json_of_yaml(&bytes).map_err(|error| unreadable(&error))?;
                    self.replace(json);
                    self.was_yaml = true;
                }
                Ok((self.read().await?, Ok(Encoding::Json)))
            }
            _ => self.object(request).await,
        }
    }

    /// Bounds how long the server works on a write; a client's own bound that is shorter stays, and one that is none is the
    /// server's to refuse.
    pub(super) fn bound(&mut self, limit: Duration) -> Result<(), Refusal> {
        let mut query = Query::new(self.parts.uri.query());
        let own = query.get(TIMEOUT).map_err(|error| bad_request(&error))?.map(Cow::into_owned);
        if own.is_none_or(|own| options::is_longer(&own, limit)) {
            query.set(TIMEOUT, &format!("{}s", limit.as_secs()));
            self.parts.uri = uri(&query, self.parts.uri.path())?;
        }
        Ok(())
    }

    /// The same request once more, as it stands now; none if its body has not been read.
    pub(super) fn copy(&self) -> Option<Self> {
        let read = self.read.clone()?;
        Some(Self {
            parts: self.parts.clone(),
            body: body::full(read.clone()),
            cut: self.cut.clone(),
            read: Some(read),
            nameless: self.nameless.clone(),
            free: self.free.clone(),
            demands: self.demands.clone(),
            was_yaml: self.was_yaml,
        })
    }

    /// Reads the whole body, so that nothing of the request is still to come when it is sent.
    pub(super) async fn whole(&mut self) -> Result<(), Refusal> {
        if self.read.is_none() && !self.body.is_end_stream() && !is_encoded(&self.parts.headers) {
            self.read().await?;
        }
        Ok(())
    }

    /// Puts the shard's own lock in place of the one that the controller knows: in path and body.
    pub(super) async fn rename(&mut self, request: &KubeRequest, lock: &LockNames) -> Result<(), Refusal> {
        if let Some(range) = request.target().and_then(|target| target.name_in_path.clone()) {
            let path = self.parts.uri.path();
            let renamed = [path.get(..range.start), Some(lock.own.as_str()), path.get(range.end..)];
            let renamed: String = renamed.into_iter().flatten().collect();
            self.parts.uri = uri(&Query::new(self.parts.uri.query()), &renamed)?;
        }
        if matches!(request.method, Method::POST | Method::PUT | Method::PATCH) {
            let bytes = self.read().await?;
            self.replace(renamed(&bytes, request.body, lock)?);
        }
        Ok(())
    }

    /// Maps the names in the field selector; other terms and parameters stay as they came.
    pub(super) fn select(&mut self, own: impl Fn(&str) -> Option<String>) -> Result<(), Refusal> {
        let mut query = Query::new(self.parts.uri.query());
        let selector = query.get(FIELD_SELECTOR).map_err(|error| bad_request(&error))?.map(Cow::into_owned);
        let Some(selector) = selector else { return Ok(()) };
        let mapped = selector::map_names(&selector, own).map_err(|error| bad_request(&error))?;
        if mapped != selector {
            query.set(FIELD_SELECTOR, &mapped);
            self.parts.uri = uri(&query, self.parts.uri.path())?;
        }
        Ok(())
    }

    /// Says in the User-Agent who sends this and by what right.
    pub(super) fn sign(&mut self, identity: &str, claim: Option<Claim>) {
        let agent = user_agent::extend(self.parts.headers.get(header::USER_AGENT), identity, claim);
        self.parts.headers.insert(header::USER_AGENT, agent);
    }

    /// Reads what is left of the body of a refused request away, see [`discard`].
    pub(super) async fn discard(&mut self) {
        discard(&mut self.body).await;
    }

    /// Reads the body, once.
    #[allow(clippy::disallowed_methods, reason = "the body is bounded when it is taken over")]
    async fn read(&mut self) -> Result<Bytes, Refusal> {
        if let Some(read) = &self.read {
            return Ok(read.clone());
        }
        if is_encoded(&self.parts.headers) {
            return Err(unreadable(
                &"no Content-Encoding is taken off here, as the API server takes off none",
            ));
        }
        let body = std::mem::replace(&mut self.body, body::empty());
        let whole = timeout(READ_TIME, body.collect()).await.map_err(|_| too_slow())?;
        let bytes = whole.map_err(|error| body_error(&*error))?.to_bytes();
        self.read = Some(bytes.clone());
        self.body = body::full(bytes.clone());
        Ok(bytes)
    }

    /// The object in the body, and how it is written if that can be read. YAML becomes JSON and goes on as that, so that the
    /// server sees what was seen here.
    async fn object(&mut self, request: &KubeRequest) -> Result<(Bytes, Result<Encoding, Refusal>), Refusal> {
        let bytes = self.read().await?;
        if request.body != BodyType::Yaml || bytes.is_empty() {
            return Ok((bytes, encoding(request)));
        }
        if !self.was_yaml {
            let json = object::json_of_yaml(&bytes).map_err(|error| unreadable(&error))?;
            self.replace(json);
            self.is_json();
            self.was_yaml = true;
        }
        Ok((self.read().await?, Ok(Encoding::Json)))
    }

    fn is_json(&mut self) {
        self.parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }

    fn replace(&mut self, bytes: Bytes) {
        self.parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(bytes.len()));
        self.body = body::full(bytes.clone());
        self.read = Some(bytes);
    }
}

// === impl Cut ===

impl Cut {
    fn watch(&self, body: Body) -> Body {
        let cut = self.clone();
        let note = move |error: BodyError| {
            cut.0.get_or_init(|| body_error(&*error));
            error
        };
        // A client's many small chunks would be as many small frames, for which some servers end the connection.
        Joined::in_turns(body.map_err(note)).boxed_unsync()
    }

    /// What the client is told if its own body was at fault; an API server does nothing with half a request.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        self.0.get().cloned()
    }
}

/// Reads what is left of the body of a refused request: as much as the API server would take, and not for long. A peer
/// that is still sending on HTTP/1.1 would find its connection closed, and never see why.
pub(super) async fn discard(body: &mut (impl HttpBody<Data = Bytes> + Unpin)) {
    let mut left = BODY_BYTES;
    let rest = async {
        while let Some(Ok(frame)) = body.frame().await {
            match left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) {
                Some(rest) => left = rest,
                None => return,
            }
        }
    };
    // Whoever sends more, or more slowly, gets the answer at once.
    let _ = timeout(DISCARD_TIME, rest).await;
}

/// The encoding of a body that is an object.
fn encoding(request: &KubeRequest) -> Result<Encoding, Refusal> {
    match request.body {
        BodyType::Json => Ok(Encoding::Json),
        BodyType::Protobuf => Ok(Encoding::Protobuf),
        _ => Err(unreadable(&"only JSON, YAML and protobuf can be read here")),
    }
}

/// Which part of the body says what a write demands; none for one that has no such part: a create of an object, a
/// deletecollection, and what is no write of an object at all.
fn carrier(request: &KubeRequest) -> Option<Carrier> {
    let target = request.target().filter(|target| !target.is_proxied())?;
    match request.info.verb {
        Verb::Delete => Some(Carrier::Options),
        Verb::Create if target.subresource == "eviction" => Some(Carrier::Eviction),
        Verb::Create if target.subresource == "binding" => Some(Carrier::Object),
        Verb::Create if is_old_binding(target) => Some(Carrier::Object),
        Verb::Update | Verb::Patch => Some(Carrier::Object),
        _ => None,
    }
}

/// Whether it is the form of a binding that names its Pod in the body only.
fn is_old_binding(target: &Target) -> bool {
    target.resource.group.is_empty() && target.resource.resource == "bindings" && target.name.is_empty()
}

fn renamed(bytes: &Bytes, body: BodyType, lock: &LockNames) -> Result<Bytes, Refusal> {
    let (from, to) = (&lock.original, &lock.own);
    let renamed = match body {
        BodyType::Json | BodyType::MergePatch | BodyType::StrategicMergePatch => {
            object::rename(bytes, Encoding::Json, from, to)
        }
        BodyType::Protobuf => object::rename(bytes, Encoding::Protobuf, from, to),
        BodyType::JsonPatch => object::rename_json_patch(bytes, from, to),
        BodyType::ApplyYaml | BodyType::Yaml => object::rename_apply(bytes, from, to),
        BodyType::Cbor | BodyType::ApplyCbor | BodyType::Other => {
            return Err(unreadable(&"a lock can be written in JSON, YAML and protobuf only"));
        }
    };
    renamed.map_err(|error| unreadable(&error))
}

pub(super) fn uri(query: &Query, path: &str) -> Result<Uri, Refusal> {
    query.path_and_query(path).map(Uri::from).map_err(|error| bad_request(&error))
}

fn bad_request(error: &dyn Display) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, "BadRequest", error.to_string())
}

/// A body whose object cannot be read might be any shard's.
fn unreadable(error: &dyn Display) -> Refusal {
    let message = format!("which shard this write belongs to is in its body, and {error}");
    Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
}

/// Whether there is a transfer coding besides the one `chunked` that the listener takes off: the header ends at this
/// hop, so the body would go on as something else than it is.
fn has_unknown_coding(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).into_iter();
    let is_chunked = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"chunked");
    codings.next().is_some_and(|first| !is_chunked(first)) || codings.next().is_some()
}

fn is_encoded(headers: &HeaderMap) -> bool {
    headers.get_all(header::CONTENT_ENCODING).into_iter().any(|coding| coding != "identity")
}

fn unknown_coding() -> Refusal {
    bad_request(
        &"the only Transfer-Encoding that this proxy understands is chunked, once: send the body in that",
    )
}

fn too_large() -> Refusal {
    let message = format!("the request's body is too large: the API server takes at most {BODY_BYTES} bytes");
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
}

fn too_slow() -> Refusal {
    let limit = READ_TIME.as_secs();
    bad_request(&format!("the request's body was not whole after {limit} s: send it at once"))
}

fn body_error(error: &(dyn Error + 'static)) -> Refusal {
    if error.is::<LengthLimitError>() {
        return too_large();
    }
    bad_request(&format!("the request's body ended early: {error}"))
}

#[cfg(test)]
mod tests;
