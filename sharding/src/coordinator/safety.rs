//! What a coordinator must know before a slot may change hands. All rules that safety rests on are here.
//!
//! Several coordinators may run, each with caches of its own age, so a rule may only use what holds whatever the others do:
//! - The map changes by compare-and-swap on what was read, so a decision about a slot is about the map as it is.
//! - An epoch has one owner, ever, and a release at an epoch is final. So an acknowledged release never ages.
//! - A Lease without a holder does age: its shard could have been claimed and granted slots since. It counts only for slots whose
//!   epoch this coordinator had seen before it asked for the Lease.
//! - A proxy claims a Lease that was not left gracefully only once a fresh map shows nothing of the shard. So while slots are
//!   the shard's, such a Lease stays without a holder, and nobody can take up the slots at their old epoch.
//! - Time proves something only if this coordinator has measured it by its own clock.

use shoal_api::{FenceMode, SlotRange, SlotState};

use crate::{
    identity::{Left, Observed},
    map::SlotMap,
    membership::{Membership, State},
    moment::Moment,
    slot::Slot,
    times,
};

/// What this coordinator knows about the slots' owners.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Safety {
    /// One for each slot, once a map was seen.
    tracks: Vec<Track>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Track {
    epoch: i64,
    /// When this epoch was first seen.
    since: Moment,
    /// When it was first seen without an owner.
    orphan: Option<Moment>,
    /// When it was first seen announced.
    announced: Option<Moment>,
    /// Whether no write of this epoch can come any more.
    quiet: bool,
    /// When a move to this epoch was seen, or one from it failed.
    moved: Option<Moment>,
}

/// What is known of the owner of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// It may write.
    Holds,
    /// It let go: no write at this epoch can come any more.
    LetGo,
    /// Its Lease was taken away: it begins no write, but its last ones may be under way.
    Deposed,
    /// It may have let go, but that has to be read once more.
    LookAgain,
}

// === impl Safety ===

impl Safety {
    /// Takes over a map that was seen.
    pub(super) fn learn(&mut self, now: Moment, map: &SlotMap) {
        let entries = (0..=u8::MAX).map(|slot| map.entry(Slot(slot)));
        if self.tracks.is_empty() {
            self.tracks = entries.map(|entry| Track::new(now, entry)).collect();
            return;
        }
        for (track, entry) in self.tracks.iter_mut().zip(entries) {
            track.learn(now, entry);
        }
    }

    /// What is known of the owner of a slot that has one.
    pub(super) fn owner(
        &mut self,
        slot: Slot,
        entry: &SlotRange,
        shards: &Membership,
        looked: Moment,
    ) -> Owner {
        let (Some(owner), Some(track)) = (entry.owner.as_deref(), self.tracks.get_mut(usize::from(slot.0)))
        else {
            return Owner::Holds;
        };
        let released = |lease: &Observed| lease.acks.released.contains(&(slot, entry.epoch));
        // Final for that epoch, however old the Lease is.
        let released = entry.state == SlotState::Draining && shards.lease(owner).is_some_and(released);
        let known = match shards.state(owner) {
            _ if released => Owner::LetGo,
            State::Left(Left::ControllerExit) => Owner::LetGo,
            State::Left(Left::Deposed) => Owner::Deposed,
            // A Lease that was left gracefully may be claimed at any moment, and the slots with it.
            _ => Owner::Holds,
        };
        if known != Owner::Holds && !released && looked < track.since {
            return Owner::LookAgain;
        }
        track.quiet |= known == Owner::LetGo;
        known
    }

    /// Whether a slot without an owner may be granted.
    pub(super) fn may_grant(&self, slot: Slot, now: Moment, fence: FenceMode) -> bool {
        self.quiet_at(slot, fence).is_some_and(|at| at <= now)
    }

    /// When no write of the slot's last owner can come any more; none while it has an owner that may write.
    pub(super) fn quiet_at(&self, slot: Slot, fence: FenceMode) -> Option<Moment> {
        let track = self.tracks.get(usize::from(slot.0))?;
        // Grants start at epoch 2: nobody has ever owned it.
        if track.quiet || (track.epoch == 1 && track.orphan.is_some()) {
            return Some(track.since);
        }
        // The Lease was deposed before the slot became an orphan, and in mode Credential its Secret was deleted before. What
        // was sent until then is done or refused after that time.
        Some(track.orphan? + wait(fence))
    }

    /// Whether the slot came, or failed to go, so short a time ago that it stays unless it must go.
    pub(super) fn is_held(&self, slot: Slot, now: Moment) -> bool {
        let moved = self.tracks.get(usize::from(slot.0)).and_then(|track| track.moved);
        moved.is_some_and(|moved| now.since(moved) < times::HOLD)
    }

    /// Whether the move of the slot was announced so long ago that it is given up.
    pub(super) fn is_overdue(&self, slot: Slot, now: Moment) -> bool {
        let announced = self.tracks.get(usize::from(slot.0)).and_then(|track| track.announced);
        announced.is_some_and(|announced| now.since(announced) >= times::PATIENCE)
    }
}

/// How long the writes of a deposed shard may still be under way.
fn wait(fence: FenceMode) -> std::time::Duration {
    match fence {
        FenceMode::Preconditions => times::WRITE,
        FenceMode::Credential => times::WRITE.max(times::TOKEN_CACHE),
    }
}

// === impl Track ===

impl Track {
    fn new(now: Moment, entry: &SlotRange) -> Self {
        let orphan = (entry.state == SlotState::Orphan).then_some(now);
        let announced = is_announced(entry).then_some(now);
        Self { epoch: entry.epoch, since: now, orphan, announced, quiet: false, moved: None }
    }

    fn learn(&mut self, now: Moment, entry: &SlotRange) {
        if entry.epoch != self.epoch {
            // The first grant of a slot is no move.
            let moved = (self.epoch > 1).then_some(now);
            *self = Self { moved, ..Self::new(now, entry) };
            return;
        }
        match (self.announced, is_announced(entry)) {
            (None, true) => self.announced = Some(now),
            (Some(at), false) => {
                let withdrawn = entry.state == SlotState::Owned && now.since(at) >= times::PATIENCE;
                self.moved = if withdrawn { Some(now) } else { self.moved };
                self.announced = None;
            }
            _ => {}
        }
        if entry.state == SlotState::Orphan {
            self.orphan.get_or_insert(now);
        }
    }
}

fn is_announced(entry: &SlotRange) -> bool {
    entry.state == SlotState::Owned && entry.to.is_some()
}
