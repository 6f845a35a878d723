//! Whether a label selector is well formed, as `k8s.io/apimachinery/pkg/labels.Parse` judges it.
//!
//! The API server takes no name from a field selector when the label selector beside it is malformed, so an
//! equal `RequestInfo` needs an equal judgement.
//!
//! ```text
//! selector    = [requirement *("," requirement)]
//! requirement = ["!"] key / key "in" set / key "notin" set / key ("=" / "==" / "!=" / "<" / ">") [value]
//! set         = "(" [value] *("," [value]) ")"
//! ```

/// Longest value, and longest name of a key, in bytes.
const MAX_NAME: usize = 63;
/// Longest prefix of a key, in bytes.
const MAX_PREFIX: usize = 253;

/// Whether `selector` is well formed. It must not hold a NUL, which Go takes for its end.
pub(super) fn is_valid(selector: &str) -> bool {
    let mut parser = Parser { rest: selector };
    if parser.peek() == Token::End {
        return true;
    }
    loop {
        if parser.requirement().is_none() {
            return false;
        }
        match parser.next() {
            Token::End => return true,
            Token::Symbol(",") => {}
            _ => return false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'s> {
    End,
    Symbol(&'s str),
    /// A key, a value, or the words `in` and `notin`, which are operators only where one is due.
    Word(&'s str),
}

struct Parser<'s> {
    rest: &'s str,
}

// === impl Parser ===

impl<'s> Parser<'s> {
    fn peek(&self) -> Token<'s> {
        self.lex().0
    }

    fn next(&mut self) -> Token<'s> {
        let (token, rest) = self.lex();
        self.rest = rest;
        token
    }

    /// The next token and what follows it.
    fn lex(&self) -> (Token<'s>, &'s str) {
        let text = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let length = match text.as_bytes() {
            [] => return (Token::End, text),
            [b'=' | b'!', b'=', ..] => 2,
            [b'=' | b'!' | b'(' | b')' | b',' | b'<' | b'>', ..] => 1,
            _ => {
                let end = text.find(['=', '!', '(', ')', ',', '<', '>', ' ', '\t', '\r', '\n']);
                let (word, rest) = text.split_at_checked(end.unwrap_or(text.len())).unwrap_or((text, ""));
                return (Token::Word(word), rest);
            }
        };
        let (symbol, rest) = text.split_at_checked(length).unwrap_or((text, ""));
        (Token::Symbol(symbol), rest)
    }

    /// One requirement; `None` if malformed.
    fn requirement(&mut self) -> Option<()> {
        match self.next() {
            Token::Symbol("!") => self.key(),
            Token::Word(key) if is_key(key) => self.condition(),
            _ => None,
        }
    }

    fn key(&mut self) -> Option<()> {
        matches!(self.next(), Token::Word(key) if is_key(key)).then_some(())
    }

    /// What follows a key; nothing means that the key exists.
    fn condition(&mut self) -> Option<()> {
        if matches!(self.peek(), Token::End | Token::Symbol(",")) {
            return Some(());
        }
        match self.next() {
            Token::Word("in" | "notin") => self.set(),
            Token::Symbol("=" | "==" | "!=") => self.value().and_then(is_value),
            Token::Symbol("<" | ">") => {
                let value = self.value()?;
                value.parse::<i64>().ok()?;
                is_value(value)
            }
            _ => None,
        }
    }

    fn value(&mut self) -> Option<&'s str> {
        match self.peek() {
            Token::End | Token::Symbol(",") => Some(""),
            Token::Word(value) => {
                self.next();
                Some(value)
            }
            Token::Symbol(_) => None,
        }
    }

    fn set(&mut self) -> Option<()> {
        if self.next() != Token::Symbol("(") {
            return None;
        }
        loop {
            match self.next() {
                Token::Symbol(")") => return Some(()),
                Token::Symbol(",") => {}
                Token::Word(value) => {
                    is_value(value)?;
                    if !matches!(self.peek(), Token::Symbol("," | ")")) {
                        return None;
                    }
                }
                _ => return None,
            }
        }
    }
}

fn is_key(key: &str) -> bool {
    match key.split_once('/') {
        None => is_name(key),
        Some((prefix, name)) => is_subdomain(prefix) && is_name(name),
    }
}

fn is_value(value: &str) -> Option<()> {
    (value.is_empty() || is_name(value)).then_some(())
}

fn is_name(name: &str) -> bool {
    name.len() <= MAX_NAME
        && is_alphanumeric_at_ends(name)
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

fn is_subdomain(prefix: &str) -> bool {
    let is_label = |label: &str| {
        is_alphanumeric_at_ends(label)
            && label.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    prefix.len() <= MAX_PREFIX && prefix.split('.').all(is_label)
}

/// False for the empty text.
fn is_alphanumeric_at_ends(text: &str) -> bool {
    let at = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    at(text.bytes().next()) && at(text.bytes().next_back())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_formed() {
        for selector in [
            "",
            " ",
            "a",
            "!a",
            "a,b",
            "a=b",
            "a==b",
            "a!=b",
            "a=",
            "a=,b",
            "a in (b)",
            "a in (b,c)",
            "a in ()",
            "a in (,b)",
            "a in (,,)",
            "a in (b,,)",
            "a notin (in, notin)",
            "in in (in)",
            "in",
            "a>5",
            "a < 7",
            "example.com/a=b",
            "a \t=\r\n b",
            "! a",
            "notin=in",
            "A_b.c-d=E_f.g-h",
        ] {
            assert!(is_valid(selector), "{selector:?}");
        }
        assert!(is_valid(&format!("{}/{}", "a".repeat(253), "b".repeat(63))));
    }

    #[test]
    fn malformed() {
        for selector in [
            ",",
            "a,",
            "a,,b",
            "!",
            "!!a",
            "!a=b",
            "=b",
            "a=b=c",
            "a b",
            "a in",
            "a in b",
            "a in (b",
            "a in (b,",
            "a in (b c)",
            "a in (b))",
            "a in (=)",
            "a>b",
            "a>",
            "a>-5",
            "a>+5",
            "a===b",
            "a=!b",
            "a/b/c",
            "/a",
            "a/",
            "A.com/b",
            "a..b/c",
            "-a",
            "a-",
            "a=-b",
            "a=b-",
            "a=ä",
            "ä",
            "a in (-b)",
            "a (b)",
            "(a)",
        ] {
            assert!(!is_valid(selector), "{selector:?}");
        }
        assert!(!is_valid(&"a".repeat(64)));
        assert!(!is_valid(&format!("a={}", "b".repeat(64))));
        assert!(!is_valid(&format!("{}/b", "a".repeat(254))));
    }
}
