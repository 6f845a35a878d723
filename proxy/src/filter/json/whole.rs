//! Whole texts in JSON: where something is in them, and changes to them.

use super::lexer::{Lexer, Token};
use super::text;
use crate::filter::held::{Place, Span};
use crate::filter::{FilterError, Out};
use bytes::{Bytes, BytesMut};
use std::borrow::Cow;

/// A text to put in place of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::filter) struct Edit {
    pub(in crate::filter) span: Span,
    pub(in crate::filter) text: Cow<'static, str>,
}

/// What is expected where a text is no object.
pub(in crate::filter) const NOT_OBJECT: FilterError = FilterError::Malformed("a JSON object");
const NOT_TEXT: FilterError = FilterError::Malformed("a string or null");

// === impl Edit ===

impl Edit {
    /// Puts a string in place of the one whose text, without its quotes, is at `span`.
    pub(in crate::filter) fn string(span: Span, text: &str) -> Self {
        Self { span: Span { start: span.start - 1, end: span.end + 1 }, text: text::quote(text).into() }
    }

    /// The same edit of a text that begins `by` bytes earlier.
    pub(in crate::filter) fn shifted(self, by: usize) -> Self {
        let Span { start, end } = self.span;
        Self { span: Span { start: by + start, end: by + end }, ..self }
    }
}

/// The text with the edits made, which do not overlap; the same bytes if there are none.
pub(in crate::filter) fn apply(bytes: &Bytes, mut edits: Vec<Edit>) -> Bytes {
    if edits.is_empty() {
        return bytes.clone();
    }
    edits.sort_by_key(|edit| edit.span.start);
    let mut text = BytesMut::new();
    let mut done = 0;
    for Edit { span, text: new } in edits {
        text.extend_from_slice(&bytes[done..span.start]);
        text.extend_from_slice(new.as_bytes());
        done = span.end;
    }
    text.extend_from_slice(&bytes[done..]);
    text.freeze()
}

/// The string at `path`, if there is one.
pub(in crate::filter) fn string_at<'a>(
    bytes: &'a Bytes,
    path: &[&str],
) -> Result<Option<Cow<'a, str>>, FilterError> {
    text_at(bytes, path)?.map(|span| value(bytes, span)).transpose()
}

/// The elements of an array of objects.
pub(in crate::filter) fn elements(bytes: &Bytes) -> Result<Vec<Span>, FilterError> {
    let mut elements = Vec::new();
    let mut start = 0;
    walk(bytes, |token, lexer, place| {
        match (token, lexer.depth()) {
            (Token::Array, 1) | (Token::Close, 0) => {}
            (Token::Object, 2) => {
                start = place.at - 1;
                lexer.skip();
            }
            (Token::Close, 1) => elements.push(Span { start, end: place.at }),
            _ => return Err(FilterError::Malformed("an array of JSON objects")),
        }
        Ok(())
    })?;
    Ok(elements)
}

/// Where the string at `path` is; of a repeated key the last counts.
pub(in crate::filter) fn text_at(bytes: &Bytes, path: &[&str]) -> Result<Option<Span>, FilterError> {
    let mut found = None;
    // Only containers on the path are entered, so the depth says how much of the path is behind us.
    let mut hit = false;
    walk(bytes, |token, lexer, place| {
        let depth = lexer.depth() as usize;
        match token {
            Token::Object if depth == 1 => return Ok(()),
            Token::Key(key) => hit = Some(&&*text::unescape(place.bytes(key))?) == path.get(depth - 1),
            Token::Close => hit = false,
            _ if depth == 0 || (token == Token::Array && depth == 1) => return Err(NOT_OBJECT),
            _ if hit => {
                found =
                    if let Token::Text(span) = token { (depth == path.len()).then_some(span) } else { None }
            }
            _ => {}
        }
        let enter = token == Token::Object && hit && depth <= path.len();
        if matches!(token, Token::Object | Token::Array) && !enter {
            lexer.skip();
        }
        Ok(())
    })?;
    Ok(found)
}

/// The text of the string at `span`.
pub(in crate::filter) fn value(bytes: &Bytes, span: Span) -> Result<Cow<'_, str>, FilterError> {
    text::unescape(&bytes[span.start..span.end])
}

