//! Verb, resource, namespace and name of a request, as the API server itself reads them.
//!
//! The rules are those of `NewRequestInfo` in `k8s.io/apiserver/pkg/endpoints/request/requestinfo.go` (v0.36.3)
//! with kube-apiserver's prefixes. The result equals Go's or the request is refused.
//!
//! ```text
//! /api/{version}/...                      core group       /apis/{group}/{version}/...   named groups
//!   {resource}[/{name}[/{subresource}[/...]]]
//!   namespaces/{namespace}/{resource}[/{name}[/{subresource}[/...]]]
//!   namespaces/{name}[/status|/finalize]  the namespace itself, which is then its own namespace
//!   watch/... proxy/...                   old forms that name their verb
//! ```
//!
//! Go splits the decoded path, so an escaped slash would part segments. Proxies between here and the server may
//! read such a path, an empty segment or a dot segment in another way: the write that passed the gate under one
//! name would land under another. These are refused, save in what a `proxy` subresource hands to its backend.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use http::{Method, Uri};
use percent_encoding::percent_decode;

use super::{RequestError, labels, query, selector};

/// Subresources of a namespace; any other segment there is a resource inside the namespace.
const NAMESPACE_SUBRESOURCES: [&str; 2] = ["status", "finalize"];

/// The verb that authorization, admission and audit see.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Read one object.
    Get,
    /// Read a collection.
    List,
    /// Stream the changes of a collection or of one object.
    Watch,
    /// POST.
    Create,
    /// PUT.
    Update,
    /// PATCH, server-side apply included.
    Patch,
    /// Delete one object.
    Delete,
    /// Delete a collection.
    DeleteCollection,
    /// The old `/proxy/` path, which today's servers answer with 404.
    Proxy,
    /// A resource request by a method that stands for no verb, such as OPTIONS. Go leaves its verb empty.
    Unknown,
    /// A request for something else than a resource: the method in lower case.
    NonResource(String),
}

/// A resource of the API. The group is empty for the core group.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Resource {
    /// `apps`; empty for the core group.
    pub group: String,
    /// `v1`.
    pub version: String,
    /// The plural in lower case, such as `deployments`; not the kind.
    pub resource: String,
}

/// What the API server makes of a request line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestInfo {
    /// The decoded path.
    pub path: String,
    /// The verb.
    pub verb: Verb,
    /// `api` or `apis`; empty where the path is too short to tell, or is none of the API.
    pub api_prefix: &'static str,
    /// The resource asked for; `None` for `/healthz`, `/version`, discovery and the like.
    pub target: Option<Target>,
}

/// The resource part of a request. An absent field is the empty string, as in Go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Group, version and resource.
    pub resource: Resource,
    /// `status`, `scale`, `log` and so on.
    pub subresource: String,
    /// Empty for a cluster-scoped object and for a collection across namespaces.
    pub namespace: String,
    /// From the path; for a list or a watch also from `fieldSelector=metadata.name=`.
    pub name: String,
    /// Where the name stands in the raw path, if it stands there: the bytes to replace in order to rename.
    pub name_in_path: Option<Range<usize>>,
    /// The first `fieldSelector` of a list, watch or deletecollection; not of the old `/watch/` paths.
    pub field_selector: String,
    /// The first `labelSelector`, likewise.
    pub label_selector: String,
    /// Segments from the resource on: `{resource}/{name}/...`.
    parts: Vec<String>,
}

// === impl Verb ===

