//! The token that a client of this listener must present where the proxy forwards with its own
//! identity: without it any process that reaches the listener would have the proxy's rights.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use arc_swap::ArcSwap;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use subtle::ConstantTimeEq;

use crate::{file, respond::Refusal};

/// A token in a file, read again and again.
pub struct ListenToken {
    path: PathBuf,
    token: ArcSwap<String>,
}

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read.
    #[error("{}: {}", .0.display(), .1)]
    Read(PathBuf, io::Error),
    /// It was not read to the end.
    #[error("not read: {0}")]
    Unread(String),
    /// An empty token would let everybody in.
    #[error("{}: the file is empty; write a token into it", .0.display())]
    Empty(PathBuf),
}

// === impl ListenToken ===

impl ListenToken {
    /// Reads the token.
    pub fn read(path: PathBuf) -> Result<Self, TokenError> {
        let token = read(&path)?;
        Ok(Self { path, token: ArcSwap::from_pointee(token) })
    }

    /// Reads the token again; what cannot be read changes nothing. Blocks.
    pub fn reload(&self) -> Result<bool, TokenError> {
        let token = read(&self.path)?;
        let changed = **self.token.load() != token;
        if changed {
            self.token.store(Arc::new(token));
        }
        Ok(changed)
    }

    /// Refuses a request that does not carry the token, and one that asks to be somebody else: the
    /// right to impersonate would be the proxy's, not the client's.
    pub fn check(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        if !self.is_carried_by(headers) {
            let message = "this proxy forwards with its own identity: send the token of --listen-token-file as \
                           Authorization: Bearer";
            return Err(Refusal::new(StatusCode::UNAUTHORIZED, "Unauthorized", message));
        }
        if headers.keys().any(|name| name.as_str().starts_with("impersonate-")) {
            let message = "impersonation is forbidden where the proxy forwards with its own identity";
            return Err(Refusal::new(StatusCode::FORBIDDEN, "Forbidden", message));
        }
        Ok(())
    }

    fn is_carried_by(&self, headers: &HeaderMap) -> bool {
        let carried = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        let token = carried
            .and_then(|value| value.split_at_checked(7))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer "));
        token.is_some_and(|(_, token)| token.ct_eq(self.token.load().as_bytes()).into())
    }
}

fn read(path: &Path) -> Result<String, TokenError> {
    let text = file::read_text(path).map_err(|error| TokenError::Read(path.to_owned(), error))?;
    match text.trim() {
        "" => Err(TokenError::Empty(path.to_owned())),
        token => Ok(token.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn code(token: &ListenToken, pairs: &[(&'static str, &'static str)]) -> u16 {
        token.check(&headers(pairs)).map_or_else(|refusal| refusal.code.as_u16(), |()| 200)
    }

    #[test]
    fn only_a_client_with_the_token_passes_and_only_as_itself() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "abc\n").unwrap();
        let token = ListenToken::read(file.path().to_owned()).unwrap();
        assert_eq!(code(&token, &[("authorization", "Bearer abc")]), 200);
        assert_eq!(code(&token, &[("authorization", "bearer abc")]), 200);
        for wrong in ["Bearer ab", "Bearer abcd", "Bearer ", "Basic abc", "abc", ""] {
            assert_eq!(code(&token, &[("authorization", wrong)]), 401, "{wrong}");
        }
        assert_eq!(code(&token, &[]), 401);
        let impersonating = [("authorization", "Bearer abc"), ("impersonate-user", "root")];
        assert_eq!(code(&token, &impersonating), 403);
    }

    #[test]
    fn a_rotated_token_is_seen_and_an_empty_file_changes_nothing() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "old").unwrap();
        let token = ListenToken::read(file.path().to_owned()).unwrap();
        assert!(!token.reload().unwrap());
        fs::write(file.path(), "").unwrap();
        assert!(matches!(token.reload(), Err(TokenError::Empty(_))));
        assert_eq!(code(&token, &[("authorization", "Bearer old")]), 200);
        fs::write(file.path(), "new").unwrap();
        assert!(token.reload().unwrap());
        assert_eq!(code(&token, &[("authorization", "Bearer new")]), 200);
        assert_eq!(code(&token, &[("authorization", "Bearer old")]), 401);
    }
}
