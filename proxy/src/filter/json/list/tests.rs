use crate::filter::testing::{feed, filtered, refused, scanner};
use crate::filter::{Counts, Encoding, FilterError, Out, Scan, Shape};
use bytes::Bytes;
use serde_json::Value;

fn list(body: &str) -> String {
    String::from_utf8(filtered(Encoding::Json, Shape::List, body.as_bytes())).unwrap()
}

fn error(body: &str) -> FilterError {
    refused(Encoding::Json, Shape::List, body.as_bytes())
}

/// An item with this name.
fn item(name: &str) -> String {
    format!(r#"{{"metadata":{{"name":"{name}"}}}}"#)
}

fn items(names: &[&str]) -> String {
    let items: Vec<_> = names.iter().map(|name| item(name)).collect();
    format!(r#"{{"kind":"PodList","items":[{}]}}"#, items.join(","))
}

#[test]
fn commas_stay_valid_whatever_is_dropped() {
    for (names, kept) in [
        (&["a", "b", "c"][..], &["a", "b", "c"][..]),
        (&["x1", "b", "c"], &["b", "c"]),
        (&["a", "x1", "c"], &["a", "c"]),
        (&["a", "b", "x1"], &["a", "b"]),
        (&["x1", "x2", "c", "x3", "d", "x4"], &["c", "d"]),
        (&["x1", "x2"], &[]),
        (&[], &[]),
    ] {
        assert_eq!(list(&items(names)), items(kept));
    }
}

#[test]
fn one_name_is_replaced_and_nothing_else() {
    let body = r#"{"items":[{"data":{"name":"old"},"metadata":{"labels":{"name":"old"}, "name" : "old","uid":"old"}}]}"#;
    let renamed = body.replace(r#""name" : "old""#, r#""name" : "n""#);
    assert_eq!(list(body), renamed);
}

#[test]
fn metadata_may_follow_the_items() {
    let body = |items: &str| {
        format!(
            r#"{{"apiVersion":"v1","items":[{items}],"kind":"L","metadata":{{"continue":"c","resourceVersion":"7"}}}}"#
        )
    };
    assert_eq!(list(&body(&[item("x"), item("a")].join(","))), body(&item("a")));
}

#[test]
fn only_the_lists_own_count_is_cut() {
    for (before, after) in [
        (r#"{"remainingItemCount":5}"#, "{}"),
        (r#"{"a":1,"remainingItemCount":5}"#, r#"{"a":1}"#),
        (r#"{"remainingItemCount":5,"a":[{}]}"#, r#"{"a":[{}]}"#),
        (r#"{"a":1,"remainingItemCount":5,"b":"s"}"#, r#"{"a":1,"b":"s"}"#),
        (r#"{"remainingItemCount":5,"remainingItemCount":6}"#, "{}"),
        (r#"{"r\u0065mainingItemCount":{"x":[]},"a":null}"#, r#"{"a":null}"#),
        (r#"{"a":{"remainingItemCount":5}}"#, r#"{"a":{"remainingItemCount":5}}"#),
    ] {
        let body = |metadata: &str| {
            format!(
                r#"{{"remainingItemCount":1,"metadata":{metadata},"items":[{{"metadata":{{"name":"a","remainingItemCount":3}}}}]}}"#
            )
        };
        assert_eq!(list(&body(before)), body(after));
    }
}

#[test]
fn what_passes_before_garbage_does_not_depend_on_the_chunks() {
    for (body, passes) in [
        ("{\"items\":[]} \n \n x", "{\"items\":[]} \n \n "),
        ("{\"items\":[]}\n{", "{\"items\":[]}\n"),
        ("{\"a\":1} \n x", "{\"a\":1"),
        ("7 \n x", ""),
    ] {
        for size in [1, 2, 3, usize::MAX] {
            let (passed, end) = feed(scanner(Encoding::Json, Shape::List), body.as_bytes(), &[size]);
            assert_eq!((String::from_utf8(passed).unwrap().as_str(), end.is_err()), (passes, true), "{size}");
        }
    }
}

#[test]
fn null_items_become_an_empty_array() {
    assert_eq!(list(r#"{"items": null ,"kind":"L"}"#), r#"{"items": [] ,"kind":"L"}"#);
    assert_eq!(list(r#"{"items":[ ],"metadata":null}"#), r#"{"items":[ ],"metadata":null}"#);
}

#[test]
fn pretty_text_stays_valid_and_a_last_line_feed_passes() {
    let body = "{\n  \"items\": [\n    {\"metadata\": {\"name\": \"x\"}},\n    {\"metadata\": {\"name\": \"a\"}}\n  ]\n}\n";
    let passed = list(body);
    assert!(passed.ends_with("]\n}\n"));
    let all_kept = body.replace('x', "b");
    assert_eq!(list(&all_kept), all_kept);
    let value: Value = serde_json::from_str(&passed).unwrap();
    assert_eq!(value["items"].as_array().unwrap().len(), 1);
}

#[test]
fn only_the_last_metadata_and_the_last_name_count() {
    for (item, kept) in [
        (r#"{"metadata":{"name":"x","name":"a"}}"#, true),
        (r#"{"metadata":{"name":"a","name":"x"}}"#, false),
        (r#"{"metadata":{"name":"x"},"metadata":{}}"#, true),
        (r#"{"metadata":{"name":"x"},"metadata":null}"#, true),
        (r#"{"metadata":{"name":"a"},"metadata":{"name":"x"}}"#, false),
        (r#"{"metadata":{"name":"x","name":null}}"#, true),
    ] {
        assert_eq!(list(&format!(r#"{{"items":[{item}]}}"#)).contains("metadata"), kept, "{item}");
    }
}

#[test]
fn nothing_but_metadata_name_is_taken_for_it() {
    for item in [
        r#"{"spec":{"template":{"metadata":{"name":"x"}}},"metadata":{"name":"a"}}"#,
        r#"{"metadata":{"name":"a"},"text":"\"metadata\":{\"name\":\"x\"}"}"#,
        r#"{"metadata":{"name":"a","labels":{"name":"x"},"ownerReferences":[{"name":"x"}]}}"#,
        r#"{"name":"x","metadata":{"Name":"x","NAME":"x","name":"a"},"Metadata":{"name":"x"}}"#,
        r#"{"metadata":{"name":"a","annotations":{"k":"}],\"name\":\"x\",{\\"}}}"#,
        r#"{"metadata":{"name":"\u0061"}}"#,
        r"{}",
    ] {
        let body = format!(r#"{{"items":[{item}]}}"#);
        assert_eq!(list(&body), body);
    }
    assert_eq!(list(r#"{"items":[{"m\u0065tadata":{"n\u0061me":"\u0078"}}]}"#), r#"{"items":[]}"#);
}

#[test]
fn what_is_no_list_is_refused() {
    for body in [
        "[]",
        "1 ",
        "\"a\"",
        "null ",
        r#"{"kind":"Status"}"#,
        r#"{"items":{}}"#,
        r#"{"items":1}"#,
        r#"{"items":"a"}"#,
        r#"{"items":[1]}"#,
        r#"{"items":[null]}"#,
        r#"{"items":["a"]}"#,
        r#"{"items":[[]]}"#,
        r#"{"items":[]} x"#,
        r#"{"items":[]}{"#,
        r#"{"items":[{}{}]}"#,
        r#"{"items":[{},]}"#,
        r#"{"items":[]"a":1}"#,
        r#"{"items" []}"#,
        r#"{"items":[{"metadata":1}]}"#,
        r#"{"items":[{"metadata":"m"}]}"#,
        r#"{"items":[{"metadata":[]}]}"#,
        r#"{"items":[{"metadata":{"name":1}}]}"#,
        r#"{"items":[{"metadata":{"namespace":{}}}]}"#,
        r#"{"items":[{"metadata":{"name":"\x"}}]}"#,
        r#"{"\ud":1,"items":[]}"#,
        "\u{feff}{\"items\":[]}",
        "{items:[]}",
        r#"{"items":[}"#,
        r#"{"items":[]]"#,
        r#"{,"items":[]}"#,
    ] {
        assert!(matches!(error(body), FilterError::Malformed(_)), "{body}");
    }
}

#[test]
fn a_cut_body_is_an_error_at_every_byte() {
    let body = r#"{"kind":"L","metadata":{"remainingItemCount":5},"items":[{"metadata":{"name":"a"}},{"a":"\\"}],"x":[1,{}]}"#;
    for end in 0..body.len() {
        let (_, result) = feed(scanner(Encoding::Json, Shape::List), &body.as_bytes()[..end], &[9]);
        assert_eq!(result, Err(FilterError::Truncated), "{end}");
    }
}

#[test]
fn each_piece_passes_before_the_next_byte() {
    let mut scan = scanner(Encoding::Json, Shape::List);
    let mut out = Out::default();
    for (chunk, passed) in [
        (r#"{"kind":"L","items":["#, Some(r#"{"kind":"L","items":["#)),
        (r#"{"metadata":{"name":"a"}"#, None),
        ("}", Some(r#"{"metadata":{"name":"a"}}"#)),
        (r#",{"metadata":{"name":"x"}}"#, None),
        (r#",{"metadata":{"name":"b"}}"#, Some(r#",{"metadata":{"name":"b"}}"#)),
        ("]", Some("]")),
        (r#","metadata":{"#, Some(r#","metadata":{"#)),
        (r#""a":"b""#, Some(r#""a":"b""#)),
    ] {
        scan.push(Bytes::from(chunk), &mut out).unwrap();
        assert_eq!(out.pop(), passed.map(Bytes::from), "after {chunk}");
        assert_eq!(out.pop(), None);
    }
}

#[test]
fn objects_and_bytes_are_counted() {
    let (_, counts) =
        feed(scanner(Encoding::Json, Shape::List), items(&["aa", "x", "x", "old"]).as_bytes(), &[10]);
    let (kept, hidden) = (item("aa").len() + item("old").len(), 2 * item("x").len());
    let expected =
        Counts { kept: 2, hidden: 2, kept_bytes: kept as u64, hidden_bytes: hidden as u64, holed: 0 };
    assert_eq!(counts, Ok(expected));
}

#[test]
fn an_item_over_the_limit_is_an_error_and_one_at_it_is_not() {
    let body = |size: usize| format!(r#"{{"items":[{{"a":"{}"}}]}}"#, "y".repeat(size - 8));
    let run = |size: usize| feed(scanner(Encoding::Json, Shape::List), body(size).as_bytes(), &[1 << 16]).1;
    assert!(run(crate::filter::MAX_PIECE).is_ok());
    assert_eq!(run(crate::filter::MAX_PIECE + 1), Err(FilterError::TooLarge));
}
