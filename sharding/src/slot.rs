//! Slots: the bucket that a key is in.

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

/// The slot of a uid, the same in each cluster: the top 8 bits of its FNV-1a 64. The API server hashes uids so for its
/// `shardSelector` (apimachinery `pkg/sharding/hash.go`), which makes the slots of a shard ranges that it understands.
pub fn slot_of_uid(uid: &str) -> Slot {
    Slot(fnv1a(uid.as_bytes()).to_be_bytes()[0])
}

/// FNV-1a with 64 bits (RFC 9923).
pub(crate) fn fnv1a(bytes: &[u8]) -> u64 {
    const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    bytes.iter().fold(OFFSET_BASIS, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
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

    fn rows(vectors: &'static str) -> Vec<Vec<&'static str>> {
        let rows = vectors.lines().filter(|line| !line.starts_with('#'));
        let rows: Vec<Vec<&str>> = rows.map(|line| line.split('\t').collect()).collect();
        assert!(rows.len() >= 30, "only {} vectors", rows.len());
        rows
    }

    #[test]
    fn agrees_with_the_c_reference() {
        for row in rows(include_str!("../../tests/vectors/slots.tsv")) {
            let [cluster, key, _hash, slot] = row[..] else { panic!("not a vector: {row:?}") };
            assert_eq!(slot_of(cluster, key), Slot(slot.parse().unwrap()), "{cluster:?} {key:?}");
        }
    }

    #[test]
    fn agrees_with_the_api_server_on_uids() {
        for row in rows(include_str!("../../tests/vectors/uids.tsv")) {
            let [uid, hash, slot] = row[..] else { panic!("not a vector: {row:?}") };
            assert_eq!(format!("{:016x}", fnv1a(uid.as_bytes())), hash, "{uid:?}");
            assert_eq!(slot_of_uid(uid), Slot(slot.parse().unwrap()), "{uid:?}");
        }
    }

    #[test]
    fn a_field_boundary_is_part_of_the_key() {
        assert_ne!(slot_of("hub", "a1"), slot_of("hu", "ba1"));
    }
}