/// The object with that string as a member of one of its own objects: behind that one's brace, or in place of a value that
/// is a string or null. Of a repeated key the last counts. An object that is not there is made.
pub(in crate::filter) fn put_at(
    bytes: &Bytes,
    object: &str,
    member: &str,
    text: &str,
) -> Result<Bytes, FilterError> {
    let found = Found::of(bytes, object, member)?;
    let quoted = |key: &str| text::quote(key);
    let pair = format!("{}:{}", quoted(member), quoted(text));
    let (span, new) = match (found.value, found.object) {
        (Some(value), _) => (value, quoted(text)),
        (None, Some(open)) => (Span { start: open, end: open }, pair + Found::comma_at(bytes, open)),
        (None, None) => {
            let root = found.root;
            let made = format!("{}:{{{pair}}}{}", quoted(object), Found::comma_at(bytes, root));
            (Span { start: root, end: root }, made)
        }
    };
    Ok([&bytes[..span.start], new.as_bytes(), &bytes[span.end..]].concat().into())
}

/// That string, as [`put_at`] finds it; none where it is null.
pub(in crate::filter) fn member_at(
    bytes: &Bytes,
    object: &str,
    member: &str,
) -> Result<Option<String>, FilterError> {
    let Some(Span { start, end }) = Found::of(bytes, object, member)?.value else { return Ok(None) };
    match &bytes[start..end] {
        b"null" => Ok(None),
        _ => value(bytes, Span { start: start + 1, end: end - 1 }).map(|text| Some(text.into_owned())),
    }
}

/// Where a member of an object's object is, or could be.
#[derive(Debug, Default)]
struct Found {
    /// Behind the brace of the root.
    root: usize,
    /// Behind the brace of the object.
    object: Option<usize>,
    /// The value of the member, quotes included.
    value: Option<Span>,
}

// === impl Found ===

impl Found {
    fn of(bytes: &Bytes, object: &str, member: &str) -> Result<Self, FilterError> {
        let (mut in_object, mut at_member, mut found) = (false, false, Self::default());
        walk(bytes, |token, lexer, place| {
            match (token, lexer.depth()) {
                (Token::Key(key), 1) => in_object = text::unescape(place.bytes(key))? == object,
                (Token::Key(key), 2) => at_member = text::unescape(place.bytes(key))? == member,
                (Token::Object, 1) => found.root = place.at,
                (Token::Object, 2) if in_object => (found.object, found.value) = (Some(place.at), None),
                (Token::Text(span), 2) if at_member => {
                    found.value = Some(Span { start: span.start - 1, end: span.end + 1 });
                }
                (Token::Literal(span), 2) if at_member => {
                    if place.bytes(span) != b"null" {
                        return Err(NOT_TEXT);
                    }
                    found.value = Some(span);
                }
                (Token::Object | Token::Array, 3) if at_member => return Err(NOT_TEXT),
                (Token::Array, 1) | (Token::Text(_) | Token::Literal(_), 0) => return Err(NOT_OBJECT),
                (Token::Array, 2) | (Token::Text(_) | Token::Literal(_), 1) if in_object => {
                    return Err(NOT_OBJECT);
                }
                (Token::Object | Token::Array, _) => lexer.skip(),
                _ => {}
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// What separates a new member from what follows.
    fn comma_at(bytes: &[u8], at: usize) -> &'static str {
        let next = bytes[at..].iter().find(|byte| !byte.is_ascii_whitespace());
        if next == Some(&b'}') { "" } else { "," }
    }
}

/// Shows each token of a whole text; offsets are places in `bytes`.
pub(in crate::filter) fn walk(
    bytes: &Bytes,
    mut visit: impl FnMut(Token, &mut Lexer, &mut Place<'_>) -> Result<(), FilterError>,
) -> Result<(), FilterError> {
    let (mut lexer, mut out) = (Lexer::default(), Out::default());
    let mut place = Place::new(BytesMut::new(), bytes, &mut out);
    while let Some(token) = lexer.next(&mut place)? {
        visit(token, &mut lexer, &mut place)?;
    }
    if lexer.done() { Ok(()) } else { Err(FilterError::Truncated) }
}
