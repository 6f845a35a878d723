//! A JSON list of any kind, or a table.
//!
//! The root's members come in any order: built-in kinds write `kind, apiVersion, metadata, items`, custom resources
//! `apiVersion, items, kind, metadata`. Members pass as they are, except: `items` and `rows` lose what the lens drops,
//! `null` items become `[]`, and the list's own `metadata` loses `remainingItemCount`, which would count hidden objects
//! too. Each piece passes as soon as it is complete.

use super::find::Finder;
use super::lexer::{Lexer, Token};
use super::row::Row;
use super::series::Series;
use super::table::{self, Columns};
use super::text;
use crate::filter::held::{Place, Read, Span};
use crate::filter::{FilterError, Lens, Verdict};

/// The scanner of one list.
#[derive(Debug)]
pub(in crate::filter) struct JsonList<L> {
    lens: L,
    lexer: Lexer,
    member: Member,
    items_seen: bool,
    series: Series,
    /// The member of the list's metadata at hand.
    meta: Meta,
    /// Where the element at hand begins in the held piece.
    begin: usize,
    /// The item at hand, once the walk is inside it.
    item: Option<Finder>,
    /// Apart, because most lists are no tables.
    table: Box<Table>,
}

/// What only a table needs.
#[derive(Debug, Default)]
struct Table {
    /// The row at hand, once the walk is inside it.
    row: Option<Row>,
    columns: Columns,
}

/// A member of the list's metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meta {
    Other,
    RemainingItemCount,
    ResourceVersion,
    Continue,
}

/// The member of the root that the walk is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Member {
    Other,
    Metadata,
    Items,
    Rows,
    Columns,
}

// === impl JsonList ===

impl<L: Lens> JsonList<L> {
    pub(in crate::filter) fn new(lens: L) -> Self {
        Self {
            lens,
            lexer: Lexer::default(),
            member: Member::Other,
            items_seen: false,
            series: Series::default(),
            meta: Meta::Other,
            begin: 0,
            item: None,
            table: Box::default(),
        }
    }

    /// The same, with what is known of a table's columns.
    pub(in crate::filter) fn with_columns(self, columns: Columns) -> Self {
        Self { table: Box::new(Table { row: None, columns }), ..self }
    }

    /// What is known of the table's columns.
    pub(super) fn into_columns(self) -> Columns {
        self.table.columns
    }

    /// Walks to the end of the chunk.
    fn walk(&mut self, place: &mut Place<'_>) -> Result<(), FilterError> {
        while let Some(token) = self.lexer.next(place)? {
            match (self.member, self.lexer.depth()) {
                (Member::Items | Member::Rows, 2) => self.between_items(token, place)?,
                (Member::Items, 3..) => self.inside_item(token, place)?,
                (Member::Rows, 3..) => self.inside_row(token, place)?,
                (Member::Metadata, 2..) => self.metadata(token, place)?,
                (_, 1) => self.root(token, place)?,
                (_, 0) => self.outside(token, place)?,
                _ => self.skip(place),
            }
        }
        Ok(())
    }

    /// The token closes the root, or is a value that is no object.
    fn outside(&mut self, token: Token, place: &mut Place<'_>) -> Result<(), FilterError> {
        if token != Token::Close {
            return Err(FilterError::Malformed("a JSON object as the list"));
        }
        if !self.items_seen {
            return Err(FilterError::Malformed("items in the list, or rows"));
        }
        place.pass_all();
        Ok(())
    }

    /// The token opens the root, or is a key or a whole value in it.
    fn root(&mut self, token: Token, place: &mut Place<'_>) -> Result<(), FilterError> {
        match token {
            Token::Array => return Err(FilterError::Malformed("a JSON object as the list")),
            Token::Object => {}
            Token::Key(key) => {
                let key = place.bytes(key);
                self.member = Member::of(key)?;
                self.series = Series::default();
                return Ok(());
            }
            Token::Literal(value) if self.member != Member::Other => return self.literal(value, place),
            Token::Text(_) if matches!(self.member, Member::Items | Member::Rows) => return Err(NOT_ITEMS),
            Token::Text(_) | Token::Literal(_) => self.member = Member::Other,
            Token::Close => self.end_member(place),
        }
        place.check()?;
        place.pass_all();
        Ok(())
    }

