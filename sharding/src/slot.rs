//! Keys and slots: how an object finds its bucket.

use std::fmt;

use xxhash_rust::xxh3::Xxh3Default;

/// One of the 256 buckets of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u8);

/// The slot of a key in a cluster: the top 8 bits of xxh3-64 (seed 0) over both fields, each
/// preceded by its length as a little-endian u32, so that no two pairs share an input.
pub fn slot_of(cluster: &str, key: &str) -> Slot {
    let mut hash = Xxh3Default::new();
    for field in [cluster, key] {
        let length = u32::try_from(field.len()).unwrap_or(u32::MAX);
        hash.update(&length.to_le_bytes());
        hash.update(field.as_bytes());
    }
    Slot(hash.digest().to_be_bytes()[0])
}

/// The key of an object in mode `namespace`: its namespace, or its own name where it has none
/// (a Namespace among them).
pub fn namespace_key<'a>(namespace: &'a str, name: &'a str) -> &'a str {
    if namespace.is_empty() { name } else { namespace }
}

// === impl Slot ===

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_c_reference() {
        let vectors = include_str!("../../tests/vectors/slots.tsv");
        let rows: Vec<Vec<&str>> = vectors
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| line.split('\t').collect())
            .collect();
        assert!(rows.len() >= 30, "only {} vectors", rows.len());
        for row in rows {
            let [cluster, key, _hash, slot] = row[..] else { panic!("not a vector: {row:?}") };
            assert_eq!(slot_of(cluster, key), Slot(slot.parse().unwrap()), "{cluster:?} {key:?}");
        }
    }

    #[test]
    fn a_field_boundary_is_part_of_the_key() {
        assert_ne!(slot_of("hub", "a1"), slot_of("hu", "ba1"));
    }

    #[test]
    fn objects_without_a_namespace_are_keyed_by_their_name() {
        assert_eq!(namespace_key("shop", "web"), "shop");
        assert_eq!(namespace_key("", "shop"), "shop");
    }
}
