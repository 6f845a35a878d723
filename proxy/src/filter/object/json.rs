//! Objects in JSON.

use super::{OwnedView, requoted};
use crate::filter::held::Span;
use crate::filter::json::find::Finder;
use crate::filter::json::lexer::Token;
use crate::filter::json::table::{self, Columns};
use crate::filter::json::whole::{Edit, NOT_OBJECT, apply, put_at, string_at, text_at, value, walk};
use crate::filter::{FilterError, Lens, TableRows, Verdict, View};
use bytes::Bytes;

/// Shows one object under another name, and all others as they are.
struct Renamed<'a> {
    from: &'a str,
    to: &'a str,
}

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
            edits.push(Edit::string(span, &requoted(&value(bytes, span)?, from, to)));
        }
    } else {
        edits.extend(replaced(bytes, &["metadata", "name"], from, to)?);
    }
    Ok(apply(bytes, edits))
}

pub(super) fn give_name(bytes: &Bytes, name: &str) -> Result<Bytes, FilterError> {
    put_at(bytes, "metadata", "name", name)
}

/// The table with the rows of the object `from` under the name `to`; `None` if it is no table.
pub(super) fn rename_in_table(
    bytes: &Bytes,
    from: &str,
    to: &str,
    rows: TableRows,
) -> Result<Option<Bytes>, FilterError> {
    if !table::is_table(bytes)? {
        return Ok(None);
    }
    let (renamed, _) = table::filtered(bytes, Renamed { from, to }, &mut Columns::new(rows))?;
    Ok(Some(renamed.freeze()))
}

pub(super) fn status_reason(bytes: &Bytes) -> Result<String, FilterError> {
    Ok(string_at(bytes, &["reason"])?.unwrap_or_default().into())
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
    Ok(same.then(|| Edit::string(span, to)))
}

// === impl Renamed ===

impl Lens for Renamed<'_> {
    fn verdict(&self, view: View<'_>) -> Verdict<'_> {
        if view.name == self.from { Verdict::Rename(self.to) } else { Verdict::Keep }
    }
}
