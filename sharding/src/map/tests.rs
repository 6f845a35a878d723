//! The rules of a sound map, as data.

use proptest::prelude::*;
use shoal_api::{HashAlgorithm, Keying};

use super::*;

fn range(first: u8, last: u8, owner: &str) -> SlotRange {
    SlotRange {
        first,
        last,
        owner: Some(owner.into()),
        epoch: 1,
        state: SlotState::Owned,
        to: None,
        pin: None,
    }
}

fn spec(slots: Vec<SlotRange>) -> ShardMapSpec {
    ShardMapSpec { version: 7, keying: Keying { algorithm: HashAlgorithm::Xxh3_64, slots: 256 }, slots }
}

fn refused(slots: Vec<SlotRange>) -> MapError {
    SlotMap::try_from(&spec(slots)).unwrap_err()
}

#[test]
fn each_slot_has_the_owner_of_its_range() {
    let map =
        SlotMap::try_from(&spec(vec![range(0, 85, "a"), range(86, 170, "b"), range(171, 255, "c")])).unwrap();
    for (slot, owner) in [(0, "a"), (85, "a"), (86, "b"), (170, "b"), (171, "c"), (255, "c")] {
        assert_eq!(map.owned_at(Slot(slot), owner), Some(1), "slot {slot}");
        assert_eq!(map.entry(Slot(slot)).owner.as_deref(), Some(owner));
        assert!(map.slots_of(owner).contains(Slot(slot)));
        assert_eq!(map.owned_at(Slot(slot), "other"), None);
    }
    assert_eq!(map.owners().into_iter().collect::<Vec<_>>(), [("a", 86), ("b", 85), ("c", 85)]);
    assert_eq!((map.slots_of("a").len(), map.version()), (86, 7));
    assert!(map.slots_of("nobody").is_empty());
}

#[test]
fn a_slot_on_its_way_is_nobodys_to_write() {
    let draining = SlotRange { state: SlotState::Draining, to: Some("b".into()), ..range(0, 255, "a") };
    let map = SlotMap::try_from(&spec(vec![draining])).unwrap();
    assert_eq!((map.owned_at(Slot(3), "a"), map.owned_at(Slot(3), "b")), (None, None));
    let orphan = SlotRange { state: SlotState::Orphan, owner: None, ..range(0, 255, "a") };
    assert!(SlotMap::try_from(&spec(vec![orphan])).unwrap().slots_of("a").is_empty());
}

#[test]
fn gaps_overlaps_and_short_maps_are_refused() {
    let gap = |expected, first, last| MapError::Gap { expected, first, last };
    assert_eq!(refused(vec![range(1, 255, "a")]), gap(0, 1, 255));
    assert_eq!(refused(vec![range(0, 9, "a"), range(11, 255, "b")]), gap(10, 11, 255));
    assert_eq!(refused(vec![range(0, 9, "a"), range(9, 255, "b")]), gap(10, 9, 255));
    assert_eq!(refused(vec![range(0, 9, "a"), range(10, 9, "b")]), gap(10, 10, 9));
    assert_eq!(refused(vec![range(0, 254, "a")]), MapError::Short(255));
    assert_eq!(refused(vec![range(0, 255, "a"), range(0, 255, "a")]), gap(256, 0, 255));
    assert_eq!(refused(vec![]), MapError::Short(0));
}

#[test]
fn a_state_needs_its_fields() {
    for bad in [
        SlotRange { owner: None, ..range(0, 255, "a") },
        SlotRange { to: Some("a".into()), ..range(0, 255, "a") },
        SlotRange { state: SlotState::Draining, owner: None, ..range(0, 255, "a") },
        SlotRange { state: SlotState::Orphan, ..range(0, 255, "a") },
    ] {
        assert!(matches!(refused(vec![bad]), MapError::Incomplete { .. }));
    }
    assert_eq!(refused(vec![SlotRange { epoch: 0, ..range(0, 255, "a") }]), MapError::Number("epoch"));
    let versionless = ShardMapSpec { version: 0, ..spec(vec![range(0, 255, "a")]) };
    assert_eq!(SlotMap::try_from(&versionless).unwrap_err(), MapError::Number("version"));
    let few = Keying { slots: 128, algorithm: HashAlgorithm::Xxh3_64 };
    let few = ShardMapSpec { keying: few, ..spec(vec![range(0, 255, "a")]) };
    assert_eq!(SlotMap::try_from(&few).unwrap_err(), MapError::Slots(128));
}

proptest! {
    /// Any cut of 0..=255 into ranges gives each slot to exactly one shard.
    #[test]
    fn every_slot_has_exactly_one_owner(cuts in proptest::collection::btree_set(1_u8.., 0..20)) {
        let firsts: Vec<u8> = std::iter::once(0).chain(cuts).collect();
        let lasts = firsts.iter().skip(1).map(|next| next - 1).chain([255]);
        let ranges = firsts.iter().zip(lasts).map(|(first, last)| range(*first, last, &format!("s{}", first % 3)));
        let map = SlotMap::try_from(&spec(ranges.collect())).unwrap();
        for slot in (0..=255).map(Slot) {
            let owners = ["s0", "s1", "s2"].iter().filter(|shard| map.slots_of(shard).contains(slot));
            prop_assert_eq!(owners.count(), 1);
        }
    }
}
