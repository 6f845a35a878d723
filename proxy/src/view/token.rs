//! Page tokens: `shoal.<generation>.<the server's>`. Pages of one list must all be of the same view.

const PREFIX: &str = "shoal";

/// The token that a client gets.
pub(super) fn wrap(generation: u64, token: &str) -> String {
    format!("{PREFIX}.{generation}.{token}")
}

/// The server's token, if the client's is of that generation.
pub(super) fn unwrap(generation: u64, token: &str) -> Option<&str> {
    let (of, token) = token.strip_prefix(PREFIX)?.strip_prefix('.')?.split_once('.')?;
    (of.parse() == Ok(generation)).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_for_its_generation_only() {
        for token in ["", "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ", "a.b.c"] {
            let wrapped = wrap(7, token);
            assert_eq!(
                (unwrap(7, &wrapped), unwrap(8, &wrapped), unwrap(7, token)),
                (Some(token), None, None)
            );
        }
        for broken in ["shoal", "shoal.", "shoal.7", "shoal..a", "xshoal.7.a", "shoal.x.a"] {
            assert_eq!(unwrap(7, broken), None, "{broken}");
        }
    }
}
