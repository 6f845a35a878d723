use super::*;
use crate::filter::proto::reference::{RawExtension, Unknown, WatchEvent, framed, packed};
use crate::filter::{Lens, Out, Scan, Scanner, Shape, Verdict, View};
use parking_lot::Mutex;
use prost::Message;
use serde_json::{Value, json};

#[derive(Clone, PartialEq, Message)]
struct Pod {
    #[prost(message, optional, tag = "1")]
    metadata: Option<Metadata>,
    #[prost(string, tag = "2")]
    spec: String,
}

#[derive(Clone, PartialEq, Message)]
struct Metadata {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "3")]
    namespace: String,
    #[prost(string, tag = "5")]
    uid: String,
    #[prost(string, tag = "6")]
    version: String,
    #[prost(map = "string, string", tag = "12")]
    annotations: std::collections::HashMap<String, String>,
    #[prost(message, repeated, tag = "13")]
    owners: Vec<Owner>,
}

#[derive(Clone, PartialEq, Message)]
struct Owner {
    #[prost(string, tag = "4")]
    uid: String,
    #[prost(bool, optional, tag = "6")]
    controller: Option<bool>,
}

const BOTH: [Encoding; 2] = [Encoding::Json, Encoding::Protobuf];

fn event(encoding: Encoding, kind: &str, version: &str) -> Bytes {
    match encoding {
        Encoding::Json => Bytes::from(format!(
            "{}\n",
            json!({"type": kind, "object": {"kind": "Pod", "apiVersion": "v1", "spec": {"type": "x"}, "metadata": {
                "name": "a\"b", "namespace": "n", "uid": "u", "resourceVersion": version,
                "ownerReferences": [{"uid": "other"}, {"uid": "owner", "controller": true}]}}})
        )),
        Encoding::Protobuf => {
            let owner = |uid: &str, controller| Owner { uid: uid.to_owned(), controller };
            let metadata = Metadata {
                name: "a\"b".to_owned(),
                namespace: "n".to_owned(),
                uid: "u".to_owned(),
                version: version.to_owned(),
                owners: vec![owner("other", Some(false)), owner("owner", Some(true))],
                ..Metadata::default()
            };
            protobuf_event(kind, metadata)
        }
    }
}

