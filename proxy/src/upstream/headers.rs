//! Which of a client's headers do not go upstream.

use http::{HeaderMap, HeaderName};

use crate::request::hop;

/// What a client may not claim: who it is and where it comes from, in headers that servers believe of a proxy. None of
/// them means anything to an API server without one, so a client loses nothing.
///
/// `X-Remote-*` is the identity that an authenticating proxy vouches for (apiserver `server/options/authentication.go`);
/// `X-Forwarded-For` and `X-Real-Ip` become the source addresses of the audit log (apimachinery `util/net/http.go`,
/// `SourceIPs`), and so evidence; the others lead programs behind a proxied Service astray.
const CLAIMS: [&str; 5] = ["x-remote-", "x-forwarded-", "x-real-ip", "x-original-", "forwarded"];

/// Removes what ends at this hop and what a client may not claim.
pub fn strip(headers: &mut HeaderMap) {
    hop::end(headers);
    let claimed: Vec<_> = headers.keys().filter(|name| is_claim(name)).cloned().collect();
    for name in claimed {
        headers.remove(name);
    }
}

/// With underscores it is the same header to some servers; Go's know them apart, so here nobody needs one.
fn is_claim(name: &HeaderName) -> bool {
    let name = name.as_str().as_bytes();
    // Every request has many headers, and hardly any begins so.
    matches!(name, [b'x' | b'f', ..]) && CLAIMS.iter().any(|claim| begins(name, claim.as_bytes()))
}

/// Whether the name begins so, if `_` were `-`.
fn begins(name: &[u8], claim: &[u8]) -> bool {
    let is_same = |(byte, wanted): (&u8, &u8)| byte == wanted || (*byte, *wanted) == (b'_', b'-');
    name.len() >= claim.len() && name.iter().zip(claim).all(is_same)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stripped(names: &[&'static str]) -> Vec<String> {
        let line = |name: &&'static str| (HeaderName::from_static(name), http::HeaderValue::from_static("1"));
        let mut headers: HeaderMap = names.iter().map(line).collect();
        strip(&mut headers);
        let mut kept: Vec<_> = headers.keys().map(ToString::to_string).collect();
        kept.sort();
        kept
    }

    #[test]
    fn a_client_cannot_claim_an_identity_or_an_address() {
        let claims = [
            "x-remote-user",
            "x-remote-uid",
            "x-remote-extra-scopes",
            "x_remote_user",
            "x-remote_group",
            "x_remote-group",
            "x-forwarded-for",
            "x_forwarded_for",
            "x-forwarded-host",
            "x-real-ip",
            "x-original-url",
            "forwarded",
        ];
        assert_eq!(stripped(&claims), Vec::<String>::new());
    }

    #[test]
    fn what_a_client_may_say_passes() {
        let kept = [
            "accept",
            "audit-id",
            "f",
            "forward",
            "impersonate-extra-a",
            "impersonate-user",
            "impersonate_user",
            "x",
            "x-forwarded",
            "x-real-i",
            "x-remote",
            "xx-remote-user",
        ];
        assert_eq!(stripped(&kept), kept);
    }

    #[test]
    fn every_claim_is_among_those_that_are_looked_at() {
        for claim in CLAIMS {
            assert!(is_claim(&HeaderName::from_static(claim)), "{claim}");
            assert!(!claim.contains('_'), "{claim}");
        }
    }
}
