//! Any bytes in any chunks: no panic, and an outcome that does not depend on the chunks.

use crate::filter::object::{rename, rename_apply, rename_in_table, rename_json_patch, view};
use crate::filter::proto::reference::{frame, list, object, packed};
use crate::filter::testing::{By, feed, sample};
use crate::filter::{Encoding, Scanner, Shape, TableRows};
use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;

/// Bytes that come close to what the scanners read.
fn body() -> impl Strategy<Value = Vec<u8>> {
    let list_text = r#"{"metadata":{"remainingItemCount":1},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"old"}}]}"#;
    let event = "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"old\"}}}\n";
    let table = format!(
        r#"{{"type":"ADDED","object":{{"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":[{{"format":"name"}}],"rows":[{}]}}}}"#,
        ["a", "x", "old"]
            .map(|name| format!(r#"{{"cells":["{name}"],"object":{{"metadata":{{"name":"{name}"}}}}}}"#))
            .join(",")
    );
    let good = prop_oneof![
        Just(table.into_bytes()),
        Just(list_text.as_bytes().to_vec()),
        Just(event.as_bytes().to_vec()),
        Just(packed("PodList", &list(&["a", "x", "old"]))),
        Just([frame("ADDED", &object("old")), frame("BOOKMARK", &object("x"))].concat()),
    ];
    let damage = vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    let damaged = (good, damage).prop_map(|(mut body, damage)| {
        for (at, byte) in damage {
            let at = at.index(body.len());
            body[at] = byte;
        }
        body
    });
    prop_oneof![3 => damaged, 1 => vec(any::<u8>(), 0..60), 1 => "[{}\\[\\]\":,\\\\a1 \n]{0,40}".prop_map(String::into_bytes)]
}

proptest! {
    #[test]
    fn the_outcome_does_not_depend_on_the_chunks(body in body(), sizes in vec(1_usize..20, 1..6), limit in 0_usize..200, bare: bool) {
        let rows = if bare { TableRows::WithoutObject } else { TableRows::WithObject };
        for encoding in [Encoding::Json, Encoding::Protobuf] {
            for shape in [Shape::List, Shape::Watch] {
                let scan = || Scanner::with_exact_limit(encoding, shape, By(sample), limit).with_tables(rows);
                let whole = feed(scan(), &body, &[usize::MAX]);
                prop_assert_eq!(feed(scan(), &body, &sizes), whole);
            }
        }
    }

    #[test]
    fn objects_never_panic(body in body()) {
        let body = Bytes::from(body);
        for encoding in [Encoding::Json, Encoding::Protobuf] {
            let _ = (view(&body, encoding), rename(&body, encoding, "old", "new"));
        }
        let _ = rename_in_table(&body, "old", "new", TableRows::WithObject);
        let _ = (rename_json_patch(&body, "old", "new"), rename_apply(&body, "old", "new"));
    }
}
