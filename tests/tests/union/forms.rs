//! The forms that a list or a watch can have, taken apart into the very bytes of each object.

use prost::Message;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::stream::Stream;

/// How objects are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    Protobuf,
    MetadataJson,
    MetadataProtobuf,
    Table,
}

/// A table with its metadata, of which the client wants nothing else.
pub(crate) const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

/// A list, taken apart.
#[derive(Debug, PartialEq)]
pub(crate) struct List {
    /// All but the items and `remainingItemCount`.
    pub(crate) envelope: String,
    /// `metadata.continue`; empty at the end.
    pub(crate) next: String,
    /// `metadata.remainingItemCount`.
    pub(crate) remaining: Option<i64>,
    /// In the order they came.
    pub(crate) items: Vec<Item>,
}

/// One object, or one event about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// The object in a list, the whole event in a watch; of a row the object and the first cell, because others tell the
    /// time.
    pub(crate) bytes: Vec<u8>,
}

/// One event, taken apart.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) kind: String,
    pub(crate) item: Item,
    /// A bookmark that ends the initial events of a `WatchList`.
    pub(crate) ends_initial: bool,
}

// === impl Form ===

impl Form {
    /// Those in which equal answers are equal bytes.
    pub(crate) const OBJECTS: [Self; 4] =
        [Self::Json, Self::Protobuf, Self::MetadataJson, Self::MetadataProtobuf];
    pub(crate) const ALL: [Self; 5] =
        [Self::Json, Self::Protobuf, Self::MetadataJson, Self::MetadataProtobuf, Self::Table];
    /// The API server has no protobuf of a custom resource, but of its metadata.
    pub(crate) const CUSTOM: [Self; 4] =
        [Self::Json, Self::MetadataJson, Self::MetadataProtobuf, Self::Table];

    fn is_protobuf(self) -> bool {
        matches!(self, Self::Protobuf | Self::MetadataProtobuf)
    }

    pub(crate) fn of_list(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
            Self::MetadataJson => "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
            Self::MetadataProtobuf => {
                "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
            }
            Self::Table => TABLE,
        }
    }

    pub(crate) fn of_watch(self) -> &'static str {
        match self {
            Self::Json => "application/json;stream=watch",
            Self::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
            Self::MetadataJson => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
            Self::MetadataProtobuf => {
                "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
            }
            Self::Table => TABLE,
        }
    }

    pub(crate) fn list(self, body: &[u8]) -> List {
        match self {
            Self::Table => table(body),
            _ if self.is_protobuf() => proto_list(body),
            _ => json_list(body),
        }
    }

    /// The next event.
    pub(crate) async fn event(self, stream: &mut Stream) -> Event {
        match self {
            Self::Table => table_event(&stream.line().await),
            _ if self.is_protobuf() => proto_event(&stream.frame().await),
            _ => json_event(&stream.line().await),
        }
    }
}

// JSON: https://kubernetes.io/docs/reference/using-api/api-concepts/

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JsonList<'a> {
    api_version: String,
    kind: String,
    metadata: Value,
    #[serde(borrow)]
    items: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct JsonEvent<'a> {
    r#type: String,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct JsonObject {
    metadata: JsonMeta,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct JsonMeta {
    namespace: String,
    name: String,
    annotations: std::collections::BTreeMap<String, String>,
}

const INITIAL_END: &str = "k8s.io/initial-events-end";

fn json_list(body: &[u8]) -> List {
    let mut list: JsonList<'_> = serde_json::from_slice(body).unwrap();
    let meta = list.metadata.as_object_mut().unwrap();
    let remaining = meta.remove("remainingItemCount").and_then(|count| count.as_i64());
    let next = meta.get("continue").and_then(Value::as_str).unwrap_or_default().to_owned();
    let item = |raw: &&RawValue| json_item(raw.get(), raw.get().as_bytes()).0;
    let items = list.items.iter().map(item).collect();
    let envelope = format!("{} {} {}", list.api_version, list.kind, list.metadata);
    List { envelope, next, remaining, items }
}

fn json_item(object: &str, bytes: &[u8]) -> (Item, bool) {
    let JsonObject { metadata: JsonMeta { namespace, name, annotations } } =
        serde_json::from_str(object).unwrap();
    (Item { namespace, name, bytes: bytes.to_vec() }, annotations.contains_key(INITIAL_END))
}

