//! A JSON watch: a stream of `{"type":...,"object":{...}}`.
//!
//! An event passes the moment its closing brace is seen, with exactly one line feed behind it and none inside: client-go reads
//! a stream of values, kube-rs reads lines. Bookmarks and errors pass unseen by the lens; an event of a type nobody
//! knows is filtered like any other.

use super::find::{Finder, Found};
use super::lexer::{Lexer, Token};
use super::table::{self, Columns};
use super::text;
use super::type_meta::TypeMeta;
use crate::filter::held::{Place, Read, Span};
use crate::filter::{FilterError, Lens, Verdict, View};
use bytes::Bytes;
use memchr::memchr2;

/// The scanner of one watch.
#[derive(Debug)]
pub(in crate::filter) struct JsonWatch<L> {
    lens: L,
    lexer: Lexer,
    member: Member,
    /// Whether the event is a bookmark or an error.
    control: bool,
    /// Whether it says that its object is gone.
    deleted: bool,
    object: Option<Finder>,
    /// Where the object is.
    span: Span,
    /// Where events may hold tables.
    tables: Option<Box<Tables>>,
}

/// What only a watch of tables needs.
#[derive(Debug)]
struct Tables {
    columns: Columns,
    /// What the object at hand is.
    meta: TypeMeta,
}

/// Lets bookmarks and errors pass.
struct All;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Member {
    Other,
    Type,
    Object,
}

// === impl JsonWatch ===

impl<L: Lens> JsonWatch<L> {
    pub(in crate::filter) fn new(lens: L) -> Self {
        Self {
            lens,
            lexer: Lexer::default(),
            member: Member::Other,
            control: false,
            deleted: false,
            object: None,
            span: Span::default(),
            tables: None,
        }
    }

    /// The same for a watch whose events may hold tables.
    pub(in crate::filter) fn with_columns(self, columns: Columns) -> Self {
        Self { tables: Some(Box::new(Tables { columns, meta: TypeMeta::default() })), ..self }
    }

    /// The event opens: what came before it was white space.
    fn begin(&mut self, place: &mut Place<'_>) {
        place.at -= 1;
        place.mark();
        place.at += 1;
        self.member = Member::Other;
        self.control = false;
        self.deleted = false;
        self.object = None;
    }

    /// A key of the event, or a whole value in it.
    fn event(&mut self, token: Token, place: &mut Place<'_>) -> Result<(), FilterError> {
        match (token, self.member) {
            (Token::Key(key), _) => self.member = Member::of(place.bytes(key))?,
            (Token::Text(span), Member::Type) => {
                let name = text::unescape(place.bytes(span))?;
                self.control = name == "BOOKMARK" || name == "ERROR";
                self.deleted = name == "DELETED";
            }
            (Token::Close, Member::Object) => self.span.end = place.offset(),
            (_, Member::Other) => {}
            _ => return Err(NOT_EVENT),
        }
        Ok(())
    }

    /// A token inside a member, or the one that opens it.
    fn inside(&mut self, token: Token, place: &mut Place<'_>) -> Result<(), FilterError> {
        let depth = self.lexer.depth() - 1;
        match (self.member, token) {
            (Member::Object, Token::Object) if depth == 1 => {
                self.object = Some(Finder::default());
                self.span.start = place.offset() - 1;
                if let Some(tables) = &mut self.tables {
                    tables.meta = TypeMeta::default();
                }
            }
            (Member::Object, Token::Array) if depth == 1 => return Err(NOT_EVENT),
            (Member::Object, _) => {
                let object = self.object.as_mut().ok_or(NOT_EVENT)?;
                if let Some(tables) = &mut self.tables {
                    tables.meta.token(token, depth, place)?;
                }
                object.token(token, depth, &mut self.lexer, place)?;
            }
            (Member::Other, _) => self.lexer.skip(),
            (Member::Type, _) => return Err(NOT_EVENT),
        }
        Ok(())
    }

