//! Protobuf: lists and frames of a watch, field by field. The numbers are those of apimachinery's `generated.proto`.

use prost::Message;
use prost::encoding::{WireType, decode_key, decode_varint, encode_varint};

use super::Event;

const MAGIC: &[u8] = b"k8s\0";
/// Of `runtime.Unknown`.
const RAW: u32 = 2;
/// Of any list.
const LIST_METADATA: u32 = 1;
/// Of any list.
const ITEMS: u32 = 2;
/// Of `ListMeta`.
const CONTINUE: u32 = 3;
/// Of `ListMeta`.
const REMAINING: u32 = 4;

#[derive(Clone, PartialEq, Message)]
struct Object {
    #[prost(message, optional, tag = "1")]
    metadata: Option<Metadata>,
}

#[derive(Clone, PartialEq, Message)]
struct Metadata {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "3")]
    namespace: String,
    #[prost(map = "string, string", tag = "12")]
    annotations: std::collections::HashMap<String, String>,
}

/// One field of a message, as it was written.
struct Field<'a> {
    number: u32,
    /// With tag and length.
    whole: &'a [u8],
    /// Of a length-delimited field what is in it, else what follows the tag.
    value: &'a [u8],
}

/// The fields of a message in order; none if it is none.
fn fields(message: &[u8]) -> Option<Vec<Field<'_>>> {
    let (mut rest, mut all) = (message, Vec::new());
    while !rest.is_empty() {
        let start = rest;
        let (number, wire) = decode_key(&mut rest).ok()?;
        let length = match wire {
            WireType::Varint => {
                let mut after = rest;
                decode_varint(&mut after).ok()?;
                rest.len() - after.len()
            }
            WireType::SixtyFourBit => 8,
            WireType::ThirtyTwoBit => 4,
            WireType::LengthDelimited => usize::try_from(decode_varint(&mut rest).ok()?).ok()?,
            WireType::StartGroup | WireType::EndGroup => return None,
        };
        let (value, after) = rest.split_at_checked(length)?;
        let whole = start.get(..start.len() - after.len())?;
        rest = after;
        all.push(Field { number, whole, value });
    }
    Some(all)
}

/// The fields of a message without some, and others written anew.
fn rewrite(message: &[u8], mut change: impl FnMut(&Field<'_>) -> Option<Option<Vec<u8>>>) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for field in fields(message)? {
        match change(&field) {
            None => out.extend_from_slice(field.whole),
            Some(None) => {}
            Some(Some(value)) => {
                encode_varint(u64::from(field.number << 3 | 2), &mut out);
                encode_varint(value.len() as u64, &mut out);
                out.extend(value);
            }
        }
    }
    Some(out)
}

fn raw(envelope: &[u8]) -> Option<&[u8]> {
    let fields = fields(envelope.strip_prefix(MAGIC)?)?;
    Some(fields.iter().find(|field| field.number == RAW)?.value)
}

pub(super) fn list(body: &[u8], shows: impl Fn(&str, &str) -> bool) -> Option<Vec<u8>> {
    let mut is_whole = true;
    let mut read = |value: Option<Vec<u8>>| {
        is_whole &= value.is_some();
        Some(Some(value.unwrap_or_default()))
    };
    let without_remaining = |meta: &[u8]| rewrite(meta, |field| (field.number == REMAINING).then_some(None));
    let items = |list: &[u8]| {
        rewrite(list, |field| match field.number {
            LIST_METADATA => Some(without_remaining(field.value)),
            ITEMS => {
                let metadata = Object::decode(field.value).ok()?.metadata.unwrap_or_default();
                (!shows(&metadata.namespace, &metadata.name)).then_some(None)
            }
            _ => None,
        })
    };
    let envelope = rewrite(body.strip_prefix(MAGIC)?, |field| match field.number {
        RAW => read(items(field.value)),
        _ => None,
    })?;
    is_whole.then(|| [MAGIC, &envelope].concat())
}

/// A field of a list's metadata; none where it is absent.
fn list_field(body: &[u8], number: u32) -> Option<Vec<u8>> {
    let list = fields(raw(body)?)?;
    let meta = fields(list.iter().find(|field| field.number == LIST_METADATA)?.value)?;
    meta.iter().find(|field| field.number == number).map(|field| field.value.to_vec())
}

pub(super) fn next_page(body: &[u8]) -> Option<String> {
    String::from_utf8(list_field(body, CONTINUE)?).ok()
}

pub(super) fn says_remaining(body: &[u8]) -> bool {
    list_field(body, REMAINING).is_some()
}

pub(super) fn events(mut body: &[u8]) -> Option<Vec<Event>> {
    let mut all = Vec::new();
    while let Some((length, rest)) = body.split_first_chunk::<4>() {
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (frame, after) = rest.split_at_checked(length)?;
        all.push(event(frame, body.get(..4 + length)?)?);
        body = after;
    }
    body.is_empty().then_some(all)
}

fn event(frame: &[u8], whole: &[u8]) -> Option<Event> {
    let (kind, envelope) = crate::protobuf::event(frame)?;
    let metadata = match kind.as_str() {
        "ERROR" => Metadata::default(),
        _ => Object::decode(raw(&envelope)?).ok()?.metadata.unwrap_or_default(),
    };
    let is_end = metadata.annotations.contains_key("k8s.io/initial-events-end");
    let Metadata { namespace, name, .. } = metadata;
    Some(Event { kind, namespace, name, is_end, bytes: whole.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protobuf::{message, pack};

    fn object(namespace: &str) -> Vec<u8> {
        let metadata = message(&[(1, b"web"), (3, namespace.as_bytes())]);
        message(&[(1, &metadata), (9, b"unknown")])
    }

    fn list_of(namespaces: &[&str], remaining: &[u8]) -> Vec<u8> {
        let metadata = [message(&[(2, b"7"), (3, b"next")]), remaining.to_vec()].concat();
        let mut raw = message(&[(1, &metadata)]);
        for namespace in namespaces {
            raw.extend(message(&[(2, &object(namespace))]));
        }
        pack("v1", "PodList", raw)
    }

    #[test]
    fn what_is_left_is_as_it_was() {
        let body = list_of(&["a", "b", "a"], &[4 << 3, 12]);
        assert_eq!(list(&body, |namespace, _| namespace == "a").unwrap(), list_of(&["a", "a"], &[]));
        assert_eq!(next_page(&body).unwrap(), "next");
        assert!(says_remaining(&body));
        assert_eq!(list(&body[..body.len() - 1], |_, _| true), None);
    }

    #[test]
    fn frames_are_read_one_by_one() {
        let envelope = pack("v1", "Pod", object("a"));
        let frame = message(&[(1, b"ADDED"), (2, &message(&[(1, &envelope)]))]);
        let whole = [&u32::try_from(frame.len()).unwrap().to_be_bytes()[..], &frame].concat();
        let events = events(&[whole.clone(), whole.clone()].concat()).unwrap();
        assert_eq!(events.len(), 2);
        assert_eq!((&*events[0].kind, &*events[0].namespace), ("ADDED", "a"));
        assert_eq!(events[1].bytes, whole);
        assert_eq!(super::events(&whole[..whole.len() - 1]), None);
    }
}
