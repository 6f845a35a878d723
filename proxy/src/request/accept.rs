//! Media types of `Accept` and `Content-Type`, as the API server negotiates them.
//!
//! Sources: `k8s.io/apiserver/pkg/endpoints/handlers/negotiation/negotiate.go`, its `goautoneg.ParseAccept`, and
//! `AllowsMediaTypeTransform` in `handlers/rest.go`. Types are compared with case; there are no quoted strings;
//! only the first `Accept` line counts; `q=0` is the least wish, not a ban.

mod asked;

use http::{HeaderMap, header};

pub use self::asked::{Asked, NotAcceptable};

/// How bytes are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// `application/json`
    Json,
    /// `application/vnd.kubernetes.protobuf`
    Protobuf,
    /// `application/cbor` and `application/cbor-seq`
    Cbor,
    /// `application/yaml`
    Yaml,
    /// `*/*` and `application/*`: the server's first choice, which is JSON.
    Any,
    /// A type that no API server of Kubernetes writes.
    Other,
}

/// What the server is asked to turn an object into: the parameters `as`, `g` and `v`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transform {
    /// No wish: the object itself.
    Object,
    /// `as=Table;g=meta.k8s.io`, of which there is JSON and YAML only.
    Table,
    /// `as=PartialObjectMetadata;g=meta.k8s.io`
    PartialObjectMetadata,
    /// `as=PartialObjectMetadataList;g=meta.k8s.io`
    PartialObjectMetadataList,
    /// Anything else, such as discovery's `as=APIGroupDiscoveryList;g=apidiscovery.k8s.io`.
    Other,
}

/// One clause of an `Accept` header.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MediaType<'h> {
    /// The clause as it came, without the blanks around it.
    pub raw: &'h str,
    /// The type.
    pub encoding: Encoding,
    /// The transformation asked for.
    pub transform: Transform,
    /// `stream=`; empty if absent. The server knows only `watch`.
    pub stream: &'h str,
    /// The weight; higher is preferred.
    pub q: f32,
    /// `sv=`; empty if absent.
    server_version: &'h str,
    /// How many of the two halves are `*`, as the two steps of the server's order.
    wild: (bool, bool),
}

/// The encoding in which a caller wants an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StatusEncoding {
    /// `application/json`; also for callers that accept only what we do not write.
    #[default]
    Json,
    /// `application/vnd.kubernetes.protobuf`
    Protobuf,
    /// `application/yaml`; what we write in it is JSON, which is YAML too.
    Yaml,
}

/// What a body holds, by its `Content-Type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyType {
    /// `application/json`, and a missing header.
    Json,
    /// `application/vnd.kubernetes.protobuf`
    Protobuf,
    /// `application/cbor` and `application/cbor-seq`
    Cbor,
    /// `application/yaml`
    Yaml,
    /// `application/json-patch+json`, RFC 6902.
    JsonPatch,
    /// `application/merge-patch+json`, RFC 7386.
    MergePatch,
    /// `application/strategic-merge-patch+json`
    StrategicMergePatch,
    /// `application/apply-patch+yaml`: server-side apply; the body may be JSON.
    ApplyYaml,
    /// `application/apply-patch+cbor`: server-side apply.
    ApplyCbor,
    /// Any other type.
    Other,
}

/// The clauses of an `Accept` header in the order they came; what the server skips is skipped.
pub fn parse(header: &str) -> Vec<MediaType<'_>> {
    header.split(',').filter_map(MediaType::parse).collect()
}

// === impl MediaType ===

impl<'h> MediaType<'h> {
    fn parse(clause: &'h str) -> Option<Self> {
        let raw = clause.trim_matches(' ');
        let (name, params) = raw.split_once(';').unwrap_or((raw, ""));
        let (kind, subtype) = split_name(name)?;
        Some(Self {
            raw,
            encoding: Encoding::of(kind, subtype),
            transform: Transform::of(params),
            stream: param(params, "stream").unwrap_or_default(),
            q: weight(params),
            server_version: param(params, "sv").unwrap_or_default(),
            wild: (kind == "*", subtype == "*"),
        })
    }

    /// Whether the server sorts `self` before `other`. This is no order in the strict sense, as in the source.
    fn precedes(&self, other: &Self) -> bool {
        self.q > other.q || (!self.wild.0 && other.wild.0) || (!self.wild.1 && other.wild.1)
    }

    /// Whether an error may be sent in this type: errors are never transformed.
    fn fits_status(&self) -> bool {
        self.transform == Transform::Object
            && matches!(self.stream, "" | "watch")
            && self.server_version.is_empty()
            && !matches!(self.encoding, Encoding::Cbor | Encoding::Other)
    }
}

// === impl Encoding ===

