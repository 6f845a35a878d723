//! One shard's part in the moves of its slots: which it may write, and what it does to let go of one or to take one.
//!
//! ```text
//!            to = me                 owner = me              view shows it
//!  Foreign ──────────▶ Preparing ──────────▶ Arriving ──────────▶ Open
//!     ▲                  │ ▲ at hand: ready=                       │ map: Draining
//!     │                  ▼ │                                       ▼
//!     └──────────────── Ready        Released ◀── view lost it ── Leaving ── no write under way ─▶ Idle
//! ```
//!
//! A write is let in at an open slot only, while the Lease holds by a margin, and is counted until its outcome is known or
//! can no longer come. Nothing here does IO or knows the time.

mod gate;

pub use self::gate::{Outcome, Shut, Ticket};

use std::collections::BTreeMap;

use shoal_api::SlotState;

use crate::{
    acks::Acks,
    map::{SlotMap, Slots},
    moment::Moment,
    slot::Slot,
};

/// The state of one shard.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shard {
    name: String,
    /// The version of the newest map that was seen.
    map: i64,
    /// That of the newest one all of whose slots of this shard were shown.
    settled: i64,
    /// What is not `Foreign`.
    slots: BTreeMap<Slot, Phase>,
    /// Until when this shard may write; none without an identity.
    deadline: Option<Moment>,
    under_way: gate::UnderWay,
}

/// How far a slot is, at an epoch of the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// It may come; its objects are being fetched.
    Preparing(i64),
    /// It may come; its objects are at hand.
    Ready(i64),
    /// It is this shard's, but not shown yet.
    Arriving(i64),
    /// It is this shard's to write.
    Open(i64),
    /// It is to go; writes may be under way.
    Leaving(i64),
    /// It is to go, no write is under way; the view still has to follow.
    Idle(i64),
    /// It is let go.
    Released(i64),
}

/// What a new map asks of the rest of the proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Get the objects of these ready, then call [`Shard::prepared`].
    pub prepare: Slots,
    /// Forget what was prepared of these.
    pub forget: Slots,
    /// Show these, then call [`Shard::shown`].
    pub show: Slots,
    /// These are lost without having been let go: the shard was deposed. No answer is needed.
    pub lost: Slots,
}

/// A map that is older than one that was seen.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("map version {found} is older than {seen}, which this proxy has seen: it is refused")]
pub struct OldMap {
    /// The version refused.
    pub found: i64,
    /// The newest so far.
    pub seen: i64,
}

// === impl Shard ===