    /// A member of interest is a literal: `null` is what Go writes for a list it never filled.
    fn literal(&mut self, value: Span, place: &mut Place<'_>) -> Result<(), FilterError> {
        let is_list = matches!(self.member, Member::Items | Member::Rows);
        let is_null = place.bytes(value) == b"null";
        if is_list && !is_null {
            return Err(NOT_ITEMS);
        }
        let is_missing = is_null && self.member == Member::Columns;
        let definitions = if is_missing { self.table.columns.missing() } else { None };
        match (self.member, definitions) {
            (Member::Items, _) => replace(value, b"[]", place),
            (_, Some(definitions)) => replace(value, &definitions, place),
            (_, None) => place.pass_all(),
        }
        self.items_seen |= is_list;
        self.member = Member::Other;
        place.check()
    }

    /// The walk is behind the end of an object or an array in the root.
    fn end_member(&mut self, place: &mut Place<'_>) {
        if self.member == Member::Columns {
            let span = Span { start: self.begin, end: place.offset() };
            self.table.columns.define(place.bytes(span));
        }
        self.member = Member::Other;
    }

    /// The token opens `items` or `rows`, or ends an element.
    fn between_items(&mut self, token: Token, place: &mut Place<'_>) -> Result<(), FilterError> {
        match token {
            Token::Array => {
                self.items_seen = true;
                place.check()?;
                place.pass_all();
                Ok(())
            }
            Token::Close if self.member == Member::Rows => self.decide_row(place),
            Token::Close => self.decide(place),
            Token::Object => Err(NOT_ITEMS),
            Token::Key(_) | Token::Text(_) | Token::Literal(_) => Err(NOT_ITEM),
        }
    }

    /// The token opens an object or an array of no interest, save for where it is.
    fn skip(&mut self, place: &Place<'_>) {
        self.begin = place.offset() - 1;
        self.lexer.skip();
    }

    /// A token inside an item, or the one that opens it.
    fn inside_item(&mut self, token: Token, place: &mut Place<'_>) -> Result<(), FilterError> {
        if let Some(item) = &mut self.item {
            let depth = self.lexer.depth() - 2;
            return item.token(token, depth, &mut self.lexer, place);
        }
        if token != Token::Object {
            return Err(NOT_ITEM);
        }
        self.begin = place.offset() - 1;
        self.item = Some(Finder::default());
        Ok(())
    }

    /// An item is complete.
    fn decide(&mut self, place: &mut Place<'_>) -> Result<(), FilterError> {
        place.check()?;
        let found = self.item.take().unwrap_or_default().found;
        let verdict = found.ask(&self.lens, place)?;
        if let Some(span) = settle(&mut self.series, verdict, self.begin, place) {
            found.pass(verdict, span, place)?;
        }
        place.mark();
        Ok(())
    }

    /// A token inside a row, or the one that opens it.
    fn inside_row(&mut self, token: Token, place: &mut Place<'_>) -> Result<(), FilterError> {
        if let Some(row) = &mut self.table.row {
            let depth = self.lexer.depth() - 2;
            return row.token(token, depth, &mut self.lexer, place);
        }
        if token != Token::Object {
            return Err(NOT_ITEM);
        }
        self.begin = place.offset() - 1;
        self.table.row = Some(Row::default());
        Ok(())
    }

    /// A row is complete.
    fn decide_row(&mut self, place: &mut Place<'_>) -> Result<(), FilterError> {
        place.check()?;
        let row = self.table.row.take().unwrap_or_default();
        let verdict = row.ask(&self.lens, place)?;
        if let Some(span) = settle(&mut self.series, verdict, self.begin, place) {
            let edits = row.edits(verdict, &self.table.columns, place)?;
            table::pass(edits, span, place);
        }
        place.mark();
        Ok(())
    }

