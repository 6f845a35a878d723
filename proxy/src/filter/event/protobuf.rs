//! Events in protobuf, each in its frame.

use super::{Change, Event, Key, number};
use crate::filter::FilterError;
use crate::filter::proto::MAGIC;
use crate::filter::proto::event::{EXTENSION_RAW, OBJECT, PREFIX, TYPE, framed, raw_of};
use crate::filter::proto::message::{
    self, Envelope, METADATA, Names, RAW, RESOURCE_VERSION, TYPE_META, repack, rewrite,
};
use crate::filter::proto::wire::{Field, Fields, Wire, put_bytes};
use bytes::Bytes;

const OWNER_REFERENCES: u64 = 13;
// Of `OwnerReference` (apimachinery `pkg/apis/meta/v1/generated.proto`).
const OWNER_UID: u64 = 4;
const OWNER_CONTROLLER: u64 = 6;

const NOT_EVENT: FilterError = FilterError::Malformed("a framed watch event with an object");

pub(super) fn read(event: &[u8]) -> Result<Event, FilterError> {
    let (mut change, mut object) = ("", None);
    for field in Fields::of(unframed(event)?) {
        let field = field?;
        match field.number {
            TYPE => change = field.text()?,
            OBJECT => object = raw_of(field.bytes()?)?.or(object),
            _ => {}
        }
    }
    let object = Envelope::open(object.ok_or(NOT_EVENT)?)?.raw;
    let Names { namespace, name, uid, version, .. } = message::names(object)?;
    Ok(Event {
        change: Change::of(change)?,
        key: Key { namespace: namespace.to_owned(), name: name.to_owned() },
        uid: uid.to_owned(),
        version: number(version)?,
        owner: owner(object)?,
    })
}

pub(super) fn retyped(event: &Bytes, change: Change) -> Result<Bytes, FilterError> {
    let event = rewrite(unframed(event)?, TYPE, |_| Ok(change.name().as_bytes().to_vec()))?;
    Ok(Bytes::from(framed(&event)))
}

pub(super) fn deleted(event: &Bytes, version: u64) -> Result<Bytes, FilterError> {
    let version = version.to_string().into_bytes();
    let event = rewrite(unframed(event)?, OBJECT, |extension| {
        rewrite(extension, EXTENSION_RAW, |envelope| {
            repack(envelope, |object| {
                rewrite(object, METADATA, |metadata| {
                    rewrite(metadata, RESOURCE_VERSION, |_| Ok(version.clone()))
                })
            })
        })
    })?;
    retyped(&Bytes::from(framed(&event)), Change::Deleted)
}

pub(super) fn bookmark(event: &[u8], version: u64) -> Result<Bytes, FilterError> {
    let mut type_meta = None;
    for field in Fields::of(unframed(event)?) {
        let field = field?;
        if field.number == OBJECT {
            let envelope = raw_of(field.bytes()?)?.and_then(|bytes| bytes.strip_prefix(MAGIC));
            type_meta = find(envelope.ok_or(NOT_EVENT)?, TYPE_META)?;
        }
    }
    let put = |number, value: &[u8]| {
        let mut field = Vec::new();
        put_bytes(number, value, &mut field);
        field
    };
    let object = put(METADATA, &put(RESOURCE_VERSION, version.to_string().as_bytes()));
    let unknown = [put(TYPE_META, type_meta.ok_or(NOT_EVENT)?), put(RAW, &object)].concat();
    let envelope = [MAGIC, &unknown].concat();
    let event = [put(TYPE, b"BOOKMARK"), put(OBJECT, &put(EXTENSION_RAW, &envelope))].concat();
    Ok(Bytes::from(framed(&event)))
}

fn unframed(event: &[u8]) -> Result<&[u8], FilterError> {
    event.get(PREFIX..).ok_or(NOT_EVENT)
}

/// The uid of the owner that is the controller.
fn owner(object: &[u8]) -> Result<Option<String>, FilterError> {
    for field in Fields::of(object) {
        let metadata = field?;
        if metadata.number != METADATA {
            continue;
        }
        for field in Fields::of(metadata.bytes()?) {
            let field = field?;
            if field.number == OWNER_REFERENCES && is_controller(field.bytes()?)? {
                let uid = find(field.bytes()?, OWNER_UID)?.unwrap_or_default();
                return Ok(Some(String::from_utf8_lossy(uid).into_owned()));
            }
        }
    }
    Ok(None)
}

fn is_controller(reference: &[u8]) -> Result<bool, FilterError> {
    let mut is_controller = false;
    for field in Fields::of(reference) {
        let Field { number, wire, value, .. } = field?;
        if (number, wire) == (OWNER_CONTROLLER, Wire::Varint) {
            is_controller = value.iter().any(|byte| byte & 0x7f != 0);
        }
    }
    Ok(is_controller)
}

fn find(message: &[u8], number: u64) -> Result<Option<&[u8]>, FilterError> {
    let mut found = None;
    for field in Fields::of(message) {
        let field = field?;
        if field.number == number {
            found = Some(field.bytes()?);
        }
    }
    Ok(found)
}