impl Verb {
    /// The word as it stands in rules and audit events.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Proxy => "proxy",
            Self::Unknown => "",
            Self::NonResource(method) => method,
        }
    }

    fn of_method(method: &Method) -> Self {
        match *method {
            Method::POST => Self::Create,
            Method::GET | Method::HEAD => Self::Get,
            Method::PUT => Self::Update,
            Method::PATCH => Self::Patch,
            Method::DELETE => Self::Delete,
            _ => Self::Unknown,
        }
    }

    fn takes_selectors(&self) -> bool {
        matches!(self, Self::List | Self::Watch | Self::DeleteCollection)
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

// === impl RequestInfo ===

impl RequestInfo {
    /// Reads a request line. Headers play no part in it.
    pub fn parse(method: &Method, uri: &Uri) -> Result<Self, RequestError> {
        let path = decode_path(method, uri.path())?;
        let segments = split(&path);
        if segments.iter().any(|segment| matches!(*segment, "." | "..")) {
            return Err(RequestError::DotSegment);
        }
        let (api_prefix, grouped) = Grouped::split(&segments);
        let Some(grouped) = grouped else {
            let verb = Verb::NonResource(method.as_str().to_ascii_lowercase());
            return Ok(Self { path, verb, api_prefix, target: None });
        };
        let (verb, target) = grouped.target(method, uri, segments.len())?;
        Ok(Self { path, verb, api_prefix, target: Some(target) })
    }
}

// === impl Target ===

impl Target {
    /// Segments from the resource on: `{resource}/{name}/{subresource}/...`; Go's `Parts`.
    pub fn parts(&self) -> &[String] {
        &self.parts
    }

    /// Whether the request is passed on to a Pod, a Service or a Node, which has rules of its own.
    pub fn is_proxied(&self) -> bool {
        self.subresource == "proxy"
    }

    /// Fills what depends on the query, and tells list, watch and deletecollection from get and delete.
    fn read_query(&mut self, verb: Verb, old_form: bool, raw: &str) -> Result<Verb, RequestError> {
        if !self.is_proxied() {
            query::check(raw)?;
        }
        let verb = match verb {
            Verb::Get if self.name.is_empty() => {
                let verb = if is_watch(raw)? { Verb::Watch } else { Verb::List };
                self.name = name_in_selector(raw)?;
                verb
            }
            Verb::Delete if self.name.is_empty() => Verb::DeleteCollection,
            verb => verb,
        };
        if verb.takes_selectors() && !old_form {
            self.field_selector = selector_of(raw, "fieldSelector")?;
            self.label_selector = selector_of(raw, "labelSelector")?;
        }
        Ok(verb)
    }
}

/// A path of the API with prefix, group and version taken off.
struct Grouped<'p> {
    group: &'p str,
    version: &'p str,
    /// At least one segment.
    rest: &'p [&'p str],
}

// === impl Grouped ===

impl<'p> Grouped<'p> {
    /// The prefix, which is told only from three segments on, and the rest if it is a resource.
    fn split(segments: &'p [&'p str]) -> (&'static str, Option<Self>) {
        match segments {
            ["api", version, rest @ ..] if !rest.is_empty() => {
                ("api", Some(Self { group: "", version, rest }))
            }
            ["apis", group, version, rest @ ..] if !rest.is_empty() => {
                ("apis", Some(Self { group, version, rest }))
            }
            ["apis", _, _] => ("apis", None),
            _ => ("", None),
        }
    }

    fn target(&self, method: &Method, uri: &Uri, segments: usize) -> Result<(Verb, Target), RequestError> {
        let (verb, old_form, rest) = self.verb(method)?;
        let (namespace, parts) = split_namespace(rest);
        let part = |at: usize| parts.get(at).copied().unwrap_or_default();
        let mut target = Target {
            resource: self.resource(part(0)),
            subresource: if verb == Verb::Proxy { String::new() } else { part(2).to_owned() },
            namespace: namespace.to_owned(),
            name: part(1).to_owned(),
            name_in_path: None,
            field_selector: String::new(),
            label_selector: String::new(),
            parts: parts.iter().map(|part| (*part).to_owned()).collect(),
        };
        let before = segments - parts.len();
        let strict = if target.is_proxied() { before + 3 } else { segments };
        target.name_in_path = Head { raw: uri.path(), segments: strict }.check(before + 1)?;
        let verb = target.read_query(verb, old_form, uri.query().unwrap_or_default())?;
        Ok((verb, target))
    }

    /// The verb by path or method, whether the path names it, and the segments after it.
    fn verb(&self, method: &Method) -> Result<(Verb, bool, &'p [&'p str]), RequestError> {
        match self.rest {
            ["watch" | "proxy"] => Err(RequestError::NoResource),
            ["watch", ..] if !matches!(*method, Method::GET | Method::HEAD) => {
                Err(RequestError::AmbiguousWatch)
            }
            ["watch", rest @ ..] => Ok((Verb::Watch, true, rest)),
            ["proxy", rest @ ..] => Ok((Verb::Proxy, true, rest)),
            rest => Ok((Verb::of_method(method), false, rest)),
        }
    }

    fn resource(&self, resource: &str) -> Resource {
        Resource {
            group: self.group.to_owned(),
            version: self.version.to_owned(),
            resource: resource.to_owned(),
        }
    }
}

