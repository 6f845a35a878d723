use crate::filter::testing::{feed, filtered, refused, scanner};
use crate::filter::{Counts, Encoding, FilterError, MAX_PIECE, Out, Scan, Shape, error_event};
use bytes::Bytes;
use serde_json::Value;

fn watch(body: &str) -> String {
    String::from_utf8(filtered(Encoding::Json, Shape::Watch, body.as_bytes())).unwrap()
}

fn event(kind: &str, name: &str) -> String {
    format!(
        r#"{{"type":"{kind}","object":{{"kind":"Pod","metadata":{{"name":"{name}","uid":"u"}},"spec":{{}}}}}}"#
    )
}

#[test]
fn events_pass_by_verdict_and_control_events_always() {
    for kind in ["ADDED", "MODIFIED", "DELETED", "WHATEVER", "bookmark"] {
        let body = event(kind, "x") + "\n" + &event(kind, "a") + "\n";
        assert_eq!(watch(&body), event(kind, "a") + "\n");
    }
    for kind in ["BOOKMARK", "ERROR", "B\\u004fOKMARK"] {
        let body = event(kind, "x") + "\n";
        assert_eq!(watch(&body), body);
    }
}

#[test]
fn the_type_may_follow_the_object() {
    let body = |name: &str, kind: &str| {
        format!(
            r#"{{"object":{{"spec":{{"metadata":{{"name":"x"}}}},"metadata":{{"name":"{name}"}}}},"type":"{kind}"}}"#
        ) + "\n"
    };
    let all = body("x", "ADDED") + &body("x", "BOOKMARK") + &body("a", "ADDED");
    assert_eq!(watch(&all), body("x", "BOOKMARK") + &body("a", "ADDED"));
}

#[test]
fn each_event_is_one_line() {
    let (a, b) = (event("ADDED", "a"), event("ADDED", "b"));
    for between in ["", "\n", "\n\n", " \r\n\t", "\r"] {
        assert_eq!(watch(&(a.clone() + between + &b)), format!("{a}\n{b}\n"), "{between:?}");
    }
    let pretty = "{\n \"type\": \"ADDED\",\r\n \"object\": {\"metadata\": {\"name\": \"a\"}}\n}";
    let line = watch(pretty);
    assert_eq!(line.matches(['\n', '\r']).count(), 1);
    assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), serde_json::from_str::<Value>(pretty).unwrap());
}

#[test]
fn a_name_is_replaced_and_nothing_else() {
    assert_eq!(watch(&event("ADDED", "old")), event("ADDED", "n") + "\n");
}

#[test]
fn an_event_passes_at_its_closing_brace_as_a_slice() {
    let mut scan = scanner(Encoding::Json, Shape::Watch);
    let mut out = Out::default();
    let chunk = Bytes::from(event("ADDED", "a") + "\n" + &event("ADDED", "b") + "\n");
    scan.push(chunk.clone(), &mut out).unwrap();
    assert_eq!(out.pop().unwrap().as_ptr(), chunk.as_ptr());
    assert_eq!(out.pop(), None);
    scan.push(Bytes::from(event("ADDED", "c")), &mut out).unwrap();
    assert_eq!(out.pop().unwrap(), event("ADDED", "c") + "\n");
    scan.push(Bytes::from("\n"), &mut out).unwrap();
    assert_eq!(out.pop(), None);
    assert_eq!(scan.finish(&mut out), Ok(()));
}

#[test]
fn what_is_no_event_is_refused() {
    for body in [
        "[]",
        "1 ",
        "null ",
        r#"{"type":"ADDED"}"#,
        r#"{"type":"ADDED","object":null}"#,
        r#"{"type":"ADDED","object":[]}"#,
        r#"{"type":1,"object":{}}"#,
        r#"{"type":{},"object":{}}"#,
        r#"{"object":{},"object":[]}"#,
        "}",
        "x ",
        r#"{"object":{}},"#,
        r#"{"type":"ADDED","object":{"metadata":{"name":[]}}}"#,
        r#"{"type":"BOOKMARK"}"#,
    ] {
        assert!(
            matches!(refused(Encoding::Json, Shape::Watch, body.as_bytes()), FilterError::Malformed(_)),
            "{body}"
        );
    }
}

#[test]
fn a_cut_event_is_an_error_and_a_cut_between_events_is_not() {
    let body = event("ADDED", "a");
    for end in 1..body.len() {
        let (passed, result) = feed(scanner(Encoding::Json, Shape::Watch), &body.as_bytes()[..end], &[9]);
        assert_eq!((passed, result), (vec![], Err(FilterError::Truncated)), "{end}");
    }
    for body in ["", " \n", &body, &(body.clone() + "\n")] {
        assert!(feed(scanner(Encoding::Json, Shape::Watch), body.as_bytes(), &[9]).1.is_ok());
    }
}

#[test]
fn an_event_at_the_limit_passes_and_one_over_it_does_not() {
    let body = |size: usize| {
        let empty = r#"{"type":"ADDED","object":{"data":""}}"#.len();
        format!(r#"{{"type":"ADDED","object":{{"data":"{}"}}}}"#, "y".repeat(size - empty))
    };
    let before = event("ADDED", "a") + "\n";
    let (passed, end) = feed(scanner(Encoding::Json, Shape::Watch), body(MAX_PIECE).as_bytes(), &[1 << 16]);
    assert_eq!((passed.len(), end.is_ok()), (MAX_PIECE + 1, true));
    for size in [1 << 16, usize::MAX] {
        let all = before.clone() + &body(MAX_PIECE + 1);
        let (passed, end) = feed(scanner(Encoding::Json, Shape::Watch), all.as_bytes(), &[size]);
        assert_eq!((passed, end), (before.clone().into_bytes(), Err(FilterError::TooLarge)));
    }
}

#[test]
fn the_last_event_of_a_broken_watch_is_a_status() {
    let bytes = error_event(Encoding::Json, FilterError::TooLarge);
    assert_eq!(watch(std::str::from_utf8(&bytes).unwrap()).as_bytes(), bytes);
    let value: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!((&value["type"], &value["object"]["code"]), (&"ERROR".into(), &500.into()));
    assert_eq!((&value["object"]["kind"], &value["object"]["status"]), (&"Status".into(), &"Failure".into()));
}

#[test]
fn only_objects_are_counted() {
    let body = event("ADDED", "a") + &event("BOOKMARK", "a") + &event("DELETED", "x");
    let (_, counts) = feed(scanner(Encoding::Json, Shape::Watch), body.as_bytes(), &[10]);
    let (kept, hidden) = (event("ADDED", "a").len() as u64, event("DELETED", "x").len() as u64);
    assert_eq!(counts, Ok(Counts { kept: 1, hidden: 1, kept_bytes: kept, hidden_bytes: hidden, holed: 0 }));
}
