use super::{OwnedView, give_name, rename, rename_apply, rename_json_patch, view};
use crate::filter::{Encoding, FilterError};
use bytes::Bytes;

fn json(text: &str) -> Result<String, FilterError> {
    let bytes = rename(&Bytes::copy_from_slice(text.as_bytes()), Encoding::Json, "lock", "lock-a-0")?;
    Ok(String::from_utf8(bytes.to_vec()).unwrap())
}

#[test]
fn names_are_read() {
    let text = r#"{"metadata":{"name":"x","namespace":"n\u0031","generateName":"g-","uid":"u-1"},"spec":{"metadata":{"name":"y"}}}"#;
    let names =
        OwnedView { namespace: "n1".into(), name: "x".into(), generate_name: "g-".into(), uid: "u-1".into() };
    assert_eq!(view(&Bytes::from(text), Encoding::Json), Ok(names));
    assert_eq!(view(&Bytes::from("{}"), Encoding::Json), Ok(OwnedView::default()));
    for text in ["[]", "1 ", "", "{", r#"{"metadata":[]}"#, "{} {}"] {
        assert!(view(&Bytes::from(text), Encoding::Json).is_err(), "{text}");
    }
}

#[test]
fn a_name_that_go_reads_in_two_ways_is_none() {
    for text in [
        r#"{"metadata":{"name":"x"},"metadata":{}}"#,
        r#"{"metadata":{"name":"x"},"metadata":{"name":"y"}}"#,
        r#"{"metadata":{"name":"x"},"metadata":null}"#,
        r#"{"metadata":{"name":"x","name":null}}"#,
        r#"{"metadata":{"name":"x"},"met\u0061data":{}}"#,
    ] {
        assert!(view(&Bytes::from(text), Encoding::Json).is_err(), "{text}");
    }
    for text in [r#"{"metadata":{"name":"x","name":"y"}}"#, r#"{"metadata":{},"metadata":{"name":"y"}}"#] {
        assert_eq!(view(&Bytes::from(text), Encoding::Json).unwrap().name, "y", "{text}");
    }
}

