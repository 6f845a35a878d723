//! The map from slots to shards, checked whole.

use std::{collections::BTreeMap, fmt};

use shoal_api::{ShardMapSpec, SlotRange, SlotState};

use crate::slot::Slot;

/// A `ShardMap` that was found to be sound: every slot has exactly one entry.
#[derive(Clone, Debug)]
pub struct SlotMap {
    version: i64,
    ranges: Vec<SlotRange>,
    /// The index into `ranges` of each slot.
    of_slot: [u8; 256],
}

/// The slots of one shard, as a set.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Slots([bool; 256]);

/// Why a map is refused. It is always refused whole.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum MapError {
    /// A range does not begin where the one before it ended, or ends before it begins.
    #[error(
        "slots must be sorted and gapless over 0..=255: expected a range from {expected}, found {first}-{last}"
    )]
    Gap {
        /// The slot that had to come next.
        expected: u16,
        /// The first slot of the range found.
        first: u8,
        /// Its last.
        last: u8,
    },
    /// The ranges end early.
    #[error("slots must reach 255, but end at {0}")]
    Short(u16),
    /// `keying.slots` is not 256.
    #[error("keying.slots must be 256, found {0}")]
    Slots(u16),
    /// A range lacks what its state needs.
    #[error("slots {first}-{last}: state {state:?} needs {needs}")]
    Incomplete {
        /// The first slot of the range.
        first: u8,
        /// Its last.
        last: u8,
        /// Its state.
        state: SlotState,
        /// The missing or superfluous field.
        needs: &'static str,
    },
    /// Versions and epochs start at 1.
    #[error("{0} must be at least 1")]
    Number(&'static str),
}

// === impl SlotMap ===

impl SlotMap {
    /// A map from before the first one: nobody owns anything.
    pub fn orphaned() -> Self {
        let all = SlotRange {
            first: 0,
            last: u8::MAX,
            owner: None,
            epoch: 0,
            state: SlotState::Orphan,
            to: None,
            pin: None,
        };
        Self { version: 0, ranges: vec![all], of_slot: [0; 256] }
    }

    /// The map's version.
    pub fn version(&self) -> i64 {
        self.version
    }

    /// The range that a slot is in.
    pub fn entry(&self, slot: Slot) -> &SlotRange {
        // Sound by construction: `of_slot` holds only indices of `ranges`.
        &self.ranges[usize::from(self.of_slot[usize::from(slot.0)])]
    }

    /// The epoch at which `shard` may write the slot; none while another owns it or nobody does.
    pub fn owned_at(&self, slot: Slot, shard: &str) -> Option<i64> {
        let entry = self.entry(slot);
        let owned = entry.state == SlotState::Owned && entry.owner.as_deref() == Some(shard);
        owned.then_some(entry.epoch)
    }

    /// Whether any slot has `shard` as its owner, in whatever state.
    pub fn names(&self, shard: &str) -> bool {
        self.ranges.iter().any(|range| range.owner.as_deref() == Some(shard))
    }

    /// The slots that `shard` may write.
    pub fn slots_of(&self, shard: &str) -> Slots {
        (0..=u8::MAX).map(Slot).filter(|slot| self.owned_at(*slot, shard).is_some()).collect()
    }

    /// The shards of the map and how many slots each owns.
    pub fn owners(&self) -> BTreeMap<&str, usize> {
        let mut owners = BTreeMap::new();
        for range in &self.ranges {
            if let Some(owner) = &range.owner {
                *owners.entry(owner.as_str()).or_default() += usize::from(range.last - range.first) + 1;
            }
        }
        owners
    }
}

impl TryFrom<&ShardMapSpec> for SlotMap {
    type Error = MapError;

    fn try_from(spec: &ShardMapSpec) -> Result<Self, MapError> {
        check_numbers(spec)?;
        let mut of_slot = [0; 256];
        let mut expected = 0_u16;
        for (index, range) in (0_u8..=u8::MAX).zip(&spec.slots) {
            let (first, last) = (range.first, range.last);
            if u16::from(first) != expected || last < first {
                return Err(MapError::Gap { expected, first, last });
            }
            check_range(range)?;
            of_slot[usize::from(first)..=usize::from(last)].fill(index);
            expected = u16::from(last) + 1;
        }
        if expected != shoal_api::SLOTS || spec.slots.len() > usize::from(shoal_api::SLOTS) {
            return Err(MapError::Short(expected));
        }
        Ok(Self { version: spec.version, ranges: spec.slots.clone(), of_slot })
    }
}

fn check_numbers(spec: &ShardMapSpec) -> Result<(), MapError> {
    if spec.keying.slots != shoal_api::SLOTS {
        return Err(MapError::Slots(spec.keying.slots));
    }
    if spec.version < 1 {
        return Err(MapError::Number("version"));
    }
    Ok(())
}

fn check_range(range: &SlotRange) -> Result<(), MapError> {
    let needs = match range.state {
        SlotState::Owned | SlotState::Draining if range.owner.is_none() => "an owner",
        SlotState::Orphan if range.owner.is_some() => "no owner",
        _ if range.to.is_some() && range.to == range.owner => "another shard as `to`, or none",
        _ if range.epoch < 1 => return Err(MapError::Number("epoch")),
        _ => return Ok(()),
    };
    Err(MapError::Incomplete { first: range.first, last: range.last, state: range.state, needs })
}

// === impl Slots ===

impl Slots {
    /// No slot.
    pub const NONE: Self = Self([false; 256]);
    /// Every slot.
    pub const ALL: Self = Self([true; 256]);

    /// Adds a slot.
    pub fn insert(&mut self, slot: Slot) {
        self.0[usize::from(slot.0)] = true;
    }

    /// The slots of the set, in order.
    pub fn iter(&self) -> impl Iterator<Item = Slot> {
        (0..=u8::MAX).map(Slot).filter(|slot| self.contains(*slot))
    }

    /// The slots that are in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.iter().chain(other.iter()).collect()
    }

    /// The slots that are in this set and not in the other.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        self.iter().filter(|slot| !other.contains(*slot)).collect()
    }

    /// Whether the slot is in the set.
    pub fn contains(&self, slot: Slot) -> bool {
        self.0[usize::from(slot.0)]
    }

    /// How many slots are in the set.
    pub fn len(&self) -> usize {
        self.0.iter().filter(|owned| **owned).count()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether every slot is in the set.
    pub fn is_all(&self) -> bool {
        self.0.iter().all(|owned| *owned)
    }

    /// The fewest ranges that make up the set, sorted, each by its first and last slot.
    pub fn ranges(&self) -> impl Iterator<Item = (u8, u8)> {
        let owned = |slot: Option<u8>| slot.is_some_and(|slot| self.contains(Slot(slot)));
        let edge = move |slot: &u8, beyond: Option<u8>| owned(Some(*slot)) && !owned(beyond);
        let firsts = (0..=u8::MAX).filter(move |slot| edge(slot, slot.checked_sub(1)));
        let lasts = (0..=u8::MAX).filter(move |slot| edge(slot, slot.checked_add(1)));
        firsts.zip(lasts)
    }
}

impl FromIterator<Slot> for Slots {
    fn from_iter<T: IntoIterator<Item = Slot>>(slots: T) -> Self {
        let mut set = Self::NONE;
        slots.into_iter().for_each(|slot| set.insert(slot));
        set
    }
}

impl Default for Slots {
    fn default() -> Self {
        Self::NONE
    }
}

impl fmt::Debug for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.ranges()).finish()
    }
}

#[cfg(test)]
mod tests;
