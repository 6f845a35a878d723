//! Whether a request asks to leave HTTP, and for what (RFC 9110, section 7.8).

use http::{HeaderMap, HeaderValue, header};

use super::RequestError;

/// A protocol that an API server upgrades to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Asked for by GET (apimachinery `pkg/util/httpstream/wsstream`).
    WebSocket,
    /// Asked for by POST (apimachinery `pkg/util/httpstream/spdy`).
    Spdy,
}

// === impl Protocol ===

impl Protocol {
    /// What a request asks for; none if it stays with HTTP.
    pub fn asked(headers: &HeaderMap) -> Result<Option<Self>, RequestError> {
        let mut values = headers.get_all(header::UPGRADE).into_iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return if headers.contains_key(header::UPGRADE) { Err(RequestError::Upgrade) } else { Ok(None) };
        };
        let protocol = Self::named(value).ok_or(RequestError::Upgrade)?;
        // Without it the header is of no effect, and who sends it means something else.
        if names_upgrade(headers) { Ok(Some(protocol)) } else { Err(RequestError::Upgrade) }
    }

    /// Whether the head of a response switches to this protocol.
    pub fn is_agreed(self, headers: &HeaderMap) -> bool {
        let mut values = headers.get_all(header::UPGRADE).into_iter();
        values.next().and_then(Self::named) == Some(self) && values.next().is_none()
    }

    /// Its name in the `Upgrade` header.
    pub fn token(self) -> &'static str {
        match self {
            Self::WebSocket => "websocket",
            Self::Spdy => "SPDY/3.1",
        }
    }

    fn named(value: &HeaderValue) -> Option<Self> {
        let is = |protocol: &Self| value.as_bytes().eq_ignore_ascii_case(protocol.token().as_bytes());
        [Self::WebSocket, Self::Spdy].into_iter().find(is)
    }
}

fn names_upgrade(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(header::CONNECTION).into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|token| token.trim().eq_ignore_ascii_case("upgrade"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(lines: &[(&'static str, &'static str)]) -> Result<Option<Protocol>, RequestError> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_static(value));
        }
        Protocol::asked(&headers)
    }

    #[test]
    fn the_two_protocols_of_kubernetes_are_understood() {
        for (value, protocol) in [
            ("websocket", Protocol::WebSocket),
            ("WebSocket", Protocol::WebSocket),
            ("SPDY/3.1", Protocol::Spdy),
            ("spdy/3.1", Protocol::Spdy),
        ] {
            for connection in ["Upgrade", "upgrade", "keep-alive, Upgrade", "Upgrade,close"] {
                let lines = [("connection", connection), ("upgrade", value)];
                assert_eq!(asked(&lines), Ok(Some(protocol)), "{lines:?}");
            }
        }
        assert_eq!(asked(&[]), Ok(None));
        assert_eq!(asked(&[("connection", "upgrade")]), Ok(None));
    }

    #[test]
    fn every_other_upgrade_is_refused() {
        for value in ["h2c", "HTTP/2.0", "TLS/1.0", "websocket, SPDY/3.1", "websocket,", "SPDY/3", ""] {
            let lines = [("connection", "upgrade"), ("upgrade", value)];
            assert_eq!(asked(&lines), Err(RequestError::Upgrade), "{value:?}");
        }
        for lines in [
            &[("upgrade", "websocket")][..],
            &[("connection", "close"), ("upgrade", "websocket")],
            &[("connection", "upgrades"), ("upgrade", "websocket")],
            &[("connection", "upgrade"), ("upgrade", "websocket"), ("upgrade", "websocket")],
            &[("connection", "upgrade"), ("upgrade", "websocket"), ("upgrade", "h2c")],
        ] {
            assert_eq!(asked(lines), Err(RequestError::Upgrade), "{lines:?}");
        }
    }

    #[test]
    fn only_what_was_asked_for_is_agreed() {
        let agreed = |protocol: Protocol, value: &'static str| {
            protocol.is_agreed(&[(header::UPGRADE, HeaderValue::from_static(value))].into_iter().collect())
        };
        assert!(agreed(Protocol::WebSocket, "WebSocket") && agreed(Protocol::Spdy, "SPDY/3.1"));
        for (protocol, other) in
            [(Protocol::WebSocket, "SPDY/3.1"), (Protocol::Spdy, "websocket"), (Protocol::Spdy, "h2c")]
        {
            assert!(!agreed(protocol, other), "{protocol:?}");
        }
        assert!(!Protocol::Spdy.is_agreed(&HeaderMap::new()));
    }
}
