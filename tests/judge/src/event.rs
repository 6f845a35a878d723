//! Lines of an audit log: `audit.k8s.io/v1` events as JSON, one a line (kubernetes,
//! `apiserver/pkg/apis/audit/v1/types.go`), of the fields that the judge needs.

use std::io::{self, BufRead, Read};

use serde::Deserialize;
use serde_json::Value;

use crate::time;

/// The longest line that is read, bytes. The server bounds a body at 3 MiB; JSON of it stays well below this.
const MAX_LINE: u64 = 64 << 20;

/// One audit event. Fields that the judge does not use are dropped.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// How much was recorded: `Metadata`, `Request` or `RequestResponse`.
    pub level: String,
    /// The server's id of the request; the client sees it as the header `Audit-Id`.
    #[serde(rename = "auditID")]
    pub audit_id: String,
    /// When in the request's life the event was made.
    pub stage: Stage,
    /// Path and query as the client sent them.
    #[serde(rename = "requestURI")]
    pub request_uri: String,
    /// The request's verb: `create`, `patch`, ...; for other than resources the HTTP method in lower case.
    pub verb: String,
    /// Who was authenticated.
    pub user: User,
    /// Whom the user asked to be taken for.
    pub impersonated_user: Option<User>,
    /// As sent by the client, cut at 1024 bytes.
    #[serde(default)]
    pub user_agent: String,
    /// What the request was about; absent for other than resources.
    pub object_ref: Option<ObjectRef>,
    /// The answer; absent when the request never got one.
    pub response_status: Option<ResponseStatus>,
    /// The body as sent, from level `Request` up: an object, delete options or a patch.
    pub request_object: Option<Value>,
    /// The answer's body, at level `RequestResponse`: the object as it is now, or a Status.
    pub response_object: Option<Value>,
    /// When the request came, microseconds since 1970.
    #[serde(rename = "requestReceivedTimestamp", default, deserialize_with = "time::lenient")]
    pub received: Option<u64>,
    /// When the stage was reached; for the last event of a request, when its answer was out. Microseconds too.
    #[serde(rename = "stageTimestamp", default, deserialize_with = "time::lenient")]
    pub at: Option<u64>,
}

/// When in the life of a request an event was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Stage {
    /// Before the request was handled.
    RequestReceived,
    /// The head of a long answer was sent.
    ResponseStarted,
    /// The whole answer was sent.
    ResponseComplete,
    /// The handler died; whether it wrote is not known.
    Panic,
}

/// A user, by name.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct User {
    /// For example `system:serviceaccount:kube-system:job-controller`.
    #[serde(default)]
    pub username: String,
}

/// What a request was about. Names that the path lacks are filled in from the body by the server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectRef {
    /// Plural resource name.
    pub resource: String,
    /// Empty for the core group.
    pub api_group: String,
    /// Empty for cluster-scoped objects, yet a Namespace's own name for requests on it.
    pub namespace: String,
    /// Empty for collections and for creates that let the server choose.
    pub name: String,
    /// Filled in from the body where that is an object with a uid.
    pub uid: String,
    /// Empty for the object itself.
    pub subresource: String,
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ResponseStatus {
    /// HTTP status.
    #[serde(default)]
    pub code: u16,
}

/// A line that is not one whole event. A log with such a line proves nothing: what it lost could be anything.
#[derive(Debug, thiserror::Error)]
#[error("line {line} is not a whole audit event ({why}): the log was cut or mixed; collect it again")]
pub struct CutLine {
    /// Number of the line, from 1.
    pub line: u64,
    /// What the parser met.
    pub why: String,
}

/// The events of a log in its order, all stages and users. Holds one line at a time; ends at the end of the log
/// or after an error of the reader, which is a [`CutLine`] too.
pub fn read_events(mut log: impl BufRead) -> impl Iterator<Item = Result<Event, CutLine>> {
    let mut line = 0;
    let mut buffer = Vec::new();
    let mut broken = false;
    std::iter::from_fn(move || {
        if broken {
            return None;
        }
        line += 1;
        match read_line(&mut log, &mut buffer) {
            Ok(false) => None,
            Ok(true) => Some(parse(&buffer).map_err(|why| CutLine { line, why })),
            Err(error) => {
                broken = true;
                Some(Err(CutLine { line, why: error.to_string() }))
            }
        }
    })
}

