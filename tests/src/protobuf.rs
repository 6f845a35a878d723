//! Just enough of Kubernetes' protobuf to make requests and to read answers: envelope, metadata, Status, watch events.
//!
//! Field numbers are those of apimachinery's `generated.proto` files. prost decodes, so that no code of the product
//! is asked about itself.

use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use prost::Message;

/// In front of everything that is no watch frame (apimachinery `runtime/serializer/protobuf`).
const MAGIC: &[u8] = b"k8s\0";

/// `runtime.Unknown`, the envelope.
#[derive(Clone, PartialEq, Message)]
struct Unknown {
    #[prost(message, optional, tag = "1")]
    type_meta: Option<TypeMeta>,
    #[prost(bytes = "vec", tag = "2")]
    raw: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct TypeMeta {
    #[prost(string, tag = "1")]
    api_version: String,
    #[prost(string, tag = "2")]
    kind: String,
}

/// Any object, of which only the metadata is known.
#[derive(Clone, PartialEq, Message)]
pub struct Object {
    /// `metadata`, which is field 1 of every kind.
    #[prost(message, optional, tag = "1")]
    pub metadata: Option<ObjectMeta>,
}

/// `metav1.ObjectMeta`, as far as tests look at it.
#[derive(Clone, PartialEq, Message)]
pub struct ObjectMeta {
    /// `name`
    #[prost(string, tag = "1")]
    pub name: String,
    /// `generateName`
    #[prost(string, tag = "2")]
    pub generate_name: String,
    /// `namespace`
    #[prost(string, tag = "3")]
    pub namespace: String,
    /// `uid`
    #[prost(string, tag = "5")]
    pub uid: String,
    /// `resourceVersion`
    #[prost(string, tag = "6")]
    pub resource_version: String,
}

/// Any list, of which only the items' metadata is known.
#[derive(Clone, PartialEq, Message)]
pub struct List {
    /// `items`
    #[prost(message, repeated, tag = "2")]
    pub items: Vec<Object>,
}

/// `metav1.WatchEvent`
#[derive(Clone, PartialEq, Message)]
struct WatchEvent {
    #[prost(string, tag = "1")]
    kind: String,
    #[prost(message, optional, tag = "2")]
    object: Option<RawExtension>,
}

#[derive(Clone, PartialEq, Message)]
struct RawExtension {
    #[prost(bytes = "vec", tag = "1")]
    raw: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
#[allow(clippy::struct_field_names, reason = "Kubernetes' own name")]
struct Status {
    #[prost(string, tag = "2")]
    status: String,
    #[prost(string, tag = "3")]
    message: String,
    #[prost(string, tag = "4")]
    reason: String,
    #[prost(message, optional, tag = "5")]
    details: Option<Details>,
    #[prost(int32, tag = "6")]
    code: i32,
}

#[derive(Clone, PartialEq, Message)]
struct Details {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    group: String,
    #[prost(string, tag = "3")]
    kind: String,
    #[prost(message, repeated, tag = "4")]
    causes: Vec<Cause>,
    #[prost(int32, tag = "5")]
    retry_after_seconds: i32,
    #[prost(string, tag = "6")]
    uid: String,
}

#[derive(Clone, PartialEq, Message)]
struct Cause {
    #[prost(string, tag = "1")]
    reason: String,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(string, tag = "3")]
    field: String,
}

/// The kind and the message in an envelope; none if it is no envelope.
pub fn open(bytes: &[u8]) -> Option<(String, Vec<u8>)> {
    let unknown = Unknown::decode(bytes.strip_prefix(MAGIC)?).ok()?;
    Some((unknown.type_meta?.kind, unknown.raw))
}

/// A message in its envelope.
pub fn pack(api_version: &str, kind: &str, raw: Vec<u8>) -> Vec<u8> {
    let type_meta = Some(TypeMeta { api_version: api_version.to_owned(), kind: kind.to_owned() });
    [MAGIC, &Unknown { type_meta, raw }.encode_to_vec()].concat()
}

/// A message from its length-delimited fields, each a number and its bytes.
pub fn message(fields: &[(u32, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    for (number, value) in fields {
        prost::encoding::bytes::encode(*number, &value.to_vec(), &mut out);
    }
    out
}

/// The metadata of the object in an envelope.
pub fn metadata(bytes: &[u8]) -> Option<ObjectMeta> {
    Object::decode(open(bytes)?.1.as_slice()).ok()?.metadata
}

/// The metadata of the items of the list in an envelope.
pub fn items(bytes: &[u8]) -> Option<Vec<ObjectMeta>> {
    let list = List::decode(open(bytes)?.1.as_slice()).ok()?;
    Some(list.items.into_iter().filter_map(|item| item.metadata).collect())
}

/// The type of a watch event and the envelope of its object.
pub fn event(frame: &[u8]) -> Option<(String, Vec<u8>)> {
    let event = WatchEvent::decode(frame).ok()?;
    Some((event.kind, event.object?.raw))
}

/// The Status in an envelope; none if it holds another kind.
pub fn status(bytes: &[u8]) -> Option<meta::Status> {
    let (kind, raw) = open(bytes)?;
    let status = Status::decode(raw.as_slice()).ok().filter(|_| kind == "Status")?;
    Some(meta::Status {
        status: text(status.status),
        message: text(status.message),
        reason: text(status.reason),
        code: Some(status.code),
        details: status.details.map(Details::into_api),
        ..meta::Status::default()
    })
}

// === impl Details ===

impl Details {
    fn into_api(self) -> meta::StatusDetails {
        let causes: Vec<_> = self.causes.into_iter().map(Cause::into_api).collect();
        meta::StatusDetails {
            name: text(self.name),
            group: text(self.group),
            kind: text(self.kind),
            uid: text(self.uid),
            causes: Some(causes).filter(|causes| !causes.is_empty()),
            retry_after_seconds: Some(self.retry_after_seconds).filter(|seconds| *seconds != 0),
        }
    }
}

// === impl Cause ===

impl Cause {
    fn into_api(self) -> meta::StatusCause {
        meta::StatusCause { reason: text(self.reason), message: text(self.message), field: text(self.field) }
    }
}

/// Protobuf of version 2 in Go's hands: an empty string is an absent one.
fn text(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}
