//! Who owned which slot at which epoch: the sum of all versions of the ring's `ShardMap`
//! (DESIGN.md, "Exact formats", `ShardMap`).

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::{
    input::{self, Document, InputError},
    ring::Ring,
    slot::SLOTS,
};

/// (slot, epoch) -> owner, over all versions of the map that were given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Owners {
    table: BTreeMap<(u8, u64), String>,
    shards: BTreeSet<String>,
}

/// How a claim of (shard, slot, epoch) stands against the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing<'a> {
    /// The shard owned the slot at that epoch.
    Owner,
    /// The shard owned the slot at other epochs; nobody did at that one.
    OtherEpoch,
    /// Another shard owned the slot at that epoch.
    OwnedBy(&'a str),
    /// Nobody owned the slot at that epoch, and the shard never did.
    Never,
}

/// One version of the map.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct MapSpec {
    pub(crate) version: i64,
    keying: Keying,
    pub(crate) slots: Vec<Range>,
}

#[derive(Debug, Clone, Deserialize)]
struct Keying {
    algorithm: String,
    slots: usize,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Range {
    pub(crate) first: u8,
    pub(crate) last: u8,
    pub(crate) owner: Option<String>,
    pub(crate) epoch: u64,
    pub(crate) state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) enum State {
    Owned,
    Draining,
    Orphan,
}

// === impl Owners ===

impl Owners {
    /// Adds every `ShardMap` of that ring in a YAML file; returns how many there were. Documents of other kinds
    /// and maps of other rings are passed over.
    pub fn add(&mut self, ring: &Ring, yaml: &str) -> Result<usize, InputError> {
        let ours = |it: &Document| it.metadata.name == ring.name && it.metadata.namespace == ring.namespace;
        let maps: Vec<_> = input::documents(yaml, "ShardMap")?.into_iter().filter(ours).collect();
        for document in &maps {
            self.add_map(&document.spec("ShardMap")?)?;
        }
        Ok(maps.len())
    }

    /// How a claim stands.
    pub fn standing(&self, shard: &str, slot: u8, epoch: u64) -> Standing<'_> {
        match self.table.get(&(slot, epoch)) {
            Some(owner) if owner == shard => Standing::Owner,
            Some(owner) => Standing::OwnedBy(owner),
            None if self.epochs(slot).any(|owner| owner == shard) => Standing::OtherEpoch,
            None => Standing::Never,
        }
    }

    /// Whether some version gave the shard a slot.
    pub fn has_shard(&self, shard: &str) -> bool {
        self.shards.contains(shard)
    }

    /// Whether the slot ever changed owner; if not, no write to it can be late.
    pub fn moved(&self, slot: u8) -> bool {
        self.epochs(slot).nth(1).is_some()
    }

    /// The owners of a slot, by epoch.
    fn epochs(&self, slot: u8) -> impl Iterator<Item = &String> {
        self.table.range((slot, 0)..=(slot, u64::MAX)).map(|(_, owner)| owner)
    }

    /// Adds one version. An epoch has one owner, for ever.
    pub(crate) fn add_map(&mut self, map: &MapSpec) -> Result<(), InputError> {
        map.check()?;
        for range in map.slots.iter().filter(|range| range.state != State::Orphan) {
            let owner =
                range.owner.as_ref().ok_or_else(|| map.wrong("a slot that is not Orphan has no owner"))?;
            self.shards.insert(owner.clone());
            for slot in range.first..=range.last {
                let known = self.table.entry((slot, range.epoch)).or_insert_with(|| owner.clone());
                if known != owner {
                    let epoch = range.epoch;
                    return Err(map.wrong(&format!(
                        "slot {slot} is {owner}'s at epoch {epoch}, which another version gives to {known}"
                    )));
                }
            }
        }
        Ok(())
    }
}

// === impl MapSpec ===

impl MapSpec {
    /// Sorted and gapless over all slots, keyed as the judge computes; else refused whole.
    fn check(&self) -> Result<(), InputError> {
        if self.keying.algorithm != "XXH3-64" || self.keying.slots != SLOTS {
            return Err(self.wrong("keying must be XXH3-64 over 256 slots"));
        }
        let mut next = 0;
        for range in &self.slots {
            if usize::from(range.first) != next || range.last < range.first {
                return Err(
                    self.wrong(&format!("a range must start at slot {next} and not end before it starts"))
                );
            }
            next = usize::from(range.last) + 1;
        }
        if next == SLOTS { Ok(()) } else { Err(self.wrong(&format!("slots from {next} on are missing"))) }
    }

    fn wrong(&self, why: &str) -> InputError {
        InputError::Map { version: self.version, why: why.to_owned() }
    }
}

#[cfg(test)]
mod tests;
