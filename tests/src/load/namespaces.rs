//! Names of namespaces by the slot that they are in.

use shoal_sharding::{Slot, slot_of};

use crate::ring::HUB;

/// The slots on each side of every edge of the example's ranges: 0-85, 86-170, 171-255.
pub const EDGES: [u8; 6] = [0, 85, 86, 170, 171, 255];

/// Names of namespaces in a slot of the hub, without end.
pub fn names_in_slot(slot: u8) -> impl Iterator<Item = String> {
    let names = (0_u32..).map(|number| format!("load-{number}"));
    names.filter(move |name| slot_of(HUB, name) == Slot(slot))
}

/// `count` names: one in each slot of [`EDGES`], then the rest spread evenly over all slots.
pub fn namespaces(count: usize) -> Vec<String> {
    let rest = count.saturating_sub(EDGES.len());
    let middles = (0..rest).map(|index| (2 * index + 1) * 128 / rest);
    let slots = EDGES.into_iter().chain(middles.filter_map(|slot| u8::try_from(slot).ok()));
    let mut names: Vec<String> = Vec::new();
    for slot in slots.take(count) {
        let free = names_in_slot(slot).find(|name| !names.contains(name));
        names.extend(free);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_edges_are_those_of_the_example() {
        let map = std::fs::read_to_string(crate::ring::example().join("shardmap.yaml")).unwrap();
        let map: shoal_api::ShardMap = serde_saphyr::from_str(&map).unwrap();
        let edges: Vec<u8> = map.spec.slots.iter().flat_map(|range| [range.first, range.last]).collect();
        assert_eq!(edges, EDGES);
    }

    #[test]
    fn names_are_different_and_spread() {
        let names = namespaces(24);
        let mut unique = names.clone();
        unique.sort();
        unique.dedup();
        assert_eq!((names.len(), unique.len()), (24, 24));
        let slots: Vec<u8> = names.iter().map(|name| slot_of(HUB, name).0).collect();
        assert_eq!(slots[..6], EDGES);
        for range in [0..=85, 86..=170, 171..=255] {
            assert_eq!(slots.iter().filter(|slot| range.contains(*slot)).count(), 8, "{slots:?}");
        }
        assert_eq!(namespaces(2).len(), 2);
        assert!(namespaces(900).len() == 900, "more than one name in a slot");
    }
}
