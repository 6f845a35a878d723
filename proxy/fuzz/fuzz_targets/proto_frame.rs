//! A filtered protobuf watch holds the shown frames, byte for byte.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shoal_proxy::filter::{Encoding, Shape};
use shoal_proxy_fuzz::feed::{filter, is_shown, split};
use shoal_proxy_fuzz::proto::{envelope, fields, name};

fuzz_target!(|data: &[u8]| {
    let Some((size, body)) = split(data) else { return };
    let (passed, end) = filter(Encoding::Protobuf, Shape::Watch, 0, body, size);
    let (mut rest, mut wanted, mut is_whole) = (body, Vec::new(), true);
    while !rest.is_empty() {
        let Some((frame, after)) = frame(rest) else {
            is_whole = false;
            break;
        };
        let Some(shown) = verdict(&frame[4..]) else {
            is_whole = false;
            break;
        };
        if shown {
            wanted.extend_from_slice(frame);
        }
        rest = after;
    }
    assert_eq!(passed, wanted);
    assert_eq!(end.is_ok(), is_whole, "{end:?}");
});

fn frame(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = u32::from_be_bytes(*bytes.first_chunk()?);
    bytes.split_at_checked(usize::try_from(length).ok()?.checked_add(4)?)
}

/// Whether an event is shown; `None` if it is none.
fn verdict(event: &[u8]) -> Option<bool> {
    let (mut kind, mut object) = (String::new(), None);
    for (number, wire, value) in fields(event)? {
        match number {
            1 => kind = Some(String::from_utf8(value).ok()?).filter(|_| wire == 2)?,
            2 => {
                for (number, wire, value) in fields(Some(value).filter(|_| wire == 2)?.as_slice())? {
                    if number == 1 {
                        object = Some(Some(value).filter(|_| wire == 2)?);
                    }
                }
            }
            _ => {}
        }
    }
    let object = object?;
    if matches!(kind.as_str(), "BOOKMARK" | "ERROR") {
        return Some(true);
    }
    Some(is_shown(&name(&raw(&object)?)?))
}

/// What is in an envelope.
fn raw(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut raw = None;
    for (number, wire, value) in envelope(bytes)? {
        match number {
            1 => {
                for (number, wire, value) in fields(Some(value).filter(|_| wire == 2)?.as_slice())? {
                    if number == 2 {
                        String::from_utf8(Some(value).filter(|_| wire == 2)?).ok()?;
                    }
                }
            }
            2 => raw = Some(Some(value).filter(|_| wire == 2)?),
            3 if wire != 2 || !value.is_empty() => return None,
            _ => {}
        }
    }
    raw
}
