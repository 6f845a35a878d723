//! A filtered JSON watch holds the shown events of `serde_json`'s reading, a line each.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shoal_proxy::filter::{Encoding, Shape};
use shoal_proxy_fuzz::feed::{filter, is_shown, split};
use shoal_proxy_fuzz::list::{Columns, filtered, is_table};
use shoal_proxy_fuzz::tree::Tree;

fuzz_target!(|data: &[u8]| {
    let Some((size, body)) = split(data) else { return };
    let (passed, end) = filter(Encoding::Json, Shape::Watch, 0, body, size);
    let mut events = serde_json::Deserializer::from_slice(body).into_iter::<Tree>();
    let (mut wanted, mut columns) = (Vec::new(), Columns::default());
    let mut is_read = true;
    for event in &mut events {
        let Ok(event) = event else {
            is_read = false;
            break;
        };
        let Some(shown) = shown(event, &mut columns) else {
            assert!(end.is_err(), "no event: {}", String::from_utf8_lossy(body));
            is_read = false;
            break;
        };
        wanted.extend(shown);
    }
    let lines: Vec<&[u8]> = passed.split_inclusive(|byte| *byte == b'\n').collect();
    assert!(lines.iter().all(|line| line.ends_with(b"\n")), "each event is a line");
    // What serde_json refuses may still pass, for the client to refuse.
    for (line, wanted) in lines.iter().zip(&wanted) {
        assert_eq!(&serde_json::from_slice::<Tree>(line).expect("JSON"), wanted);
    }
    assert!(lines.len() >= wanted.len(), "an event is missing");
    if is_read {
        assert_eq!((lines.len(), end.is_ok()), (wanted.len(), true));
    }
});

/// The event as it is shown, or nothing where it is hidden; `None` if it is none.
#[allow(clippy::option_option, reason = "hidden is something else than unreadable")]
fn shown(mut event: Tree, columns: &mut Columns) -> Option<Option<Tree>> {
    let mut control = false;
    let mut names = None;
    for (key, value) in event.members()? {
        match key.as_str() {
            "type" => control = matches!(value.text()?, "BOOKMARK" | "ERROR"),
            "object" => names = Some(value.names()?),
            _ => {}
        }
    }
    let object = event.get_mut("object")?;
    if !is_table(object) {
        return Some((control | is_shown(&names?.name)).then_some(event));
    }
    let table = filtered(object.clone(), columns, control)?;
    *object = table.list;
    Some((table.kept > 0 || table.hidden == 0).then_some(event))
}
