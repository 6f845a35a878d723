//! The slot of an object's key, computed by code of the judge's own (DESIGN.md, "Exact formats", Slot).

use std::hash::Hasher;

use twox_hash::XxHash3_64;

/// How many slots a map has.
pub const SLOTS: usize = 256;

/// The slot of `key` in the cluster of that name: the top 8 bits of XXH3-64 (seed 0) over the two fields, each
/// after its length in bytes as a little-endian `u32`, so that no two pairs give the same input.
pub fn slot_of(cluster: &str, key: &str) -> u8 {
    let mut hasher = XxHash3_64::new();
    for field in [cluster, key] {
        // A field of 4 GiB cannot come out of an audit line; saturating keeps the function total.
        let length = u32::try_from(field.len()).unwrap_or(u32::MAX);
        hasher.write(&length.to_le_bytes());
        hasher.write(field.as_bytes());
    }
    hasher.finish().to_be_bytes()[0]
}

/// The slot of a uid: the top 8 bits of FNV-1a 64, as the API server's `shardSelector` hashes it, whatever the cluster.
pub fn slot_of_uid(uid: &str) -> u8 {
    let mut hash: u64 = 14_695_981_039_346_656_037;
    for byte in uid.bytes() {
        hash ^= u64::from(byte);
        hash = hash.wrapping_mul(1_099_511_628_211);
    }
    hash.to_be_bytes()[0]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const VECTORS: &str = include_str!("../../vectors/slots.tsv");

    /// The formula as DESIGN.md writes it: one buffer, one call.
    fn by_the_book(cluster: &str, key: &str) -> u64 {
        let mut input = Vec::new();
        for field in [cluster, key] {
            input.extend(u32::try_from(field.len()).unwrap().to_le_bytes());
            input.extend(field.as_bytes());
        }
        XxHash3_64::oneshot(&input)
    }

    #[test]
    fn equals_the_c_reference() {
        let mut rows = 0;
        for row in VECTORS.lines().filter(|row| !row.starts_with('#')) {
            let [cluster, key, hash, slot] = row.split('\t').collect::<Vec<_>>().try_into().unwrap();
            assert_eq!(format!("{:016x}", by_the_book(cluster, key)), hash, "hash of {cluster:?} {key:?}");
            assert_eq!(slot_of(cluster, key).to_string(), slot, "slot of {cluster:?} {key:?}");
            rows += 1;
        }
        assert!(rows >= 40, "only {rows} vectors");
    }

    #[test]
    fn equals_the_api_server_on_uids() {
        let vectors = include_str!("../../vectors/uids.tsv").lines().filter(|row| !row.starts_with('#'));
        let rows: Vec<_> = vectors.map(|row| row.split('\t').collect::<Vec<_>>()).collect();
        assert!(rows.len() >= 40, "only {} vectors", rows.len());
        for row in rows {
            assert_eq!(slot_of_uid(row[0]).to_string(), row[2], "{row:?}");
        }
    }

    proptest! {
        #[test]
        fn is_the_top_byte_of_the_formula(cluster in ".{0,80}", key in "(?s).{0,600}") {
            prop_assert_eq!(u64::from(slot_of(&cluster, &key)), by_the_book(&cluster, &key) >> 56);
        }
    }
}