impl Encoding {
    fn of(kind: &str, subtype: &str) -> Self {
        match (kind, subtype) {
            ("application", "json") => Self::Json,
            ("application", "vnd.kubernetes.protobuf") => Self::Protobuf,
            ("application", "cbor" | "cbor-seq") => Self::Cbor,
            ("application", "yaml") => Self::Yaml,
            ("*" | "application", "*") => Self::Any,
            _ => Self::Other,
        }
    }
}

// === impl Transform ===

impl Transform {
    fn of(params: &str) -> Self {
        let [kind, group, version] = ["as", "g", "v"].map(|key| param(params, key));
        if (kind, group, version) == (None, None, None) {
            return Self::Object;
        }
        match (kind, group, version) {
            (Some("Table"), Some("meta.k8s.io"), Some("v1" | "v1beta1")) => Self::Table,
            (Some("PartialObjectMetadata"), Some("meta.k8s.io"), Some("v1" | "v1beta1")) => {
                Self::PartialObjectMetadata
            }
            (Some("PartialObjectMetadataList"), Some("meta.k8s.io"), Some("v1" | "v1beta1")) => {
                Self::PartialObjectMetadataList
            }
            _ => Self::Other,
        }
    }
}

// === impl StatusEncoding ===

impl StatusEncoding {
    /// The encoding for who sent these headers.
    pub fn wanted(headers: &HeaderMap) -> Self {
        Self::of(headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()))
    }

    /// The encoding for a caller's `Accept`: that of the first acceptable type that an error can have.
    pub fn of(accept: Option<&str>) -> Self {
        let clauses = by_preference(parse(accept.unwrap_or_default()));
        match clauses.iter().find(|clause| clause.fits_status()) {
            Some(clause) if clause.encoding == Encoding::Protobuf => Self::Protobuf,
            Some(clause) if clause.encoding == Encoding::Yaml => Self::Yaml,
            _ => Self::Json,
        }
    }
}

// === impl BodyType ===

impl BodyType {
    /// The type named by a `Content-Type`, without its parameters and without regard to case.
    ///
    /// The server is stricter in places (a patch type must be spelled in lower case); it answers 415 there.
    pub fn of(content_type: Option<&str>) -> Self {
        let name = content_type.unwrap_or_default().split(';').next().unwrap_or_default();
        match name.trim_matches([' ', '\t']).to_ascii_lowercase().as_str() {
            "" | "application/json" => Self::Json,
            "application/vnd.kubernetes.protobuf" => Self::Protobuf,
            "application/cbor" | "application/cbor-seq" => Self::Cbor,
            "application/yaml" => Self::Yaml,
            "application/json-patch+json" => Self::JsonPatch,
            "application/merge-patch+json" => Self::MergePatch,
            "application/strategic-merge-patch+json" => Self::StrategicMergePatch,
            "application/apply-patch+yaml" => Self::ApplyYaml,
            "application/apply-patch+cbor" => Self::ApplyCbor,
            _ => Self::Other,
        }
    }
}

/// The two halves of a type; `*` alone is `*/*`. `None` where the server skips the clause.
fn split_name(name: &str) -> Option<(&str, &str)> {
    let (kind, subtype) = name.split_once('/').unwrap_or((name, ""));
    let kind = kind.trim_matches(' ');
    match subtype.split_once('/') {
        _ if subtype.is_empty() => (kind == "*").then_some(("*", "*")),
        None | Some((_, "")) => Some((kind, subtype.trim_end_matches('/').trim_matches(' '))),
        Some(_) => None,
    }
}

/// The parameters that the server sees: a key, one `=`, and a value.
fn params(params: &str) -> impl Iterator<Item = (&str, &str)> {
    params.split(';').filter_map(|param| {
        let (key, value) = param.split_once('=').filter(|(_, value)| !value.is_empty())?;
        let value = value.strip_suffix('=').unwrap_or(value);
        (!value.contains('=')).then_some((key.trim_matches(' '), value))
    })
}

/// A parameter's value; the last of several, as in the server's map.
fn param<'h>(list: &'h str, key: &str) -> Option<&'h str> {
    params(list).filter(|(name, _)| *name == key).last().map(|(_, value)| value.trim_matches(' '))
}

/// `q`, 1 if absent, 0 if unreadable.
fn weight(list: &str) -> f32 {
    let q = params(list).filter(|(name, _)| *name == "q").last();
    q.map_or(1.0, |(_, value)| value.parse().unwrap_or(0.0))
}

/// Go sorts up to twelve elements by insertion, which keeps equals in order; so do we, for any number.
fn by_preference(clauses: Vec<MediaType<'_>>) -> Vec<MediaType<'_>> {
    let mut sorted: Vec<MediaType<'_>> = Vec::with_capacity(clauses.len());
    for clause in clauses {
        let passed = sorted.iter().rev().take_while(|earlier| clause.precedes(earlier)).count();
        sorted.insert(sorted.len() - passed, clause);
    }
    sorted
}

#[cfg(test)]
mod tests;
