//! Finds what a verdict needs in one object: the names in its `metadata`, and its version.

use super::lexer::{Lexer, Token};
use super::text;
use crate::filter::held::{Place, Span};
use crate::filter::{FilterError, INITIAL_EVENTS_END, Lens, Verdict, View};
use memchr::memmem;

/// Where the fields of `metadata` are in the held piece, without their quotes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(in crate::filter) struct Found {
    /// `metadata.name`, if it is a string.
    pub(in crate::filter) name: Option<Span>,
    /// `metadata.namespace`, likewise.
    pub(in crate::filter) namespace: Option<Span>,
    /// `metadata.generateName`, likewise.
    pub(in crate::filter) generate_name: Option<Span>,
    /// `metadata.uid`, likewise.
    pub(in crate::filter) uid: Option<Span>,
    /// `metadata.resourceVersion`, likewise.
    pub(in crate::filter) version: Option<Span>,
    /// Whether an event around the object says that it is gone.
    pub(in crate::filter) deleted: bool,
}

/// Watches the tokens of one object go by. Of a repeated key the last counts, and a repeated `metadata` replaces the one
/// before, as it does in a map.
#[derive(Debug, Default)]
pub(in crate::filter) struct Finder {
    /// What was found so far.
    pub(in crate::filter) found: Found,
    member: Member,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Member {
    #[default]
    Other,
    Metadata,
    Name,
    Namespace,
    GenerateName,
    Uid,
    Version,
}

const NOT_METADATA: FilterError = FilterError::Malformed("an object as metadata, with strings as names");

// === impl Finder ===

impl Finder {
    /// Takes a token of the object; `depth` is 1 directly inside it.
    pub(in crate::filter) fn token(
        &mut self,
        token: Token,
        depth: u32,
        lexer: &mut Lexer,
        place: &mut Place<'_>,
    ) -> Result<(), FilterError> {
        match (token, depth) {
            (Token::Key(span), _) => self.member = Member::of(depth, place.bytes(span))?,
            (Token::Object, 2) if self.member == Member::Metadata => self.found = Found::default(),
            (Token::Object | Token::Array, _) if self.member == Member::Other => lexer.skip(),
            (Token::Text(span), 2) => self.set(Some(span)),
            (Token::Literal(span), _) if self.member != Member::Other => self.null(place.bytes(span))?,
            (Token::Close, _) => self.member = Member::Other,
            _ if self.member != Member::Other => return Err(NOT_METADATA),
            _ => {}
        }
        Ok(())
    }

    fn null(&mut self, value: &[u8]) -> Result<(), FilterError> {
        if value != b"null" {
            return Err(NOT_METADATA);
        }
        if self.member == Member::Metadata {
            self.found = Found::default();
        }
        self.set(None);
        Ok(())
    }

    fn set(&mut self, span: Option<Span>) {
        match self.member {
            Member::Name => self.found.name = span,
            Member::Namespace => self.found.namespace = span,
            Member::GenerateName => self.found.generate_name = span,
            Member::Uid => self.found.uid = span,
            Member::Version => self.found.version = span,
            Member::Other | Member::Metadata => {}
        }
    }
}

// === impl Found ===

impl Found {
    /// Asks the lens about the object.
    pub(in crate::filter) fn ask<'l, L: Lens>(
        &self,
        lens: &'l L,
        place: &mut Place<'_>,
    ) -> Result<Verdict<'l>, FilterError> {
        let piece = place.piece();
        let text =
            |span: Option<Span>| text::unescape(span.map_or(&[][..], |span| &piece[span.start..span.end]));
        let (namespace, name, uid) = (text(self.namespace)?, text(self.name)?, text(self.uid)?);
        let version = text(self.version.filter(|_| L::FOLLOWS))?;
        let (namespace, name, uid, version) = (&namespace, &name, &uid, &version);
        Ok(lens.verdict(View { namespace, name, uid, version, deleted: self.deleted }))
    }

    /// Tells the lens of a bookmark, which is the piece.
    pub(in crate::filter) fn tell(&self, lens: &impl Lens, place: &mut Place<'_>) -> Result<(), FilterError> {
        let Some(version) = self.version else { return Ok(()) };
        let ends_initial = memmem::find(place.piece(), INITIAL_EVENTS_END).is_some();
        lens.bookmark(&text::unescape(place.bytes(version))?, ends_initial);
        Ok(())
    }

    /// Passes a span of the piece as the verdict says.
    pub(in crate::filter) fn pass(
        &self,
        verdict: Verdict<'_>,
        span: Span,
        place: &mut Place<'_>,
    ) -> Result<(), FilterError> {
        match verdict {
            Verdict::Keep => place.pass(span),
            Verdict::Drop | Verdict::Hold => {}
            Verdict::Rename(new) => {
                let name = self.name.ok_or(FilterError::Rename("it has no name"))?;
                place.pass(Span { start: span.start, end: name.start - 1 });
                place.out.copy(text::quote(new).as_bytes());
                place.pass(Span { start: name.end + 1, end: span.end });
            }
        }
        Ok(())
    }
}

// === impl Member ===

impl Member {
    fn of(depth: u32, key: &[u8]) -> Result<Self, FilterError> {
        let known = |key: &[u8]| match (depth, key) {
            (1, b"metadata") => Some(Self::Metadata),
            (2, b"name") => Some(Self::Name),
            (2, b"namespace") => Some(Self::Namespace),
            (2, b"generateName") => Some(Self::GenerateName),
            (2, b"uid") => Some(Self::Uid),
            (2, b"resourceVersion") => Some(Self::Version),
            _ => None,
        };
        Ok(text::lookup(key, known)?.unwrap_or_default())
    }
}
