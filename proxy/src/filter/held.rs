//! The one piece of a stream that is not decided yet.
//!
//! A piece begins at a mark. While it lies in one chunk nothing is copied; what a chunk leaves unfinished is carried
//! over. Offsets count from the mark, so they stay true over chunks and do not grow with the stream.

use super::{FilterError, MAX_PIECE, Out};
use bytes::{Bytes, BytesMut};
use std::mem;

/// A half-open range of offsets in the held piece.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    /// The first offset.
    pub(super) start: usize,
    /// The offset behind the last.
    pub(super) end: usize,
}

/// A reader's place in a chunk, with the piece that ends there.
pub(super) struct Place<'a> {
    /// The chunk at hand.
    pub(super) chunk: &'a Bytes,
    /// How much of it is read.
    pub(super) at: usize,
    /// What passes.
    pub(super) out: &'a mut Out,
    /// The part of the piece that came with earlier chunks.
    carry: BytesMut,
    /// Where the rest of the piece starts in the chunk.
    start: usize,
}

/// The part of a scanner that differs between formats.
pub(super) trait Read {
    /// Reads the chunk to its end; the piece it leaves unfinished is carried over.
    fn read(&mut self, place: &mut Place<'_>) -> Result<(), FilterError>;

    /// Whether the body may end here, if no piece is unfinished.
    fn complete(&self) -> bool;
}

// === impl Place ===

impl<'a> Place<'a> {
    /// The beginning of a chunk; `carry` is what [`Self::turn`] left of the one before.
    pub(super) fn new(carry: BytesMut, chunk: &'a Bytes, out: &'a mut Out) -> Self {
        Self { chunk, at: 0, out, carry, start: 0 }
    }

    /// The bytes of the chunk that are not read.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.chunk.get(self.at..).unwrap_or_default()
    }

    /// The offset of this place: the length of the piece so far.
    pub(super) fn offset(&self) -> usize {
        self.carry.len() + self.at - self.start
    }

    /// Lets go of everything before this place: a new piece begins.
    pub(super) fn mark(&mut self) {
        self.carry.clear();
        self.start = self.at;
    }

    /// The whole piece.
    pub(super) fn piece(&mut self) -> &[u8] {
        if self.carry.is_empty() {
            return &self.chunk[self.start..self.at];
        }
        self.absorb();
        &self.carry
    }

    /// The whole piece, to be changed.
    pub(super) fn own(&mut self) -> &mut [u8] {
        self.absorb();
        &mut self.carry
    }

    /// A span of the piece.
    pub(super) fn bytes(&mut self, span: Span) -> &[u8] {
        if span.start >= self.carry.len() {
            let begin = span.start - self.carry.len() + self.start;
            return &self.chunk[begin..begin + span.end - span.start];
        }
        if span.end > self.carry.len() {
            self.absorb();
        }
        &self.carry[span.start..span.end]
    }

    /// Passes a span of the piece.
    pub(super) fn pass(&mut self, span: Span) {
        if self.carry.is_empty() {
            self.out.keep(self.start + span.start..self.start + span.end);
            return;
        }
        self.absorb();
        if span.start == 0 && span.end == self.carry.len() {
            self.out.give(mem::take(&mut self.carry));
        } else {
            self.out.copy(&self.carry[span.start..span.end]);
        }
    }

    /// Passes the whole piece, and begins a new one.
    pub(super) fn pass_all(&mut self) {
        let end = self.offset();
        self.pass(Span { start: 0, end });
        self.mark();
    }

    /// Fails when the piece is too large.
    pub(super) fn check(&self) -> Result<(), FilterError> {
        if self.offset() > MAX_PIECE { Err(FilterError::TooLarge) } else { Ok(()) }
    }

    /// Reads on until the piece is `size` bytes long; false if the chunk ends before.
    pub(super) fn fill(&mut self, size: usize) -> bool {
        let missing = size.saturating_sub(self.offset());
        self.at += missing.min(self.rest().len());
        self.offset() >= size
    }

    /// The chunk is read to its end; what must be carried over, without a buffer when that is nothing.
    pub(super) fn turn(mut self) -> BytesMut {
        self.absorb();
        if self.carry.is_empty() { BytesMut::new() } else { self.carry }
    }

    /// Moves the part of the piece that is in the chunk to the rest of it.
    fn absorb(&mut self) {
        self.carry.extend_from_slice(&self.chunk[self.start..self.at]);
        self.start = self.at;
    }
}
