//! An edit of a query changes what it is asked to and nothing else; a selector's names are mapped one for one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shoal_proxy::request::query::Query;
use shoal_proxy::request::selector::{map_names, required_name};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut parts = text.splitn(3, '\n');
    let (Some(key), Some(value)) = (parts.next(), parts.next()) else { return };
    let raw = parts.next().unwrap_or_default();
    query(raw, key, value);
    selector(raw);
});

fn query(raw: &str, key: &str, value: &str) {
    let before = Query::new(Some(raw));
    if let (Ok(got), Some(wanted)) = (before.get(key), first(raw, key)) {
        assert_eq!(got.as_deref(), wanted.as_deref(), "{key:?} of {raw:?}");
    }
    let others = |query: &Query| -> Vec<String> {
        let pairs = query.as_str().split('&').filter(|pair| pair_of(pair).is_none_or(|(name, _)| name != key.as_bytes()));
        pairs.filter(|pair| !pair.is_empty()).map(str::to_owned).collect()
    };
    let mut set = before.clone();
    set.set(key, value);
    assert_eq!(set.get(key).expect("UTF-8").as_deref(), Some(value));
    assert_eq!(others(&set), others(&before));
}

fn selector(raw: &str) {
    let Ok(same) = map_names(raw, |_| None) else { return };
    assert_eq!(same, raw);
    let mut count = 0;
    let mapped = map_names(raw, |name| {
        count += 1;
        Some(format!("{name},=\\"))
    });
    let mapped = mapped.expect("still well formed");
    let mut names = Vec::new();
    let _ = map_names(&mapped, |name| {
        names.push(name.to_owned());
        None
    });
    assert_eq!(names.len(), count);
    assert!(names.iter().all(|name| name.ends_with(",=\\")));
    assert_eq!(required_name(&mapped).expect("mapped").is_some(), required_name(raw).expect("raw").is_some());
}

/// The decoded first value of a key, as Go's `ParseQuery` has it; `None` where it is not UTF-8.
#[allow(clippy::option_option, reason = "an absent key is something else than an unreadable value")]
fn first(raw: &str, key: &str) -> Option<Option<String>> {
    let found = raw.split('&').filter_map(pair_of).find(|(name, _)| name == key.as_bytes());
    found.map(|(_, value)| String::from_utf8(value).ok()).map_or(Some(None), |value| value.map(Some))
}

fn pair_of(pair: &str) -> Option<(Vec<u8>, Vec<u8>)> {
    if pair.is_empty() || pair.contains(';') {
        return None;
    }
    let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
    Some((decode(key)?, decode(value)?))
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::new();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || (bytes.next()? as char).to_digit(16);
                u8::try_from(digit()? << 4 | digit()?).ok()?
            }
            byte => byte,
        });
    }
    Some(decoded)
}
