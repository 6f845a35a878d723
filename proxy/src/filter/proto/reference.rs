//! Tiny prost messages that tests build bodies from and read them back with. prost skips unknown fields, as Go does.

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(in crate::filter) struct Unknown {
    #[prost(message, optional, tag = "1")]
    pub(in crate::filter) type_meta: Option<TypeMeta>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(in crate::filter) raw: Option<Vec<u8>>,
    #[prost(string, optional, tag = "3")]
    pub(in crate::filter) content_encoding: Option<String>,
    #[prost(string, optional, tag = "4")]
    pub(in crate::filter) content_type: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::filter) struct TypeMeta {
    #[prost(string, tag = "1")]
    pub(in crate::filter) api_version: String,
    #[prost(string, tag = "2")]
    pub(in crate::filter) kind: String,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::filter) struct List {
    #[prost(message, optional, tag = "1")]
    pub(in crate::filter) metadata: Option<ListMeta>,
    #[prost(message, repeated, tag = "2")]
    pub(in crate::filter) items: Vec<Object>,
    #[prost(string, tag = "9")]
    pub(in crate::filter) extra: String,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::filter) struct ListMeta {
    #[prost(string, tag = "2")]
    pub(in crate::filter) resource_version: String,
    #[prost(string, tag = "3")]
    pub(in crate::filter) r#continue: String,
    #[prost(int64, optional, tag = "4")]
    pub(in crate::filter) remaining_item_count: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::filter) struct Object {
    #[prost(message, optional, tag = "1")]
    pub(in crate::filter) metadata: Option<Metadata>,
    #[prost(bytes = "vec", tag = "2")]
    pub(in crate::filter) spec: Vec<u8>,
    #[prost(fixed64, tag = "7")]
    pub(in crate::filter) number: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::filter) struct Metadata {
    #[prost(string, tag = "1")]
    pub(in crate::filter) name: String,
    #[prost(string, tag = "2")]
    pub(in crate::filter) generate_name: String,
    #[prost(string, tag = "3")]
    pub(in crate::filter) namespace: String,
    #[prost(string, tag = "5")]
    pub(in crate::filter) uid: String,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::filter) struct Status {
    #[prost(string, tag = "2")]
    pub(in crate::filter) outcome: String,
    #[prost(string, tag = "3")]
    pub(in crate::filter) message: String,
    #[prost(string, tag = "4")]
    pub(in crate::filter) reason: String,
    #[prost(message, optional, tag = "5")]
    pub(in crate::filter) details: Option<Details>,
    #[prost(int32, tag = "6")]
    pub(in crate::filter) code: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::filter) struct Details {
    #[prost(string, tag = "1")]
    pub(in crate::filter) name: String,
    #[prost(string, tag = "3")]
    pub(in crate::filter) kind: String,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::filter) struct WatchEvent {
    #[prost(string, tag = "1")]
    pub(in crate::filter) r#type: String,
    #[prost(message, optional, tag = "2")]
    pub(in crate::filter) object: Option<RawExtension>,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::filter) struct RawExtension {
    #[prost(bytes = "vec", tag = "1")]
    pub(in crate::filter) raw: Vec<u8>,
}

/// An object with this name.
pub(in crate::filter) fn object(name: &str) -> Object {
    let metadata =
        Metadata { name: name.into(), namespace: "ns".into(), uid: "u".into(), ..Metadata::default() };
    Object { metadata: Some(metadata), spec: b"spec".to_vec(), number: 7 }
}

/// A list of objects with these names, of which more follow.
pub(in crate::filter) fn list(names: &[&str]) -> List {
    let metadata =
        ListMeta { resource_version: "7".into(), r#continue: "more".into(), remaining_item_count: Some(300) };
    let items = names.iter().map(|name| object(name)).collect();
    List { metadata: Some(metadata), items, extra: "extra".into() }
}

/// A message in its envelope, as an API server writes it.
pub(in crate::filter) fn packed(kind: &str, message: &impl Message) -> Vec<u8> {
    let unknown = Unknown {
        type_meta: Some(TypeMeta { api_version: "v1".into(), kind: kind.into() }),
        raw: Some(message.encode_to_vec()),
        content_encoding: Some(String::new()),
        content_type: Some(String::new()),
    };
    [super::MAGIC, &unknown.encode_to_vec()].concat()
}

/// What is in an envelope.
pub(in crate::filter) fn unpacked<T: Message + Default>(bytes: &[u8]) -> (Unknown, T) {
    let unknown = Unknown::decode(bytes.strip_prefix(super::MAGIC).unwrap()).unwrap();
    let message = T::decode(unknown.raw.as_deref().unwrap()).unwrap();
    (unknown, message)
}

/// A frame with an event about this object.
pub(in crate::filter) fn frame(kind: &str, object: &Object) -> Vec<u8> {
    let object = Some(RawExtension { raw: packed("Pod", object) });
    framed(&WatchEvent { r#type: kind.into(), object }.encode_to_vec())
}

/// A message behind its length.
pub(in crate::filter) fn framed(event: &[u8]) -> Vec<u8> {
    [&u32::try_from(event.len()).unwrap().to_be_bytes()[..], event].concat()
}