fn protobuf_event(kind: &str, metadata: Metadata) -> Bytes {
    let pod = Pod { metadata: Some(metadata), spec: "s".to_owned() };
    let raw = packed("Pod", &pod);
    let object = Some(RawExtension { raw });
    let event = WatchEvent { r#type: kind.to_owned(), object };
    Bytes::from(framed(&event.encode_to_vec()))
}

#[test]
fn an_event_says_what_it_is_about() {
    for encoding in BOTH {
        for change in [Change::Added, Change::Modified, Change::Deleted] {
            let read = read(&event(encoding, change.name(), "17"), encoding).unwrap();
            let key = Key { namespace: "n".to_owned(), name: "a\"b".to_owned() };
            let owner = Some("owner".to_owned());
            assert_eq!(read, Event { change, key, uid: "u".to_owned(), version: 17, owner });
        }
        for bad in [event(encoding, "BOOKMARK", "17"), event(encoding, "ADDED", "v1"), Bytes::new()] {
            assert!(read(&bad, encoding).is_err());
        }
    }
}

#[test]
fn only_type_and_version_change() {
    for encoding in BOTH {
        let modified = event(encoding, "MODIFIED", "17");
        assert_eq!(retyped(&modified, encoding, Change::Added).unwrap(), event(encoding, "ADDED", "17"));
        assert_eq!(deleted(&modified, encoding, 123_456).unwrap(), event(encoding, "DELETED", "123456"));
    }
}

#[test]
fn a_bookmark_is_of_the_kind_of_its_stream() {
    let text = bookmark(&event(Encoding::Json, "ADDED", "17"), Encoding::Json, 99).unwrap();
    let wanted = json!({"type": "BOOKMARK", "object": {"kind": "Pod", "apiVersion": "v1",
        "metadata": {"resourceVersion": "99"}}});
    assert_eq!(serde_json::from_slice::<Value>(&text).unwrap(), wanted);
    assert!(text.ends_with(b"\n"));
    let frame = bookmark(&event(Encoding::Protobuf, "ADDED", "17"), Encoding::Protobuf, 99).unwrap();
    let (length, event) = frame.split_at(4);
    assert_eq!(length, u32::try_from(event.len()).unwrap().to_be_bytes());
    let event = WatchEvent::decode(event).unwrap();
    assert_eq!(event.r#type, "BOOKMARK");
    let metadata = Metadata { version: "99".to_owned(), ..Metadata::default() };
    let pod = Pod { metadata: Some(metadata), spec: String::new() };
    let unknown = |bytes: &[u8]| Unknown::decode(&bytes[4..]).unwrap();
    let (made, wanted) = (unknown(&event.object.unwrap().raw), unknown(&packed("Pod", &pod)));
    assert_eq!((made.type_meta, made.raw), (wanted.type_meta, wanted.raw));
}

#[derive(Default)]
struct Notes {
    held: Mutex<Vec<Bytes>>,
    versions: Mutex<Vec<(String, bool)>>,
}

impl Lens for Notes {
    const FOLLOWS: bool = true;

    fn verdict(&self, view: View<'_>) -> Verdict<'_> {
        self.versions.lock().push((view.version.to_owned(), view.deleted));
        Verdict::Hold
    }

    fn hold(&self, event: &[u8]) {
        self.held.lock().push(Bytes::copy_from_slice(event));
    }

    fn bookmark(&self, version: &str, ends_initial: bool) {
        self.versions.lock().push((format!("bookmark {version}"), ends_initial));
    }
}

fn end(encoding: Encoding) -> Bytes {
    const KEY: &str = "k8s.io/initial-events-end";
    match encoding {
        Encoding::Json => Bytes::from(format!(
            "{}\n",
            json!({"type": "BOOKMARK", "object": {"kind": "Pod", "apiVersion": "v1",
                "metadata": {"resourceVersion": "30", "annotations": {KEY: "true"}}}})
        )),
        Encoding::Protobuf => {
            let annotations = [(KEY.to_owned(), "true".to_owned())].into();
            let metadata = Metadata { version: "30".to_owned(), annotations, ..Metadata::default() };
            protobuf_event("BOOKMARK", metadata)
        }
    }
}

#[test]
fn a_lens_gets_whole_events_and_every_version() {
    for encoding in BOTH {
        let events = [event(encoding, "ADDED", "1"), event(encoding, "DELETED", "2")];
        let mark = event(encoding, "BOOKMARK", "3");
        let body = [&events[0][..], &end(encoding), &events[1], &mark].concat();
        for size in [1, 7, body.len()] {
            let notes = Notes::default();
            let (mut scanner, mut out) = (Scanner::new(encoding, Shape::Watch, &notes), Out::default());
            let mut passed = Vec::new();
            for chunk in body.chunks(size) {
                scanner.push(Bytes::copy_from_slice(chunk), &mut out).unwrap();
                while let Some(bytes) = out.pop() {
                    passed.extend_from_slice(&bytes);
                }
            }
            assert_eq!(passed, [end(encoding), mark.clone()].concat());
            assert_eq!(*notes.held.lock(), events);
            let versions = [("1", false), ("bookmark 30", true), ("2", true), ("bookmark 3", false)];
            assert_eq!(*notes.versions.lock(), versions.map(|(text, flag)| (text.to_owned(), flag)));
        }
    }
}

/// Gives every list another page token.
struct Paged;

impl Lens for Paged {
    const FOLLOWS: bool = true;

    fn verdict(&self, _: View<'_>) -> Verdict<'_> {
        Verdict::Keep
    }

    fn token(&self, token: &str) -> Option<String> {
        Some(format!("mine.\"{token}"))
    }
}

#[test]
fn a_page_token_is_replaced_and_nothing_else() {
    let list = |token: &str| {
        let token = serde_json::to_string(token).unwrap();
        format!(
            r#"{{"metadata":{{"continue":{token},"resourceVersion":"7","remainingItemCount":3}},"items":[]}}"#
        )
    };
    let wanted = list("mine.\"t").replace(r#","remainingItemCount":3"#, "");
    for (body, wanted) in
        [(list("t"), wanted), (list(""), list("").replace(r#","remainingItemCount":3"#, ""))]
    {
        let (mut scanner, mut out) = (Scanner::new(Encoding::Json, Shape::List, Paged), Out::default());
        scanner.push(Bytes::from(body), &mut out).unwrap();
        let passed: Vec<u8> = std::iter::from_fn(|| out.pop()).flatten().collect();
        assert_eq!(String::from_utf8(passed).unwrap(), wanted);
    }
}
