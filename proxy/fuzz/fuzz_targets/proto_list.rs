//! A protobuf list says the same with exact lengths and with holes, and both say what a plain decoder keeps.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shoal_proxy::filter::{Encoding, Shape};
use shoal_proxy_fuzz::feed::{filter, is_shown, split};
use shoal_proxy_fuzz::proto::{Field, envelope, fields, name};

/// The field that stands for what is left out; its value is nothing but zeros.
const HOLE: u64 = 15;

fuzz_target!(|data: &[u8]| {
    let Some((size, body)) = split(data) else { return };
    let (exact, end) = filter(Encoding::Protobuf, Shape::List, usize::MAX, body, size);
    let (holed, holed_end) = filter(Encoding::Protobuf, Shape::List, 0, body, size);
    assert_eq!(end.as_ref().err(), holed_end.as_ref().err());
    if end.is_err() {
        return;
    }
    assert!(holed.len() <= body.len() && exact.len() <= body.len(), "nothing grows");
    let wanted = reference(body).expect("the filter has read it");
    assert_eq!(decoded(&exact, false), Some(wanted.clone()));
    assert_eq!(without_holes(decoded(&holed, true)), without_holes(Some(wanted)));
});

/// The envelope's fields and, in the place of each `raw`, the fields of its list.
type Decoded = Vec<(Field, Vec<Field>)>;

fn decoded(body: &[u8], holed: bool) -> Option<Decoded> {
    let raw = |field: Field| match field {
        (2, 2, raw) => Some(((2, 2, Vec::new()), list(&raw, holed)?)),
        field => Some((field, Vec::new())),
    };
    envelope(body)?.into_iter().map(raw).collect()
}

/// The fields of a list; of its metadata the fields too, so that a hole in there is seen.
fn list(raw: &[u8], holed: bool) -> Option<Vec<Field>> {
    let mut all = fields(raw)?;
    if holed {
        all.retain(|(number, _, value)| *number != HOLE || value.iter().any(|byte| *byte != 0));
    }
    Some(all)
}

fn reference(body: &[u8]) -> Option<Decoded> {
    let mut lists = decoded(body, false)?;
    for (_, list) in &mut lists {
        let mut kept = Vec::new();
        for (number, wire, value) in list.drain(..) {
            match number {
                1 => kept.push((1, wire, uncounted(&value)?)),
                2 if !is_shown(&name(&value)?) => {}
                _ => kept.push((number, wire, value)),
            }
        }
        *list = kept;
    }
    Some(lists)
}

fn without_holes(decoded: Option<Decoded>) -> Option<Decoded> {
    let mut decoded = decoded?;
    for (_, list) in &mut decoded {
        list.retain(|(number, _, value)| *number != HOLE || value.iter().any(|byte| *byte != 0));
    }
    Some(decoded)
}

/// A list's metadata without the count of what remains, byte for byte.
fn uncounted(metadata: &[u8]) -> Option<Vec<u8>> {
    let (mut rest, mut kept) = (metadata, Vec::new());
    while !rest.is_empty() {
        // The shortest prefix that is one field.
        let end = (1..=rest.len()).find(|end| fields(&rest[..*end]).is_some_and(|fields| fields.len() == 1))?;
        let (field, after) = rest.split_at(end);
        if fields(field)?[0].0 != 4 {
            kept.extend_from_slice(field);
        }
        rest = after;
    }
    Some(kept)
}
