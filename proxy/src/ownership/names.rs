//! Names for objects that come without one, chosen so that the shard that creates an object owns it.
//!
//! The API server would choose any name. The rule is its own (apiserver `pkg/storage/names/generate.go`), so that nobody
//! can tell which of the two drew a name.

use fastrand::Rng;
use shoal_sharding::{Slot, Slots};

/// What a suffix is made of (apimachinery `pkg/util/rand/rand.go`): no vowels, so that no words come out.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX: usize = 5;
/// The most of a base that is kept, in bytes; the whole fits the 63 of a label.
const MAX_BASE: usize = 63 - SUFFIX;
/// A shard with one slot of 256 finds none with probability e^-78.
const DRAWS: usize = 20_000;

/// A name that begins with `base` and whose slot is among these; none if many draws gave none. `slot_of` has none for a
/// name that must not be.
pub fn draw(
    base: &str,
    random: &mut Rng,
    among: &Slots,
    slot_of: impl Fn(&str) -> Option<Slot>,
) -> Option<String> {
    if among.is_empty() {
        return None;
    }
    let base = &base[..base.floor_char_boundary(MAX_BASE)];
    let mut name = String::with_capacity(base.len() + SUFFIX);
    for _ in 0..DRAWS {
        name.clear();
        name.push_str(base);
        name.extend((0..SUFFIX).filter_map(|_| random.choice(ALPHABET)).map(|byte| char::from(*byte)));
        if slot_of(&name).is_some_and(|slot| among.contains(slot)) {
            return Some(name);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn drawn(base: &str, fits: impl Fn(&str) -> bool) -> Option<String> {
        draw(base, &mut Rng::with_seed(7), &one(), |name| fits(name).then_some(Slot(1)))
    }

    fn one() -> Slots {
        Slots::from_iter([Slot(1)])
    }

    #[test]
    fn a_name_is_made_as_the_api_server_makes_it() {
        let mut random = Rng::with_seed(1);
        let names: BTreeSet<String> =
            (0..1000).filter_map(|_| draw("web-", &mut random, &one(), |_| Some(Slot(1)))).collect();
        assert!(names.len() > 990, "{}", names.len());
        for name in &names {
            let suffix = name.strip_prefix("web-").unwrap();
            assert_eq!(suffix.len(), SUFFIX, "{name}");
            assert!(suffix.bytes().all(|byte| ALPHABET.contains(&byte)), "{name}");
        }
        let letters: BTreeSet<u8> = names.iter().flat_map(|name| name.bytes().skip(4)).collect();
        assert_eq!(letters.len(), ALPHABET.len());
    }

    #[test]
    fn a_long_base_is_cut_so_that_the_whole_fits() {
        let name = drawn(&"a".repeat(100), |_| true).unwrap();
        assert_eq!(name.len(), 63);
        assert!(name.starts_with(&"a".repeat(58)));
        assert_eq!(drawn(&"é".repeat(60), |_| true).unwrap().chars().count(), 29 + 5);
    }

    #[test]
    fn draws_go_on_until_a_name_fits_and_end_somewhere() {
        assert!(drawn("web-", |name| name.ends_with("zz")).unwrap().ends_with("zz"));
        assert_eq!(drawn("web-", |_| false), None);
        assert_eq!(draw("web-", &mut Rng::with_seed(7), &one(), |_| Some(Slot(2))), None);
    }

    #[test]
    fn who_owns_no_slot_draws_nothing() {
        let never = |name: &str| panic!("{name}");
        assert_eq!(draw("web-", &mut Rng::with_seed(7), &Slots::from_iter([]), never), None);
    }
}