impl Shard {
    /// A shard that owns nothing yet and has no Lease.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            map: 0,
            settled: 0,
            slots: BTreeMap::new(),
            deadline: None,
            under_way: gate::UnderWay::default(),
        }
    }

    /// The shard's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The same proxy, once it has claimed the identity of that shard: it owns nothing yet. Writes that are under way stay
    /// counted, and older maps stay refused.
    pub fn become_shard(&mut self, name: impl Into<String>) {
        self.name = name.into();
        self.slots.clear();
        self.deadline = None;
    }

    /// Takes a map over.
    pub fn follow(&mut self, map: &SlotMap) -> Result<Asked, OldMap> {
        if map.version() < self.map {
            return Err(OldMap { found: map.version(), seen: self.map });
        }
        self.map = map.version();
        let mut asked = Asked::default();
        for slot in (0..=u8::MAX).map(Slot) {
            let before = self.slots.get(&slot).copied();
            let after = self.next(map, slot, before);
            note(&mut asked, slot, before, after);
            match after {
                Some(phase) => self.slots.insert(slot, phase),
                None => self.slots.remove(&slot),
            };
        }
        self.settle();
        Ok(asked)
    }

    /// The objects of these slots are at hand.
    pub fn prepared(&mut self, slots: &Slots) {
        self.advance(slots, |phase| match phase {
            Phase::Preparing(epoch) => Phase::Ready(epoch),
            other => other,
        });
    }

    /// The objects of these slots are shown: writes may begin.
    pub fn shown(&mut self, slots: &Slots) {
        self.advance(slots, |phase| match phase {
            Phase::Arriving(epoch) => Phase::Open(epoch),
            other => other,
        });
        self.settle();
    }

    /// The slots that have come to rest since the last call: no write is under way. Take them out of the view, then call
    /// [`Shard::released`].
    pub fn idle(&mut self, now: Moment) -> Slots {
        self.under_way.expire(now);
        let leaving = self.slots.iter().filter(|(_, phase)| matches!(phase, Phase::Leaving(_)));
        let idle: Slots = leaving.map(|(slot, _)| *slot).filter(|slot| !self.under_way.any(*slot)).collect();
        self.advance(&idle, |phase| match phase {
            Phase::Leaving(epoch) => Phase::Idle(epoch),
            other => other,
        });
        idle
    }

    /// The view has followed.
    pub fn released(&mut self, slots: &Slots) {
        self.advance(slots, |phase| match phase {
            Phase::Idle(epoch) => Phase::Released(epoch),
            other => other,
        });
    }

    /// What the coordinator is told.
    pub fn acks(&self) -> Acks {
        let at = |wanted: fn(Phase) -> Option<i64>| {
            self.slots.iter().filter_map(|(slot, phase)| Some((*slot, wanted(*phase)?))).collect()
        };
        Acks {
            map: self.settled,
            ready: at(|phase| if let Phase::Ready(epoch) = phase { Some(epoch) } else { None }),
            released: at(|phase| if let Phase::Released(epoch) = phase { Some(epoch) } else { None }),
        }
    }

    /// How far a slot is; none if it is foreign.
    pub fn phase(&self, slot: Slot) -> Option<Phase> {
        self.slots.get(&slot).copied()
    }

    /// The slots of which that is true.
    pub fn slots(&self, wanted: impl Fn(Phase) -> bool) -> Slots {
        self.slots.iter().filter(|(_, phase)| wanted(**phase)).map(|(slot, _)| *slot).collect()
    }

    /// Whether the end of a write may be what somebody waits for: a slot is to go, or the whole shard.
    pub fn awaits_rest(&self) -> bool {
        self.deadline.is_none() || self.is_leaving()
    }

    /// Whether a slot is to go and is not released yet.
    pub fn is_letting_go(&self) -> bool {
        self.slots.values().any(|phase| matches!(phase, Phase::Leaving(_) | Phase::Idle(_)))
    }

    /// Whether a slot is to go and has not come to rest.
    pub fn is_leaving(&self) -> bool {
        self.slots.values().any(|phase| matches!(phase, Phase::Leaving(_)))
    }

    fn settle(&mut self) {
        if !self.slots.values().any(|phase| matches!(phase, Phase::Arriving(_))) {
            self.settled = self.map;
        }
    }

    fn advance(&mut self, slots: &Slots, step: impl Fn(Phase) -> Phase) {
        for (slot, phase) in &mut self.slots {
            if slots.contains(*slot) {
                *phase = step(*phase);
            }
        }
    }

    /// What a slot becomes. An epoch that was let go is never taken up again.
    fn next(&self, map: &SlotMap, slot: Slot, before: Option<Phase>) -> Option<Phase> {
        let entry = map.entry(slot);
        let (epoch, me) = (entry.epoch, Some(self.name.as_str()));
        let same = before.filter(|phase| phase.epoch() == epoch);
        match entry.state {
            SlotState::Owned if entry.owner.as_deref() == me => match same {
                Some(open @ Phase::Open(_)) => Some(open),
                Some(gone @ (Phase::Leaving(_) | Phase::Idle(_) | Phase::Released(_))) => Some(gone),
                _ => Some(Phase::Arriving(epoch)),
            },
            SlotState::Draining if entry.owner.as_deref() == me => match same {
                Some(gone @ (Phase::Leaving(_) | Phase::Idle(_) | Phase::Released(_))) => Some(gone),
                _ => Some(Phase::Leaving(epoch)),
            },
            // What was fetched is kept current, whatever the epoch.
            _ if entry.to.as_deref() == me => match before {
                Some(Phase::Ready(_)) => Some(Phase::Ready(epoch)),
                _ => Some(Phase::Preparing(epoch)),
            },
            _ => None,
        }
    }
}

// === impl Phase ===

impl Phase {
    /// The epoch that it is about.
    pub fn epoch(self) -> i64 {
        match self {
            Self::Preparing(epoch)
            | Self::Ready(epoch)
            | Self::Arriving(epoch)
            | Self::Open(epoch)
            | Self::Leaving(epoch)
            | Self::Idle(epoch)
            | Self::Released(epoch) => epoch,
        }
    }

    fn is_prepared(self) -> bool {
        matches!(self, Self::Preparing(_) | Self::Ready(_))
    }

    /// Whether the controller is shown the slot as its own.
    fn is_in_view(self) -> bool {
        matches!(self, Self::Open(_) | Self::Leaving(_))
    }
}

/// What a slot's step asks for.
fn note(asked: &mut Asked, slot: Slot, before: Option<Phase>, after: Option<Phase>) {
    if before == after {
        return;
    }
    let was_prepared = before.is_some_and(Phase::is_prepared);
    match after {
        Some(Phase::Preparing(_)) if !was_prepared => asked.prepare.insert(slot),
        Some(Phase::Arriving(_)) => asked.show.insert(slot),
        None if was_prepared => asked.forget.insert(slot),
        _ => {}
    }
    let goes = !after
        .is_some_and(|phase| phase.is_in_view() || matches!(phase, Phase::Idle(_) | Phase::Arriving(_)));
    if before.is_some_and(Phase::is_in_view) && goes {
        asked.lost.insert(slot);
    }
}

#[cfg(test)]
mod tests;
