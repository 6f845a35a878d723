//! Headers that are for the next hop only (RFC 9110, section 7.6.1).

use http::{HeaderMap, HeaderName, header};

/// They end at each hop, and an HTTP/2 request must not have them.
const HOP_BY_HOP: [HeaderName; 8] = [
    header::CONNECTION,
    header::HOST,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];
/// Headers that decide what a request does, and for whom. A client that has them end here means to deceive one of the
/// two servers that read it.
const END_TO_END: [HeaderName; 7] = [
    header::AUTHORIZATION,
    header::COOKIE,
    header::EXPECT,
    header::HOST,
    header::ORIGIN,
    header::RANGE,
    header::USER_AGENT,
];
/// The same, by how they begin.
const END_TO_END_PREFIXES: [&str; 8] =
    ["accept", "audit-id", "content-", "if-", "impersonate-", "sec-", "x-remote-", "x-stream-protocol-"];

/// Whether `Connection` would have a header end here that the API server must see.
pub(super) fn names_end_to_end(headers: &HeaderMap) -> bool {
    named(headers).any(is_end_to_end)
}

/// Removes what ends at this hop.
pub fn end(headers: &mut HeaderMap) {
    // Nothing is allocated where Connection names only what ends here anyway.
    let private = named(headers).filter(|name| !is_among(&HOP_BY_HOP, name) && !is_end_to_end(name));
    let private: Vec<HeaderName> = private.filter_map(|name| name.parse().ok()).collect();
    for name in private.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
    headers.remove("keep-alive");
    headers.remove("proxy-connection");
}

/// What `Connection` names.
fn named(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(header::CONNECTION).into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim).filter(|name| !is_option(name))
}

/// Of the connection itself, and what nearly every `Connection` says.
fn is_option(name: &str) -> bool {
    name.eq_ignore_ascii_case("close") || name.eq_ignore_ascii_case("keep-alive")
}

fn is_end_to_end(name: &str) -> bool {
    let begins =
        |prefix: &&str| name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    is_among(&END_TO_END, name) || END_TO_END_PREFIXES.iter().any(begins)
}

fn is_among(known: &[HeaderName], name: &str) -> bool {
    known.iter().any(|known| name.eq_ignore_ascii_case(known.as_str()))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn the_hops_own_end_here_and_the_named_ones_too() {
        let mut headers = headers(&[
            ("connection", "close, X-Private"),
            ("connection", "te"),
            ("x-private", "1"),
            ("keep-alive", "5"),
            ("te", "trailers"),
            ("accept", "*/*"),
        ]);
        assert!(!names_end_to_end(&headers));
        end(&mut headers);
        assert_eq!(headers.keys().collect::<Vec<_>>(), ["accept"]);
    }

    #[test]
    fn no_header_that_matters_may_end_here() {
        for name in [
            "authorization",
            "Impersonate-User",
            "impersonate-extra-a",
            "accept",
            "Accept-Encoding",
            "content-type",
            "content-length",
            "user-agent",
            "audit-id",
            "if-none-match",
            "sec-websocket-protocol",
            "x-stream-protocol-version",
            "X-REMOTE-user",
            "HOST",
        ] {
            let lines = format!("close, {name}");
            let headers: HeaderMap = [(header::CONNECTION, lines.parse().unwrap())].into_iter().collect();
            assert!(names_end_to_end(&headers), "{name}");
        }
        for connection in
            ["close", "keep-alive", "Upgrade", "te", "X-Private, close", "upgrade, HTTP2-Settings", ""]
        {
            assert!(!names_end_to_end(&headers(&[("connection", connection)])), "{connection}");
        }
    }
}
