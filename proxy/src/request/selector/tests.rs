//! Renames and required names, with apimachinery's escapes.

use proptest::prelude::*;

use super::*;

fn renamed(selector: &str) -> Result<String, SelectorError> {
    map_names(selector, |name| name.strip_prefix("lock").map(|rest| format!("lock-0{rest}")))
}

#[test]
fn only_names_change() {
    for (selector, after) in [
        ("metadata.name=lock", "metadata.name=lock-0"),
        ("metadata.name==lock", "metadata.name==lock-0"),
        ("metadata.name!=lock", "metadata.name!=lock-0"),
        (
            "spec.x=lock,metadata.name=lock,metadata.name!=lock",
            "spec.x=lock,metadata.name=lock-0,metadata.name!=lock-0",
        ),
        ("metadata.name=other", "metadata.name=other"),
        (r"a\,metadata.name=lock", r"a\,metadata.name=lock"),
        (r"metadata.name=lock\,\=\\", r"metadata.name=lock-0\,\=\\"),
        (r"metadata.name=other\,\=", r"metadata.name=other\,\="),
        (",,metadata.name=lock,", ",,metadata.name=lock-0,"),
        (" metadata.name=lock", " metadata.name=lock"),
        ("", ""),
    ] {
        assert_eq!(renamed(selector).as_deref(), Ok(after), "{selector}");
    }
}

#[test]
fn malformed_selectors_are_refused() {
    for selector in ["a", "a,b=c", "a=b,!c"] {
        assert!(matches!(renamed(selector), Err(SelectorError::Operator(_))), "{selector}");
    }
    for selector in ["a=b=c", r"a=b\", r"a=\b", "a===b"] {
        assert!(matches!(renamed(selector), Err(SelectorError::Escape(_))), "{selector}");
        assert!(matches!(required_name(selector), Err(SelectorError::Escape(_))), "{selector}");
    }
}

#[test]
fn the_required_name_is_the_first_in_byte_order() {
    for (selector, name) in [
        ("metadata.name=a", Some("a")),
        ("x=y,metadata.name==a", Some("a")),
        ("metadata.name=b,metadata.name=a", Some("a")),
        ("metadata.name=a,metadata.name==b", Some("b")),
        (r"metadata.name=a\=b", Some("a=b")),
        ("metadata.name=", Some("")),
        ("metadata.name!=a", None),
        ("metadata.namespace=a", None),
        ("", None),
    ] {
        assert_eq!(required_name(selector).unwrap().as_deref(), name, "{selector}");
    }
}

proptest! {
    #[test]
    fn any_name_survives_the_renaming(name in any::<String>(), other in "[a-z]{1,5}") {
        let selector = format!("{other}={other},metadata.name=x,{other}!={other}");
        let mapped = map_names(&selector, |_| Some(name.clone())).unwrap();
        prop_assert_eq!(required_name(&mapped).unwrap(), Some(name.clone()));
        prop_assert_eq!(map_names(&mapped, |_| Some("x".to_owned())).unwrap(), selector);
    }

    #[test]
    fn no_selector_panics_or_changes_unasked(selector in r"([a-z!=,\\]|metadata\.name|ä){0,12}") {
        if let Ok(same) = map_names(&selector, |_| None) {
            prop_assert_eq!(same, selector);
        }
    }
}
