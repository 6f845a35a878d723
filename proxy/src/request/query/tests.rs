//! Edits keep what they do not name; reads agree with Go's.

use proptest::prelude::*;
use proptest::sample::select;

use super::*;

fn edited(raw: &str, edit: impl FnOnce(&mut Query)) -> String {
    let mut query = Query::new(Some(raw));
    edit(&mut query);
    query.as_str().to_owned()
}

#[test]
fn reads_the_first_value_decoded() {
    for (raw, value) in [
        ("a=1", Some("1")),
        ("a=1&a=2", Some("1")),
        ("b=1&%61=x%2Cy+z", Some("x,y z")),
        ("a", Some("")),
        ("a=", Some("")),
        ("a=b=c", Some("b=c")),
        ("a;=1&a=2;&a=3", Some("3")),
        ("a=%zz&a=%4&a=2", Some("2")),
        ("&&A=1&aa=1&=a", None),
        ("", None),
    ] {
        assert_eq!(first(raw, "a").unwrap().as_deref(), value, "{raw}");
    }
    assert_eq!(first("a=%ff", "a"), Err(RequestError::NotUtf8));
    assert_eq!(first("b=%ff", "a"), Ok(None));
}

#[test]
fn sets_in_place() {
    for (raw, after) in [
        ("x=%7E&a=1&y=+", "x=%7E&a=n%3Dv%20~&y=+"),
        ("%61=1&&b", "%61=n%3Dv%20~&&b"),
        ("a=1&b=2&a=3", "a=n%3Dv%20~&b=2"),
        ("a=;&b", "a=;&b&a=n%3Dv%20~"),
        ("", "a=n%3Dv%20~"),
        ("a", "a=n%3Dv%20~"),
    ] {
        assert_eq!(edited(raw, |query| query.set("a", "n=v ~")), after, "{raw}");
    }
}

#[test]
fn builds_the_request_target() {
    let target = |raw| Query::new(raw).path_and_query("/api/v1/pods%20").unwrap().as_str().to_owned();
    assert_eq!(target(Some("a=%2F&b")), "/api/v1/pods%20?a=%2F&b");
    assert_eq!(target(None), "/api/v1/pods%20");
}

/// A pair of some other key, in spellings that an edit must not touch.
fn other_pair() -> impl Strategy<Value = &'static str> {
    select(vec![
        "",
        "b",
        "b=",
        "b=%7e%7E",
        "b=+%20",
        "A=1",
        "b=a=1",
        "%zz=1",
        "a;=1",
        "b=%ff",
        "limit=500",
        "=a",
    ])
}

proptest! {
    #[test]
    fn edits_keep_the_rest(
        before in proptest::collection::vec(other_pair(), 0..5),
        after in proptest::collection::vec(other_pair(), 0..5),
        value in any::<String>(),
    ) {
        let around = |middle: &[String]| {
            let pairs = before.iter().chain(&after).map(ToString::to_string).collect::<Vec<_>>();
            let (head, tail) = pairs.split_at(before.len());
            [head, middle, tail].concat().join("&")
        };
        let raw = around(&["%61=old".to_owned()]);
        let set = edited(&raw, |query| query.set("a", &value));
        let got = first(&set, "a").unwrap();
        prop_assert_eq!(got.as_deref(), Some(value.as_str()));
        prop_assert_eq!(&set, &around(&[format!("%61={}", encode(&value))]));
        let appended = edited(&raw, |query| query.append("c", &value));
        prop_assert_eq!(appended, format!("{}&c={}", raw, encode(&value)));
    }

    #[test]
    fn a_written_value_reads_back(value in any::<String>(), key in "[^;]{1,8}") {
        let raw = edited("x=1", |query| query.append(&key, &value));
        let expected = if key == "x" { "1" } else { value.as_str() };
        let got = first(&raw, &key).unwrap();
        prop_assert_eq!(got.as_deref(), Some(expected));
    }

    #[test]
    fn no_query_panics(raw in any::<String>(), key in any::<String>()) {
        let _ = first(&raw, &key);
        let _ = check(&raw);
        let _ = edited(&raw, |query| query.set(&key, "v"));
    }
}
