//! Who served which slot when, from the ring's own objects in the log, and how long nobody did.
//!
//! ```text
//!               its holder says so                map: Draining
//!  Waiting ───────────────────────▶ Served ──────────────────────▶ Down(Moving) ──▶ Waiting
//!     ▲                               │  map: Orphan, or the holder is gone   │
//!     └── map: Owned ── Down(Lost) ◀──┴──────────────────────────────────────┘
//! ```
//!
//! A slot is served again when its owner says on its Lease that all slots of that map are open; where the log shows no
//! Lease, when the map gives it to its owner. A holder that was deposed served until its last renewal at the longest. What
//! the claiming write itself says is the holder's before, so it counts only where it made the Lease.

use std::collections::{BTreeMap, HashMap};

use crate::{
    history::{Change, History, LeaseChange, What},
    map::{MapSpec, Range, State},
    time::Micros,
};

/// How long slots were without service, milliseconds, each slot each time.
#[derive(Debug, Default)]
pub(crate) struct Service {
    /// In planned moves: from when the old owner was told to let go.
    pub(crate) handovers: Vec<u64>,
    /// In all others: from when the owner was lost.
    pub(crate) orphans: Vec<u64>,
    /// Too long.
    pub(crate) unowned: Vec<Gap>,
}

/// Slots that nobody served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) slots: Vec<u8>,
    pub(crate) millis: u64,
    /// Whether it lasted to the end of the log.
    pub(crate) to_the_end: bool,
    /// The line at which the service ended.
    pub(crate) line: u64,
}

/// Goes through the changes.
struct Walk<'a> {
    history: &'a History,
    /// Whether Leases are in the log.
    leases: bool,
    budget: Option<u64>,
    version: i64,
    slots: BTreeMap<u8, Slot>,
    shards: HashMap<String, Shard>,
    /// By the line at which they began and whether they ended.
    gaps: BTreeMap<(u64, bool), Gap>,
    found: Service,
}

/// A slot of the map.
#[derive(Debug, Clone, Default)]
struct Slot {
    owner: Option<String>,
    epoch: u64,
    place: Place,
    /// The version of the map that its owner has to have opened.
    awaited: i64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    /// Nobody ever served it.
    #[default]
    Never,
    Served,
    Down {
        since: Micros,
        line: u64,
        lost: bool,
    },
}

/// The holder of a shard's identity.
#[derive(Debug, Default)]
struct Shard {
    holder: Option<String>,
    renewed: Micros,
    opened: i64,
}

// === impl Service ===

impl Service {
    /// Of a whole log. `budget` is what a slot may be without service, milliseconds.
    pub(crate) fn of(history: &History, budget: Option<u64>) -> Self {
        let changes = history.changes();
        let leases = changes.iter().any(|change| matches!(change.what, What::Lease(_)));
        let mut walk = Walk {
            history,
            leases,
            budget,
            version: 0,
            slots: BTreeMap::new(),
            shards: HashMap::new(),
            gaps: BTreeMap::new(),
            found: Self::default(),
        };
        for change in changes {
            walk.step(change);
        }
        walk.finish()
    }
}

/// The nearest-rank 99th percentile; 0 of nothing.
pub(crate) fn p99(values: &[u64]) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() * 99).div_ceil(100);
    rank.checked_sub(1).and_then(|index| sorted.get(index)).copied().unwrap_or(0)
}

// === impl Walk ===

