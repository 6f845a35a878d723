//! Field selectors, as `k8s.io/apimachinery/pkg/fields.ParseSelector` reads them.
//!
//! ```text
//! selector = term *("," term)      empty terms are skipped
//! term     = field ("=" / "==" / "!=") value
//! value    = with "\", "," and "=" escaped by a "\"
//! ```

use std::borrow::Cow;

use thiserror::Error;

const NAME: &str = "metadata.name";

/// A field selector that the API server would answer with 400.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SelectorError {
    /// A term without an operator.
    #[error(
        "client: field selector term {0:?} has no operator; write field=value, field==value or field!=value"
    )]
    Operator(String),
    /// A value with a bare `,` or `=`, an unknown escape, or a `\` at its end.
    #[error(
        "client: field selector value {0:?} is not escaped; write \\\\, \\, and \\= for a literal \\ , and ="
    )]
    Escape(String),
}

/// Maps the values of all `metadata.name` terms, whatever the operator; `None` keeps a term.
///
/// All other bytes of the selector stay as they are.
pub fn map_names(
    selector: &str,
    mut map: impl FnMut(&str) -> Option<String>,
) -> Result<String, SelectorError> {
    let mut terms = Vec::new();
    for text in Terms(Some(selector)) {
        let renamed = match Term::parse(text)? {
            Some(term) if term.field == NAME => {
                map(&term.value).map(|name| format!("{NAME}{}{}", term.operator, escape(&name)))
            }
            _ => None,
        };
        terms.push(renamed.map_or(Cow::Borrowed(text), Cow::Owned));
    }
    Ok(terms.join(","))
}

/// The name that a selector demands; `None` if it demands none.
///
/// With several such terms it is the first one in byte order, since Go sorts the terms first.
pub fn required_name(selector: &str) -> Result<Option<String>, SelectorError> {
    let mut found: Option<(&str, Cow<'_, str>)> = None;
    for text in Terms(Some(selector)) {
        let Some(term) = Term::parse(text)? else { continue };
        let first = found.as_ref().is_none_or(|(earlier, _)| text < *earlier);
        if term.field == NAME && term.operator != "!=" && first {
            found = Some((text, term.value));
        }
    }
    Ok(found.map(|(_, name)| name.into_owned()))
}

/// The terms of a selector as text, empty ones included; split at each `,` that no `\` precedes.
struct Terms<'s>(Option<&'s str>);

struct Term<'s> {
    field: &'s str,
    operator: &'static str,
    value: Cow<'s, str>,
}

// === impl Terms ===

impl<'s> Iterator for Terms<'s> {
    type Item = &'s str;

    fn next(&mut self) -> Option<&'s str> {
        let rest = self.0.take()?;
        let mut escaped = false;
        let comma = rest.find(|c| {
            let ends = c == ',' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        let Some((term, tail)) = comma.and_then(|at| rest.split_at_checked(at)) else {
            return Some(rest);
        };
        self.0 = tail.strip_prefix(',');
        Some(term)
    }
}

// === impl Term ===

impl<'s> Term<'s> {
    /// `None` for an empty term.
    fn parse(text: &'s str) -> Result<Option<Self>, SelectorError> {
        if text.is_empty() {
            return Ok(None);
        }
        let unknown = || SelectorError::Operator(text.to_owned());
        let (field, operator) = split_operator(text).ok_or_else(unknown)?;
        let value = text.get(field.len() + operator.len()..).unwrap_or_default();
        Ok(Some(Self { field, operator, value: unescape(value)? }))
    }
}

/// The field and the first operator; a field has no escapes.
fn split_operator(text: &str) -> Option<(&str, &'static str)> {
    text.char_indices().find_map(|(at, _)| {
        let (field, rest) = text.split_at_checked(at)?;
        let operator = ["!=", "==", "="].into_iter().find(|operator| rest.starts_with(operator))?;
        Some((field, operator))
    })
}

fn unescape(value: &str) -> Result<Cow<'_, str>, SelectorError> {
    if !value.contains(['\\', ',', '=']) {
        return Ok(Cow::Borrowed(value));
    }
    let mut plain = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some(escaped @ ('\\' | ',' | '='))) => plain.push(escaped),
            ('\\' | ',' | '=', _) => return Err(SelectorError::Escape(value.to_owned())),
            _ => plain.push(c),
        }
    }
    Ok(Cow::Owned(plain))
}

fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=")
}

#[cfg(test)]
mod tests;
