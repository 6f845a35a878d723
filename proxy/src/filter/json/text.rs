//! JSON strings: what is between the quotes.

use crate::filter::FilterError;
use memchr::memchr;
use std::borrow::Cow;
use std::char::{REPLACEMENT_CHARACTER, decode_utf16};

const BAD: FilterError = FilterError::Malformed("a JSON string");

/// The text of a JSON string, given without its quotes. A lone surrogate becomes U+FFFD, as in Go.
pub(in crate::filter) fn unescape(raw: &[u8]) -> Result<Cow<'_, str>, FilterError> {
    let raw = std::str::from_utf8(raw).map_err(|_| BAD)?;
    if memchr(b'\\', raw.as_bytes()).is_none() {
        return Ok(Cow::Borrowed(raw));
    }
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((plain, escape)) = rest.split_once('\\') {
        text.push_str(plain);
        rest = one_escape(escape, &mut text)?;
    }
    text.push_str(rest);
    Ok(Cow::Owned(text))
}

/// Finds what a raw key stands for. A key that cannot be unescaped is an error: it could be any.
#[inline]
pub(in crate::filter) fn lookup<T>(
    raw: &[u8],
    known: impl Fn(&[u8]) -> Option<T>,
) -> Result<Option<T>, FilterError> {
    let found = known(raw);
    if found.is_some() || memchr(b'\\', raw).is_none() {
        return Ok(found);
    }
    Ok(known(unescape(raw)?.as_bytes()))
}

/// Writes a string with its quotes.
pub(in crate::filter) fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\u{0}'..' ' => {
                let digit = |shift: u32| char::from_digit((u32::from(c) >> shift) & 0xf, 16).unwrap_or('0');
                quoted.extend(['\\', 'u', '0', '0', digit(4), digit(0)]);
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Appends what the escape behind a backslash stands for; returns what follows it.
fn one_escape<'a>(escape: &'a str, text: &mut String) -> Result<&'a str, FilterError> {
    let mut chars = escape.chars();
    let c = match chars.next().ok_or(BAD)? {
        c @ ('"' | '\\' | '/') => c,
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'u' => return unicode(chars.as_str(), text),
        _ => return Err(BAD),
    };
    text.push(c);
    Ok(chars.as_str())
}

/// Appends the character of a `\u` escape, or of a pair of them.
fn unicode<'a>(digits: &'a str, text: &mut String) -> Result<&'a str, FilterError> {
    let (first, rest) = unit(digits)?;
    if let Some(Ok((second, after))) = rest.strip_prefix("\\u").map(unit)
        && let Some(Ok(c)) = decode_utf16([first, second]).next()
        && c > '\u{ffff}'
    {
        text.push(c);
        return Ok(after);
    }
    text.push(char::from_u32(u32::from(first)).unwrap_or(REPLACEMENT_CHARACTER));
    Ok(rest)
}

fn unit(digits: &str) -> Result<(u16, &str), FilterError> {
    let (hex, rest) = digits.split_at_checked(4).ok_or(BAD)?;
    if !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(BAD);
    }
    Ok((u16::from_str_radix(hex, 16).map_err(|_| BAD)?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unescapes_as_go_does() {
        for (raw, text) in [
            (r"plain", "plain"),
            (r"\u006eamespace", "namespace"),
            (r#"\"\\\/\b\f\n\r\t"#, "\"\\/\u{8}\u{c}\n\r\t"),
            (r"\ud83d\ude00!", "😀!"),
            (r"\ud83d", "\u{fffd}"),
            (r"\ud83d\u0041", "\u{fffd}A"),
            (r"\ude00\ud83d", "\u{fffd}\u{fffd}"),
        ] {
            assert_eq!(unescape(raw.as_bytes()), Ok(Cow::from(text)), "{raw}");
        }
    }

    #[test]
    fn refuses_what_is_no_string() {
        for raw in [&br"\x"[..], br"\", br"\u12", br"\u+123", b"\xff"] {
            assert_eq!(unescape(raw), Err(BAD), "{raw:?}");
        }
    }

    #[test]
    fn quotes_what_serde_json_reads_back() {
        let text = "a\"b\\c\nd\u{1}é😀";
        assert_eq!(serde_json::from_str::<String>(&quote(text)).unwrap(), text);
    }
}
