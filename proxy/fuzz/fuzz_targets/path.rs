//! A request line that is understood says the same when it is written anew, and when its name is replaced.
#![no_main]

use http::{Method, Uri};
use libfuzzer_sys::fuzz_target;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use shoal_proxy::request::path::RequestInfo;

/// What a path is written with: all is escaped but the slash, and the star of `OPTIONS *`.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'*');

const METHODS: [Method; 6] =
    [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS];

fuzz_target!(|data: &[u8]| {
    let Some((first, target)) = data.split_first() else { return };
    let method = &METHODS[usize::from(*first) % METHODS.len()];
    let Ok(uri) = Uri::try_from(target) else { return };
    let Ok(info) = RequestInfo::parse(method, &uri) else { return };
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();

    let path = utf8_percent_encode(&info.path, RESERVED);
    let mut again = RequestInfo::parse(method, &format!("{path}{query}").parse().expect("a path")).expect("again");
    let mut wanted = info.clone();
    for info in [&mut wanted, &mut again] {
        info.target.iter_mut().for_each(|target| target.name_in_path = None);
    }
    assert_eq!(again, wanted);

    let Some(target) = &info.target else { return };
    let Some(range) = target.name_in_path.clone() else { return };
    let raw = uri.path();
    let name = percent_decode_str(&raw[range.clone()]).decode_utf8().expect("a name");
    assert_eq!(name, target.name);
    let renamed = format!("{}zz{}{query}", &raw[..range.start], &raw[range.end..]);
    let renamed = RequestInfo::parse(method, &renamed.parse().expect("a path")).expect("renamed");
    let other = renamed.target.expect("still a resource");
    assert_eq!((other.name.as_str(), &other.resource), ("zz", &target.resource));
    assert_eq!((&other.subresource, &renamed.verb), (&target.subresource, &info.verb));
    assert_eq!(other.parts()[2..], target.parts()[2..]);
});
