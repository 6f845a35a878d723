//! A lock's body under another name is the same body but for the name.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use shoal_proxy::filter::Encoding;
use shoal_proxy::filter::object::{rename, rename_apply, rename_json_patch, view};
use shoal_proxy_fuzz::proto::{envelope, fields};
use shoal_proxy_fuzz::tree::Tree;

const FROM: &str = "lock";
const TO: &str = "lock-a-0";

fuzz_target!(|data: &[u8]| {
    let Some((form, body)) = data.split_first() else { return };
    let body = Bytes::copy_from_slice(body);
    match form % 4 {
        0 => json(&body),
        1 => protobuf(&body),
        2 => patch(&body),
        _ => apply(&body),
    }
});

fn json(body: &Bytes) {
    let (seen, renamed) = (view(body, Encoding::Json), rename(body, Encoding::Json, FROM, TO));
    let Ok(mut wanted) = serde_json::from_slice::<Tree>(body) else { return };
    if let Ok(seen) = &seen {
        let names = wanted.names().expect("the filter has read it");
        assert_eq!((&seen.name, &seen.namespace, &seen.generate_name), (&names.name, &names.namespace, &names.generate_name));
    }
    let Ok(renamed) = renamed else { return };
    let is_status = wanted.get("kind").and_then(Tree::text) == Some("Status");
    let parent = if is_status { "details" } else { "metadata" };
    put(wanted.get_mut(parent).and_then(|parent| parent.get_mut("name")));
    if let Some(Tree::Text(message)) = wanted.get_mut("message").filter(|_| is_status) {
        *message = message.replace(&format!("\"{FROM}\""), &format!("\"{TO}\""));
    }
    assert_eq!(serde_json::from_slice::<Tree>(&renamed).expect("JSON"), wanted);
}

fn protobuf(body: &Bytes) {
    let (seen, renamed) = (view(body, Encoding::Protobuf), rename(body, Encoding::Protobuf, FROM, TO));
    let (Ok(seen), Ok(renamed)) = (seen, renamed) else { return };
    let kind = envelope(body).and_then(|envelope| kind(&envelope));
    if kind.as_deref() == Some("Status") {
        return;
    }
    let again = view(&renamed, Encoding::Protobuf).expect("still an object");
    assert_eq!(again.namespace, seen.namespace);
    assert_eq!(again.name, if seen.name == FROM { TO } else { &seen.name });
    let numbers = |body: &[u8]| envelope(body).map(|fields| fields.iter().map(|field| field.0).collect::<Vec<_>>());
    assert_eq!(numbers(&renamed), numbers(body));
}

fn kind(envelope: &[(u64, u8, Vec<u8>)]) -> Option<String> {
    let type_meta = envelope.iter().rev().find(|(number, ..)| *number == 1)?;
    let (.., kind) = fields(&type_meta.2)?.into_iter().rev().find(|(number, ..)| *number == 2)?;
    String::from_utf8(kind).ok()
}

fn patch(body: &Bytes) {
    let Ok(renamed) = rename_json_patch(body, FROM, TO) else { return };
    let Ok(mut wanted) = serde_json::from_slice::<Tree>(body) else { return };
    let Tree::Array(operations) = &mut wanted else { panic!("no array is a patch") };
    for operation in operations {
        if !matches!(operation.get("op").and_then(Tree::text), Some("test" | "add" | "replace")) {
            continue;
        }
        let keys: &[&str] = match operation.get("path").and_then(Tree::text) {
            Some("/metadata/name") => &["value"],
            Some("/metadata") => &["value", "name"],
            Some("") => &["value", "metadata", "name"],
            _ => continue,
        };
        put(keys.iter().try_fold(operation, |tree, key| tree.get_mut(key)));
    }
    assert_eq!(serde_json::from_slice::<Tree>(&renamed).expect("JSON"), wanted);
}

fn apply(body: &Bytes) {
    let Ok(renamed) = rename_apply(body, FROM, TO) else { return };
    if serde_json::from_slice::<Tree>(body).is_ok() {
        return;
    }
    let Ok(mut wanted) = serde_saphyr::from_slice::<Value>(body) else { return };
    // A Status has its names elsewhere; as a body of a request it is nonsense, and the server says so.
    if wanted["kind"] == "Status" {
        return;
    }
    let name = wanted.pointer_mut("/metadata/name").filter(|name| *name == FROM);
    if renamed == body {
        assert_eq!(name, None);
        return;
    }
    *name.expect("only a lock's body changes") = TO.into();
    // First as JSON, since a key of more than 1024 bytes is none in YAML. What is JSON but for a line break in a string
    // is edited in place and stays YAML.
    let seen = serde_json::from_slice::<Value>(&renamed).ok();
    let seen = seen.unwrap_or_else(|| serde_saphyr::from_slice(&renamed).expect("YAML"));
    assert_eq!(seen, wanted);
}

fn put(name: Option<&mut Tree>) {
    if let Some(Tree::Text(name)) = name.filter(|name| name.text() == Some(FROM)) {
        TO.clone_into(name);
    }
}
