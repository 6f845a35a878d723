//! A ring of two shards that share 40 namespaces: the first owns `mesh-00` to `mesh-19` and what collides with them.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use shoal_judge::{SLOTS, slot_of};

use crate::HarnessError;
use crate::ring::HUB;

/// `mesh-00` to `mesh-39`.
pub const NAMESPACES: usize = 40;
/// The shard that owns the first half of them.
pub const SHARD: &str = "bench-0";
/// The shard that owns every other slot. Nobody plays it.
const OTHER: &str = "bench-1";

/// The name of a namespace.
pub fn namespace(number: usize) -> String {
    format!("mesh-{number:02}")
}

/// Whether [`SHARD`] owns a namespace. Slots may collide: then it owns one of the second half too.
pub fn owns(namespace: &str) -> bool {
    owns_slot(slot_of(HUB, namespace))
}

/// How many of `objects` it owns, where object n lives in namespace n mod 40.
pub fn owned_of(objects: usize) -> usize {
    (0..objects).filter(|number| owns(&namespace(number % NAMESPACES))).count()
}

/// A namespace that [`SHARD`] owns, beside the 40.
pub fn another() -> String {
    (0..=u16::MAX).map(|number| format!("other-{number}")).find(|name| owns(name)).unwrap_or_default()
}

/// A namespace among the 40 that it does not own.
pub fn foreign() -> usize {
    (0..NAMESPACES).find(|number| !owns(&namespace(*number))).unwrap_or_default()
}

/// Writes the ring and its map, and returns the file.
pub fn write(dir: &Path) -> Result<PathBuf, HarnessError> {
    let path = dir.join("ring.yaml");
    let text = include_str!("ring.yaml").to_owned() + &ranges();
    fs::write(&path, text).map_err(HarnessError::io("write", &path))?;
    Ok(path)
}

fn owns_slot(slot: u8) -> bool {
    (0..NAMESPACES / 2).any(|number| slot_of(HUB, &namespace(number)) == slot)
}

/// One range a slot: short, and as right as merged ones.
fn ranges() -> String {
    let mut text = String::new();
    for slot in (0..SLOTS).filter_map(|slot| u8::try_from(slot).ok()) {
        let owner = if owns_slot(slot) { SHARD } else { OTHER };
        let _ = writeln!(text, "  - {{first: {slot}, last: {slot}, owner: {owner}, epoch: 1, state: Owned}}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_half_is_owned_and_most_of_the_second_is_not() {
        let owned: Vec<usize> = (0..NAMESPACES).filter(|number| owns(&namespace(*number))).collect();
        assert_eq!(owned[..20], (0..20).collect::<Vec<_>>());
        assert!((20..24).contains(&owned.len()), "{owned:?}");
        assert_eq!(owned_of(2 * NAMESPACES), 2 * owned.len());
        assert!(owns(&another()) && !owns(&namespace(foreign())));
        // What the API server keeps there is not counted.
        assert!(!owns("kube-system"));
    }
}