    /// A token inside the list's own metadata, or the one that opens it.
    fn metadata(&mut self, token: Token, place: &mut Place<'_>) -> Result<(), FilterError> {
        match (token, self.lexer.depth()) {
            (Token::Key(key), _) => {
                self.begin = key.start - 1;
                self.meta = Meta::of(place.bytes(key))?;
            }
            (Token::Object, 2) => place.pass_all(),
            (Token::Object | Token::Array, _) => self.lexer.skip(),
            (Token::Text(text), _) if L::FOLLOWS => self.metadata_text(text, place)?,
            (Token::Close | Token::Text(_) | Token::Literal(_), _) => self.metadata_member(place)?,
        }
        Ok(())
    }

    /// A string in the list's metadata: the lens may want another as the page token.
    fn metadata_text(&mut self, value: Span, place: &mut Place<'_>) -> Result<(), FilterError> {
        let text = text::unescape(place.bytes(value))?.into_owned();
        if self.meta == Meta::ResourceVersion {
            self.lens.listed(&text);
        }
        let is_token = self.meta == Meta::Continue && !text.is_empty();
        let Some(token) = is_token.then(|| self.lens.token(&text)).flatten() else {
            return self.metadata_member(place);
        };
        place.check()?;
        place.pass(Span { start: self.series.keep(self.begin), end: value.start - 1 });
        place.out.copy(text::quote(&token).as_bytes());
        place.mark();
        Ok(())
    }

    /// A member of the list's metadata is complete.
    fn metadata_member(&mut self, place: &mut Place<'_>) -> Result<(), FilterError> {
        place.check()?;
        if self.meta == Meta::RemainingItemCount {
            self.series.leave_out();
        } else {
            let span = Span { start: self.series.keep(self.begin), end: place.offset() };
            place.pass(span);
        }
        place.mark();
        Ok(())
    }
}

impl<L: Lens> Read for JsonList<L> {
    fn read(&mut self, place: &mut Place<'_>) -> Result<(), FilterError> {
        let walked = self.walk(place);
        // White space behind the list passes, also when something else follows it.
        if self.lexer.done() && self.items_seen {
            place.pass_all();
        }
        walked?;
        place.check()
    }

    fn complete(&self) -> bool {
        self.lexer.done()
    }
}

const NOT_ITEMS: FilterError = FilterError::Malformed("an array or null as items or rows");
const NOT_ITEM: FilterError = FilterError::Malformed("an object as an item or row");

/// Passes the piece with another text in place of the value that ends it.
fn replace(value: Span, text: &[u8], place: &mut Place<'_>) {
    place.pass(Span { start: 0, end: value.start });
    place.mark();
    place.out.copy(text);
}

// === impl Meta ===

impl Meta {
    fn of(key: &[u8]) -> Result<Self, FilterError> {
        Ok(match &*text::unescape(key)? {
            "remainingItemCount" => Self::RemainingItemCount,
            "resourceVersion" => Self::ResourceVersion,
            "continue" => Self::Continue,
            _ => Self::Other,
        })
    }
}

// === impl Member ===

impl Member {
    fn of(key: &[u8]) -> Result<Self, FilterError> {
        Ok(match &*text::unescape(key)? {
            "items" => Self::Items,
            "rows" => Self::Rows,
            "columnDefinitions" => Self::Columns,
            "metadata" => Self::Metadata,
            _ => Self::Other,
        })
    }
}

/// Counts an item, or a row, that began at `begin` and has just ended; where it is copied from, if it is shown.
fn settle(series: &mut Series, verdict: Verdict<'_>, begin: usize, place: &mut Place<'_>) -> Option<Span> {
    let end = place.offset();
    place.out.count(verdict.shows(), end - begin);
    if !verdict.shows() {
        series.leave_out();
        return None;
    }
    Some(Span { start: series.keep(begin), end })
}

#[cfg(test)]
mod tests;
