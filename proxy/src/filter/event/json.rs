//! Events in JSON.

use super::{Change, Event, Key, number};
use crate::filter::FilterError;
use crate::filter::json::text::quote;
use crate::filter::json::whole::{Edit, apply, text_at};
use bytes::Bytes;
use serde::Deserialize;
use std::borrow::Cow;

const NOT_EVENT: FilterError = FilterError::Malformed("a watch event with an object that has metadata");

#[derive(Deserialize)]
struct Whole<'a> {
    #[serde(borrow, rename = "type")]
    change: Cow<'a, str>,
    #[serde(borrow)]
    object: Object<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Object<'a> {
    #[serde(borrow)]
    api_version: Cow<'a, str>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    namespace: String,
    name: String,
    #[serde(default)]
    uid: String,
    resource_version: String,
    owner_references: Option<Vec<Owner>>,
}

#[derive(Deserialize)]
struct Owner {
    uid: String,
    #[serde(default)]
    controller: Option<bool>,
}

pub(super) fn read(event: &[u8]) -> Result<Event, FilterError> {
    let Whole { change, object, .. } = whole(event)?;
    let Metadata { namespace, name, uid, resource_version, owner_references } = object.metadata;
    let mut owners = owner_references.unwrap_or_default().into_iter();
    Ok(Event {
        change: Change::of(&change)?,
        key: Key { namespace, name },
        uid,
        version: number(&resource_version)?,
        owner: owners.find(|owner| owner.controller == Some(true)).map(|owner| owner.uid),
    })
}

pub(super) fn retyped(event: &Bytes, change: Change) -> Result<Bytes, FilterError> {
    Ok(apply(event, vec![edit(event, &["type"], change.name())?]))
}

pub(super) fn deleted(event: &Bytes, version: u64) -> Result<Bytes, FilterError> {
    let version = edit(event, &["object", "metadata", "resourceVersion"], &version.to_string())?;
    Ok(apply(event, vec![edit(event, &["type"], Change::Deleted.name())?, version]))
}

pub(super) fn bookmark(event: &[u8], version: u64) -> Result<Bytes, FilterError> {
    let Whole { object: Object { api_version, kind, .. }, .. } = whole(event)?;
    let (api_version, kind) = (quote(&api_version), quote(&kind));
    Ok(Bytes::from(format!(
        "{{\"type\":\"BOOKMARK\",\"object\":{{\"kind\":{kind},\"apiVersion\":{api_version},\"metadata\":\
         {{\"resourceVersion\":\"{version}\"}}}}}}\n"
    )))
}

fn whole(event: &[u8]) -> Result<Whole<'_>, FilterError> {
    serde_json::from_slice(event).map_err(|_| NOT_EVENT)
}

fn edit(event: &Bytes, path: &[&str], text: &str) -> Result<Edit, FilterError> {
    Ok(Edit::string(text_at(event, path)?.ok_or(NOT_EVENT)?, text))
}
