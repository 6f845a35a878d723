//! Patch bodies that are not simply objects: JSON patch, and apply in YAML.

use super::demand::{ANY_VERSION, Demand};
use super::json::replaced;
use crate::filter::held::Span;
use crate::filter::json::whole::{Edit, apply, elements, string_at};
use crate::filter::{Encoding, FilterError};
use bytes::Bytes;
use serde_json::{Value, json};
use std::borrow::Cow;

/// A JSON patch (RFC 6902) with the name that it tests or sets changed to `to` where it is `from`: `test`, `add` and
/// `replace` of `/metadata/name`, of `/metadata` and of the whole object.
pub fn rename_json_patch(bytes: &Bytes, from: &str, to: &str) -> Result<Bytes, FilterError> {
    let mut edits = Vec::new();
    for Span { start, end } in elements(bytes)? {
        let operation = bytes.slice(start..end);
        let edit = operation_edit(&operation, from, to)?;
        edits.extend(edit.map(|edit| edit.shifted(start)));
    }
    Ok(apply(bytes, edits))
}

/// What a JSON patch demands by itself: what its operations test or set, each after those before it. What is moved or copied
/// there counts for none.
pub fn demanded_in_json_patch(bytes: &Bytes) -> Result<Demand, FilterError> {
    let mut demand = Demand::default();
    for Span { start, end } in elements(bytes)? {
        let operation = bytes.slice(start..end);
        let says = matches!(string_at(&operation, &["op"])?.as_deref(), Some("test" | "add" | "replace"));
        let at = |path: &[&str]| {
            let text = string_at(&operation, path)?.map(Cow::into_owned).filter(|text| !text.is_empty());
            Ok::<_, FilterError>(text.filter(|_| says))
        };
        let version =
            |path: &[&str]| Ok::<_, FilterError>(at(path)?.filter(|version| version != ANY_VERSION));
        match string_at(&operation, &["path"])?.as_deref() {
            Some("/metadata/uid") => demand.uid = at(&["value"])?,
            Some("/metadata/resourceVersion") => demand.version = version(&["value"])?,
            Some("/metadata") => {
                let uid = at(&["value", "uid"])?;
                demand = Demand { uid, version: version(&["value", "resourceVersion"])? };
            }
            Some("") => {
                let uid = at(&["value", "metadata", "uid"])?;
                demand = Demand { uid, version: version(&["value", "metadata", "resourceVersion"])? };
            }
            _ => {}
        }
    }
    Ok(demand)
}

/// A JSON patch whose last operations set what it demands of its object, so that its own come before: the server compares
/// the metadata of the patched object with those of the stored one (apiserver `pkg/registry/generic/registry/store.go`).
pub fn demand_in_json_patch(bytes: &Bytes, demand: &Demand) -> Result<Bytes, FilterError> {
    let operations = elements(bytes)?;
    let add = |(field, value): (&str, &String)| {
        json!({"op": "add", "path": format!("/metadata/{field}"), "value": value}).to_string()
    };
    let demands = [("resourceVersion", &demand.version), ("uid", &demand.uid)];
    let demands = demands.into_iter().filter_map(|(field, value)| value.as_ref().map(|value| (field, value)));
    let demands: Vec<String> = demands.map(add).collect();
    let own = operations.last().map(|last| &bytes[..last.end]);
    let separator = if own.is_some() && !demands.is_empty() { "," } else { "" };
    let demands = demands.join(",");
    let all = [own.unwrap_or(b"["), separator.as_bytes(), demands.as_bytes(), b"]"];
    Ok(all.concat().into())
}

/// The body of a server-side apply, JSON or YAML, with `metadata.name` changed to `to` if it is `from`.
///
/// YAML that names another object stays as it is; else it is written as JSON, which is YAML too.
pub fn rename_apply(bytes: &Bytes, from: &str, to: &str) -> Result<Bytes, FilterError> {
    if let Ok(renamed) = super::rename(bytes, Encoding::Json, from, to) {
        return Ok(renamed);
    }
    let mut object = read_yaml(bytes)?;
    match object.pointer_mut("/metadata/name") {
        Some(name) if name == from => *name = Value::from(to),
        _ => return Ok(bytes.clone()),
    }
    Ok(Bytes::from(object.to_string()))
}

