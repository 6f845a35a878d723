//! Objects in protobuf, with their envelope.

use super::{OwnedView, requoted};
use crate::filter::FilterError;
use crate::filter::proto::message::{self, Envelope, repack, rewrite};
use crate::filter::proto::wire::{Field, Fields, Wire, put_bytes};
use bytes::Bytes;

// Of `metav1.Status` (apimachinery, `meta/v1/generated.proto`).
const MESSAGE: u64 = 3;
const REASON: u64 = 4;
const DETAILS: u64 = 5;
/// `name` of the details.
const DETAILS_NAME: u64 = 1;

pub(super) fn view(bytes: &Bytes) -> Result<OwnedView, FilterError> {
    let names = message::names(Envelope::open(bytes)?.raw)?;
    Ok(OwnedView {
        namespace: names.namespace.to_owned(),
        name: names.name.to_owned(),
        generate_name: names.generate_name.to_owned(),
        uid: names.uid.to_owned(),
    })
}

pub(super) fn rename(bytes: &Bytes, from: &str, to: &str) -> Result<Bytes, FilterError> {
    let envelope = Envelope::open(bytes)?;
    if envelope.kind == "Status" {
        return repack(bytes, |status| rename_status(status, from, to)).map(Bytes::from);
    }
    if message::names(envelope.raw)?.name != from {
        return Ok(bytes.clone());
    }
    repack(bytes, |object| message::rename(object, to)).map(Bytes::from)
}

/// Of a repeated string the last one counts.
pub(super) fn give_name(bytes: &Bytes, name: &str) -> Result<Bytes, FilterError> {
    let named = repack(bytes, |object| {
        rewrite(object, message::METADATA, |metadata| {
            let mut metadata = metadata.to_vec();
            put_bytes(message::NAME, name.as_bytes(), &mut metadata);
            Ok(metadata)
        })
    });
    named.map(Bytes::from)
}

pub(super) fn status_reason(bytes: &Bytes) -> Result<String, FilterError> {
    let mut reason = "";
    for field in Fields::of(Envelope::open(bytes)?.raw) {
        let field: Field<'_> = field?;
        if field.number == REASON {
            reason = field.text()?;
        }
    }
    Ok(reason.to_owned())
}

fn rename_status(status: &[u8], from: &str, to: &str) -> Result<Vec<u8>, FilterError> {
    let mut renamed = Vec::with_capacity(status.len());
    for field in Fields::of(status) {
        let field: Field<'_> = field?;
        match (field.number, field.wire) {
            (MESSAGE, Wire::Bytes) => {
                put_bytes(MESSAGE, requoted(field.text()?, from, to).as_bytes(), &mut renamed);
            }
            (DETAILS, Wire::Bytes) => {
                let details = rewrite(field.value, DETAILS_NAME, |name| {
                    Ok(if name == from.as_bytes() { to.as_bytes() } else { name }.to_vec())
                })?;
                put_bytes(DETAILS, &details, &mut renamed);
            }
            _ => renamed.extend_from_slice(field.whole),
        }
    }
    Ok(renamed)
}
