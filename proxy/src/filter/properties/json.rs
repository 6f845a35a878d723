//! JSON against `serde_json`: what is kept is compared as text, so it is byte for byte.

use super::{lens, shown};
use crate::filter::testing::feed;
use crate::filter::{Encoding, Scanner, Shape};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// White space that may stand between tokens.
pub(super) fn space() -> impl Strategy<Value = String> {
    prop_oneof![8 => Just(String::new()), 1 => "[ \n\r\t]{1,3}"]
}

/// A string with quotes: brackets, escapes, text beyond ASCII, and the words the filter looks for.
fn string() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => "[a-z{}\\[\\]:,é😀 ]{0,3}",
        1 => Just(r#"\""#.to_owned()),
        1 => Just(r"\\".to_owned()),
        1 => Just(r"\ud83d\ude00".to_owned()),
        1 => Just(r#"\"name\":\"x\"}"#.to_owned()),
        1 => Just(r"\u006eame".to_owned()),
    ];
    vec(part, 0..4).prop_map(|parts| format!("\"{}\"", parts.concat()))
}

/// A key that is none of `taken`.
pub(super) fn other_key(taken: &'static [&'static str]) -> impl Strategy<Value = String> {
    let known = prop_oneof![
        Just("metadata"),
        Just("name"),
        Just("namespace"),
        Just("items"),
        Just("remainingItemCount"),
        Just("Name"),
        Just("object"),
        Just("type"),
    ];
    let key = prop_oneof![known.prop_map(|key| format!("\"{key}\"")), string()];
    key.prop_filter("taken", move |key| {
        serde_json::from_str::<String>(key).is_ok_and(|key| !taken.contains(&key.as_str()))
    })
}

fn scalar() -> impl Strategy<Value = String> {
    prop_oneof![
        string(),
        "-?[1-9][0-9]{0,4}(\\.[0-9]{1,2})?(e[+-]?[0-9])?",
        Just("null".into()),
        Just("true".into())
    ]
}

pub(super) fn any_value() -> impl Strategy<Value = String> {
    scalar().prop_recursive(4, 24, 4, |inner| {
        let member = (other_key(&[]), inner.clone());
        prop_oneof![vec(inner, 0..4).prop_flat_map(array), vec(member, 0..4).prop_flat_map(object)]
    })
}

pub(super) fn array(elements: Vec<String>) -> impl Strategy<Value = String> {
    vec(space(), elements.len() * 2 + 1).prop_map(move |spaces| {
        let spaced = elements.iter().zip(spaces.chunks(2)).map(|(e, s)| format!("{}{e}{}", s[0], s[1]));
        format!("[{}{}]", spaced.collect::<Vec<_>>().join(","), spaces[0])
    })
}

pub(super) fn object(members: Vec<(String, String)>) -> impl Strategy<Value = String> {
    vec(space(), members.len() * 3 + 1).prop_map(move |spaces| {
        let spaced = members
            .iter()
            .zip(spaces.chunks(3))
            .map(|((k, v), s)| format!("{}{k}{}:{}{v}", s[0], s[1], s[2]));
        format!("{{{}{}}}", spaced.collect::<Vec<_>>().join(","), spaces[0])
    })
}

fn named(key: &'static str) -> impl Strategy<Value = String> {
    prop_oneof![3 => Just(format!("\"{key}\"")), 1 => Just(format!("\"\\u{:04x}{}\"", key.as_bytes()[0], &key[1..]))]
}

/// An object of Kubernetes' shape, with members repeated and in any order.
pub(super) fn item() -> impl Strategy<Value = String> {
    let name = || prop_oneof![4 => "\"[a-f]{1,2}\"", 1 => string(), 1 => Just("null".to_owned())];
    let member = prop_oneof![
        (named("name"), name()),
        (named("namespace"), name()),
        (other_key(&["name", "namespace", "generateName"]), any_value()),
    ];
    let metadata = prop_oneof![6 => vec(member, 0..5).prop_flat_map(object), 1 => Just("null".to_owned())];
    let member = prop_oneof![(named("metadata"), metadata), (other_key(&["metadata"]), any_value())];
    vec(member, 0..4).prop_flat_map(object)
}

fn list() -> impl Strategy<Value = String> {
    let items = prop_oneof![8 => vec(item(), 0..6).prop_flat_map(array), 1 => Just("null".to_owned())];
    let count = (named("remainingItemCount"), any_value());
    let meta = vec(prop_oneof![count, (other_key(&["remainingItemCount"]), any_value())], 0..5)
        .prop_flat_map(object);
    let meta = prop_oneof![meta, scalar()];
    let member =
        || prop_oneof![(named("metadata"), meta.clone()), (other_key(&["metadata", "items"]), any_value())];
    (vec(member(), 0..3), named("items"), items, vec(member(), 0..3)).prop_flat_map(
        |(mut members, key, items, after)| {
            members.push((key, items));
            members.extend(after);
            object(members)
        },
    )
}

