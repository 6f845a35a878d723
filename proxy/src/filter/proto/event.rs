//! A protobuf watch: frames of a 4-byte big-endian length and a bare `WatchEvent{type=1, object=2{raw=1}}`.
//!
//! `raw` holds the object in an envelope of its own (apimachinery, `util/framer` and `serializer/protobuf`). A frame passes when
//! it is complete, whole or not at all.

use super::MAGIC;
use super::message::{self, CONTENT_ENCODING, Envelope, RAW, TYPE_META, repack, rewrite};
use super::wire::{Fields, put_bytes, put_varint};
use crate::filter::held::{Place, Read};
use crate::filter::{FilterError, INITIAL_EVENTS_END, Lens, MAX_PIECE, Verdict};
use bytes::Bytes;
use memchr::memmem;

/// The bytes of a frame's length.
pub(in crate::filter) const PREFIX: usize = 4;

/// `type` of a `WatchEvent`.
pub(in crate::filter) const TYPE: u64 = 1;
/// `object` of a `WatchEvent`.
pub(in crate::filter) const OBJECT: u64 = 2;
/// `raw` of a `RawExtension`.
pub(in crate::filter) const EXTENSION_RAW: u64 = 1;

const NOT_EVENT: FilterError = FilterError::Malformed("a watch event with an object");

/// The scanner of one watch.
#[derive(Debug)]
pub(in crate::filter) struct ProtoWatch<L> {
    lens: L,
    /// The length of the frame at hand, once it is read.
    length: Option<usize>,
}

// === impl ProtoWatch ===

impl<L: Lens> ProtoWatch<L> {
    pub(in crate::filter) fn new(lens: L) -> Self {
        Self { lens, length: None }
    }

    /// A frame is complete.
    fn decide(&mut self, place: &mut Place<'_>) -> Result<(), FilterError> {
        let frame = place.piece();
        let size = frame.len();
        let event = &frame[PREFIX..];
        let verdict = self.judge(event)?;
        let renamed = if let Some(Verdict::Rename(new)) = verdict { Some(rename(event, new)?) } else { None };
        if let Some(verdict) = verdict {
            place.out.count(verdict.shows(), size);
        }
        match (verdict, renamed) {
            (Some(Verdict::Hold), _) => {
                self.lens.hold(place.piece());
                place.mark();
            }
            (Some(Verdict::Drop), _) => place.mark(),
            (_, Some(event)) => {
                place.out.copy(&framed(&event));
                place.mark();
            }
            (_, None) => place.pass_all(),
        }
        Ok(())
    }

    /// What the lens says about an event; `None` for bookmarks and errors, which it does not see.
    fn judge(&self, event: &[u8]) -> Result<Option<Verdict<'_>>, FilterError> {
        let (mut name, mut object) = ("", None);
        for field in Fields::of(event) {
            let field = field?;
            match field.number {
                TYPE => name = field.text()?,
                OBJECT => object = raw_of(field.bytes()?)?.or(object),
                _ => {}
            }
        }
        let object = object.ok_or(NOT_EVENT)?;
        match name {
            "ERROR" => Ok(None),
            "BOOKMARK" => {
                if L::FOLLOWS {
                    let version = message::names(Envelope::open(object)?.raw)?.version;
                    let ends_initial = memmem::find(object, INITIAL_EVENTS_END).is_some();
                    self.lens.bookmark(version, ends_initial);
                }
                Ok(None)
            }
            _ => message::ask(&self.lens, Envelope::open(object)?.raw, name == "DELETED").map(Some),
        }
    }
}

impl<L: Lens> Read for ProtoWatch<L> {
    fn read(&mut self, place: &mut Place<'_>) -> Result<(), FilterError> {
        loop {
            let length = match self.length {
                Some(length) => length,
                None if !place.fill(PREFIX) => return Ok(()),
                None => frame_length(place.piece())?,
            };
            self.length = Some(length);
            if !place.fill(PREFIX + length) {
                return Ok(());
            }
            self.length = None;
            self.decide(place)?;
        }
    }

    fn complete(&self) -> bool {
        self.length.is_none()
    }
}

fn frame_length(prefix: &[u8]) -> Result<usize, FilterError> {
    let length = prefix.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
    if length > MAX_PIECE { Err(FilterError::TooLarge) } else { Ok(length) }
}

/// The event with its length in front.
pub(in crate::filter) fn framed(event: &[u8]) -> Vec<u8> {
    let length = u32::try_from(event.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes()[..], event].concat()
}

/// The `raw` of a `RawExtension`.
pub(in crate::filter) fn raw_of(extension: &[u8]) -> Result<Option<&[u8]>, FilterError> {
    let mut raw = None;
    for field in Fields::of(extension) {
        let field = field?;
        if field.number == EXTENSION_RAW {
            raw = Some(field.bytes()?);
        }
    }
    Ok(raw)
}

fn rename(event: &[u8], new: &str) -> Result<Vec<u8>, FilterError> {
    rewrite(event, OBJECT, |extension| {
        rewrite(extension, EXTENSION_RAW, |envelope| repack(envelope, |object| message::rename(object, new)))
    })
}

/// A whole `ERROR` frame with a Status.
pub(in crate::filter) fn error(status_code: u16, reason: &str, text: &str) -> Bytes {
    let field = |number, value: &[u8]| {
        let mut field = Vec::new();
        put_bytes(number, value, &mut field);
        field
    };
    let mut code = Vec::new();
    put_varint(6 << 3, &mut code);
    put_varint(status_code.into(), &mut code);
    let status =
        [field(1, b""), field(2, b"Failure"), field(3, text.as_bytes()), field(4, reason.as_bytes()), code]
            .concat();
    let type_meta = [field(1, b"v1"), field(2, b"Status")].concat();
    let unknown =
        [field(TYPE_META, &type_meta), field(RAW, &status), field(CONTENT_ENCODING, b""), field(4, b"")];
    let envelope = [MAGIC, &unknown.concat()].concat();
    let event = [field(TYPE, b"ERROR"), field(OBJECT, &field(EXTENSION_RAW, &envelope))].concat();
    Bytes::from(framed(&event))
}

#[cfg(test)]
mod tests;