/// Reads one line without its end; false at the end of the log. What is over the bound is skipped, and the line
/// no longer parses.
fn read_line(log: &mut impl BufRead, buffer: &mut Vec<u8>) -> io::Result<bool> {
    buffer.clear();
    let read = log.by_ref().take(MAX_LINE).read_until(b'\n', buffer)?;
    if buffer.pop_if(|last| *last == b'\n').is_none() && read as u64 == MAX_LINE {
        buffer.clear();
        log.skip_until(b'\n')?;
    }
    Ok(read > 0)
}

fn parse(line: &[u8]) -> Result<Event, String> {
    serde_json::from_slice(line).map_err(|error| error.to_string())
}

// === impl Event ===

impl Event {
    /// Whether the verb is one that changes objects.
    pub fn is_write(&self) -> bool {
        matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection")
    }

    /// Whether this is the last event of its request.
    pub fn is_final(&self) -> bool {
        matches!(self.stage, Stage::ResponseComplete | Stage::Panic)
    }

    /// HTTP status of the answer, 0 without one.
    pub fn code(&self) -> u16 {
        self.response_status.as_ref().map_or(0, |status| status.code)
    }

    /// Whether the request may have changed something: it was answered 2xx, or its handler died.
    pub fn took_effect(&self) -> bool {
        self.stage == Stage::Panic || (200..300).contains(&self.code())
    }

    /// The object as a write left it: the answer's, or what was sent where that is all of it.
    pub fn written_object(&self) -> Option<&Value> {
        let whole = matches!(self.verb.as_str(), "create" | "update");
        self.response_object.as_ref().or_else(|| self.request_object.as_ref().filter(|_| whole))
    }

    /// Whether it makes objects go away: delete, deletecollection, eviction.
    pub fn is_deletion(&self) -> bool {
        matches!(self.verb.as_str(), "delete" | "deletecollection") || self.is_eviction()
    }

    /// Whether it made a new object, by whatever verb: update and apply create too. A binding stores nothing of its own.
    pub fn is_creation(&self) -> bool {
        let makes = |it: &ObjectRef| it.subresource.is_empty() && !it.is_binding();
        self.code() == 201 && self.object_ref.as_ref().is_some_and(makes)
    }

    /// Whether it was a trial that changes nothing. A delete with a body takes its options from there alone, so
    /// the query counts only where the log proves that there was no body.
    pub fn is_dry_run(&self) -> bool {
        let body = self.request_object.as_ref();
        match self.verb.as_str() {
            "delete" | "deletecollection" => match body {
                Some(options) => has_dry_run(options),
                None => self.level != "Metadata" && self.query_dry_run(),
            },
            _ if self.is_eviction() => {
                self.query_dry_run()
                    || body.is_some_and(|it| it.get("deleteOptions").is_some_and(has_dry_run))
            }
            _ => self.query_dry_run(),
        }
    }

    fn is_eviction(&self) -> bool {
        self.verb == "create" && self.object_ref.as_ref().is_some_and(|it| it.subresource == "eviction")
    }

    fn query_dry_run(&self) -> bool {
        let query = self.request_uri.split_once('?').map_or("", |(_, query)| query);
        query.split('&').any(|pair| pair.strip_prefix("dryRun=").is_some_and(|value| !value.is_empty()))
    }
}

// === impl ObjectRef ===

impl ObjectRef {
    /// Whether it is a binding in its old form, which writes the Pod of that name (kubernetes
    /// `pkg/registry/core/pod/storage/storage.go`, `LegacyBindingREST`).
    pub fn is_binding(&self) -> bool {
        self.api_group.is_empty() && self.resource == "bindings"
    }
}

fn has_dry_run(options: &Value) -> bool {
    options.get("dryRun").and_then(Value::as_array).is_some_and(|values| !values.is_empty())
}

#[cfg(test)]
mod tests;
