//! Reads and edits of a raw query, byte for byte.
//!
//! The rules are those of Go's `net/url.ParseQuery`, which the API server uses: pairs split at `&`, `+` is a
//! space, and a pair with `;` or a bad escape does not exist. An edit keeps every other pair as it came, in its
//! place and in its spelling.

use std::borrow::Cow;

use http::uri::{InvalidUri, PathAndQuery};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, percent_decode, utf8_percent_encode};

use super::RequestError;

/// Go answers a query with more pairs as if it were empty (`net/url`, since 1.25.6).
const MAX_PAIRS: usize = 10_000;

/// What is escaped in a value that we write: all but RFC 3986's unreserved characters.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A query under edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    raw: String,
}

// === impl Query ===

impl Query {
    /// Starts from the query of a URI; `None` and the empty query are the same.
    pub fn new(raw: Option<&str>) -> Self {
        Self { raw: raw.unwrap_or_default().to_owned() }
    }

    /// The query as it now stands, without the `?`.
    pub fn as_str(&self) -> &str {
        &self.raw
    }

    /// The decoded first value of `key`; see [`first`].
    pub fn get(&self, key: &str) -> Result<Option<Cow<'_, str>>, RequestError> {
        first(&self.raw, key)
    }

    /// The decoded values of `key`, in their order. An error if one is not UTF-8.
    pub fn all(&self, key: &str) -> Result<Vec<Cow<'_, str>>, RequestError> {
        self.raw.split('&').filter_map(|pair| value_of(pair, key)).map(utf8).collect()
    }

    /// Gives `key` this one value: in the place of its first pair, else at the end. Later pairs of the same key
    /// go, so that a server which reads the last one sees the new value too.
    pub fn set(&mut self, key: &str, value: &str) {
        let mut found = false;
        self.edit(key, |spelled| {
            let kept = (!found).then(|| format!("{spelled}={}", encode(value)));
            found = true;
            kept
        });
        if !found {
            self.append(key, value);
        }
    }

    /// Takes out every pair of `key`.
    pub fn remove(&mut self, key: &str) {
        self.edit(key, |_| None);
    }

    /// Adds a pair at the end.
    pub fn append(&mut self, key: &str, value: &str) {
        if !self.raw.is_empty() {
            self.raw.push('&');
        }
        self.raw.extend(encode(key).chain(["="]).chain(encode(value)));
    }

    /// The request target of `path`, which is taken as it is, and this query.
    pub fn path_and_query(&self, path: &str) -> Result<PathAndQuery, InvalidUri> {
        match self.raw.as_str() {
            "" => path.parse(),
            query => format!("{path}?{query}").parse(),
        }
    }

    /// Replaces each pair of `key` by what `replace` makes of the key's spelling, or drops it.
    fn edit(&mut self, key: &str, mut replace: impl FnMut(&str) -> Option<String>) {
        let pairs = self.raw.split('&').filter_map(|pair| match value_of(pair, key) {
            Some(_) => replace(spelled_key(pair)).map(Cow::Owned),
            None => Some(Cow::Borrowed(pair)),
        });
        self.raw = pairs.collect::<Vec<_>>().join("&");
    }
}

/// The decoded first value of `key` in a raw query, as the API server reads it.
///
/// An error if that value is not UTF-8.
pub fn first<'q>(raw: &'q str, key: &str) -> Result<Option<Cow<'q, str>>, RequestError> {
    raw.split('&').find_map(|pair| value_of(pair, key)).map(utf8).transpose()
}

/// Refuses a query of which Go would ignore a part: one server's noise is another server's parameter.
pub(super) fn check(raw: &str) -> Result<(), RequestError> {
    if raw.contains(';') {
        return Err(RequestError::Semicolon);
    }
    if !escapes_are_valid(raw) {
        return Err(RequestError::BadEscape);
    }
    if raw.split('&').nth(MAX_PAIRS).is_some() {
        return Err(RequestError::TooManyParameters);
    }
    Ok(())
}

/// Whether each `%` is followed by two hexadecimal digits.
pub(super) fn escapes_are_valid(text: &str) -> bool {
    text.split('%').skip(1).all(|rest| {
        let mut digits = rest.bytes().take(2);
        digits.next().is_some_and(|byte| byte.is_ascii_hexdigit())
            && digits.next().is_some_and(|byte| byte.is_ascii_hexdigit())
    })
}

/// The text of decoded bytes.
pub(super) fn utf8(bytes: Cow<'_, [u8]>) -> Result<Cow<'_, str>, RequestError> {
    match bytes {
        Cow::Borrowed(bytes) => std::str::from_utf8(bytes).map(Cow::Borrowed).ok(),
        Cow::Owned(bytes) => String::from_utf8(bytes).map(Cow::Owned).ok(),
    }
    .ok_or(RequestError::NotUtf8)
}

/// The decoded value if the pair is one of `key`; `None` also if Go skips the pair.
fn value_of<'q>(pair: &'q str, key: &str) -> Option<Cow<'q, [u8]>> {
    let (spelled, value) = pair.split_once('=').unwrap_or((pair, ""));
    let is_plain = !spelled.bytes().any(|byte| matches!(byte, b'%' | b'+'));
    let is_key = if is_plain { spelled == key } else { decode(spelled)? == key.as_bytes() };
    let is_skipped = pair.is_empty() || pair.contains(';');
    if is_key && !is_skipped { decode(value) } else { None }
}

fn spelled_key(pair: &str) -> &str {
    pair.split_once('=').map_or(pair, |(key, _)| key)
}

fn decode(component: &str) -> Option<Cow<'_, [u8]>> {
    if !escapes_are_valid(component) {
        return None;
    }
    if !component.contains('+') {
        return Some(percent_decode(component.as_bytes()).into());
    }
    let spaced = component.replace('+', " ");
    Some(Cow::Owned(percent_decode(spaced.as_bytes()).collect()))
}

fn encode(value: &str) -> PercentEncode<'_> {
    utf8_percent_encode(value, RESERVED)
}

#[cfg(test)]
mod tests;