impl Walk<'_> {
    fn step(&mut self, change: &Change) {
        match &change.what {
            // Of two writers, the older version's line may come later.
            What::Map(map) if map.version > self.version => self.follow(change, map),
            What::Map(_) => {}
            What::NoMap => {
                self.slots.clear();
                self.version = 0;
            }
            What::Lease(lease) => self.hear(change, lease),
        }
    }

    fn follow(&mut self, change: &Change, map: &MapSpec) {
        self.version = map.version;
        for range in &map.slots {
            for number in range.first..=range.last {
                let mut slot = self.slots.remove(&number).unwrap_or_default();
                slot.follow(range, map.version, change);
                self.slots.insert(number, slot);
            }
        }
        self.open(change.at);
    }

    fn hear(&mut self, change: &Change, lease: &LeaseChange) {
        let shard = self.shards.entry(lease.shard.clone()).or_default();
        if lease.holder.is_none() {
            let lost = if lease.deposed { shard.renewed } else { change.at };
            let held = shard.holder.take().is_some();
            shard.opened = 0;
            if held {
                self.lose(&lease.shard, lost, change.line);
            }
            return;
        }
        let claimed = shard.holder != lease.holder && !lease.created;
        shard.holder.clone_from(&lease.holder);
        shard.renewed = change.at;
        shard.opened = if claimed { 0 } else { lease.opened };
        self.open(change.at);
    }

    fn lose(&mut self, shard: &str, since: Micros, line: u64) {
        let version = self.version;
        for slot in self.slots.values_mut().filter(|slot| slot.owner.as_deref() == Some(shard)) {
            slot.lose(since, line);
            slot.awaited = version;
        }
    }

    /// Ends what has come to its end: slots whose owner says that they are open.
    fn open(&mut self, at: Micros) {
        let mut slots = std::mem::take(&mut self.slots);
        for (number, slot) in &mut slots {
            if slot.place == Place::Served || !self.is_open(slot) {
                continue;
            }
            if let Place::Down { since, line, lost } = slot.place {
                let millis = self.history.answered(since, at) / 1000;
                let kind = if lost { &mut self.found.orphans } else { &mut self.found.handovers };
                kind.push(millis);
                self.weigh(*number, millis, line, false);
            }
            slot.place = Place::Served;
        }
        self.slots = slots;
    }

    fn is_open(&self, slot: &Slot) -> bool {
        let Some(owner) = slot.owner.as_ref().filter(|_| slot.awaited > 0) else { return false };
        !self.leases
            || self.shards.get(owner).is_some_and(|it| it.holder.is_some() && it.opened >= slot.awaited)
    }

    fn weigh(&mut self, slot: u8, millis: u64, line: u64, to_the_end: bool) {
        if self.budget.is_some_and(|budget| millis > budget) {
            let empty = Gap { slots: Vec::new(), millis, to_the_end, line };
            let gap = self.gaps.entry((line, to_the_end)).or_insert(empty);
            gap.slots.push(slot);
            gap.millis = gap.millis.max(millis);
        }
    }

    fn finish(mut self) -> Service {
        let slots = std::mem::take(&mut self.slots);
        for (number, slot) in slots {
            if let Place::Down { since, line, .. } = slot.place {
                self.weigh(number, self.history.answered(since, self.history.end()) / 1000, line, true);
            }
        }
        self.found.unowned = self.gaps.into_values().collect();
        self.found
    }
}

// === impl Slot ===

impl Slot {
    fn follow(&mut self, range: &Range, version: i64, change: &Change) {
        let same = self.owner == range.owner && self.epoch == range.epoch;
        match range.state {
            State::Owned if same => {}
            State::Owned => {
                // Nobody let go of it by the log; the move began at this write at the latest.
                self.fall(change.at, change.line, false);
                self.awaited = version;
            }
            State::Draining => {
                self.fall(change.at, change.line, false);
                self.awaited = 0;
            }
            State::Orphan => {
                self.lose(change.at, change.line);
                self.awaited = 0;
            }
        }
        self.owner.clone_from(&range.owner);
        self.epoch = range.epoch;
    }

    fn fall(&mut self, since: Micros, line: u64, lost: bool) {
        if self.place == Place::Served {
            self.place = Place::Down { since, line, lost };
        }
    }

    /// What was on its way is lost too, from when it began to move.
    fn lose(&mut self, since: Micros, line: u64) {
        self.fall(since, line, true);
        if let Place::Down { lost, .. } = &mut self.place {
            *lost = true;
        }
    }
}

#[cfg(test)]
mod tests;
