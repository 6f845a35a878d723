//! What the server is asked for where its answer will be filtered.

use std::borrow::Cow;

use thiserror::Error;

use super::{Encoding, MediaType, Transform, parse};

/// Types that no filter can read; the answer is a 406 Status.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "client: none of the accepted media types {accept:?} can be filtered; accept application/json or \
     application/vnd.kubernetes.protobuf, as objects, as PartialObjectMetadata or, in JSON, as Table"
)]
pub struct NotAcceptable {
    /// The header as it came.
    pub accept: String,
}

/// What the server is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The `Accept` header to send, of types that can be read only; an error if the client takes none of them.
    pub accept: Result<String, NotAcceptable>,
    /// Whether JSON that comes is for a client that takes YAML and no JSON. JSON is YAML.
    pub is_yaml: bool,
    /// Whether the answer may be a table.
    pub is_table: bool,
}

/// A clause that can be asked for.
struct Clause<'h> {
    text: Cow<'h, str>,
    encoding: Encoding,
    transform: Transform,
}

// === impl Asked ===

impl Asked {
    /// Takes out of a client's `Accept` what cannot be read: CBOR, unknown types and transformations, YAML beside JSON.
    /// The rest keeps its order and its parameters. A wildcard or a missing header becomes `application/json`, as does
    /// YAML without JSON beside it. There is no watch in YAML, so there it goes too.
    pub fn of(accept: Option<&str>, is_watch: bool) -> Self {
        let Some(header) = accept.filter(|accept| !accept.is_empty()) else {
            return Self { accept: Ok("application/json".to_owned()), is_yaml: false, is_table: false };
        };
        let mut clauses: Vec<_> = parse(header).into_iter().filter_map(Clause::of).collect();
        let has_json = clauses.iter().any(|clause| clause.encoding == Encoding::Json);
        if has_json || is_watch {
            clauses.retain(|clause| clause.encoding != Encoding::Yaml);
        }
        let texts: Vec<_> = clauses.iter().map(|clause| &*clause.text).collect();
        let none = || NotAcceptable { accept: header.to_owned() };
        Self {
            accept: Some(texts.join(",")).filter(|accept| !accept.is_empty()).ok_or_else(none),
            is_yaml: clauses.iter().any(|clause| clause.encoding == Encoding::Yaml),
            is_table: clauses.iter().any(|clause| clause.transform == Transform::Table),
        }
    }
}

// === impl Clause ===

impl<'h> Clause<'h> {
    /// `None` for what cannot be read, or what the server skips.
    fn of(media_type: MediaType<'h>) -> Option<Self> {
        let MediaType { raw, encoding, transform, .. } = media_type;
        let json = || {
            let params = raw.find(';').and_then(|at| raw.get(at..)).unwrap_or_default();
            Cow::Owned(format!("application/json{params}"))
        };
        let (text, encoding) = match encoding {
            _ if transform == Transform::Other => return None,
            Encoding::Protobuf if transform == Transform::Table => return None,
            Encoding::Json | Encoding::Protobuf => (Cow::Borrowed(raw), encoding),
            Encoding::Any => (json(), Encoding::Json),
            Encoding::Yaml => (json(), encoding),
            Encoding::Cbor | Encoding::Other => return None,
        };
        Some(Self { text, encoding, transform })
    }
}