    /// An event is complete.
    fn decide(&mut self, place: &mut Place<'_>) -> Result<(), FilterError> {
        place.check()?;
        let found = self.object.take().ok_or(NOT_EVENT)?.found;
        let found = Found { deleted: self.deleted, ..found };
        if self.decide_table(place)? {
            return Ok(());
        }
        let span = Span { start: 0, end: place.offset() };
        let verdict = if self.control { Verdict::Keep } else { found.ask(&self.lens, place)? };
        if !self.control {
            place.out.count(verdict.shows(), span.end);
        } else if L::FOLLOWS {
            found.tell(&self.lens, place)?;
        }
        if verdict.shows() {
            unfold(place);
            found.pass(verdict, span, place)?;
            end_line(place);
        } else if verdict == Verdict::Hold {
            unfold(place);
            self.lens.hold(&[place.piece(), b"\n"].concat());
        }
        place.mark();
        self.lexer.restart();
        Ok(())
    }

    /// An event is complete that may hold a table; false if it holds none. One whose rows are all hidden is hidden.
    fn decide_table(&mut self, place: &mut Place<'_>) -> Result<bool, FilterError> {
        let Some(tables) = &mut self.tables else { return Ok(false) };
        if !tables.meta.is_table(place)? {
            return Ok(false);
        }
        unfold(place);
        let end = place.offset();
        let object = Bytes::copy_from_slice(place.bytes(self.span));
        let (table, counts) = if self.control {
            table::filtered(&object, All, &mut tables.columns)?
        } else {
            table::filtered(&object, &self.lens, &mut tables.columns)?
        };
        if !self.control {
            place.out.add(counts);
        }
        if !counts.is_hidden() {
            place.pass(Span { start: 0, end: self.span.start });
            place.out.copy(&table);
            place.pass(Span { start: self.span.end, end });
            end_line(place);
        }
        place.mark();
        self.lexer.restart();
        Ok(true)
    }
}

// === impl All ===

impl Lens for All {
    fn verdict(&self, _: View<'_>) -> Verdict<'_> {
        Verdict::Keep
    }
}

impl<L: Lens> Read for JsonWatch<L> {
    fn read(&mut self, place: &mut Place<'_>) -> Result<(), FilterError> {
        while let Some(token) = self.lexer.next(place)? {
            match (self.lexer.depth(), token) {
                (0, Token::Close) => self.decide(place)?,
                (1, Token::Object) => self.begin(place),
                (0, _) | (1, Token::Array) => return Err(NOT_EVENT),
                (1, _) => self.event(token, place)?,
                (2.., _) => self.inside(token, place)?,
            }
        }
        if self.lexer.idle() {
            place.mark();
        }
        place.check()
    }

    fn complete(&self) -> bool {
        self.lexer.idle()
    }
}

const NOT_EVENT: FilterError = FilterError::Malformed("a watch event: an object with a type and an object");

/// Takes line breaks out of the piece; JSON has them between tokens only, where a space does as well.
fn unfold(place: &mut Place<'_>) {
    if memchr2(b'\n', b'\r', place.piece()).is_some() {
        for byte in place.own().iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')) {
            *byte = b' ';
        }
    }
}

/// Passes the line feed behind an event: the sender's own if it is here, else one of ours.
fn end_line(place: &mut Place<'_>) {
    place.mark();
    if place.rest().first() == Some(&b'\n') {
        place.at += 1;
        place.pass_all();
    } else {
        place.out.copy(b"\n");
    }
}

// === impl Member ===

impl Member {
    fn of(key: &[u8]) -> Result<Self, FilterError> {
        let known = |key: &[u8]| match key {
            b"type" => Some(Self::Type),
            b"object" => Some(Self::Object),
            _ => None,
        };
        Ok(text::lookup(key, known)?.unwrap_or(Self::Other))
    }
}

#[cfg(test)]
mod tests;
