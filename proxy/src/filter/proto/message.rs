//! Reads and edits single messages: the envelope, an object's metadata, a list's metadata.

use super::MAGIC;
use super::wire::{Fields, Wire, put_bytes};
use crate::filter::{FilterError, Lens, Verdict, View};

/// `metadata` of every object and every list.
pub(in crate::filter) const METADATA: u64 = 1;
/// `raw` of a `runtime.Unknown`.
pub(in crate::filter) const RAW: u64 = 2;
/// `typeMeta` of a `runtime.Unknown`.
pub(in crate::filter) const TYPE_META: u64 = 1;
/// `contentEncoding` of a `runtime.Unknown`.
pub(in crate::filter) const CONTENT_ENCODING: u64 = 3;

/// `name` of an object's metadata.
pub(in crate::filter) const NAME: u64 = 1;
const GENERATE_NAME: u64 = 2;
const NAMESPACE: u64 = 3;
/// `uid` of an object's metadata.
pub(in crate::filter) const UID: u64 = 5;
/// `resourceVersion` of an object's metadata.
pub(in crate::filter) const RESOURCE_VERSION: u64 = 6;
const KIND: u64 = 2;
// Of `ListMeta`.
const LIST_VERSION: u64 = 2;
const CONTINUE: u64 = 3;
const REMAINING_ITEM_COUNT: u64 = 4;

/// What the filter reads of an object.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(in crate::filter) struct Names<'a> {
    pub(in crate::filter) name: &'a str,
    pub(in crate::filter) generate_name: &'a str,
    pub(in crate::filter) namespace: &'a str,
    pub(in crate::filter) uid: &'a str,
    pub(in crate::filter) version: &'a str,
}

/// The names of an object, given as its message. Repeated messages are merged, of a repeated string the last counts.
pub(in crate::filter) fn names(object: &[u8]) -> Result<Names<'_>, FilterError> {
    let mut names = Names::default();
    for field in Fields::of(object) {
        let field = field?;
        if field.number != METADATA {
            continue;
        }
        for field in Fields::of(field.bytes()?) {
            let field = field?;
            match field.number {
                NAME => names.name = field.text()?,
                GENERATE_NAME => names.generate_name = field.text()?,
                NAMESPACE => names.namespace = field.text()?,
                UID => names.uid = field.text()?,
                RESOURCE_VERSION => names.version = field.text()?,
                _ => {}
            }
        }
    }
    Ok(names)
}

/// Asks the lens about an object, which may be gone.
pub(in crate::filter) fn ask<'l>(
    lens: &'l impl Lens,
    object: &[u8],
    deleted: bool,
) -> Result<Verdict<'l>, FilterError> {
    let Names { namespace, name, uid, version, .. } = names(object)?;
    Ok(lens.verdict(View { namespace, name, uid, version, deleted }))
}

/// The object under another name.
pub(in crate::filter) fn rename(object: &[u8], new: &str) -> Result<Vec<u8>, FilterError> {
    if names(object)?.name.is_empty() {
        return Err(FilterError::Rename("it has no name"));
    }
    rewrite(object, METADATA, |metadata| rewrite(metadata, NAME, |_| Ok(new.as_bytes().to_vec())))
}

/// A list's metadata without `remainingItemCount`, and with the page token that the lens wants; `None` if that changes
/// nothing.
pub(in crate::filter) fn list_metadata<L: Lens>(
    metadata: &[u8],
    lens: &L,
) -> Result<Option<Vec<u8>>, FilterError> {
    let mut rest = Vec::new();
    for field in Fields::of(metadata) {
        let field = field?;
        match field.number {
            REMAINING_ITEM_COUNT => continue,
            LIST_VERSION if L::FOLLOWS => lens.listed(field.text()?),
            CONTINUE if L::FOLLOWS => {
                let token = Some(field.text()?).filter(|token| !token.is_empty());
                if let Some(token) = token.and_then(|token| lens.token(token)) {
                    put_bytes(CONTINUE, token.as_bytes(), &mut rest);
                    continue;
                }
            }
            _ => {}
        }
        rest.extend_from_slice(field.whole);
    }
    Ok(Some(rest).filter(|rest| rest != metadata))
}

/// The kind in a `typeMeta`.
pub(in crate::filter) fn kind(type_meta: &[u8]) -> Result<&str, FilterError> {
    let mut kind = "";
    for field in Fields::of(type_meta) {
        let field = field?;
        if field.number == KIND {
            kind = field.text()?;
        }
    }
    Ok(kind)
}

/// The parts of a whole `k8s\0` envelope that matter.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(in crate::filter) struct Envelope<'a> {
    /// The kind of the object.
    pub(in crate::filter) kind: &'a str,
    /// Its message.
    pub(in crate::filter) raw: &'a [u8],
}

// === impl Envelope ===

impl<'a> Envelope<'a> {
    /// Opens an envelope.
    pub(in crate::filter) fn open(bytes: &'a [u8]) -> Result<Self, FilterError> {
        let (mut kind_of, mut raw) = ("", None);
        for field in Fields::of(unprefixed(bytes)?) {
            let field = field?;
            match field.number {
                TYPE_META => kind_of = kind(field.bytes()?)?,
                RAW => raw = Some(field.bytes()?),
                CONTENT_ENCODING => plain(field.bytes()?)?,
                _ => {}
            }
        }
        let raw = raw.ok_or(FilterError::Malformed("raw in the k8s envelope"))?;
        Ok(Self { kind: kind_of, raw })
    }
}

/// The envelope with its object edited.
pub(in crate::filter) fn repack(
    bytes: &[u8],
    edit: impl FnMut(&[u8]) -> Result<Vec<u8>, FilterError>,
) -> Result<Vec<u8>, FilterError> {
    let body = rewrite(unprefixed(bytes)?, RAW, edit)?;
    Ok([MAGIC, &body].concat())
}

/// Refuses a `contentEncoding`: what is in `raw` then is not a message.
pub(in crate::filter) fn plain(content_encoding: &[u8]) -> Result<(), FilterError> {
    if content_encoding.is_empty() {
        Ok(())
    } else {
        Err(FilterError::Malformed("no content encoding inside protobuf"))
    }
}

/// The message with each value of the field `number` edited; all else stays byte for byte.
pub(in crate::filter) fn rewrite(
    message: &[u8],
    number: u64,
    mut edit: impl FnMut(&[u8]) -> Result<Vec<u8>, FilterError>,
) -> Result<Vec<u8>, FilterError> {
    let mut to = Vec::with_capacity(message.len());
    for field in Fields::of(message) {
        let field = field?;
        if field.number == number && field.wire == Wire::Bytes {
            put_bytes(number, &edit(field.value)?, &mut to);
        } else {
            to.extend_from_slice(field.whole);
        }
    }
    Ok(to)
}

fn unprefixed(bytes: &[u8]) -> Result<&[u8], FilterError> {
    bytes.strip_prefix(MAGIC).ok_or(FilterError::Malformed("the prefix k8s\\0"))
}
