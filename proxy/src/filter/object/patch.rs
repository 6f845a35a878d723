//! Patch bodies that are not simply objects: JSON patch, and apply in YAML.

use super::json::replaced;
use crate::filter::held::Span;
use crate::filter::json::whole::{Edit, apply, elements, string_at};
use crate::filter::{Encoding, FilterError};
use bytes::Bytes;
use serde_json::Value;

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
