//! Picks the scanner for a response, and stops at its first error.

use super::held::{Place, Read};
use super::json::event::JsonWatch;
use super::json::list::JsonList;
use super::json::table::Columns;
use super::proto::event::ProtoWatch;
use super::proto::list::ProtoList;
use super::{EXACT_LIMIT, Encoding, FilterError, Lens, Out, Scan, TableRows, proto};
use bytes::{Bytes, BytesMut};
use std::mem;

/// What a response holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    /// One list, of any kind.
    List,
    /// A stream of watch events.
    Watch,
}

/// The scanner of one response body.
#[derive(Debug)]
pub struct Scanner<L> {
    format: Format<L>,
    /// The unfinished piece, as far as earlier chunks held it.
    carry: BytesMut,
    failed: Option<FilterError>,
}

#[derive(Debug)]
enum Format<L> {
    JsonList(JsonList<L>),
    JsonWatch(JsonWatch<L>),
    ProtoList(ProtoList<L>),
    ProtoWatch(ProtoWatch<L>),
}

// === impl Scanner ===

impl<L: Lens> Scanner<L> {
    /// A scanner that shows what `lens` allows.
    pub fn new(encoding: Encoding, shape: Shape, lens: L) -> Self {
        Self::with_exact_limit(encoding, shape, lens, EXACT_LIMIT)
    }

    /// The same with another limit, in bytes, for protobuf lists (see [`EXACT_LIMIT`]); 0 lets them stream from the
    /// first item on. The other formats have no such limit.
    pub fn with_exact_limit(encoding: Encoding, shape: Shape, lens: L, limit: usize) -> Self {
        let format = match (encoding, shape) {
            (Encoding::Json, Shape::List) => Format::JsonList(JsonList::new(lens)),
            (Encoding::Json, Shape::Watch) => Format::JsonWatch(JsonWatch::new(lens)),
            (Encoding::Protobuf, Shape::List) => Format::ProtoList(ProtoList::new(lens, limit)),
            (Encoding::Protobuf, Shape::Watch) => Format::ProtoWatch(ProtoWatch::new(lens)),
        };
        Self { format, carry: BytesMut::new(), failed: None }
    }

    /// The same for an answer that may come as tables. Rows of a list are always told by the lens; the events of a watch
    /// are looked through for tables only here, because an object may have `rows` of its own.
    #[must_use]
    pub fn with_tables(self, rows: TableRows) -> Self {
        let format = match self.format {
            Format::JsonList(list) => Format::JsonList(list.with_columns(Columns::new(rows))),
            Format::JsonWatch(watch) => Format::JsonWatch(watch.with_columns(Columns::new(rows))),
            format @ (Format::ProtoList(_) | Format::ProtoWatch(_)) => format,
        };
        Self { format, ..self }
    }

    /// For a watch that failed by our own reading: the last event the client should see. `None` for lists, which must break
    /// off instead.
    pub fn farewell(&self, error: FilterError) -> Option<Bytes> {
        match self.format {
            Format::JsonWatch(_) => Some(error_event(Encoding::Json, error)),
            Format::ProtoWatch(_) => Some(error_event(Encoding::Protobuf, error)),
            Format::JsonList(_) | Format::ProtoList(_) => None,
        }
    }

    /// The size of the buffer for the unfinished piece.
    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        self.carry.capacity()
    }

    fn read(&mut self, chunk: &Bytes, out: &mut Out) -> Result<BytesMut, FilterError> {
        let mut place = Place::new(mem::take(&mut self.carry), chunk, out);
        match &mut self.format {
            Format::JsonList(format) => format.read(&mut place),
            Format::JsonWatch(format) => format.read(&mut place),
            Format::ProtoList(format) => format.read(&mut place),
            Format::ProtoWatch(format) => format.read(&mut place),
        }?;
        Ok(place.turn())
    }

    fn complete(&self) -> bool {
        let complete = match &self.format {
            Format::JsonList(format) => format.complete(),
            Format::JsonWatch(format) => format.complete(),
            Format::ProtoList(format) => format.complete(),
            Format::ProtoWatch(format) => format.complete(),
        };
        complete && self.carry.is_empty()
    }
}

impl<L: Lens> Scan for Scanner<L> {
    fn push(&mut self, chunk: Bytes, out: &mut Out) -> Result<(), FilterError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        out.open(&chunk);
        let result = self.read(&chunk, out);
        out.seal();
        self.failed = result.as_ref().err().copied();
        self.carry = result?;
        Ok(())
    }

    fn finish(&mut self, _: &mut Out) -> Result<(), FilterError> {
        match self.failed {
            Some(error) => Err(error),
            None if self.complete() => Ok(()),
            None => Err(FilterError::Truncated),
        }
    }
}

/// A whole `ERROR` event with a Status 500 that says why, in the stream's encoding. A client stops at it and starts over.
pub fn error_event(encoding: Encoding, error: FilterError) -> Bytes {
    error_of(encoding, 500, "InternalError", &format!("shoal: the watch cannot be filtered: {error}"))
}

/// A whole `ERROR` event with a Status.
pub(super) fn error_of(encoding: Encoding, code: u16, reason: &str, message: &str) -> Bytes {
    if encoding == Encoding::Protobuf {
        return proto::event::error(code, reason, message);
    }
    let message = super::json::text::quote(message);
    Bytes::from(format!(
        "{{\"type\":\"ERROR\",\"object\":{{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{{}},\
         \"status\":\"Failure\",\"message\":{message},\"reason\":\"{reason}\",\"code\":{code}}}}}\n"
    ))
}
