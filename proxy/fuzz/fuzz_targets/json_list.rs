//! A filtered JSON list or table is what `serde_json` makes of it, and does not depend on how it is cut.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shoal_proxy::filter::{Encoding, FilterError, Shape};
use shoal_proxy_fuzz::feed::{filter, split};
use shoal_proxy_fuzz::list::{Columns, filtered};
use shoal_proxy_fuzz::tree::Tree;

fuzz_target!(|data: &[u8]| {
    let Some((size, body)) = split(data) else { return };
    let (passed, end) = filter(Encoding::Json, Shape::List, 0, body, size);
    let Ok(before) = serde_json::from_slice::<Tree>(body) else { return };
    match (filtered(before, &mut Columns::default(), false), end) {
        (Some(wanted), Ok(counts)) => {
            assert_eq!(serde_json::from_slice::<Tree>(&passed).expect("JSON"), wanted.list);
            assert_eq!((counts.kept, counts.hidden), (wanted.kept as u64, wanted.hidden as u64));
        }
        (Some(_), Err(error)) => assert_eq!(error, FilterError::TooLarge),
        (None, end) => assert!(end.is_err(), "no list: {}", String::from_utf8_lossy(body)),
    }
});
