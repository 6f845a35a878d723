//! A protobuf list of any kind.
//!
//! The list is one `bytes` field with its length in front, so leaving items out needs the final length before the first byte.
//! Two ways, the second after the first has grown too large:
//! - **exact**: kept fields are gathered until the list ends, then written with their true length;
//! - **holes**: from the moment more than `limit` bytes are gathered, the rest streams under the length it came with, and
//!   what is left out becomes a field 15, which no list has, of the same size and full of zeros.
//!
//! Exact first, because no client can use a part of a protobuf list: it decodes the whole body at once, so early bytes
//! would gain nothing and holes cost memory in the client. What a list gains by streaming, flat memory here, begins at
//! the limit. A limit of 0 streams from the first field on.

use super::MAGIC;
use super::message::{self, CONTENT_ENCODING, METADATA, RAW, TYPE_META};
use super::wire::{Head, Wire, hole, put_bytes, put_padded, put_varint};
use crate::filter::held::{Place, Read, Span};
use crate::filter::{FilterError, Lens, MAX_PIECE, Out, Verdict};
use bytes::{Bytes, BytesMut};
use std::mem;

const ITEMS: u64 = 2;

/// The size at which gathered bytes are closed into a buffer.
const SEGMENT: usize = 64 << 10;

/// The scanner of one list.
#[derive(Debug)]
pub(in crate::filter) struct ProtoList<L> {
    lens: L,
    limit: usize,
    level: Level,
    /// The field at hand, once its header is read.
    head: Option<Head>,
    raw_seen: bool,
}

#[derive(Debug)]
enum Level {
    Magic,
    Envelope,
    /// Inside the list; `left` bytes of it are still to come.
    List {
        left: usize,
        mode: Mode,
    },
}

#[derive(Debug)]
enum Mode {
    Exact(Gathered),
    Holes,
}

/// Bytes that wait for the length of the whole.
#[derive(Debug, Default)]
struct Gathered {
    segments: Vec<Bytes>,
    tail: BytesMut,
    size: usize,
}

// === impl ProtoList ===

impl<L: Lens> ProtoList<L> {
    pub(in crate::filter) fn new(lens: L, limit: usize) -> Self {
        Self { lens, limit, level: Level::Magic, head: None, raw_seen: false }
    }

    /// Each step says whether it could be done with the bytes at hand.
    fn magic(&mut self, place: &mut Place<'_>) -> Result<bool, FilterError> {
        if !place.fill(MAGIC.len()) {
            return Ok(false);
        }
        if place.piece() != MAGIC {
            return Err(FilterError::Malformed("the prefix k8s\\0"));
        }
        place.pass_all();
        self.level = Level::Envelope;
        Ok(true)
    }

    fn field(&mut self, place: &mut Place<'_>) -> Result<bool, FilterError> {
        let Some(head) = self.head.map_or_else(|| read_head(place), |head| Ok(Some(head)))? else {
            return Ok(false);
        };
        if matches!(self.level, Level::Envelope) && head.number == RAW {
            return self.begin_list(head, place);
        }
        if head.size > MAX_PIECE {
            return Err(FilterError::TooLarge);
        }
        self.head = Some(head);
        if !place.fill(head.total()) {
            return Ok(false);
        }
        self.head = None;
        match self.level {
            Level::List { .. } => self.list_field(head, place)?,
            Level::Envelope | Level::Magic => envelope_field(head, place)?,
        }
        Ok(true)
    }

    fn begin_list(&mut self, head: Head, place: &mut Place<'_>) -> Result<bool, FilterError> {
        if head.wire != Wire::Bytes {
            return Err(FilterError::Malformed("bytes as raw in the k8s envelope"));
        }
        place.mark();
        self.raw_seen = true;
        self.level = Level::List { left: head.size, mode: Mode::Exact(Gathered::default()) };
        Ok(true)
    }

    fn end_list(&mut self, place: &mut Place<'_>) -> bool {
        if let Level::List { mode: Mode::Exact(gathered), .. } =
            mem::replace(&mut self.level, Level::Envelope)
        {
            gathered.write(0, place.out);
        }
        true
    }

    /// A field of the list is complete.
    fn list_field(&mut self, head: Head, place: &mut Place<'_>) -> Result<(), FilterError> {
        let Level::List { left, mode } = &mut self.level else { return Ok(()) };
        *left =
            left.checked_sub(head.total()).ok_or(FilterError::Malformed("fields that end with the list"))?;
        let value = &place.piece()[head.header..];
        let all = Span { start: 0, end: head.total() };
        match (head.number, head.wire) {
            (METADATA, Wire::Bytes) => match message::list_metadata(value, &self.lens)? {
                Some(metadata) => mode.replace(METADATA, &metadata, place)?,
                None => mode.pass(all, place),
            },
            (ITEMS, Wire::Bytes) => {
                let verdict = message::ask(&self.lens, value, false)?;
                let renamed = if let Verdict::Rename(new) = verdict {
                    Some(message::rename(value, new)?)
                } else {
                    None
                };
                place.out.count(verdict.shows(), head.total());
                match (verdict, renamed) {
                    (Verdict::Drop | Verdict::Hold, _) => mode.leave_out(head.total(), place),
                    (_, Some(item)) => mode.replace(ITEMS, &item, place)?,
                    (_, None) => mode.pass(all, place),
                }
            }
            (METADATA | ITEMS, _) => return Err(FilterError::Malformed("messages as metadata and items")),
            _ => mode.pass(all, place),
        }
        place.mark();
        mode.limit(self.limit, *left, place);
        Ok(())
    }
}

