//! Picks the scanner for a response, and stops at its first error.

use super::json::event::JsonWatch;
use super::json::list::JsonList;
use super::proto::event::ProtoWatch;
use super::proto::list::ProtoList;
use super::{EXACT_LIMIT, Encoding, FilterError, Lens, Out, Scan, proto};
use bytes::Bytes;

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
        Self { format, failed: None }
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

    /// The size of the buffer for the undecided piece.
    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        match &self.format {
            Format::JsonList(scan) => scan.held_bytes(),
            Format::JsonWatch(scan) => scan.held_bytes(),
            Format::ProtoList(scan) => scan.held_bytes(),
            Format::ProtoWatch(scan) => scan.held_bytes(),
        }
    }

    fn run(
        &mut self,
        step: impl FnOnce(&mut dyn Scan) -> Result<(), FilterError>,
    ) -> Result<(), FilterError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let result = match &mut self.format {
            Format::JsonList(scan) => step(scan),
            Format::JsonWatch(scan) => step(scan),
            Format::ProtoList(scan) => step(scan),
            Format::ProtoWatch(scan) => step(scan),
        };
        self.failed = result.err();
        result
    }
}

impl<L: Lens> Scan for Scanner<L> {
    fn push(&mut self, chunk: Bytes, out: &mut Out) -> Result<(), FilterError> {
        self.run(|scan| scan.push(chunk, out))
    }

    fn finish(&mut self, out: &mut Out) -> Result<(), FilterError> {
        self.run(|scan| scan.finish(out))
    }
}

/// A whole `ERROR` event with a Status 500 that says why, in the stream's encoding. A client stops at it and starts over.
pub fn error_event(encoding: Encoding, error: FilterError) -> Bytes {
    let message = format!("shoal: the watch cannot be filtered: {error}");
    match encoding {
        Encoding::Json => Bytes::from(json_error(&message)),
        Encoding::Protobuf => proto::event::error(&message),
    }
}

fn json_error(message: &str) -> String {
    let message = super::json::text::quote(message);
    format!(
        "{{\"type\":\"ERROR\",\"object\":{{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{{}},\
         \"status\":\"Failure\",\"message\":{message},\"reason\":\"InternalError\",\"code\":500}}}}\n"
    )
}
