//! Whether an object is a table, by its `kind` and `apiVersion`.

use super::lexer::Token;
use super::text;
use crate::filter::FilterError;
use crate::filter::held::{Place, Span};

/// Watches the tokens of one object go by. Of a repeated key the last counts.
#[derive(Debug, Default)]
pub(super) struct TypeMeta {
    member: Member,
    kind: Option<Span>,
    version: Option<Span>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Member {
    #[default]
    Other,
    Kind,
    Version,
}

// === impl TypeMeta ===

impl TypeMeta {
    /// Takes a token of the object; `depth` is 1 directly inside it.
    pub(super) fn token(
        &mut self,
        token: Token,
        depth: u32,
        place: &mut Place<'_>,
    ) -> Result<(), FilterError> {
        match (token, depth) {
            (Token::Key(key), 1) => self.member = Member::of(place.bytes(key))?,
            (Token::Text(span), 1) => self.set(Some(span)),
            (Token::Literal(_) | Token::Close, 1) => self.set(None),
            _ => {}
        }
        Ok(())
    }

    /// Whether the object is a `metav1.Table` of any version.
    pub(super) fn is_table(&self, place: &mut Place<'_>) -> Result<bool, FilterError> {
        let (Some(kind), Some(version)) = (self.kind, self.version) else { return Ok(false) };
        let is_kind = text::unescape(place.bytes(kind))? == "Table";
        Ok(is_kind && text::unescape(place.bytes(version))?.starts_with("meta.k8s.io/"))
    }

    fn set(&mut self, span: Option<Span>) {
        match self.member {
            Member::Kind => self.kind = span,
            Member::Version => self.version = span,
            Member::Other => {}
        }
    }
}

// === impl Member ===

impl Member {
    fn of(key: &[u8]) -> Result<Self, FilterError> {
        let known = |key: &[u8]| match key {
            b"kind" => Some(Self::Kind),
            b"apiVersion" => Some(Self::Version),
            _ => None,
        };
        Ok(text::lookup(key, known)?.unwrap_or_default())
    }
}