impl<L: Lens> Read for ProtoList<L> {
    fn read(&mut self, place: &mut Place<'_>) -> Result<(), FilterError> {
        while match self.level {
            Level::Magic => self.magic(place)?,
            Level::List { left: 0, .. } => self.end_list(place),
            Level::Envelope | Level::List { .. } => self.field(place)?,
        } {}
        Ok(())
    }

    fn complete(&self) -> bool {
        matches!(self.level, Level::Envelope) && self.head.is_none() && self.raw_seen
    }
}

/// Reads a field's header, and no more; `None` when the chunk ends before it does.
fn read_head(place: &mut Place<'_>) -> Result<Option<Head>, FilterError> {
    loop {
        if let Some(head) = Head::read(place.piece())? {
            return Ok(Some(head));
        }
        if !place.fill(place.offset() + 1) {
            return Ok(None);
        }
    }
}

/// A field of the envelope other than `raw` is complete.
fn envelope_field(head: Head, place: &mut Place<'_>) -> Result<(), FilterError> {
    let value = &place.piece()[head.header..];
    match head.number {
        TYPE_META => {
            let kind = message::kind(value)?;
            if !kind.is_empty() && !kind.ends_with("List") {
                return Err(FilterError::Malformed("a list"));
            }
        }
        CONTENT_ENCODING => message::plain(value)?,
        _ => {}
    }
    place.pass_all();
    Ok(())
}

// === impl Mode ===

impl Mode {
    fn pass(&mut self, span: Span, place: &mut Place<'_>) {
        match self {
            Self::Exact(gathered) => gathered.add(place.bytes(span)),
            Self::Holes => place.pass(span),
        }
    }

    /// Leaves out the piece, or what is left of it.
    fn leave_out(&mut self, total: usize, place: &mut Place<'_>) {
        if matches!(self, Self::Holes) {
            let (head, size) = hole(total);
            place.out.copy(&head);
            place.out.zeros(size);
        }
    }

    /// Writes the field at hand with another value, which is not longer if lengths are fixed already.
    fn replace(&mut self, number: u64, value: &[u8], place: &mut Place<'_>) -> Result<(), FilterError> {
        let mut field = Vec::with_capacity(value.len() + 8);
        put_bytes(number, value, &mut field);
        match self {
            Self::Exact(gathered) => gathered.add(&field),
            Self::Holes => {
                let freed = place.offset().checked_sub(field.len());
                match freed
                    .ok_or(FilterError::Rename("a longer name does not fit into a list that streams"))?
                {
                    0 => place.out.copy(&field),
                    1 => place.out.copy(&padded(number, value)),
                    freed => {
                        place.out.copy(&field);
                        self.leave_out(freed, place);
                    }
                }
            }
        }
        Ok(())
    }

    /// Goes on with holes when too much is gathered.
    fn limit(&mut self, limit: usize, left: usize, place: &mut Place<'_>) {
        if let Self::Exact(gathered) = self
            && gathered.size > limit
        {
            mem::take(gathered).write(left, place.out);
            place.out.count_holed();
            *self = Self::Holes;
        }
    }
}

/// The field one byte longer than it must be.
fn padded(number: u64, value: &[u8]) -> Vec<u8> {
    let mut field = Vec::with_capacity(value.len() + 8);
    put_varint(number << 3 | 2, &mut field);
    let mut length = Vec::new();
    put_varint(value.len() as u64, &mut length);
    put_padded(value.len() as u64, length.len() + 1, &mut field);
    field.extend_from_slice(value);
    field
}

// === impl Gathered ===

impl Gathered {
    fn add(&mut self, bytes: &[u8]) {
        if self.tail.len() + bytes.len() > self.tail.capacity() && !self.tail.is_empty() {
            self.segments.push(mem::take(&mut self.tail).freeze());
        }
        if self.tail.capacity() == 0 {
            self.tail.reserve(SEGMENT.max(bytes.len()));
        }
        self.tail.extend_from_slice(bytes);
        self.size += bytes.len();
    }

    /// Writes the field `raw`, of which `left` bytes will follow.
    fn write(self, left: usize, out: &mut Out) {
        let mut head = Vec::new();
        put_varint(RAW << 3 | 2, &mut head);
        put_varint((self.size + left) as u64, &mut head);
        out.copy(&head);
        for segment in self.segments {
            out.append(segment);
        }
        out.append(self.tail.freeze());
    }
}

#[cfg(test)]
mod tests;
