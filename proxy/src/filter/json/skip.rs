//! Jumps over an object or an array to its closing bracket.
//!
//! Works on 64 bytes at a time: one bit a byte says where quotes, backslashes and brackets are, and a running parity
//! of the quotes says what is text. Most blocks cannot hold the end (fewer closing brackets than levels), so they cost
//! a few dozen instructions. The two kinds of bracket are not told apart: text that mixes them up is passed as it came
//! and the client's own parser refuses it.

use crate::filter::FilterError;
use wide::u8x16;

/// The deepest nesting that is followed; Go's decoder has the same limit.
const MAX_DEPTH: u32 = 10_000;

const BLOCK: usize = 64;

/// Where the jump stands between two chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Skip {
    depth: u32,
    /// All ones inside a string, else zero.
    quoted: u64,
    /// 1 when the next byte follows a backslash, else 0.
    escaped: u64,
}

/// One bit a byte of a block.
struct Masks {
    quotes: u64,
    backslashes: u64,
    opens: u64,
    closes: u64,
}

// === impl Skip ===

impl Skip {
    /// Starts behind an opening bracket.
    pub(super) fn new() -> Self {
        Self { depth: 1, quoted: 0, escaped: 0 }
    }

    /// Reads on; the count of bytes up to and with the closing bracket, or `None` if it is not in `text`.
    pub(super) fn read(&mut self, text: &[u8]) -> Result<Option<usize>, FilterError> {
        let mut last = [0; BLOCK];
        for (index, part) in text.chunks(BLOCK).enumerate() {
            let block = part.try_into().unwrap_or_else(|_| {
                last[..part.len()].copy_from_slice(part);
                &last
            });
            if let Some(end) = self.block(block, part.len()) {
                return Ok(Some(index * BLOCK + end));
            }
            if self.depth > MAX_DEPTH {
                return Err(FilterError::Malformed("at most 10000 levels of nesting"));
            }
        }
        Ok(None)
    }

    /// Reads the first `len` bytes of a block, of which the others are zero; the end of the jump if it is there.
    #[inline]
    fn block(&mut self, block: &[u8; BLOCK], len: usize) -> Option<usize> {
        let masks = Masks::of(block);
        let escaped = self.escaped_by(masks.backslashes, len);
        let text = prefix_xor(masks.quotes & !escaped) ^ self.quoted;
        self.quoted = if text >> (BLOCK - 1) == 0 { 0 } else { u64::MAX };
        let (opens, closes) = (masks.opens & !text, masks.closes & !text);
        if closes.count_ones() >= self.depth {
            return self.end(opens, closes);
        }
        self.depth = self.depth + opens.count_ones() - closes.count_ones();
        None
    }

    /// The bytes that follow a backslash which is not itself escaped.
    #[inline]
    fn escaped_by(&mut self, backslashes: u64, len: usize) -> u64 {
        let mut escaped = self.escaped;
        self.escaped = 0;
        let mut rest = backslashes & !escaped;
        while rest != 0 {
            let at = rest.trailing_zeros();
            escaped |= (1 << at) << 1;
            if at as usize + 1 == len {
                self.escaped = 1;
            }
            rest &= (rest - 1) & !escaped;
        }
        escaped
    }

    /// Follows the closing brackets of a block one by one.
    fn end(&mut self, opens: u64, closes: u64) -> Option<usize> {
        let mut rest = closes;
        let mut count = 0;
        while rest != 0 {
            let at = rest.trailing_zeros();
            count += 1;
            if self.depth + (opens & ((1 << at) - 1)).count_ones() == count {
                return Some(at as usize + 1);
            }
            rest &= rest - 1;
        }
        self.depth = self.depth + opens.count_ones() - count;
        None
    }
}

// === impl Masks ===

impl Masks {
    #[inline]
    fn of(block: &[u8; BLOCK]) -> Self {
        let mut masks = Self { quotes: 0, backslashes: 0, opens: 0, closes: 0 };
        for (index, lane) in block.as_chunks::<16>().0.iter().enumerate() {
            let bytes = u8x16::new(*lane);
            // '{' and '[', '}' and ']' differ in this one bit.
            let folded = bytes | u8x16::splat(0x20);
            let bits =
                |of: u8x16, byte| u64::from(of.simd_eq(u8x16::splat(byte)).to_bitmask()) << (16 * index);
            masks.quotes |= bits(bytes, b'"');
            masks.backslashes |= bits(bytes, b'\\');
            masks.opens |= bits(folded, b'{');
            masks.closes |= bits(folded, b'}');
        }
        masks
    }
}

/// Each bit becomes the parity of itself and all bits below.
fn prefix_xor(bits: u64) -> u64 {
    [1, 2, 4, 8, 16, 32].iter().fold(bits, |sum, shift| sum ^ (sum << shift))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::mem;

    /// The same, a byte at a time.
    fn plain(text: &[u8]) -> Option<usize> {
        let (mut depth, mut quoted, mut escaped) = (1, false, false);
        for (at, byte) in text.iter().enumerate() {
            let after_backslash = mem::take(&mut escaped);
            match byte {
                b'\\' => escaped = !after_backslash,
                b'"' if !after_backslash => quoted = !quoted,
                b'{' | b'[' if !quoted => depth += 1,
                b'}' | b']' if !quoted => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Some(at + 1);
            }
        }
        None
    }

    proptest! {
        #[test]
        fn equals_a_byte_at_a_time(text in r#"[\\"{}\[\]a]{0,300}"#, cut in 0_usize..300) {
            let text = text.as_bytes();
            let cut = cut.min(text.len());
            let mut skip = Skip::new();
            let end = match skip.read(&text[..cut]).unwrap() {
                None => skip.read(&text[cut..]).unwrap().map(|end| end + cut),
                found => found,
            };
            prop_assert_eq!(end, plain(text));
        }

        #[test]
        fn finds_the_end_far_away(body in r#"([{]"(\\\\"|\\\\\\\\|[{]|x){0,40}":\[\][}]|,){0,30}"#) {
            let text = format!("{body}}}}}");
            prop_assert_eq!(Skip::new().read(text.as_bytes()).unwrap(), plain(text.as_bytes()));
        }
    }

    #[test]
    fn nesting_has_a_limit() {
        assert_eq!(Skip::new().read("[".repeat(9_999).as_bytes()), Ok(None));
        assert!(Skip::new().read("[".repeat(10_064).as_bytes()).is_err());
    }
}
