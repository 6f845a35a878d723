//! Objects in JSON.

use super::{OwnedView, requoted};
use crate::filter::held::{Place, Span};
use crate::filter::json::find::Finder;
use crate::filter::json::lexer::{Lexer, Token};
use crate::filter::json::text;
use crate::filter::{FilterError, Out};
use bytes::{Bytes, BytesMut};
use std::borrow::Cow;

/// A string to put in place of another; the span is without quotes.
pub(super) struct Edit {
    pub(super) span: Span,
    pub(super) text: String,
}

const NOT_OBJECT: FilterError = FilterError::Malformed("a JSON object");
const TWO_READINGS: FilterError = FilterError::Malformed("one metadata with one name");

/// A name that a later member takes back is refused: of a repeated `metadata` Go keeps the earlier fields in a typed
/// object and drops them in an untyped one, and a `null` changes nothing in a typed one.
pub(super) fn view(bytes: &Bytes) -> Result<OwnedView, FilterError> {
    let mut finder = Finder::default();
    walk(bytes, |token, lexer, place| match (token, lexer.depth()) {
        (Token::Object, 1) | (Token::Close, 0) => Ok(()),
        (_, 0) | (Token::Array, 1) => Err(NOT_OBJECT),
        (_, depth) => {
            let was_named = finder.found.name.is_some();
            finder.token(token, depth, lexer, place)?;
            if was_named && finder.found.name.is_none() { Err(TWO_READINGS) } else { Ok(()) }
        }
    })?;
    let string =
        |span: Option<Span>| Ok(span.map(|span| value(bytes, span)).transpose()?.unwrap_or_default().into());
    Ok(OwnedView {
        namespace: string(finder.found.namespace)?,
        name: string(finder.found.name)?,
        generate_name: string(finder.found.generate_name)?,
        uid: string(finder.found.uid)?,
    })
}

pub(super) fn rename(bytes: &Bytes, from: &str, to: &str) -> Result<Bytes, FilterError> {
    let mut edits = Vec::new();
    if string_at(bytes, &["kind"])?.as_deref() == Some("Status") {
        edits.extend(replaced(bytes, &["details", "name"], from, to)?);
        if let Some(span) = text_at(bytes, &["message"])? {
            edits.push(Edit { span, text: requoted(&value(bytes, span)?, from, to) });
        }
    } else {
        edits.extend(replaced(bytes, &["metadata", "name"], from, to)?);
    }
    Ok(apply(bytes, edits))
}

/// Behind the brace of `metadata`, or in place of a `name` that is empty or null. Of a repeated `metadata` or name the last
/// one counts.
pub(super) fn give_name(bytes: &Bytes, name: &str) -> Result<Bytes, FilterError> {
    let (mut in_metadata, mut at_name) = (false, false);
    let (mut open, mut value) = (None, None);
    walk(bytes, |token, lexer, place| {
        match (token, lexer.depth()) {
            (Token::Key(key), 1) => in_metadata = text::unescape(place.bytes(key))? == "metadata",
            (Token::Key(key), 2) => at_name = text::unescape(place.bytes(key))? == "name",
            (Token::Object, 2) if in_metadata => (open, value) = (Some(place.at), None),
            (Token::Text(span), 2) if at_name => {
                value = Some(Span { start: span.start - 1, end: span.end + 1 });
            }
            (Token::Literal(span), 2) if at_name => value = Some(span),
            (Token::Object, 1) => {}
            (Token::Object | Token::Array, _) => lexer.skip(),
            _ => {}
        }
        Ok(())
    })?;
    let open = open.ok_or(FilterError::Malformed("metadata in the object"))?;
    let name = text::quote(name);
    let (span, new) = match value {
        Some(value) => (value, name),
        None => (Span { start: open, end: open }, format!("\"name\":{name},")),
    };
    Ok([&bytes[..span.start], new.as_bytes(), &bytes[span.end..]].concat().into())
}

/// The edit that puts `to` where the string at `path` is `from`.
pub(super) fn replaced(
    bytes: &Bytes,
    path: &[&str],
    from: &str,
    to: &str,
) -> Result<Option<Edit>, FilterError> {
    let Some(span) = text_at(bytes, path)? else { return Ok(None) };
    let same = value(bytes, span)? == from;
    Ok(same.then(|| Edit { span, text: to.to_owned() }))
}

/// The string at `path`, if there is one.
pub(super) fn string_at<'a>(bytes: &'a Bytes, path: &[&str]) -> Result<Option<Cow<'a, str>>, FilterError> {
    text_at(bytes, path)?.map(|span| value(bytes, span)).transpose()
}

/// The text with the edits made, which do not overlap; the same bytes if none changes anything.
pub(super) fn apply(bytes: &Bytes, mut edits: Vec<Edit>) -> Bytes {
    edits.sort_by_key(|edit| edit.span.start);
    let mut text = BytesMut::new();
    let mut done = 0;
    for Edit { span, text: new } in edits {
        text.extend_from_slice(&bytes[done..span.start - 1]);
        text.extend_from_slice(text::quote(&new).as_bytes());
        done = span.end + 1;
    }
    if done == 0 {
        return bytes.clone();
    }
    text.extend_from_slice(&bytes[done..]);
    text.freeze()
}

/// The elements of an array.
pub(super) fn elements(bytes: &Bytes) -> Result<Vec<Span>, FilterError> {
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
            _ => return Err(FilterError::Malformed("an array of JSON patch operations")),
        }
        Ok(())
    })?;
    Ok(elements)
}

/// Where the string at `path` is; of a repeated key the last counts.
fn text_at(bytes: &Bytes, path: &[&str]) -> Result<Option<Span>, FilterError> {
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

fn value(bytes: &Bytes, span: Span) -> Result<Cow<'_, str>, FilterError> {
    text::unescape(&bytes[span.start..span.end])
}

/// Shows each token of a whole text; offsets are places in `bytes`.
fn walk(
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
