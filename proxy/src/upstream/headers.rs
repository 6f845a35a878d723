//! Which of a client's headers do not go upstream.

use http::{HeaderMap, HeaderName, header};

/// Headers that end at each hop (RFC 9110, section 7.6.1), and those that an HTTP/2 request must not have.
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

/// An API server behind an authenticating proxy believes `X-Remote-*` (apiserver
/// `server/options/authentication.go`): a client must never be able to set them.
const IDENTITY_PREFIX: &str = "x-remote-";

/// Removes what ends at this hop and what a client may not claim.
pub fn strip(headers: &mut HeaderMap) {
    end_hop(headers);
    let claimed: Vec<_> =
        headers.keys().filter(|name| name.as_str().starts_with(IDENTITY_PREFIX)).cloned().collect();
    for name in claimed {
        headers.remove(name);
    }
}

/// Removes what ends at this hop.
pub(super) fn end_hop(headers: &mut HeaderMap) {
    for name in named_by_connection(headers) {
        headers.remove(name);
    }
    for name in &HOP_BY_HOP {
        headers.remove(name);
    }
    headers.remove("keep-alive");
    headers.remove("proxy-connection");
}

/// `Connection` can name further headers of this hop, but not those that the request depends on: a
/// client could otherwise make its own credential or its impersonation disappear on the way.
fn named_by_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    let values = headers.get_all(header::CONNECTION).into_iter().filter_map(|value| value.to_str().ok());
    let names = values.flat_map(|value| value.split(',')).filter_map(|name| name.trim().parse().ok());
    names.filter(|name: &HeaderName| !is_end_to_end(name)).collect()
}

fn is_end_to_end(name: &HeaderName) -> bool {
    *name == header::AUTHORIZATION || name.as_str().starts_with("impersonate-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stripped(pairs: &[(&'static str, &'static str)]) -> Vec<String> {
        let mut headers: HeaderMap = pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()))
            .collect();
        strip(&mut headers);
        headers.keys().map(ToString::to_string).collect()
    }

    #[test]
    fn a_client_cannot_claim_an_identity() {
        assert_eq!(
            stripped(&[("x-remote-user", "root"), ("x-remote-extra-scopes", "a")]),
            Vec::<String>::new()
        );
    }

    #[test]
    fn hop_by_hop_headers_end_here_and_the_named_ones_too() {
        let sent =
            [("connection", "close, x-private"), ("x-private", "1"), ("keep-alive", "5"), ("accept", "*/*")];
        assert_eq!(stripped(&sent), ["accept"]);
    }

    #[test]
    fn connection_cannot_remove_a_credential() {
        let sent = [
            ("connection", "authorization, impersonate-user"),
            ("authorization", "a"),
            ("impersonate-user", "b"),
        ];
        let mut kept = stripped(&sent);
        kept.sort();
        assert_eq!(kept, ["authorization", "impersonate-user"]);
    }
}
