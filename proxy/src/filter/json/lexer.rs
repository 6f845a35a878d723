//! An incremental walk over the structure of JSON text.
//!
//! Hands out one token at a time and remembers its place when a chunk ends. Containers nobody asked to enter are
//! jumped over whole, so the stack is as deep as the caller's interest, never as the text.

use super::skip::Skip;
use crate::filter::FilterError;
use crate::filter::held::{Place, Span};
use memchr::memchr2;
use wide::u8x16;

/// One step of the walk. The reader's place is behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::filter) enum Token {
    /// `{`; the walk enters it unless [`Lexer::skip`] is called.
    Object,
    /// `[`; likewise.
    Array,
    /// The end of the innermost container, entered or skipped.
    Close,
    /// The key of a member, without its quotes.
    Key(Span),
    /// A value that is a string, without its quotes.
    Text(Span),
    /// A value that is a number, `true`, `false` or `null`.
    Literal(Span),
}

/// Where the walk stands.
#[derive(Debug, Default)]
pub(in crate::filter) struct Lexer {
    state: State,
    /// One bit a container that is entered, the innermost lowest; 1 is an array.
    stack: u32,
    depth: u32,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// A value must come.
    #[default]
    Value,
    /// A value or the end of the array.
    FirstValue,
    /// A key or the end of the object.
    FirstKey,
    /// A key must come.
    Key,
    Colon,
    /// A comma or the end of the container.
    After,
    Text {
        start: usize,
        key: bool,
        escaped: bool,
    },
    Literal {
        start: usize,
    },
    Skip(Skip),
    /// The value at the root is complete.
    Done,
}

// === impl Lexer ===

impl Lexer {
    /// The number of containers that are entered.
    pub(in crate::filter) fn depth(&self) -> u32 {
        self.depth
    }

    /// Whether the value at the root is complete.
    pub(in crate::filter) fn done(&self) -> bool {
        self.state == State::Done
    }

    /// Whether the value at the root has not begun.
    pub(in crate::filter) fn idle(&self) -> bool {
        self.state == State::Value && self.depth == 0
    }

    /// Expects another value at the root.
    pub(in crate::filter) fn restart(&mut self) {
        *self = Self::default();
    }

    /// Jumps over the container that was just handed out.
    pub(in crate::filter) fn skip(&mut self) {
        self.pop();
        self.state = State::Skip(Skip::new());
    }

    /// The next token, or `None` when the chunk ends before it is complete.
    pub(in crate::filter) fn next(&mut self, place: &mut Place<'_>) -> Result<Option<Token>, FilterError> {
        loop {
            match self.state {
                State::Skip(skip) => return self.skip_on(skip, place),
                State::Text { start, key, escaped } => return Ok(self.text(start, key, escaped, place)),
                State::Literal { start } => return Ok(self.literal(start, place)),
                _ => {}
            }
            let Some(byte) = visible(place) else { return Ok(None) };
            let token = self.structure(byte, place.offset())?;
            place.at += usize::from(!matches!(self.state, State::Literal { .. }));
            if token.is_some() {
                return Ok(token);
            }
        }
    }

    /// One byte that is neither space nor inside a string or literal.
    fn structure(&mut self, byte: u8, offset: usize) -> Result<Option<Token>, FilterError> {
        let array = self.stack & 1 == 1;
        match (self.state, byte) {
            (State::FirstKey, b'}') | (State::FirstValue, b']') => return Ok(Some(self.close())),
            (State::After, b'}') if !array => return Ok(Some(self.close())),
            (State::After, b']') if array => return Ok(Some(self.close())),
            (State::After, b',') => self.state = if array { State::Value } else { State::Key },
            (State::Colon, b':') => self.state = State::Value,
            (State::FirstKey | State::Key, b'"') => {
                self.state = State::Text { start: offset + 1, key: true, escaped: false };
            }
            (State::Value | State::FirstValue, _) => return self.value(byte, offset),
            (State::FirstKey | State::Key, _) => return Err(FilterError::Malformed("a JSON object key")),
            (State::Colon, _) => return Err(FilterError::Malformed("a colon after a JSON key")),
            (State::Done, _) => return Err(FilterError::Malformed("nothing after the JSON value")),
            _ => return Err(FilterError::Malformed("a comma or closing bracket in JSON")),
        }
        Ok(None)
    }