fn event() -> impl Strategy<Value = String> {
    let kind = prop_oneof![Just("ADDED"), Just("DELETED"), Just("BOOKMARK"), Just("ERROR")];
    let members = (
        kind,
        item(),
        vec((other_key(&["type", "object"]), any_value()), 0..2),
        any::<prop::sample::Index>(),
    );
    members.prop_flat_map(|(kind, item, mut members, at)| {
        members.push(("\"type\"".to_owned(), format!("\"{kind}\"")));
        let at = at.index(members.len() + 1);
        members.insert(at, ("\"object\"".to_owned(), item));
        object(members)
    })
}

pub(super) type Raw = Box<RawValue>;
pub(super) type Members = BTreeMap<String, Raw>;
type Named = Vec<(String, String)>;

/// The namespace and name of an object, as a map has them.
fn names(object: &str) -> (String, String) {
    let value: Value = serde_json::from_str(object).unwrap();
    let of = |key: &str| value["metadata"][key].as_str().unwrap_or_default().to_owned();
    (of("namespace"), of("name"))
}

pub(super) fn kept(seed: u64, object: &str) -> bool {
    let (namespace, name) = names(object);
    shown(seed, &namespace, &name)
}

/// What a list must be afterwards: its members as text, its items and its metadata taken apart.
fn reference(text: &str, seed: u64) -> (Vec<String>, Named, Named) {
    let mut root: Members = serde_json::from_str(text).unwrap();
    let items: Option<Vec<Raw>> = serde_json::from_str(root.remove("items").unwrap().get()).unwrap();
    let items = items
        .unwrap_or_default()
        .into_iter()
        .map(|item| item.get().to_owned())
        .filter(|item| kept(seed, item));
    let metadata = root.remove("metadata").map(|metadata| metadata.get().to_owned());
    let members = metadata.as_deref().and_then(|metadata| serde_json::from_str::<Members>(metadata).ok());
    let plain = metadata.filter(|_| members.is_none());
    let mut metadata = members.unwrap_or_default();
    metadata.remove("remainingItemCount");
    let text = |members: Members| members.into_iter().map(|(key, value)| (key, value.get().to_owned()));
    let rest = text(root).chain(plain.map(|plain| ("metadata".to_owned(), plain)));
    (items.collect(), text(metadata).collect(), rest.collect())
}

proptest! {
    #[test]
    fn a_filtered_list_equals_the_reference(text in list(), sizes in vec(1_usize..40, 1..6), seed: u64) {
        let scan = Scanner::new(Encoding::Json, Shape::List, lens(seed));
        let (passed, end) = feed(scan, text.as_bytes(), &sizes);
        prop_assert!(end.is_ok(), "{end:?} {text}");
        let passed = String::from_utf8(passed).unwrap();
        prop_assert!(serde_json::from_str::<Value>(&passed).is_ok(), "{text} -> {passed}");
        let (items, metadata, rest) = reference(&text, seed);
        let got: Members = serde_json::from_str(&passed).unwrap();
        let got_items: Vec<Raw> = serde_json::from_str(got["items"].get()).unwrap();
        prop_assert_eq!(got_items.iter().map(|item| item.get()).collect::<Vec<_>>(), items);
        for (key, value) in rest {
            prop_assert_eq!(got[&key].get(), value);
        }
        let got = got.get("metadata").map(|got| serde_json::from_str::<Members>(got.get()).unwrap_or_default());
        let got = got.unwrap_or_default().into_iter().map(|(key, value)| (key, value.get().to_owned()));
        prop_assert_eq!(got.collect::<Vec<_>>(), metadata);
    }

    #[test]
    fn a_filtered_watch_equals_the_reference(
        events in vec((event(), space()), 0..6),
        sizes in vec(1_usize..40, 1..6),
        seed: u64,
    ) {
        let text: String = events.iter().flat_map(|(event, space)| [event.as_str(), space]).collect();
        let scan = Scanner::new(Encoding::Json, Shape::Watch, lens(seed));
        let (passed, end) = feed(scan, text.as_bytes(), &sizes);
        prop_assert!(end.is_ok(), "{end:?} {text}");
        let shown = events.iter().map(|(event, _)| event).filter(|event| {
            let members: Members = serde_json::from_str(event).unwrap();
            matches!(members["type"].get(), "\"BOOKMARK\"" | "\"ERROR\"") || kept(seed, members["object"].get())
        });
        let wanted: String = shown.map(|event| event.replace(['\n', '\r'], " ") + "\n").collect();
        prop_assert_eq!(String::from_utf8(passed).unwrap(), wanted);
    }
}
