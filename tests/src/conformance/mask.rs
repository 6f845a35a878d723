//! Makes equal what two runs of the same request cannot have in common, and nothing else.

/// Writes `with` over every occurrence of `what`.
pub(super) fn replace(body: &mut [u8], what: &[u8], with: u8) {
    let mut at = 0;
    while let Some(found) =
        body.get(at..).and_then(|rest| rest.windows(what.len()).position(|part| part == what))
    {
        let end = at + found + what.len();
        if let Some(part) = body.get_mut(at + found..end) {
            part.fill(with);
        }
        at = end;
    }
}

/// Empties the string values of these keys in JSON.
pub(super) fn values(body: &mut Vec<u8>, keys: &[&str]) {
    for key in keys {
        let opening = format!("\"{key}\":\"");
        let mut from = 0;
        while let Some(start) = find(body, opening.as_bytes(), from) {
            let start = start + opening.len();
            let Some(end) = find(body, b"\"", start) else { break };
            body.drain(start..end);
            from = start;
        }
    }
}

/// The first string value of a key in JSON.
pub(super) fn value(body: &[u8], key: &str) -> Option<String> {
    let opening = format!("\"{key}\":\"");
    let start = find(body, opening.as_bytes(), 0)? + opening.len();
    let end = find(body, b"\"", start)?;
    String::from_utf8(body.get(start..end)?.to_vec()).ok().filter(|value| !value.is_empty())
}

fn find(body: &[u8], what: &[u8], from: usize) -> Option<usize> {
    Some(from + body.get(from..)?.windows(what.len()).position(|part| part == what)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_named_is_masked() {
        let mut body = br#"{"uid":"abc","name":"abc-d","time":"now","token":"","n":1}"#.to_vec();
        assert_eq!(value(&body, "uid").as_deref(), Some("abc"));
        replace(&mut body, b"abc", b'0');
        values(&mut body, &["time", "token", "absent"]);
        assert_eq!(body, br#"{"uid":"000","name":"000-d","time":"","token":"","n":1}"#);
    }
}
