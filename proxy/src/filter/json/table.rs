//! Tables: `metav1.Table` is a list whose `items` are called `rows`, beside the definitions of its columns.
//!
//! On a watch each event holds a table, usually of one row, and only the first has the definitions (apiserver,
//! `handlers/response.go`). If that one is hidden, the first that is shown gets them.

use super::lexer::Token;
use super::list::JsonList;
use super::type_meta::TypeMeta;
use super::whole::{Edit, NOT_OBJECT, elements, string_at, value, walk};
use crate::filter::held::{Place, Read, Span};
use crate::filter::{Counts, FilterError, Lens, Out, TableRows};
use bytes::{Bytes, BytesMut};

/// What is known of a table's columns, and how its rows are shown.
#[derive(Debug, Default)]
pub(in crate::filter) struct Columns {
    rows: TableRows,
    /// Which cell holds the object's name.
    name: usize,
    /// The definitions that came last.
    definitions: Option<Bytes>,
    /// Whether they were shown.
    shown: bool,
}

// === impl Columns ===

impl Columns {
    pub(in crate::filter) fn new(rows: TableRows) -> Self {
        Self { rows, ..Self::default() }
    }

    /// Whether the rows' objects are not for the client.
    pub(super) fn is_object_taken_out(&self) -> bool {
        self.rows == TableRows::WithoutObject
    }

    /// Takes note of definitions, given as JSON. What they say of names is not needed where they cannot be read.
    pub(super) fn define(&mut self, definitions: &[u8]) {
        let definitions = Bytes::copy_from_slice(definitions);
        let is_name = |column: &Span| {
            let column = definitions.slice(column.start..column.end);
            string_at(&column, &["format"]).is_ok_and(|format| format.as_deref() == Some("name"))
        };
        self.name = elements(&definitions).unwrap_or_default().iter().position(is_name).unwrap_or_default();
        self.shown = true;
        self.definitions = Some(definitions);
    }

    /// The definitions for a table that comes without, if the client has not got them yet.
    pub(super) fn missing(&mut self) -> Option<Bytes> {
        let missing = if self.shown { None } else { self.definitions.clone() };
        self.shown |= missing.is_some();
        missing
    }

    /// Where the text of the name's cell is, without its quotes, if it says `name`.
    pub(super) fn name_cell(
        &self,
        cells: Span,
        name: &str,
        place: &mut Place<'_>,
    ) -> Result<Option<Span>, FilterError> {
        let text = Bytes::copy_from_slice(place.bytes(cells));
        let (mut index, mut found) = (0, None);
        walk(&text, |token, lexer, _| {
            match token {
                Token::Object | Token::Array if lexer.depth() > 1 => lexer.skip(),
                Token::Array => {}
                token => {
                    if let (Token::Text(span), true) = (token, index == self.name) {
                        found = Some(span);
                    }
                    index += 1;
                }
            }
            Ok(())
        })?;
        let Some(Span { start, end }) = found else { return Ok(None) };
        let same = value(&text, Span { start, end })? == name;
        Ok(same.then_some(Span { start: cells.start + start, end: cells.start + end }))
    }
}

/// Whether a whole JSON object is a table.
pub(in crate::filter) fn is_table(object: &Bytes) -> Result<bool, FilterError> {
    let (mut meta, mut is_table) = (TypeMeta::default(), false);
    walk(object, |token, lexer, place| {
        match (token, lexer.depth()) {
            (Token::Object, 1) => {}
            (Token::Close, 0) => is_table = meta.is_table(place)?,
            (_, 0) | (Token::Array, 1) => return Err(NOT_OBJECT),
            (Token::Object | Token::Array, _) => lexer.skip(),
            (token, depth) => meta.token(token, depth, place)?,
        }
        Ok(())
    })?;
    Ok(is_table)
}

/// A whole table as the lens shows it, and how many rows are shown.
pub(in crate::filter) fn filtered<L: Lens>(
    table: &Bytes,
    lens: L,
    columns: &mut Columns,
) -> Result<(BytesMut, Counts), FilterError> {
    let was_shown = columns.shown;
    let mut list = JsonList::new(lens).with_columns(std::mem::take(columns));
    let mut out = Out::default();
    out.open(table);
    let mut place = Place::new(BytesMut::new(), table, &mut out);
    list.read(&mut place)?;
    if !list.complete() {
        return Err(FilterError::Truncated);
    }
    out.seal();
    *columns = list.into_columns();
    let counts = out.take_counts();
    if counts.is_hidden() {
        columns.shown = was_shown && columns.shown;
    }
    Ok((out.gathered(), counts))
}

/// Passes a span of the piece with the edits made, which lie in it in the order of places.
pub(super) fn pass(edits: Vec<Edit>, span: Span, place: &mut Place<'_>) {
    let mut start = span.start;
    for Edit { span, text } in edits {
        place.pass(Span { start, end: span.start });
        place.out.copy(text.as_bytes());
        start = span.end;
    }
    place.pass(Span { start, end: span.end });
}

#[cfg(test)]
mod tests;
