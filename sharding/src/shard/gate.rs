//! The write gate: who is let in, and who is still inside.

use std::collections::BTreeMap;

use super::{Phase, Shard};
use crate::{moment::Moment, slot::Slot, times};

/// The right to send one write. Give it back by [`Shard::leave`], or the slot never comes to rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket {
    /// The slot of the write's object.
    pub slot: Slot,
    /// The epoch at which this shard owns it.
    pub epoch: i64,
}

/// Why a write is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shut {
    /// The Lease lapsed, is about to, or there is none: somebody else may own everything by now.
    NoLease,
    /// Another shard owns the slot, or nobody does.
    Foreign,
    /// The slot is on its way to this shard, and not shown whole yet.
    Arriving,
    /// The slot is on its way to another shard.
    Leaving,
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The API server answered, or never got it.
    Known,
    /// It may have been done, or be done yet.
    Unknown,
}

/// The writes that may still be done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct UnderWay {
    inside: BTreeMap<Slot, usize>,
    /// When the last unknown one can no longer be done.
    unknown: BTreeMap<Slot, Vec<Moment>>,
}

// === impl Shard ===

impl Shard {
    /// Lets a write in and counts it; or says why not.
    pub fn enter(&mut self, slot: Slot, now: Moment) -> Result<Ticket, Shut> {
        let epoch = self.may_write(slot, now)?;
        *self.under_way.inside.entry(slot).or_default() += 1;
        Ok(Ticket { slot, epoch })
    }

    /// Whether a write that was let in may be sent now, or once more.
    pub fn still(&self, ticket: Ticket, now: Moment) -> Result<(), Shut> {
        let epoch = self.may_write(ticket.slot, now)?;
        if epoch == ticket.epoch { Ok(()) } else { Err(Shut::Foreign) }
    }

    /// The write is no longer sent, or was answered.
    pub fn leave(&mut self, ticket: Ticket, outcome: Outcome, now: Moment) {
        self.under_way.leave(ticket.slot, outcome, now);
    }

    /// A renewal that was sent at that moment succeeded. It never shortens what an earlier one gave.
    pub fn renewed(&mut self, sent: Moment) {
        self.deadline = self.deadline.max(Some(sent + times::held_lease()));
    }

    /// The Lease is gone: nothing is let in until it is claimed again.
    pub fn lapse(&mut self) {
        self.deadline = None;
    }

    /// How long the Lease holds still.
    pub fn margin(&self, now: Moment) -> std::time::Duration {
        self.deadline.map_or(std::time::Duration::ZERO, |deadline| deadline.since(now))
    }

    /// Whether any write may still be done.
    pub fn is_busy(&mut self, now: Moment) -> bool {
        self.under_way.expire(now);
        !self.under_way.inside.is_empty() || !self.under_way.unknown.is_empty()
    }

    /// Writes whose outcome is not known and may still come.
    pub fn unknowns(&self) -> usize {
        self.under_way.unknown.values().map(Vec::len).sum()
    }

    /// Whether a write to that slot would be let in now, and the epoch it would be sent under.
    pub fn may_write(&self, slot: Slot, now: Moment) -> Result<i64, Shut> {
        if self.margin(now) <= times::MARGIN {
            return Err(Shut::NoLease);
        }
        match self.phase(slot) {
            Some(Phase::Open(epoch)) => Ok(epoch),
            Some(Phase::Arriving(_)) => Err(Shut::Arriving),
            Some(Phase::Leaving(_) | Phase::Idle(_) | Phase::Released(_)) => Err(Shut::Leaving),
            Some(Phase::Preparing(_) | Phase::Ready(_)) | None => Err(Shut::Foreign),
        }
    }
}

// === impl UnderWay ===

impl UnderWay {
    pub(super) fn any(&self, slot: Slot) -> bool {
        self.inside.contains_key(&slot) || self.unknown.contains_key(&slot)
    }

    /// Forgets what can no longer be done.
    pub(super) fn expire(&mut self, now: Moment) {
        self.unknown.retain(|_, ends| {
            ends.retain(|end| *end > now);
            !ends.is_empty()
        });
    }

    fn leave(&mut self, slot: Slot, outcome: Outcome, now: Moment) {
        if let Some(inside) = self.inside.get_mut(&slot) {
            *inside -= 1;
            if *inside == 0 {
                self.inside.remove(&slot);
            }
        }
        if outcome == Outcome::Unknown {
            self.unknown.entry(slot).or_default().push(now + times::WRITE + times::STORE);
        }
    }
}
