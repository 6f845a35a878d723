//! Protobuf taken apart by hand.

/// A field: its number, its wire type, and its value (of a varint or a fixed field, the bytes as they came).
pub type Field = (u64, u8, Vec<u8>);

/// The four bytes before an envelope.
const MAGIC: &[u8] = b"k8s\0";

/// The fields of a message; `None` if it is none.
pub fn fields(mut bytes: &[u8]) -> Option<Vec<Field>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let (tag, rest) = varint(bytes)?;
        let (number, wire) = (tag >> 3, (tag & 7) as u8);
        let (value, rest) = match wire {
            0 => {
                let (_, after) = varint(rest)?;
                rest.split_at_checked(rest.len() - after.len())?
            }
            1 => rest.split_at_checked(8)?,
            2 => {
                let (length, rest) = varint(rest)?;
                rest.split_at_checked(usize::try_from(length).ok()?)?
            }
            5 => rest.split_at_checked(4)?,
            _ => return None,
        };
        if number == 0 || tag > u64::from(u32::MAX) {
            return None;
        }
        fields.push((number, wire, value.to_vec()));
        bytes = rest;
    }
    Some(fields)
}

/// The fields of the envelope behind its prefix.
pub fn envelope(bytes: &[u8]) -> Option<Vec<Field>> {
    fields(bytes.strip_prefix(MAGIC)?)
}

/// The name of an object; `None` if it is no object.
pub fn name(object: &[u8]) -> Option<String> {
    let mut name = String::new();
    for (_, wire, metadata) in fields(object)?.into_iter().filter(|(number, ..)| *number == 1) {
        for (number, wire, value) in fields(Some(metadata).filter(|_| wire == 2)?.as_slice())? {
            let text = || String::from_utf8(value.clone()).ok().filter(|_| wire == 2);
            match number {
                1 => name = text()?,
                2 | 3 | 5 => _ = text()?,
                _ => {}
            }
        }
    }
    Some(name)
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0_u64;
    for (index, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f).wrapping_shl(7 * u32::try_from(index).ok()?);
        if byte & 0x80 == 0 {
            return Some((value, &bytes[index + 1..]));
        }
    }
    None
}
