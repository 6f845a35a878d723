//! What a scanner lets pass, gathered into few buffers.
//!
//! Each buffer becomes an HTTP/2 DATA frame and a TLS record downstream, so many small ones cost more than a copy.
//! One contiguous range of a chunk is passed as a slice of it, uncopied. Where kept and dropped pieces alternate,
//! short ranges are copied together and only ranges of at least [`SLICE`] bytes stay slices.

use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;
use std::mem;
use std::ops::Range;

/// From this length on, in bytes, a range beside others is passed as a slice instead of being copied to them.
const SLICE: usize = 16 << 10;

/// What the holes of a list are filled with.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// The bytes that may pass, in order, and how many objects did.
#[derive(Debug, Default)]
pub struct Out {
    ready: VecDeque<Bytes>,
    chunk: Bytes,
    range: Range<usize>,
    mixed: BytesMut,
    counts: Counts,
}

/// What passed and what did not since the last [`Out::take_counts`]. Bookmarks and errors of a watch are not counted.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Objects or events that passed, renamed ones included.
    pub kept: u64,
    /// Objects or events that did not pass.
    pub hidden: u64,
    /// Bytes of the kept objects, as they came.
    pub kept_bytes: u64,
    /// Bytes of the hidden objects.
    pub hidden_bytes: u64,
    /// Protobuf lists that outgrew [`EXACT_LIMIT`](super::EXACT_LIMIT) and went on with holes.
    pub holed: u64,
}

// === impl Out ===

impl Out {
    /// The next buffer that may be sent.
    pub fn pop(&mut self) -> Option<Bytes> {
        self.ready.pop_front()
    }

    /// Whether nothing waits to be sent.
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    /// What was counted since the last call.
    pub fn take_counts(&mut self) -> Counts {
        mem::take(&mut self.counts)
    }

    /// Starts on a chunk; [`Self::keep`] takes ranges of it until [`Self::seal`].
    pub(super) fn open(&mut self, chunk: &Bytes) {
        self.chunk = chunk.clone();
    }

    /// Passes a range of the open chunk, uncopied where it can be.
    pub(super) fn keep(&mut self, range: Range<usize>) {
        if self.range.end == range.start && !self.range.is_empty() {
            self.range.end = range.end;
        } else if !range.is_empty() {
            self.settle();
            self.range = range;
        }
    }

    /// Passes bytes that are not in the chunk.
    pub(super) fn copy(&mut self, bytes: &[u8]) {
        self.settle();
        self.mixed.extend_from_slice(bytes);
    }

    /// Passes a buffer of its own, uncopied if it is the first of this chunk.
    pub(super) fn give(&mut self, bytes: BytesMut) {
        self.settle();
        if self.mixed.is_empty() {
            self.mixed = bytes;
        } else {
            self.mixed.extend_from_slice(&bytes);
        }
    }

    /// Passes a buffer that may be shared; only short ones are copied.
    pub(super) fn append(&mut self, bytes: Bytes) {
        if bytes.len() < SLICE {
            self.copy(&bytes);
        } else {
            self.settle();
            self.flush();
            self.ready.push_back(bytes);
        }
    }

    /// Passes zeros.
    pub(super) fn zeros(&mut self, mut size: usize) {
        while size > 0 {
            let part = size.min(ZEROS.len());
            self.append(Bytes::from_static(&ZEROS[..part]));
            size -= part;
        }
    }

    /// Ends a chunk: all that passed of it is ready, and nothing of it is held.
    pub(super) fn seal(&mut self) {
        if self.mixed.is_empty() {
            self.slice();
        } else {
            self.settle();
            self.flush();
        }
        self.chunk = Bytes::new();
    }

    /// Counts one object or event of `bytes` bytes.
    pub(super) fn count(&mut self, kept: bool, bytes: usize) {
        let (objects, total) = if kept {
            (&mut self.counts.kept, &mut self.counts.kept_bytes)
        } else {
            (&mut self.counts.hidden, &mut self.counts.hidden_bytes)
        };
        *objects += 1;
        *total += bytes as u64;
    }

    /// Adds what was counted elsewhere.
    pub(super) fn add(&mut self, counts: Counts) {
        self.counts.kept += counts.kept;
        self.counts.hidden += counts.hidden;
        self.counts.kept_bytes += counts.kept_bytes;
        self.counts.hidden_bytes += counts.hidden_bytes;
    }

    /// All that is ready, in one buffer.
    pub(super) fn gathered(&mut self) -> BytesMut {
        let mut gathered = BytesMut::new();
        while let Some(bytes) = self.pop() {
            gathered.extend_from_slice(&bytes);
        }
        gathered
    }

    /// Counts a list that went on with holes.
    pub(super) fn count_holed(&mut self) {
        self.counts.holed += 1;
    }

    /// The size of the buffers that are held while nothing waits.
    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        self.mixed.capacity() + self.chunk.len()
    }

    /// Puts the range that is not placed yet behind what is there.
    fn settle(&mut self) {
        if self.range.len() >= SLICE {
            self.flush();
            self.slice();
        } else if !self.range.is_empty() {
            let range = mem::take(&mut self.range);
            if self.mixed.is_empty() {
                self.mixed.reserve(self.chunk.len());
            }
            self.mixed.extend_from_slice(&self.chunk[range]);
        }
    }

    fn slice(&mut self) {
        let range = mem::take(&mut self.range);
        if !range.is_empty() {
            self.ready.push_back(self.chunk.slice(range));
        }
    }

    fn flush(&mut self) {
        if !self.mixed.is_empty() {
            self.ready.push_back(mem::take(&mut self.mixed).freeze());
        }
    }
}

// === impl Counts ===

impl Counts {
    /// Whether there was something and none of it is shown.
    pub(super) fn is_hidden(&self) -> bool {
        self.kept == 0 && self.hidden > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(out: &mut Out) -> Vec<Bytes> {
        std::iter::from_fn(|| out.pop()).collect()
    }

    #[test]
    fn one_contiguous_range_is_a_slice_of_the_chunk() {
        let chunk = Bytes::from(vec![7; 100]);
        let mut out = Out::default();
        out.open(&chunk);
        out.keep(10..20);
        out.keep(20..30);
        out.seal();
        let passed = all(&mut out);
        assert_eq!(passed.len(), 1);
        assert_eq!(passed[0].as_ptr(), chunk[10..].as_ptr());
        assert_eq!(passed[0].len(), 20);
    }

    #[test]
    fn short_ranges_are_gathered_in_order() {
        let mut out = Out::default();
        out.open(&Bytes::from_static(b"0123456789"));
        out.keep(0..2);
        out.keep(4..5);
        out.copy(b"-");
        out.give(BytesMut::from(&b"+"[..]));
        out.keep(9..10);
        out.seal();
        assert_eq!(all(&mut out), [Bytes::from_static(b"014-+9")]);
    }

    #[test]
    fn long_ranges_stay_slices_between_others() {
        let chunk = Bytes::from(vec![7; 2 * SLICE]);
        let mut out = Out::default();
        out.open(&chunk);
        out.keep(0..2);
        out.keep(4..SLICE + 4);
        out.keep(SLICE + 5..SLICE + 7);
        out.seal();
        let passed = all(&mut out);
        assert_eq!(passed.iter().map(Bytes::len).collect::<Vec<_>>(), [2, SLICE, 2]);
        assert_eq!(passed[1].as_ptr(), chunk[4..].as_ptr());
    }
}