/// The part of a raw path in which each segment must be one segment to every reader.
struct Head<'p> {
    raw: &'p str,
    /// How many segments it has.
    segments: usize,
}

// === impl Head ===

impl Head<'_> {
    /// Refuses what is ambiguous; returns the byte range of the segment `at`, if the path is that long.
    fn check(&self, at: usize) -> Result<Option<Range<usize>>, RequestError> {
        // The API server's router and its RequestInfo disagree about slashes in front.
        if self.raw.starts_with("//") {
            return Err(RequestError::EmptySegment);
        }
        let trimmed = self.raw.trim_start_matches('/');
        let mut start = self.raw.len() - trimmed.len();
        let mut found = None;
        for (index, segment) in trimmed.split('/').take(self.segments).enumerate() {
            if segment.is_empty() {
                return Err(RequestError::EmptySegment);
            }
            if segment.contains("%2F") || segment.contains("%2f") {
                return Err(RequestError::EncodedSlash);
            }
            let end = start + segment.len();
            if index == at {
                found = Some(start..end);
            }
            start = end + 1;
        }
        Ok(found)
    }
}

/// The decoded path; Go's `URL.Path`. A `+` stays.
fn decode_path(method: &Method, raw: &str) -> Result<String, RequestError> {
    let is_path = raw.starts_with('/') || raw == "*";
    if method == Method::CONNECT || !is_path {
        return Err(RequestError::NotAPath);
    }
    if !query::escapes_are_valid(raw) {
        return Err(RequestError::BadEscape);
    }
    let bytes = Cow::from(percent_decode(raw.as_bytes()));
    let path = query::utf8(bytes)?.into_owned();
    if path.contains(char::is_control) {
        return Err(RequestError::ControlCharacter);
    }
    Ok(path)
}

fn split(path: &str) -> Vec<&str> {
    match path.trim_matches('/') {
        "" => Vec::new(),
        path => path.split('/').collect(),
    }
}

/// The namespace, and the segments from the resource on.
fn split_namespace<'p>(rest: &'p [&'p str]) -> (&'p str, &'p [&'p str]) {
    match rest {
        ["namespaces", namespace, inner @ ..] => match inner {
            [sub, ..] if !NAMESPACE_SUBRESOURCES.contains(sub) => (namespace, inner),
            _ => (namespace, rest),
        },
        _ => ("", rest),
    }
}

/// `watch` is true unless its first value is `0` or `false`, in any case; even the empty value is true.
///
/// Go folds the case of all of Unicode in one place and of ASCII in another, so other letters are refused.
fn is_watch(raw: &str) -> Result<bool, RequestError> {
    let Some(value) = query::first(raw, "watch")? else {
        return Ok(false);
    };
    if !value.is_ascii() {
        return Err(RequestError::AmbiguousWatch);
    }
    Ok(value != "0" && !value.eq_ignore_ascii_case("false"))
}

/// The name that the field selector demands. Go takes none if any of the list options fails to decode.
fn name_in_selector(raw: &str) -> Result<String, RequestError> {
    let fields = selector_of(raw, "fieldSelector")?;
    let Ok(Some(name)) = selector::required_name(&fields) else {
        return Ok(String::new());
    };
    let is_segment = !matches!(name.as_str(), "." | "..") && !name.contains(['/', '%']);
    let decodes = labels::is_valid(&selector_of(raw, "labelSelector")?)
        && is_integer(raw, "limit")?
        && is_integer(raw, "timeoutSeconds")?;
    Ok(if is_segment && decodes { name } else { String::new() })
}

fn selector_of(raw: &str, key: &str) -> Result<String, RequestError> {
    let value = query::first(raw, key)?.unwrap_or_default();
    if value.contains('\0') {
        return Err(RequestError::ControlCharacter);
    }
    Ok(value.into_owned())
}

/// Whether the parameter is absent or a 64-bit integer.
fn is_integer(raw: &str, key: &str) -> Result<bool, RequestError> {
    Ok(query::first(raw, key)?.is_none_or(|value| value.parse::<i64>().is_ok()))
}
