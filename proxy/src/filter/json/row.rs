//! One row of a Table: what is known of its object, and where its cells are.
//!
//! `metav1.TableRow` (apimachinery, `meta/v1/types.go`) is `{"cells":[...],"object":{...}}`. The object is the whole one or a
//! `PartialObjectMetadata`; either way its `metadata` says whose it is. A row without one belongs to nobody and is an error,
//! and so is a row with two objects or two cells: a reader may take the one that was not looked at.

use super::find::Finder;
use super::lexer::{Lexer, Token};
use super::table::Columns;
use super::text;
use super::whole::Edit;
use crate::filter::held::{Place, Span};
use crate::filter::{FilterError, Lens, Verdict};
use memchr::memmem;
use std::mem;

/// Of the bookmark that ends the initial events, and of no other (KEP-3157); its object is sent even with
/// `includeObject=None` (apiserver, `handlers/response.go`).
const INITIAL_EVENTS_END: &[u8] = b"\"k8s.io/initial-events-end\"";

/// Watches the tokens of one row go by.
#[derive(Debug, Default)]
pub(super) struct Row {
    finder: Finder,
    member: Member,
    /// Where the object is, if there is one.
    object: Option<Span>,
    cells: Option<Span>,
    seen: Seen,
}

/// Which members came.
#[derive(Debug, Default)]
struct Seen {
    object: bool,
    cells: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Member {
    #[default]
    Other,
    Object,
    Cells,
}

const NO_OBJECT: FilterError = FilterError::Malformed("an object in each row of a table");
const TWICE: FilterError = FilterError::Malformed("one object and one cells in each row of a table");

// === impl Row ===

impl Row {
    /// Takes a token of the row; `depth` is 1 directly inside it.
    pub(super) fn token(
        &mut self,
        token: Token,
        depth: u32,
        lexer: &mut Lexer,
        place: &mut Place<'_>,
    ) -> Result<(), FilterError> {
        let at = place.offset();
        match (token, depth, self.member) {
            (Token::Key(key), 1, _) => self.begin(Member::of(place.bytes(key))?)?,
            (Token::Object, 2, Member::Object) => {
                self.object = Some(Span { start: at - 1, end: at });
            }
            (Token::Close, 1, Member::Object) => end(&mut self.object, at),
            (Token::Close, 1, Member::Cells) => end(&mut self.cells, at),
            (_, 2.., Member::Object) if self.object.is_some() => {
                return self.finder.token(token, depth - 1, lexer, place);
            }
            (Token::Array, 2, Member::Cells) => {
                self.cells = Some(Span { start: at - 1, end: at });
                lexer.skip();
            }
            (Token::Object | Token::Array, ..) => lexer.skip(),
            _ => {}
        }
        Ok(())
    }

    /// A key of the row.
    fn begin(&mut self, member: Member) -> Result<(), FilterError> {
        self.member = member;
        let is_again = match member {
            Member::Object => mem::replace(&mut self.seen.object, true),
            Member::Cells => mem::replace(&mut self.seen.cells, true),
            Member::Other => false,
        };
        if is_again { Err(TWICE) } else { Ok(()) }
    }

    /// Asks the lens about the row's object.
    pub(super) fn ask<'l>(
        &self,
        lens: &'l impl Lens,
        place: &mut Place<'_>,
    ) -> Result<Verdict<'l>, FilterError> {
        self.object.ok_or(NO_OBJECT)?;
        self.finder.found.ask(lens, place)
    }

    /// What has to change in the row so that it can be shown, in the order of places.
    pub(super) fn edits(
        &self,
        verdict: Verdict<'_>,
        columns: &Columns,
        place: &mut Place<'_>,
    ) -> Result<Vec<Edit>, FilterError> {
        let mut edits = Vec::new();
        if let Verdict::Rename(new) = verdict {
            let name = self.finder.found.name.ok_or(FilterError::Rename("it has no name"))?;
            let old = text::unescape(place.bytes(name))?.into_owned();
            let cell = self.cells.map(|cells| columns.name_cell(cells, &old, place)).transpose()?.flatten();
            edits.extend([Some(name), cell].into_iter().flatten().map(|text| Edit::string(text, new)));
        }
        if columns.is_object_taken_out()
            && let Some(object) = self.object
            && memmem::find(place.bytes(object), INITIAL_EVENTS_END).is_none()
        {
            edits.retain(|edit| !(object.start..object.end).contains(&edit.span.start));
            edits.push(Edit { span: object, text: "null".into() });
        }
        edits.sort_by_key(|edit| edit.span.start);
        Ok(edits)
    }
}

fn end(span: &mut Option<Span>, at: usize) {
    if let Some(span) = span {
        span.end = at;
    }
}

// === impl Member ===

impl Member {
    fn of(key: &[u8]) -> Result<Self, FilterError> {
        let known = |key: &[u8]| match key {
            b"object" => Some(Self::Object),
            b"cells" => Some(Self::Cells),
            _ => None,
        };
        Ok(text::lookup(key, known)?.unwrap_or_default())
    }
}
