//! What the API server can be asked to leave out by itself: slots of uids as the ranges of a `shardSelector`
//! (KEP-5866; apimachinery `pkg/sharding`, apiserver `pkg/sharding/parser.go`).

use crate::map::Slots;

/// The most ranges that are sent: about 3 KB of a URL once it is escaped. Servers and what is in front of them bound
/// the length of a request line.
pub const MAX_RANGES: usize = 32;

/// The selector of exactly those objects whose uid is in one of the slots, in the spelling that the server echoes.
///
/// None where it would help nothing (all slots), cannot be said (no slot) or is too long (see [`MAX_RANGES`]).
pub fn shard_selector(slots: &Slots) -> Option<String> {
    let ranges: Vec<(u8, u8)> = slots.ranges().collect();
    if slots.is_all() || ranges.is_empty() || ranges.len() > MAX_RANGES {
        return None;
    }
    let ranges = ranges.into_iter().map(|(first, last)| {
        // The end is exclusive, that of the last slot 2^64. The server compares lengths first, so each number below
        // that has all its 16 digits.
        let (start, end) = (u128::from(first) << 56, (u128::from(last) + 1) << 56);
        format!("shardRange(object.metadata.uid, '0x{start:016x}', '0x{end:016x}')")
    });
    Some(ranges.collect::<Vec<_>>().join(" || "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot::{Slot, fnv1a};

    fn slots(owned: impl Fn(u8) -> bool) -> Slots {
        (0..=u8::MAX).filter(|slot| owned(*slot)).map(Slot).collect()
    }

    #[test]
    fn neighbours_are_one_range() {
        let selector = |owned: fn(u8) -> bool| shard_selector(&slots(owned));
        assert_eq!(
            selector(|slot| slot < 86).as_deref(),
            Some("shardRange(object.metadata.uid, '0x0000000000000000', '0x5600000000000000')")
        );
        assert_eq!(
            selector(|slot| slot == 1 || slot >= 254).as_deref(),
            Some(
                "shardRange(object.metadata.uid, '0x0100000000000000', '0x0200000000000000') || \
                 shardRange(object.metadata.uid, '0xfe00000000000000', '0x10000000000000000')"
            )
        );
    }

    #[test]
    fn what_cannot_be_said_shortly_is_not_said() {
        assert_eq!(shard_selector(&slots(|_| true)), None);
        assert_eq!(shard_selector(&slots(|_| false)), None);
        assert_eq!(shard_selector(&slots(|slot| slot % 2 == 0)), None);
        let alternating = shard_selector(&slots(|slot| slot < 64 && slot % 2 == 0)).unwrap();
        assert_eq!(alternating.matches("shardRange").count(), MAX_RANGES);
        assert_eq!(shard_selector(&slots(|slot| slot < 66 && slot % 2 == 0)), None);
    }

    /// As the server reads it: `HexLess` compares lengths, then text.
    fn selects(selector: &str, hash: &str) -> bool {
        let less = |a: &str, b: &str| (a.len(), a) < (b.len(), b);
        let between = |range: &str| {
            let quoted: Vec<&str> = range.split('\'').collect();
            !less(hash, quoted[1]) && less(hash, quoted[3])
        };
        selector.split(" || ").any(between)
    }

    #[test]
    fn a_selector_is_exact() {
        let owned = slots(|slot| slot % 8 == 3 || slot > 250);
        let selector = shard_selector(&owned).unwrap();
        let hashes = (0..20_000).map(|n: u32| fnv1a(format!("uid-{n}").as_bytes()));
        let edges =
            (0..=u8::MAX).flat_map(|slot| [u64::from(slot) << 56, u64::from(slot) << 56 | u64::MAX >> 8]);
        for hash in hashes.chain(edges) {
            let slot = Slot(hash.to_be_bytes()[0]);
            assert_eq!(selects(&selector, &format!("0x{hash:016x}")), owned.contains(slot), "{hash:016x}");
        }
    }
}
