//! A JSON list of any kind.
//!
//! The root's members come in any order: built-in kinds write `kind, apiVersion, metadata, items`, custom resources
//! `apiVersion, items, kind, metadata`. Members pass as they are, except: `items` loses what the lens drops, a `null` there
//! becomes `[]`, and the list's own `metadata` loses `remainingItemCount`, which would count hidden objects too. Each
//! piece passes as soon as it is complete.

use super::find::Finder;
use super::lexer::{Lexer, Token};
use super::series::Series;
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
    /// Whether the member of the list's metadata at hand is left out.
    cut: bool,
    /// Where the element at hand begins in the held piece.
    begin: usize,
    /// The item at hand, once the walk is inside it.
    item: Option<Finder>,
}

/// The member of the root that the walk is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Member {
    Other,
    Metadata,
    Items,
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
            cut: false,
            begin: 0,
            item: None,
        }
    }

    /// The token closes the root, or is a value that is no object.
    fn outside(&mut self, token: Token, place: &mut Place<'_>) -> Result<(), FilterError> {
        if token != Token::Close {
            return Err(FilterError::Malformed("a JSON object as the list"));
        }
        if !self.items_seen {
            return Err(FilterError::Malformed("items in the list"));
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
            Token::Literal(value) if self.member == Member::Items => return self.no_items(value, place),
            Token::Text(_) if self.member == Member::Items => return Err(NOT_ITEMS),
            Token::Text(_) | Token::Literal(_) | Token::Close => self.member = Member::Other,
        }
        place.check()?;
        place.pass_all();
        Ok(())
    }

    /// `items` is a literal: `null` is what Go writes for a list it never filled.
    fn no_items(&mut self, value: Span, place: &mut Place<'_>) -> Result<(), FilterError> {
        if place.bytes(value) != b"null" {
            return Err(NOT_ITEMS);
        }
        let head = Span { start: 0, end: value.start };
        place.pass(head);
        place.mark();
        place.out.copy(b"[]");
        self.items_seen = true;
        self.member = Member::Other;
        Ok(())
    }

    /// The token opens `items`, or ends an item.
    fn between_items(&mut self, token: Token, place: &mut Place<'_>) -> Result<(), FilterError> {
        match token {
            Token::Array => {
                self.items_seen = true;
                place.check()?;
                place.pass_all();
                Ok(())
            }
            Token::Close => self.decide(place),
            Token::Object => Err(NOT_ITEMS),
            Token::Key(_) | Token::Text(_) | Token::Literal(_) => Err(NOT_ITEM),
        }
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
        let end = place.offset();
        place.out.count(verdict != Verdict::Drop, end - self.begin);
        if verdict == Verdict::Drop {
            self.series.leave_out();
        } else {
            let start = self.series.keep(self.begin);
            found.pass(verdict, Span { start, end }, place)?;
        }
        place.mark();
        Ok(())
    }

    /// A token inside the list's own metadata, or the one that opens it.
    fn metadata(&mut self, token: Token, place: &mut Place<'_>) -> Result<(), FilterError> {
        match (token, self.lexer.depth()) {
            (Token::Key(key), _) => {
                self.begin = key.start - 1;
                self.cut = text::unescape(place.bytes(key))? == "remainingItemCount";
            }
            (Token::Object, 2) => place.pass_all(),
            (Token::Object | Token::Array, _) => self.lexer.skip(),
            (Token::Close | Token::Text(_) | Token::Literal(_), _) => self.metadata_member(place)?,
        }
        Ok(())
    }

    /// A member of the list's metadata is complete.
    fn metadata_member(&mut self, place: &mut Place<'_>) -> Result<(), FilterError> {
        place.check()?;
        if self.cut {
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
        while let Some(token) = self.lexer.next(place)? {
            match (self.member, self.lexer.depth()) {
                (Member::Items, 2) => self.between_items(token, place)?,
                (Member::Items, 3..) => self.inside_item(token, place)?,
                (Member::Metadata, 2..) => self.metadata(token, place)?,
                (_, 1) => self.root(token, place)?,
                (_, 0) => self.outside(token, place)?,
                _ => self.lexer.skip(),
            }
        }
        if self.lexer.done() {
            place.pass_all();
        }
        place.check()
    }

    fn complete(&self) -> bool {
        self.lexer.done()
    }
}

const NOT_ITEMS: FilterError = FilterError::Malformed("an array or null as items");
const NOT_ITEM: FilterError = FilterError::Malformed("an object as an item");

// === impl Member ===

impl Member {
    fn of(key: &[u8]) -> Result<Self, FilterError> {
        Ok(match &*text::unescape(key)? {
            "items" => Self::Items,
            "metadata" => Self::Metadata,
            _ => Self::Other,
        })
    }
}

#[cfg(test)]
mod tests;
