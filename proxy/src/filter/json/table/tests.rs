//! The bodies are those of a real API server, shortened.

use crate::filter::object::rename_in_table;
use crate::filter::testing::{self, Sample, feed};
use crate::filter::{Counts, Encoding, FilterError, Scanner, Shape, TableRows};
use bytes::Bytes;

const COLUMNS: &str = r#"[{"name":"Age","type":"string","format":"","description":"{[","priority":0},{"name":"Name","type":"string","format":"name","description":"","priority":0}]"#;

fn row(name: &str) -> String {
    format!(r#"{{"cells":["1d","{name}"],"object":{}}}"#, object(name))
}

fn object(name: &str) -> String {
    format!(
        r#"{{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{{"name":"{name}","namespace":"n"}}}}"#
    )
}

fn table(columns: &str, rows: &[String]) -> String {
    format!(
        r#"{{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{{"resourceVersion":"7"}},"columnDefinitions":{columns},"rows":[{}]}}"#,
        rows.join(",")
    )
}

fn event(kind: &str, columns: &str, names: &[&str]) -> String {
    let rows: Vec<_> = names.iter().map(|name| row(name)).collect();
    format!("{{\"type\":\"{kind}\",\"object\":{}}}\n", table(columns, &rows))
}

fn scanner(shape: Shape, rows: TableRows) -> Scanner<Sample> {
    testing::scanner(Encoding::Json, shape).with_tables(rows)
}

fn filter(shape: Shape, rows: TableRows, body: &str) -> (String, Result<Counts, FilterError>) {
    let whole = feed(scanner(shape, rows), body.as_bytes(), &[usize::MAX]);
    for size in [1, 2, 7, 64] {
        assert_eq!(feed(scanner(shape, rows), body.as_bytes(), &[size]), whole, "chunks of {size} bytes");
    }
    (String::from_utf8(whole.0).unwrap(), whole.1)
}

fn list(body: &str) -> String {
    let (passed, end) = filter(Shape::List, TableRows::WithObject, body);
    assert!(end.is_ok(), "{end:?}");
    passed
}

fn watch(body: &str) -> String {
    let (passed, end) = filter(Shape::Watch, TableRows::WithObject, body);
    assert!(end.is_ok(), "{end:?}");
    passed
}

#[test]
fn rows_go_by_their_objects_and_all_else_stays() {
    let body = table(COLUMNS, &["a", "x1", "b", "x2"].map(row));
    assert_eq!(list(&body), table(COLUMNS, &["a", "b"].map(row)));
    let none = table(COLUMNS, &["x1", "x2"].map(row));
    assert_eq!(list(&none), table(COLUMNS, &[]));
    let (_, counts) = filter(Shape::List, TableRows::WithObject, &body);
    assert_eq!((counts.unwrap().kept, counts.unwrap().hidden), (2, 2));
    for same in [
        table("null", &[]),
        r#"{"kind":"Table","rows":null,"columnDefinitions":7}"#.to_owned(),
        format!(
            r#"{{"rows":[{{"object":{},"conditions":[{{"type":"x"}}],"cells":[[1],{{"a":"]"}}]}}],"kind":"Table"}}"#,
            object("a")
        ),
    ] {
        assert_eq!(list(&same), same);
    }
    let counted = r#"{"rows":[],"metadata":{"continue":"c","remainingItemCount":7}}"#;
    assert_eq!(list(counted), r#"{"rows":[],"metadata":{"continue":"c"}}"#);
}

#[test]
fn whole_objects_are_read_where_they_are() {
    let body = r#"{"rows":[{"object":{"spec":{"metadata":{"name":"x"}},"metadata":{"name":"a"}}},{"object":{"metadata":{"name":"a"},"metadata":{"name":"x"}}}]}"#;
    assert_eq!(
        list(body),
        r#"{"rows":[{"object":{"spec":{"metadata":{"name":"x"}},"metadata":{"name":"a"}}}]}"#
    );
}

#[test]
fn a_row_that_is_nobodys_is_an_error() {
    for rows in [
        r#"[{"cells":["a"]}]"#,
        r#"[{"cells":["a"],"object":null}]"#,
        r#"[{"object":[]}]"#,
        r#"[{"object":{"metadata":{}},"object":"s"}]"#,
        r#"[{"object":{"metadata":{"name":"x"}},"cells":[],"object":{"metadata":{"name":"a"}}}]"#,
        r#"[{"object":{"metadata":{"name":"a"}},"object":{"metadata":{"name":"a"}}}]"#,
        r#"[{"object":null,"object":{"metadata":{"name":"a"}}}]"#,
        r#"[{"object":{"metadata":{"name":"a"}},"\u006fbject":{"metadata":{"name":"a"}}}]"#,
        r#"[{"cells":["x"],"cells":["a"],"object":{"metadata":{"name":"a"}}}]"#,
        r#"[{"cells":["x"],"object":{"metadata":{"name":"a"}},"cells":null}]"#,
        r#"[{"object":{"metadata":[]}}]"#,
        r#"[["a"]]"#,
        r#"["a"]"#,
        r#"{"a":1}"#,
        r#""s""#,
        "true",
    ] {
        let body = format!(r#"{{"kind":"Table","rows":{rows}}}"#);
        for table in [TableRows::WithObject, TableRows::WithoutObject] {
            assert!(matches!(filter(Shape::List, table, &body).1, Err(FilterError::Malformed(_))), "{rows}");
            let event =
                format!(r#"{{"type":"ADDED","object":{{"apiVersion":"meta.k8s.io/v1",{}}}"#, &body[1..]);
            assert!(
                matches!(filter(Shape::Watch, table, &event).1, Err(FilterError::Malformed(_))),
                "{event}"
            );
        }
    }
    let neither = filter(Shape::List, TableRows::WithObject, r#"{"kind":"Table"}"#).1;
    assert_eq!(neither, Err(FilterError::Malformed("items in the list, or rows")));
}

#[test]
fn objects_are_taken_out_of_rows_as_the_server_does() {
    let bare = |names: &[&str]| {
        let rows: Vec<_> =
            names.iter().map(|name| format!(r#"{{"cells":["1d","{name}"],"object":null}}"#)).collect();
        table(COLUMNS, &rows)
    };
    let body = table(COLUMNS, &["a", "x1", "old"].map(row));
    let (passed, _) = filter(Shape::List, TableRows::WithoutObject, &body);
    assert_eq!(passed, bare(&["a", "n"]));
    let events = event("ADDED", COLUMNS, &["a", "x"]);
    let (passed, _) = filter(Shape::Watch, TableRows::WithoutObject, &events);
    assert_eq!(passed, format!("{{\"type\":\"ADDED\",\"object\":{}}}\n", bare(&["a"])));
    // The server keeps the object of the bookmark that ends the initial events, because its annotation says so.
    let end = r#"{"type":"BOOKMARK","object":{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[{"cells":[],"object":{"metadata":{"annotations":{"k8s.io/initial-events-end":"true"}}}}]}}"#;
    let other = end.replace("initial-events-end", "x");
    let (passed, _) = filter(Shape::Watch, TableRows::WithoutObject, &format!("{end}\n{other}\n"));
    let null = r#"{"type":"BOOKMARK","object":{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[{"cells":[],"object":null}]}}"#;
    assert_eq!(passed, format!("{end}\n{null}\n"));
}

#[test]
fn a_renamed_row_shows_the_new_name_in_its_object_and_its_cell() {
    for (columns, before, after) in [
        (COLUMNS, r#"["old","old"]"#, r#"["old","n"]"#),
        (COLUMNS, r#"[["old"],"o\u006cd"]"#, r#"[["old"],"n"]"#),
        (COLUMNS, r#"["old","other"]"#, r#"["old","other"]"#),
        (COLUMNS, r#"["old"]"#, r#"["old"]"#),
        (r#"[{"name":"Name"}]"#, r#"["old","old"]"#, r#"["n","old"]"#),
        ("null", r#"["old",7]"#, r#"["n",7]"#),
        ("[1]", r#"[{"a":"old"},7]"#, r#"[{"a":"old"},7]"#),
    ] {
        for (first, last) in [("cells", "object"), ("object", "cells")] {
            let row = |cells: &str, name: &str| {
                let value = |key| if key == "cells" { cells.to_owned() } else { object(name) };
                format!(r#"{{"{first}":{},"{last}":{}}}"#, value(first), value(last))
            };
            let (body, wanted) = (table(columns, &[row(before, "old")]), table(columns, &[row(after, "n")]));
            assert_eq!(list(&body), wanted);
            let body = Bytes::from(body);
            assert_eq!(
                rename_in_table(&body, "old", "n", TableRows::WithObject),
                Ok(Some(Bytes::from(wanted)))
            );
        }
    }
    let lease = Bytes::from_static(br#"{"kind":"Lease","metadata":{"name":"old"},"rows":[]}"#);
    assert_eq!(rename_in_table(&lease, "old", "n", TableRows::WithObject), Ok(None));
}

#[test]
fn an_event_is_hidden_when_all_its_rows_are() {
    let events = |names: &[&[&str]]| -> String {
        names.iter().map(|names| event("MODIFIED", COLUMNS, names)).collect()
    };
    assert_eq!(
        watch(&events(&[&["a"], &["x"], &["x", "b", "x", "c"], &["x", "x"], &[]])),
        events(&[&["a"], &["b", "c"], &[]])
    );
    let bookmark = event("BOOKMARK", "null", &["x"]);
    assert_eq!(watch(&bookmark), bookmark);
    let error = "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"code\":410}}\n";
    assert_eq!(watch(error), error);
    let (_, counts) = filter(Shape::Watch, TableRows::WithObject, &events(&[&["a"], &["x", "b"]]));
    assert_eq!((counts.unwrap().kept, counts.unwrap().hidden), (2, 1));
}

#[test]
fn the_first_event_that_is_shown_has_the_columns() {
    let hidden = event("ADDED", COLUMNS, &["x"]) + &event("ADDED", "null", &["x"]);
    let shown = |kind: &str, columns: &str| event(kind, columns, &["old"]);
    for kind in ["ADDED", "BOOKMARK"] {
        let passed = watch(&(hidden.clone() + &shown(kind, "null") + &shown(kind, "null")));
        let wanted = shown(kind, COLUMNS) + &shown(kind, "null");
        let renamed = wanted.replace("\"old\"", "\"n\"");
        assert_eq!(passed, if kind == "ADDED" { renamed } else { wanted });
    }
    // Columns that came again are shown as they came.
    let other = COLUMNS.replace("Age", "Old");
    let passed = watch(&(hidden + &shown("BOOKMARK", &other) + &shown("BOOKMARK", "null")));
    assert_eq!(passed, shown("BOOKMARK", &other) + &shown("BOOKMARK", "null"));
}

#[test]
fn the_last_kind_and_version_say_what_an_object_is() {
    let event = |members: &str| {
        format!(
            "{{\"type\":\"ADDED\",\"object\":{{{members},\"metadata\":{{\"name\":\"a\"}},\"rows\":[{}]}}}}\n",
            row("x")
        )
    };
    for (members, is_table) in [
        (r#""apiVersion":"meta.k8s.io/v1","kind":"Table""#, true),
        (r#""kind":"Sheet","kind":"T\u0061ble","\u0061piVersion":"meta.k8s.io\/v1""#, true),
        (r#""kind":{"kind":"Sheet"},"kind":"Table","apiVersion":[],"apiVersion":"meta.k8s.io/v1""#, true),
        (r#""kind":"Table","apiVersion":"meta.k8s.io/v1","spec":{"kind":"Sheet"},"Kind":7"#, true),
        (r#""kind":"Table","kind":"Sheet","apiVersion":"meta.k8s.io/v1""#, false),
        (r#""kind":"Table","apiVersion":"meta.k8s.io/v1","apiVersion":null"#, false),
        (r#""kind":"Table","kind":{},"apiVersion":"meta.k8s.io/v1""#, false),
        (r#""kind":"Table","apiVersion":"meta.k8s.io/v1","apiVersion":["meta.k8s.io/v1"]"#, false),
        (r#""kind":"Table","spec":{"apiVersion":"meta.k8s.io/v1"}"#, false),
    ] {
        let body = event(members);
        assert_eq!(watch(&body), if is_table { "" } else { &body });
        let object =
            Bytes::copy_from_slice(&body.as_bytes()[r#"{"type":"ADDED","object":"#.len()..body.len() - 2]);
        assert_eq!(super::is_table(&object), Ok(is_table), "{members}");
    }
}

#[test]
fn an_object_with_rows_of_its_own_is_no_table() {
    let event = |kind: &str, version: &str, name: &str| {
        format!(
            "{{\"type\":\"ADDED\",\"object\":{{\"kind\":\"{kind}\",\"apiVersion\":\"{version}\",\"metadata\":{{\"name\":\"{name}\"}},\"rows\":[7]}}}}\n"
        )
    };
    for (kind, version) in [("Sheet", "meta.k8s.io/v1"), ("Table", "example.com/v1")] {
        let body = event(kind, version, "a") + &event(kind, version, "x");
        assert_eq!(watch(&body), event(kind, version, "a"));
    }
    let pretty = "{\n \"type\": \"ADDED\",\n \"object\": {\"kind\": \"Table\",\n \"apiVersion\": \"meta.k8s.io/v1beta1\",\n \"rows\": [\n {\"object\": {\"metadata\": {\"name\": \"x\"}}},\n {\"object\": {\"metadata\": {\"name\": \"a\"}}}\n]}\n}";
    let passed = watch(pretty);
    assert_eq!(passed.matches('\n').count(), 1);
    assert!(passed.contains("\"a\"") && !passed.contains("\"x\""), "{passed}");
}
