//! Finds the frames in the bytes of one direction of an HTTP/2 connection (RFC 9113, section 4.1).

/// A frame of a stream's body.
pub(super) const DATA: u8 = 0;
/// The end of a connection, announced.
pub(super) const GOAWAY: u8 = 7;

/// Length, kind, flags and stream.
const HEAD: usize = 9;
/// Bytes of a payload that are kept.
const KEPT: usize = 1024;

/// Where in the stream of bytes the last step ended.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// The frame under way: its head and what is kept of its payload.
    frame: Vec<u8>,
    /// Bytes of its payload that have not come.
    left: usize,
}

// === impl Frames ===

impl Frames {
    /// Takes the next bytes and calls `each` for every frame that they end, with its kind and the beginning of its
    /// payload.
    pub(super) fn step(&mut self, mut bytes: &[u8], mut each: impl FnMut(u8, &[u8])) {
        while !bytes.is_empty() {
            if self.frame.len() < HEAD {
                self.keep(&mut bytes, HEAD - self.frame.len());
                self.left = self.length();
            } else {
                let room = (HEAD + KEPT).saturating_sub(self.frame.len());
                let coming = self.left.min(bytes.len());
                self.left -= coming;
                let (mut kept, rest) = bytes.split_at(coming);
                self.keep(&mut kept, room);
                bytes = rest;
            }
            if let (0, Some(([_, _, _, kind, ..], payload))) = (self.left, self.frame.split_at_checked(HEAD))
            {
                each(*kind, payload);
                self.frame.clear();
            }
        }
    }

    fn keep(&mut self, bytes: &mut &[u8], most: usize) {
        let (kept, rest) = bytes.split_at(most.min(bytes.len()));
        self.frame.extend_from_slice(kept);
        *bytes = rest;
    }

    /// The payload's length, once its head is there.
    fn length(&self) -> usize {
        match *self.frame.as_slice() {
            [high, middle, low, ..] => usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, length: usize) -> Vec<u8> {
        let [.., high, middle, low] = length.to_be_bytes();
        let mut frame = vec![high, middle, low, kind, 0, 0, 0, 0, 1];
        frame.extend((0..length).map(|index| index.to_le_bytes()[0]));
        frame
    }

    #[test]
    fn frames_are_found_however_their_bytes_arrive() {
        let lengths = [(4, 0), (DATA, 5), (DATA, 70_000), (GOAWAY, 8), (6, KEPT), (DATA, KEPT + 1), (1, 0)];
        let all: Vec<u8> = lengths.iter().flat_map(|(kind, length)| frame(*kind, *length)).collect();
        let expected: Vec<(u8, usize)> =
            lengths.iter().map(|(kind, length)| (*kind, (*length).min(KEPT))).collect();
        for size in [1, 2, 7, 8, 9, 10, 1000, all.len()] {
            let (mut frames, mut found) = (Frames::default(), Vec::new());
            for bytes in all.chunks(size) {
                frames.step(bytes, |kind, payload| {
                    let whole = payload.iter().enumerate().all(|(at, byte)| *byte == at.to_le_bytes()[0]);
                    assert!(whole, "a payload of {} bytes", payload.len());
                    found.push((kind, payload.len()));
                });
            }
            assert_eq!(found, expected, "by {size} bytes");
        }
    }
}
