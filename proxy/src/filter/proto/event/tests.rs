use super::super::reference::{Object, RawExtension, Status, WatchEvent, frame, framed, object, unpacked};
use crate::filter::testing::{feed, filtered, refused, scanner};
use crate::filter::{Counts, Encoding, FilterError, MAX_PIECE, Out, Scan, Shape, error_event};
use bytes::Bytes;
use prost::Message;

fn watch(body: &[u8]) -> Vec<u8> {
    filtered(Encoding::Protobuf, Shape::Watch, body)
}

#[test]
fn events_pass_by_verdict_and_control_events_always() {
    for kind in ["ADDED", "MODIFIED", "DELETED", "WHATEVER", ""] {
        let body = [frame(kind, &object("x")), frame(kind, &object("a")), frame(kind, &object("x"))].concat();
        assert_eq!(watch(&body), frame(kind, &object("a")));
    }
    for kind in ["BOOKMARK", "ERROR"] {
        assert_eq!(watch(&frame(kind, &object("x"))), frame(kind, &object("x")));
    }
}

#[test]
fn a_new_name_changes_every_length_around_it() {
    let large = |name: &str| Object { spec: vec![1; 118], ..object(name) };
    let body = [frame("ADDED", &large("old")), frame("ADDED", &object("old"))].concat();
    assert_eq!(watch(&body), [frame("ADDED", &large("n")), frame("ADDED", &object("n"))].concat());
}

#[test]
fn an_event_passes_when_complete_as_a_slice() {
    let mut scan = scanner(Encoding::Protobuf, Shape::Watch);
    let mut out = Out::default();
    let chunk = Bytes::from([frame("ADDED", &object("a")), vec![0]].concat());
    scan.push(chunk.clone(), &mut out).unwrap();
    let passed = out.pop().unwrap();
    assert_eq!((passed.as_ptr(), passed.len()), (chunk.as_ptr(), chunk.len() - 1));
    assert_eq!(out.pop(), None);
    assert_eq!(scan.finish(&mut out), Err(FilterError::Truncated));
}

#[test]
fn what_is_no_event_is_refused() {
    let bare =
        WatchEvent { r#type: "ADDED".into(), object: Some(RawExtension { raw: b"\x0a\x00".to_vec() }) };
    for event in [
        vec![],
        WatchEvent { r#type: "ADDED".into(), object: None }.encode_to_vec(),
        WatchEvent { r#type: "BOOKMARK".into(), object: None }.encode_to_vec(),
        bare.encode_to_vec(),
        b"\x12\x06\x0a\x04k8s\0".to_vec(),
        b"\x10\x01".to_vec(),
        b"\x0a\x01\xff".to_vec(),
        b"\x12\x0b\x0a\x09k8s\0\x12\x00\x1a\x01z".to_vec(),
        b"\x12\x0c\x0a\x0ak8s\0\x12\x04\x0a\x02\x08\x01".to_vec(),
    ] {
        let error = refused(Encoding::Protobuf, Shape::Watch, &framed(&event));
        assert!(matches!(error, FilterError::Malformed(_)), "{event:x?}");
    }
}

#[test]
fn a_cut_frame_is_an_error_and_passes_nothing() {
    let body = frame("ADDED", &object("a"));
    for end in 1..body.len() {
        let (passed, result) = feed(scanner(Encoding::Protobuf, Shape::Watch), &body[..end], &[9]);
        assert_eq!((passed, result), (vec![], Err(FilterError::Truncated)));
    }
    assert!(watch(b"").is_empty());
}

#[test]
fn a_frame_at_the_limit_passes_and_one_over_it_does_not() {
    let sized = |size: usize| {
        let around =
            frame("ADDED", &Object { spec: vec![0; 15 << 20], ..object("a") }).len() - 4 - (15 << 20);
        frame("ADDED", &Object { spec: vec![0; size - around], ..object("a") })
    };
    let (passed, end) = feed(scanner(Encoding::Protobuf, Shape::Watch), &sized(MAX_PIECE), &[1 << 16]);
    assert_eq!((passed.len(), end.is_ok()), (MAX_PIECE + 4, true));
    let before = frame("ADDED", &object("a"));
    let body = [before.clone(), sized(MAX_PIECE + 1)].concat();
    let (passed, end) = feed(scanner(Encoding::Protobuf, Shape::Watch), &body, &[1 << 16]);
    assert_eq!((passed, end), (before, Err(FilterError::TooLarge)));
}

#[test]
fn the_last_event_of_a_broken_watch_is_a_status() {
    let bytes = error_event(Encoding::Protobuf, FilterError::TooLarge);
    assert_eq!(watch(&bytes), bytes);
    let event = WatchEvent::decode(&bytes[4..]).unwrap();
    let (unknown, status) = unpacked::<Status>(&event.object.unwrap().raw);
    assert_eq!((event.r#type.as_str(), status.code, status.outcome.as_str()), ("ERROR", 500, "Failure"));
    assert_eq!(unknown.type_meta.unwrap().kind, "Status");
}

#[test]
fn only_objects_are_counted() {
    let (a, x) = (frame("ADDED", &object("aa")), frame("ADDED", &object("x")));
    let body = [&a[..], &frame("BOOKMARK", &object("a")), &x].concat();
    let (_, counts) = feed(scanner(Encoding::Protobuf, Shape::Watch), &body, &[10]);
    let expected =
        Counts { kept: 1, hidden: 1, kept_bytes: a.len() as u64, hidden_bytes: x.len() as u64, holed: 0 };
    assert_eq!(counts, Ok(expected));
}
