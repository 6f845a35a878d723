//! The credential that writes carry in mode `Credential`: a token that ends with the shard's term.

use arc_swap::ArcSwapOption;
use http::{HeaderMap, HeaderName, HeaderValue, header};

/// The token of the term that this proxy holds; none between terms, and in mode `Preconditions`.
#[derive(Debug, Default)]
pub struct TermToken(ArcSwapOption<HeaderValue>);

// === impl TermToken ===

impl TermToken {
    /// From now on writes carry that `Authorization`, or none do.
    pub fn set(&self, authorization: Option<HeaderValue>) {
        self.0.store(authorization.map(Into::into));
    }

    /// Whether there is one.
    pub fn is_set(&self) -> bool {
        self.0.load().is_some()
    }

    /// Puts it in place of whatever says who the client is; false if there is none.
    pub fn bear(&self, headers: &mut HeaderMap) -> bool {
        let Some(token) = self.0.load_full() else { return false };
        let says_who = |name: &&HeaderName| name.as_str().starts_with("impersonate-");
        let impersonation: Vec<HeaderName> = headers.keys().filter(says_who).cloned().collect();
        for name in impersonation {
            headers.remove(name);
        }
        headers.insert(header::AUTHORIZATION, HeaderValue::clone(&token));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_the_client_s_identity_is_left_beside_it() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("authorization", "Bearer own"),
            ("impersonate-user", "a"),
            ("impersonate-extra-b", "c"),
            ("impersonate-group", "d"),
            ("accept", "e"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        headers.append("impersonate-group", HeaderValue::from_static("f"));
        let (token, before) = (TermToken::default(), headers.clone());
        assert!(!token.bear(&mut headers));
        assert_eq!(headers, before);
        token.set(Some(HeaderValue::from_static("Bearer term")));
        assert!(token.is_set() && token.bear(&mut headers));
        assert_eq!(headers.len(), 2);
        assert_eq!(
            (&headers["authorization"], &headers["accept"]),
            (&"Bearer term".parse().unwrap(), &"e".parse().unwrap())
        );
        token.set(None);
        assert!(!token.is_set());
    }
}
