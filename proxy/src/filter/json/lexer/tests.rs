use super::{Lexer, Token};
use crate::filter::Out;
use crate::filter::held::Place;
use bytes::{Bytes, BytesMut};

/// The tokens of a text, as text, cut into chunks.
fn tokens(text: &str, size: usize) -> Vec<String> {
    let (mut lexer, mut carry, mut out, mut found) =
        (Lexer::default(), BytesMut::new(), Out::default(), vec![]);
    for chunk in text.as_bytes().chunks(size) {
        let chunk = Bytes::copy_from_slice(chunk);
        let mut place = Place::new(carry, &chunk, &mut out);
        while let Some(token) = lexer.next(&mut place).unwrap() {
            found.push(match token {
                Token::Key(span) | Token::Text(span) | Token::Literal(span) => {
                    String::from_utf8(place.bytes(span).to_vec()).unwrap()
                }
                other => format!("{other:?}"),
            });
        }
        carry = place.turn();
    }
    assert!(lexer.done());
    found
}

#[test]
fn tokens_do_not_depend_on_the_chunks() {
    let text = r#" {"a\"b" : [1.5e+3,"c\\", true ], "d":{} } "#;
    for size in 1..=text.len() {
        assert_eq!(
            tokens(text, size),
            [
                "Object", r#"a\"b"#, "Array", "1.5e+3", r"c\\", "true", "Close", "d", "Object", "Close",
                "Close"
            ]
        );
    }
}