    fn value(&mut self, byte: u8, offset: usize) -> Result<Option<Token>, FilterError> {
        match byte {
            b'{' => Ok(Some(self.open(false))),
            b'[' => Ok(Some(self.open(true))),
            b'"' => {
                self.state = State::Text { start: offset + 1, key: false, escaped: false };
                Ok(None)
            }
            byte if of_literal(byte) => {
                self.state = State::Literal { start: offset };
                Ok(None)
            }
            _ => Err(FilterError::Malformed("a JSON value")),
        }
    }

    fn open(&mut self, array: bool) -> Token {
        self.stack = (self.stack << 1) | u32::from(array);
        self.depth += 1;
        self.state = if array { State::FirstValue } else { State::FirstKey };
        if array { Token::Array } else { Token::Object }
    }

    fn close(&mut self) -> Token {
        self.pop();
        self.after();
        Token::Close
    }

    fn pop(&mut self) {
        self.stack >>= 1;
        self.depth -= 1;
    }

    fn after(&mut self) {
        self.state = if self.depth == 0 { State::Done } else { State::After };
    }

    fn skip_on(&mut self, mut skip: Skip, place: &mut Place<'_>) -> Result<Option<Token>, FilterError> {
        if let Some(length) = skip.read(place.rest())? {
            place.at += length;
            self.after();
            return Ok(Some(Token::Close));
        }
        place.at = place.chunk.len();
        self.state = State::Skip(skip);
        Ok(None)
    }

    fn text(&mut self, start: usize, key: bool, mut escaped: bool, place: &mut Place<'_>) -> Option<Token> {
        if !closing_quote(place, &mut escaped) {
            self.state = State::Text { start, key, escaped };
            return None;
        }
        let span = Span { start, end: place.offset() - 1 };
        if key {
            let colon = place.rest().first() == Some(&b':');
            place.at += usize::from(colon);
            self.state = if colon { State::Value } else { State::Colon };
            return Some(Token::Key(span));
        }
        self.after();
        Some(Token::Text(span))
    }

    /// A literal ends before the first byte that cannot be part of it; at the end of a chunk it may go on.
    fn literal(&mut self, start: usize, place: &mut Place<'_>) -> Option<Token> {
        let length = place.rest().iter().position(|byte| !of_literal(*byte));
        let Some(length) = length else {
            place.at = place.chunk.len();
            return None;
        };
        place.at += length;
        self.after();
        Some(Token::Literal(Span { start, end: place.offset() }))
    }
}

/// Moves over white space; the byte there, or `None` at the end of the chunk.
fn visible(place: &mut Place<'_>) -> Option<u8> {
    let rest = place.rest();
    let length = rest.iter().position(|byte| !matches!(byte, b' ' | b'\n' | b'\r' | b'\t'));
    place.at += length.unwrap_or(rest.len());
    length.map(|length| rest[length])
}

/// Moves behind the quote that ends a string; false at the end of the chunk.
fn closing_quote(place: &mut Place<'_>, escaped: &mut bool) -> bool {
    loop {
        if *escaped && !place.rest().is_empty() {
            place.at += 1;
            *escaped = false;
        }
        let rest = place.rest();
        let Some(length) = special(rest) else {
            place.at = place.chunk.len();
            return false;
        };
        place.at += length + 1;
        if rest[length] == b'"' {
            return true;
        }
        *escaped = true;
    }
}

/// Where the first quote or backslash is. Most strings are short, so the first bytes are looked at without a call.
#[inline]
fn special(text: &[u8]) -> Option<usize> {
    if let Some(first) = text.first_chunk() {
        let bytes = u8x16::new(*first);
        let found = bytes.simd_eq(u8x16::splat(b'"')) | bytes.simd_eq(u8x16::splat(b'\\'));
        if found.to_bitmask() != 0 {
            return Some(found.to_bitmask().trailing_zeros() as usize);
        }
    }
    memchr2(b'"', b'\\', text)
}

fn of_literal(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
}

#[cfg(test)]
mod tests;
