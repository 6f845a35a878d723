//! The protobuf wire format, as far as a filter needs it (protobuf.dev, "Encoding").
//!
//! Varints may be padded: readers accept it, and holes use it to reach any size. Groups are refused: Kubernetes has none.

use crate::filter::FilterError;

/// The longest varint, in bytes.
const MAX_VARINT: usize = 10;

const BAD: FilterError = FilterError::Malformed("a protobuf message");

/// How the value of a field is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::filter) enum Wire {
    Varint,
    Fixed,
    /// A length, then that many bytes: strings, bytes and messages.
    Bytes,
}

/// The start of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::filter) struct Head {
    pub(in crate::filter) number: u64,
    pub(in crate::filter) wire: Wire,
    /// The bytes before the value: the tag and, for [`Wire::Bytes`], the length.
    pub(in crate::filter) header: usize,
    /// The bytes of the value.
    pub(in crate::filter) size: usize,
}

/// A whole field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::filter) struct Field<'a> {
    pub(in crate::filter) number: u64,
    pub(in crate::filter) wire: Wire,
    /// Header and value.
    pub(in crate::filter) whole: &'a [u8],
    pub(in crate::filter) value: &'a [u8],
}

/// The fields of a message, in order; nothing follows an error.
pub(in crate::filter) struct Fields<'a>(&'a [u8]);

// === impl Head ===

impl Head {
    /// Reads the start of a field; `None` when there are too few bytes.
    pub(in crate::filter) fn read(bytes: &[u8]) -> Result<Option<Self>, FilterError> {
        let Some((tag, header)) = varint(bytes)? else { return Ok(None) };
        let head = |wire, header, size| Some(Self { number: tag >> 3, wire, header, size });
        if tag >> 3 == 0 || tag > u64::from(u32::MAX) {
            return Err(BAD);
        }
        let rest = &bytes[header..];
        Ok(match tag & 7 {
            0 => varint(rest)?.and_then(|(_, size)| head(Wire::Varint, header, size)),
            1 => head(Wire::Fixed, header, 8),
            5 => head(Wire::Fixed, header, 4),
            2 => match varint(rest)? {
                Some((size, more)) => head(Wire::Bytes, header + more, length(size)?),
                None => None,
            },
            _ => return Err(BAD),
        })
    }

    /// The bytes of the whole field.
    pub(in crate::filter) fn total(&self) -> usize {
        self.header + self.size
    }
}

// === impl Fields ===

impl<'a> Fields<'a> {
    pub(in crate::filter) fn of(message: &'a [u8]) -> Self {
        Self(message)
    }

    fn read(&mut self) -> Result<Field<'a>, FilterError> {
        let head = Head::read(self.0)?.ok_or(BAD)?;
        let (whole, rest) = self.0.split_at_checked(head.total()).ok_or(BAD)?;
        self.0 = rest;
        Ok(Field { number: head.number, wire: head.wire, whole, value: &whole[head.header..] })
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, FilterError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.read();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

// === impl Field ===

impl<'a> Field<'a> {
    /// The value of a field that must be [`Wire::Bytes`].
    pub(in crate::filter) fn bytes(&self) -> Result<&'a [u8], FilterError> {
        if self.wire == Wire::Bytes { Ok(self.value) } else { Err(BAD) }
    }

    /// The value of a field that must be a string.
    pub(in crate::filter) fn text(&self) -> Result<&'a str, FilterError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| BAD)
    }
}

/// Appends a string, bytes or message field.
pub(in crate::filter) fn put_bytes(number: u64, value: &[u8], to: &mut Vec<u8>) {
    put_varint(number << 3 | 2, to);
    put_varint(value.len() as u64, to);
    to.extend_from_slice(value);
}

/// Appends a varint in as few bytes as it takes.
pub(in crate::filter) fn put_varint(mut value: u64, to: &mut Vec<u8>) {
    while value > 0x7f {
        to.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    to.push((value & 0x7f) as u8);
}

/// Appends a varint in exactly `width` bytes, which must be enough.
pub(in crate::filter) fn put_padded(mut value: u64, width: usize, to: &mut Vec<u8>) {
    for _ in 1..width {
        to.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    to.push((value & 0x7f) as u8);
}

/// The start of a field 15 that is `total` bytes long, at least 2, and the size of its value.
pub(in crate::filter) fn hole(total: usize) -> (Vec<u8>, usize) {
    let mut width = 1;
    while width < 9 && total.saturating_sub(1 + width) >> (7 * width) != 0 {
        width += 1;
    }
    let size = total.saturating_sub(1 + width);
    let mut head = vec![0x7a];
    put_padded(size as u64, width, &mut head);
    (head, size)
}

/// A varint and its size in bytes; `None` when there are too few bytes.
pub(in crate::filter) fn varint(bytes: &[u8]) -> Result<Option<(u64, usize)>, FilterError> {
    let mut value = 0;
    for (index, byte) in bytes.iter().take(MAX_VARINT).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Ok(Some((value, index + 1)));
        }
    }
    if bytes.len() < MAX_VARINT { Ok(None) } else { Err(BAD) }
}

/// A length that Go's `int` can hold with room for the header.
fn length(size: u64) -> Result<usize, FilterError> {
    usize::try_from(size).ok().filter(|size| *size <= usize::MAX >> 2).ok_or(BAD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hole_is_one_unknown_field_of_any_size() {
        for total in (2..70_000).chain([2_097_154, 2_097_155, 2_097_156, 300_000_000]) {
            let (head, size) = hole(total);
            let read = Head::read(&head).unwrap().unwrap();
            assert_eq!((read.number, read.wire, read.size), (15, Wire::Bytes, size));
            assert_eq!(read.total(), total);
        }
    }

    #[test]
    fn padded_varints_are_read() {
        assert_eq!(varint(&[0x81, 0x80, 0x00]), Ok(Some((1, 3))));
        assert_eq!(varint(&[0x81, 0x80]), Ok(None));
        assert!(varint(&[0x80; 10]).is_err());
    }

    #[test]
    fn groups_and_field_zero_are_refused() {
        for tag in [0x0b, 0x0c, 0x02, 0x06, 0x07] {
            assert!(Head::read(&[tag, 0]).is_err(), "{tag:#x}");
        }
    }
}
