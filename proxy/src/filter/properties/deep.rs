//! Depth and lengths that a sender can claim: an error or a pass, in memory and stack that do not grow with them.

use crate::filter::object::{rename, rename_apply, rename_in_table, rename_json_patch, view};
use crate::filter::proto::wire::{put_bytes, put_varint};
use crate::filter::testing::{feed, scanner};
use crate::filter::{Encoding, FilterError, MAX_PIECE, Shape, TableRows};
use bytes::Bytes;

/// What Go's decoder follows, and far more.
const DEPTHS: [(usize, bool); 3] = [(9_900, true), (20_000, false), (1_000_000, false)];

fn arrays(depth: usize) -> String {
    "[".repeat(depth) + &"]".repeat(depth)
}

fn objects(depth: usize) -> String {
    "{\"a\":".repeat(depth) + "1" + &"}".repeat(depth)
}

fn end(encoding: Encoding, shape: Shape, body: &[u8]) -> Result<(), FilterError> {
    let scan = || scanner(encoding, shape).with_tables(TableRows::WithoutObject);
    let (_, whole) = feed(scan(), body, &[usize::MAX]);
    let (_, cut) = feed(scan(), body, &[1_000]);
    assert_eq!(whole, cut);
    whole.map(|_| ())
}

#[test]
fn json_may_be_as_deep_as_go_reads_it() {
    for (depth, is_read) in DEPTHS {
        for deep in [arrays(depth), objects(depth)] {
            for (shape, body) in [
                (
                    Shape::List,
                    format!(r#"{{"items":[{{"spec":{deep},"metadata":{{"name":"a","labels":{deep}}}}}]}}"#),
                ),
                (Shape::List, format!(r#"{{"x":{deep},"items":[]}}"#)),
                (Shape::List, format!(r#"{{"items":[],"metadata":{{"x":{deep}}}}}"#)),
                (Shape::List, format!(r#"{{"columnDefinitions":{deep},"rows":[]}}"#)),
                (Shape::List, format!(r#"{{"rows":[{{"cells":[{deep}],"object":{{"x":{deep}}}}}]}}"#)),
                (Shape::Watch, format!(r#"{{"x":{deep},"type":"ADDED","object":{{"spec":{deep}}}}}"#)),
                (
                    Shape::Watch,
                    format!(
                        r#"{{"type":"ADDED","object":{{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[{{"cells":[{deep}],"object":{{"metadata":{{"name":"old"}},"x":{deep}}}}}]}}}}"#
                    ),
                ),
            ] {
                assert_eq!(end(Encoding::Json, shape, body.as_bytes()).is_ok(), is_read, "{depth} {shape:?}");
            }
        }
    }
}

#[test]
fn bodies_of_locks_may_be_as_deep() {
    for (depth, is_read) in DEPTHS {
        for deep in [arrays(depth), objects(depth)] {
            let body = Bytes::from(format!(r#"{{"spec":{deep},"metadata":{{"name":"old","x":{deep}}}}}"#));
            assert_eq!(view(&body, Encoding::Json).is_ok(), is_read);
            assert_eq!(rename(&body, Encoding::Json, "old", "new").is_ok(), is_read);
            assert_eq!(rename_apply(&body, "old", "new").is_ok(), is_read);
            assert_eq!(rename_in_table(&body, "old", "new", TableRows::WithObject).is_ok(), is_read);
            let patch = format!(r#"[{{"op":"add","path":"/x","value":{deep}}}]"#);
            assert_eq!(rename_json_patch(&Bytes::from(patch), "old", "new").is_ok(), is_read);
        }
    }
}

#[test]
fn yaml_that_is_deep_or_grows_is_refused() {
    let twice = |level: u32| format!("a{level}: &a{level} [*a{0},*a{0}]\n", level - 1);
    let bomb = (1..40).map(twice).collect::<Vec<_>>().concat();
    for body in [
        "- ".repeat(1_000_000),
        "? ".repeat(100_000),
        format!("metadata:\n  name: old\nx: {}", arrays(1_000_000)),
        format!("metadata:\n  name: old\na0: &a0 1\n{bomb}"),
    ] {
        assert!(rename_apply(&Bytes::from(body), "old", "new").is_err());
    }
}

/// A message in a message, and so on.
fn nested(depth: usize) -> Vec<u8> {
    (0..depth).fold(Vec::new(), |inner, _| {
        let mut outer = Vec::with_capacity(inner.len() + 8);
        put_bytes(1, &inner, &mut outer);
        outer
    })
}

fn field(number: u64, value: &[u8]) -> Vec<u8> {
    let mut field = Vec::new();
    put_bytes(number, value, &mut field);
    field
}

#[test]
fn protobuf_is_entered_as_far_as_it_must_be() {
    let deep = nested(10_000);
    let raw = |raw: &[u8]| [b"k8s\0", &field(2, raw)[..]].concat();
    for list in [field(9, &deep), field(2, &field(2, &deep)), field(1, &field(9, &deep))] {
        assert_eq!(end(Encoding::Protobuf, Shape::List, &raw(&list)), Ok(()));
    }
    let lock = Bytes::from(raw(&[field(1, &field(1, b"old")), field(2, &deep)].concat()));
    assert_eq!(view(&lock, Encoding::Protobuf).map(|names| names.name), Ok("old".to_owned()));
    assert!(rename(&lock, Encoding::Protobuf, "old", "new").is_ok());
    // A name that is a message of messages is no text, or a strange one; never a crash.
    let _ = view(&Bytes::from(raw(&field(1, &deep))), Encoding::Protobuf);
}

#[test]
fn lengths_that_lie_are_refused() {
    let lying = |tag: u8, length: u64| {
        let mut head = vec![tag];
        put_varint(length, &mut head);
        head
    };
    for length in [1 << 20, MAX_PIECE as u64, MAX_PIECE as u64 + 1, u64::from(u32::MAX), 1 << 62, u64::MAX] {
        let envelope = [&b"k8s\0"[..], &lying(0x12, length)].concat();
        assert!(end(Encoding::Protobuf, Shape::List, &envelope).is_err(), "raw of {length}");
        assert!(view(&Bytes::from(envelope), Encoding::Protobuf).is_err(), "raw of {length}");
        for inner in [lying(0x12, length), lying(0x0a, length), field(2, &lying(0x0a, length))] {
            let list = [&b"k8s\0"[..], &field(2, &inner)].concat();
            assert!(end(Encoding::Protobuf, Shape::List, &list).is_err(), "a field of {length}");
        }
        let frame = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
        assert!(end(Encoding::Protobuf, Shape::Watch, &frame).is_err(), "a frame of {length}");
    }
}
