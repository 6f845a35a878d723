//! The `Audit-ID` of a request: one name for it here, at the API server and in its audit log (apiserver
//! `endpoints/filters/audit_init.go`).

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};
use rustls::crypto::{CryptoProvider, SecureRandom, aws_lc_rs};

/// The server takes the first one, whatever it is, and sends it back.
const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

const HEX: &[u8; 16] = b"0123456789abcdef";
/// Where the two digits of each byte are in a UUID.
const DIGITS: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];

/// Gives requests their names.
pub(super) struct AuditIds(&'static dyn SecureRandom);

/// The name of one request; none only if the system has no random numbers, and then the API server makes one.
#[derive(Clone, Debug)]
pub(super) struct AuditId(Option<HeaderValue>);

// === impl AuditIds ===

impl AuditIds {
    pub(super) fn new() -> Self {
        let provider: Arc<CryptoProvider> = Arc::new(aws_lc_rs::default_provider());
        Self(provider.secure_random)
    }

    /// The name that a client gave, else a new one, which goes upstream.
    pub(super) fn of(&self, headers: &mut HeaderMap) -> AuditId {
        if let Some(given) = headers.get(AUDIT_ID).filter(|given| !given.is_empty()) {
            return AuditId(Some(given.clone()));
        }
        let made = self.make();
        if let Some(made) = &made {
            headers.insert(AUDIT_ID, made.clone());
        }
        AuditId(made)
    }

    fn make(&self) -> Option<HeaderValue> {
        let mut random = [0; 16];
        self.0.fill(&mut random).ok()?;
        HeaderValue::from_bytes(&uuid(random)).ok()
    }
}

// === impl AuditId ===

impl AuditId {
    /// Puts it on an answer that is the proxy's own.
    pub(super) fn sign(&self, headers: &mut HeaderMap) {
        if let Some(id) = &self.0 {
            headers.insert(AUDIT_ID, id.clone());
        }
    }

    /// For the log.
    pub(super) fn text(&self) -> &str {
        self.0.as_ref().and_then(|id| id.to_str().ok()).unwrap_or_default()
    }
}

/// A UUID of version 4 (RFC 9562, section 5.4).
fn uuid(mut random: [u8; 16]) -> [u8; 36] {
    random[6] = random[6] & 0xf | 0x40;
    random[8] = random[8] & 0x3f | 0x80;
    let mut text = [b'-'; 36];
    for (byte, at) in random.into_iter().zip(DIGITS) {
        text[at] = HEX[usize::from(byte >> 4)];
        text[at + 1] = HEX[usize::from(byte & 0xf)];
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_says_its_version_and_is_random_otherwise() {
        for (random, text) in [
            (0, b"00000000-0000-4000-8000-000000000000"),
            (u128::MAX, b"ffffffff-ffff-4fff-bfff-ffffffffffff"),
            (0x0123_4567_89ab_cdef_0123_4567_89ab_cdef, b"01234567-89ab-4def-8123-456789abcdef"),
        ] {
            assert_eq!(&uuid(random.to_be_bytes()), text);
        }
    }

    #[test]
    fn the_clients_own_name_stays_and_the_first_counts() {
        let mut headers = HeaderMap::new();
        headers.append(AUDIT_ID, HeaderValue::from_static("mine"));
        headers.append(AUDIT_ID, HeaderValue::from_static("other"));
        assert_eq!(AuditIds::new().of(&mut headers).text(), "mine");
        assert_eq!(headers.get_all(AUDIT_ID).iter().count(), 2);
    }

    #[test]
    fn a_request_without_a_name_gets_one_of_its_own() {
        let ids = AuditIds::new();
        let made = |headers: &mut HeaderMap| ids.of(headers).text().to_owned();
        let (mut none, mut empty) = (HeaderMap::new(), HeaderMap::new());
        empty.insert(AUDIT_ID, HeaderValue::from_static(""));
        let (one, other) = (made(&mut none), made(&mut empty));
        assert_ne!(one, other);
        assert_eq!((one.len(), other.len()), (36, 36));
        assert_eq!(none[AUDIT_ID], one);
        assert_eq!(empty[AUDIT_ID], other);
        let mut answer = HeaderMap::new();
        ids.of(&mut none).sign(&mut answer);
        assert_eq!(answer[AUDIT_ID], one);
    }
}