#[test]
fn only_metadata_name_changes() {
    for (before, after) in [
        (r#"{"metadata":{"name":"lock"}}"#, r#"{"metadata":{"name":"lock-a-0"}}"#),
        (
            r#"{ "name":"lock", "metadata" : {"name" :"l\u006fck", "x":"lock"} }"#,
            r#"{ "name":"lock", "metadata" : {"name" :"lock-a-0", "x":"lock"} }"#,
        ),
        (r#"{"metadata":{"name":"other"}}"#, r#"{"metadata":{"name":"other"}}"#),
        (r#"{"metadata":{"labels":{"name":"lock"}}}"#, r#"{"metadata":{"labels":{"name":"lock"}}}"#),
        (
            r#"{"spec":{"metadata":{"name":"lock"},"holderIdentity":"lock"}}"#,
            r#"{"spec":{"metadata":{"name":"lock"},"holderIdentity":"lock"}}"#,
        ),
        (
            r#"{"metadata":{"name":"x"},"metadata":{"name":"lock"}}"#,
            r#"{"metadata":{"name":"x"},"metadata":{"name":"lock-a-0"}}"#,
        ),
        (r#"{"metadata":{"name":"lock"},"metadata":{}}"#, r#"{"metadata":{"name":"lock"},"metadata":{}}"#),
        (r#"{"metadata":null}"#, r#"{"metadata":null}"#),
        ("{}", "{}"),
    ] {
        assert_eq!(json(before).unwrap(), after);
    }
    assert!(json(r#"{"metadata":{"name":"lock"}"#).is_err());
}

#[test]
fn a_status_names_the_object_the_client_asked_for() {
    let before = r#"{"kind":"Status","metadata":{},"message":"leases \"lock\" not found, not \"locks\"","details":{"name":"lock","kind":"leases"},"code":404}"#;
    let after = r#"{"kind":"Status","metadata":{},"message":"leases \"lock-a-0\" not found, not \"locks\"","details":{"name":"lock-a-0","kind":"leases"},"code":404}"#;
    assert_eq!(json(before).unwrap(), after);
    let bare = r#"{"kind":"Status","details":{"causes":[{"name":"lock"}]}}"#;
    assert_eq!(json(bare).unwrap(), bare);
}

#[test]
fn a_json_patch_names_the_object_in_three_places() {
    let patch = |text: &str| {
        rename_json_patch(&Bytes::copy_from_slice(text.as_bytes()), "lock", "l")
            .map(|b| String::from_utf8(b.to_vec()).unwrap())
    };
    for (before, after) in [
        (
            r#"[{"op":"replace","path":"/metadata/name","value":"lock"}]"#,
            r#"[{"op":"replace","path":"/metadata/name","value":"l"}]"#,
        ),
        (
            r#"[ {"value":"lock","op":"test","path":"\/metadata/name"},{"op":"add","path":"/metadata","value":{"name":"lock"}}]"#,
            r#"[ {"value":"l","op":"test","path":"\/metadata/name"},{"op":"add","path":"/metadata","value":{"name":"l"}}]"#,
        ),
        (
            r#"[{"op":"replace","path":"","value":{"metadata":{"name":"lock"}}}]"#,
            r#"[{"op":"replace","path":"","value":{"metadata":{"name":"l"}}}]"#,
        ),
        (
            r#"[{"op":"replace","path":"/spec/name","value":"lock"},{"op":"copy","path":"/metadata/name","value":"lock"}]"#,
            r#"[{"op":"replace","path":"/spec/name","value":"lock"},{"op":"copy","path":"/metadata/name","value":"lock"}]"#,
        ),
        ("[]", "[]"),
    ] {
        assert_eq!(patch(before).unwrap(), after);
    }
    for bad in ["{}", "[1]", "[[]]", "[{}", "null "] {
        assert!(patch(bad).is_err(), "{bad}");
    }
}

#[test]
fn apply_takes_yaml() {
    let apply = |text: &'static str| rename_apply(&Bytes::from(text), "lock", "l");
    let other = "metadata:\n  name: other # lock\n";
    assert_eq!(apply(other).unwrap(), other);
    assert_eq!(apply(r#"{"metadata":{"name":"lock"}}"#).unwrap(), r#"{"metadata":{"name":"l"}}"#);
    let yaml = "apiVersion: v1\nmetadata:\n  name: lock\nspec:\n  n: 18446744073709551615\n  t: \"2024-01-01T00:00:00Z\"\n";
    let value: serde_json::Value = serde_json::from_slice(&apply(yaml).unwrap()).unwrap();
    assert_eq!(
        value,
        serde_json::json!({"apiVersion":"v1","metadata":{"name":"l"},"spec":{"n":u64::MAX,"t":"2024-01-01T00:00:00Z"}})
    );
    for bad in ["just text", "- a", "a: [", "\t"] {
        assert!(apply(bad).is_err(), "{bad}");
    }
}

#[test]
fn protobuf_objects_and_statuses_are_read_and_renamed() {
    use crate::filter::proto::reference::{Details, Status, object, packed};
    let change = |bytes: Vec<u8>| {
        rename(&Bytes::from(bytes), Encoding::Protobuf, "lock", "lock-a-0").map(|b| b.to_vec())
    };
    let lease = packed("Lease", &object("lock"));
    let names =
        OwnedView { namespace: "ns".into(), name: "lock".into(), uid: "u".into(), ..OwnedView::default() };
    assert_eq!(view(&Bytes::from(lease.clone()), Encoding::Protobuf), Ok(names));
    assert_eq!(change(lease).unwrap(), packed("Lease", &object("lock-a-0")));
    let other = packed("Lease", &object("other"));
    assert_eq!(change(other.clone()).unwrap(), other);
    let status = |name: &str| {
        let details = Some(Details { name: name.into(), kind: "leases".into() });
        let message = format!("leases \"{name}\" not found");
        packed(
            "Status",
            &Status { outcome: "Failure".into(), message, reason: "NotFound".into(), details, code: 404 },
        )
    };
    assert_eq!(change(status("lock")).unwrap(), status("lock-a-0"));
    assert_eq!(change(status("other")).unwrap(), status("other"));
    assert!(change(b"{}".to_vec()).is_err());
}

#[test]
fn a_name_is_put_into_an_object_that_has_none() {
    for (before, after) in [
        (
            r#"{ "metadata" : {"generateName":"g-"}, "spec":{"name":"","metadata":{"name":""}} }"#,
            r#"{ "metadata" : {"name":"g-x","generateName":"g-"}, "spec":{"name":"","metadata":{"name":""}} }"#,
        ),
        (
            r#"{"metadata":{"labels":{"name":"l"},"name":"","generateName":"g-"}}"#,
            r#"{"metadata":{"labels":{"name":"l"},"name":"g-x","generateName":"g-"}}"#,
        ),
        (
            r#"{"metadata":{"generateName":"g-","name":null}}"#,
            r#"{"metadata":{"generateName":"g-","name":"g-x"}}"#,
        ),
        (
            r#"{"metadata":{"labels":{}},"metadata":{"generateName":"g-"}}"#,
            r#"{"metadata":{"labels":{}},"metadata":{"name":"g-x","generateName":"g-"}}"#,
        ),
    ] {
        let named = give_name(&Bytes::from(before), Encoding::Json, "g-x").unwrap();
        assert_eq!(named, after);
        assert_eq!(view(&named, Encoding::Json).unwrap().name, "g-x", "{before}");
    }
    for bad in ["[]", r#"{"metadata":null}"#, r#"{"metadata":{"#] {
        assert!(give_name(&Bytes::from(bad), Encoding::Json, "g-x").is_err(), "{bad}");
    }
}

#[test]
fn a_name_is_put_into_protobuf_too() {
    use crate::filter::proto::reference::{Object, object, packed, unpacked};
    let before = packed("Lease", &object(""));
    let named = give_name(&Bytes::from(before), Encoding::Protobuf, "g-x").unwrap();
    assert_eq!(unpacked::<Object>(&named).1, object("g-x"));
    assert_eq!(view(&named, Encoding::Protobuf).unwrap().name, "g-x");
    assert!(give_name(&Bytes::from("{}"), Encoding::Protobuf, "g-x").is_err());
}
