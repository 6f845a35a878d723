//! What there is to say about a ring.

use std::collections::{BTreeMap, BTreeSet};

use shoal_api::SlotState;

use super::{Seen, draft::Draft, safety::Safety};
use crate::{
    membership::{Membership, State},
    moment::Moment,
    slot::Slot,
};

/// A ring as its coordinator sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Report {
    /// Its shards, those that leave included.
    pub shards: BTreeMap<String, ShardReport>,
    /// How many slots are announced or draining.
    pub moving: usize,
    /// How many slots nobody owns.
    pub orphans: usize,
    /// Slots that are more work by themselves than a shard's fair share: no move can help.
    pub hot: Vec<Slot>,
    /// The moves asked for by hand that are done.
    pub fulfilled: Vec<Slot>,
    /// What keeps the ring from being whole. None is Ready, any is Degraded.
    pub troubles: BTreeSet<Trouble>,
}

/// A shard as its coordinator sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ShardReport {
    /// Whether it lives.
    pub state: State,
    /// How many slots it owns, those that drain included.
    pub slots: usize,
}

/// What keeps a ring from being whole.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum Trouble {
    /// The map is not sound, so nothing is done.
    #[error("the ShardMap is not sound and is left alone: {0}; restore it, or delete it to begin anew")]
    BadMap(String),
    /// Slots are not granted.
    #[error(
        "the controller's original leader election locks are not held for the ring, so no slot is granted"
    )]
    LocksNotHeld,
    /// Nobody can own anything.
    #[error("no shard lives: start a replica of the controller with its proxy")]
    NoLivingShard,
    /// A shard without a holder owns nothing until it is claimed.
    #[error("shard {0} has no holder: its slots are at others; start a replica for it")]
    NoHolder(String),
    /// More shards fell silent than may be deposed at once.
    #[error("shard {0} is silent")]
    Silent(String),
    /// A move was announced for too long.
    #[error("shard {0} does not get the objects of its new slots ready; see the log of its proxy")]
    NotReady(String),
    /// No shard of the version that slots are pinned to.
    #[error("slots are pinned to version {0}, of which no shard lives")]
    NoVersion(String),
}

// === impl Report ===

impl Report {
    pub(super) fn broken(error: String) -> Self {
        Self { troubles: std::iter::once(Trouble::BadMap(error)).collect(), ..Self::default() }
    }

    pub(super) fn of(
        members: &Membership,
        safety: &Safety,
        seen: &Seen,
        now: Moment,
        map: &Draft,
        hot: Vec<Slot>,
    ) -> Self {
        let slots = |shard: &str| map.0.iter().filter(|entry| entry.owner.as_deref() == Some(shard)).count();
        let shard = |shard: &str| {
            (shard.to_owned(), ShardReport { state: members.state(shard), slots: slots(shard) })
        };
        let moving = |entry: &&shoal_api::SlotRange| {
            entry.state == SlotState::Draining || (entry.state == SlotState::Owned && entry.to.is_some())
        };
        let is_there = |(slot, to): &(&Slot, &String)| map.0[usize::from(slot.0)].owner.as_ref() == Some(*to);
        Self {
            shards: members.shards().map(shard).collect(),
            moving: map.0.iter().filter(moving).count(),
            orphans: map.0.iter().filter(|entry| entry.state == SlotState::Orphan).count(),
            hot,
            fulfilled: seen.wishes.moves.iter().filter(is_there).map(|(slot, _)| *slot).collect(),
            troubles: troubles(members, safety, seen, now, map),
        }
    }
}

fn troubles(
    members: &Membership,
    safety: &Safety,
    seen: &Seen,
    now: Moment,
    map: &Draft,
) -> BTreeSet<Trouble> {
    let mut troubles = BTreeSet::new();
    if !seen.locks_held {
        troubles.insert(Trouble::LocksNotHeld);
    }
    let ring = || seen.ring.shards.iter();
    let lives = |shard: &str| members.state(shard) == State::Alive;
    if !ring().any(|shard| lives(&shard.name)) {
        troubles.insert(Trouble::NoLivingShard);
    }
    for shard in ring() {
        let slots = map.0.iter().any(|entry| entry.owner.as_ref() == Some(&shard.name));
        match members.state(&shard.name) {
            State::Alive => {}
            State::Silent => drop(troubles.insert(Trouble::Silent(shard.name.clone()))),
            // Its slots wait for its next holder.
            _ if slots => {}
            _ => drop(troubles.insert(Trouble::NoHolder(shard.name.clone()))),
        }
    }
    for entry in &map.0 {
        if let (Some(to), true) = (&entry.to, safety.is_overdue(Slot(entry.first), now)) {
            troubles.insert(Trouble::NotReady(to.clone()));
        }
        let of_version = |shard: &&super::RingShard| shard.version == entry.pin && lives(&shard.name);
        if let Some(pin) = entry.pin.as_ref().filter(|_| ring().find(of_version).is_none()) {
            troubles.insert(Trouble::NoVersion(pin.clone()));
        }
    }
    troubles
}