/// An object in YAML, written as JSON.
pub fn json_of_yaml(bytes: &Bytes) -> Result<Bytes, FilterError> {
    Ok(Bytes::from(read_yaml(bytes)?.to_string()))
}

fn read_yaml(bytes: &Bytes) -> Result<Value, FilterError> {
    let object: Option<Value> = serde_saphyr::from_slice(bytes).ok();
    object.filter(Value::is_object).ok_or(FilterError::Malformed("an object in JSON or YAML"))
}

fn operation_edit(operation: &Bytes, from: &str, to: &str) -> Result<Option<Edit>, FilterError> {
    if !matches!(string_at(operation, &["op"])?.as_deref(), Some("test" | "add" | "replace")) {
        return Ok(None);
    }
    let value: &[&str] = match string_at(operation, &["path"])?.as_deref() {
        Some("/metadata/name") => &["value"],
        Some("/metadata") => &["value", "name"],
        Some("") => &["value", "metadata", "name"],
        _ => return Ok(None),
    };
    replaced(operation, value, from, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demands(uid: Option<&str>, version: Option<&str>) -> Demand {
        Demand { uid: uid.map(str::to_owned), version: version.map(str::to_owned) }
    }

    #[test]
    fn a_json_patch_demands_what_its_operations_leave() {
        let uid = r#"{"op":"test","path":"/metadata/uid","value":"u"}"#;
        let version = r#"{"op":"replace","path":"/metadata/resourceVersion","value":"7"}"#;
        for (operations, wanted) in [
            (vec![], demands(None, None)),
            (vec![uid, version], demands(Some("u"), Some("7"))),
            (vec![version, r#"{"op":"remove","path":"/metadata/resourceVersion"}"#], demands(None, None)),
            (
                vec![version, r#"{"op":"copy","from":"/a","path":"/metadata/resourceVersion"}"#],
                demands(None, None),
            ),
            (vec![r#"{"op":"add","path":"/metadata/resourceVersion","value":"0"}"#], demands(None, None)),
            (vec![r#"{"op":"add","path":"/metadata/resourceVersion","value":""}"#], demands(None, None)),
            (
                vec![version, r#"{"op":"replace","path":"/metadata","value":{"uid":"v"}}"#],
                demands(Some("v"), None),
            ),
            (vec![uid, r#"{"op":"remove","path":"/metadata"}"#], demands(None, None)),
            (
                vec![r#"{"op":"replace","path":"","value":{"metadata":{"resourceVersion":"9"}}}"#],
                demands(None, Some("9")),
            ),
            (vec![r#"{"op":"add","path":"/spec/uid","value":"x"}"#], demands(None, None)),
        ] {
            let bytes = Bytes::from(format!("[{}]", operations.join(",")));
            assert_eq!(demanded_in_json_patch(&bytes), Ok(wanted), "{operations:?}");
        }
    }

    #[test]
    fn what_a_json_patch_is_told_to_demand_comes_last() {
        let own = r#"{"op":"test","path":"/a","value":"]"}"#;
        let both = demands(Some("u"), Some("7"));
        for (before, own) in [("[]", ""), ("[ ]", ""), (&*format!("[ {own} ]"), own)] {
            let after = demand_in_json_patch(&Bytes::copy_from_slice(before.as_bytes()), &both).unwrap();
            assert_eq!(demanded_in_json_patch(&after), Ok(both.clone()), "{before}");
            let spans = elements(&after).unwrap();
            let first = spans.len() - 2;
            assert_eq!(first, usize::from(!own.is_empty()));
            assert!(String::from_utf8_lossy(&after).contains(own));
        }
        for bad in ["{}", "[1]", "["] {
            assert!(demand_in_json_patch(&Bytes::copy_from_slice(bad.as_bytes()), &both).is_err(), "{bad}");
        }
    }
}