fn json_event(line: &[u8]) -> Event {
    let event: JsonEvent<'_> = serde_json::from_slice(line).unwrap();
    let (item, ends_initial) = json_item(event.object.get(), line);
    Event { kind: event.r#type, item, ends_initial }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JsonTable<'a> {
    api_version: String,
    kind: String,
    metadata: Value,
    column_definitions: Value,
    #[serde(borrow)]
    rows: Vec<JsonRow<'a>>,
}

#[derive(Deserialize)]
struct JsonRow<'a> {
    #[serde(borrow)]
    cells: Vec<&'a RawValue>,
    #[serde(borrow)]
    object: &'a RawValue,
}

fn table(body: &[u8]) -> List {
    let mut table: JsonTable<'_> = serde_json::from_slice(body).unwrap();
    let meta = table.metadata.as_object_mut().unwrap();
    let remaining = meta.remove("remainingItemCount").and_then(|count| count.as_i64());
    let next = meta.get("continue").and_then(Value::as_str).unwrap_or_default().to_owned();
    let items = table.rows.iter().map(|row| row_item(row).0).collect();
    let envelope =
        format!("{} {} {} {}", table.api_version, table.kind, table.metadata, table.column_definitions);
    List { envelope, next, remaining, items }
}

fn row_item(row: &JsonRow<'_>) -> (Item, bool) {
    let bytes = format!("{} {}", row.cells[0].get(), row.object.get());
    json_item(row.object.get(), bytes.as_bytes())
}

/// The API server makes a table of one row of each event.
fn table_event(line: &[u8]) -> Event {
    let event: JsonEvent<'_> = serde_json::from_slice(line).unwrap();
    let table: JsonTable<'_> = serde_json::from_str(event.object.get()).unwrap();
    let [row] = &table.rows[..] else { panic!("{} rows", table.rows.len()) };
    let (item, ends_initial) = row_item(row);
    Event { kind: event.r#type, item, ends_initial }
}

// Protobuf: the numbers are those of apimachinery's generated.proto files.

#[derive(Clone, PartialEq, Message)]
struct Unknown {
    #[prost(message, optional, tag = 1)]
    type_meta: Option<TypeMeta>,
    #[prost(bytes = "vec", tag = 2)]
    raw: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct TypeMeta {
    #[prost(string, tag = 1)]
    api_version: String,
    #[prost(string, tag = 2)]
    kind: String,
}

#[derive(Clone, PartialEq, Message)]
struct ProtoList {
    #[prost(message, optional, tag = 1)]
    metadata: Option<ListMeta>,
    #[prost(bytes = "vec", repeated, tag = 2)]
    items: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct ListMeta {
    #[prost(string, tag = 1)]
    self_link: String,
    #[prost(string, tag = 2)]
    resource_version: String,
    #[prost(string, tag = 3)]
    next: String,
    #[prost(int64, optional, tag = 4)]
    remaining: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct Object {
    #[prost(message, optional, tag = 1)]
    metadata: Option<ObjectMeta>,
}

#[derive(Clone, PartialEq, Message)]
struct ObjectMeta {
    #[prost(string, tag = 1)]
    name: String,
    #[prost(string, tag = 3)]
    namespace: String,
    #[prost(map = "string, string", tag = 12)]
    annotations: std::collections::HashMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
struct WatchEvent {
    #[prost(string, tag = 1)]
    kind: String,
    #[prost(message, optional, tag = 2)]
    object: Option<RawExtension>,
}

#[derive(Clone, PartialEq, Message)]
struct RawExtension {
    #[prost(bytes = "vec", tag = 1)]
    raw: Vec<u8>,
}

fn unknown(envelope: &[u8]) -> Unknown {
    Unknown::decode(envelope.strip_prefix(b"k8s\0").unwrap()).unwrap()
}

fn proto_list(body: &[u8]) -> List {
    let unknown = unknown(body);
    let list = ProtoList::decode(&unknown.raw[..]).unwrap();
    let mut meta = list.metadata.unwrap_or_default();
    let remaining = meta.remaining.take();
    let items = list.items.iter().map(|raw| proto_item(raw, raw).0).collect();
    let envelope = format!("{:?} {meta:?}", unknown.type_meta);
    List { envelope, next: meta.next, remaining, items }
}

fn proto_item(object: &[u8], bytes: &[u8]) -> (Item, bool) {
    let meta = Object::decode(object).unwrap().metadata.unwrap_or_default();
    let item = Item { namespace: meta.namespace, name: meta.name, bytes: bytes.to_vec() };
    (item, meta.annotations.contains_key(INITIAL_END))
}

fn proto_event(frame: &[u8]) -> Event {
    let event = WatchEvent::decode(&frame[4..]).unwrap();
    let (item, ends_initial) = proto_item(&unknown(&event.object.unwrap().raw).raw, frame);
    Event { kind: event.kind, item, ends_initial }
}
