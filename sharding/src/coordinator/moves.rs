//! The next map: who lets go, who is granted what, what begins to move.

use std::collections::BTreeSet;

use shoal_api::{FenceMode, SlotRange, SlotState};

use super::{
    Command, Coordinator, Decision, Seen,
    draft::{self, Draft},
    safety::Owner,
};
use crate::{
    assignment::{Aim, Candidate, Gain, Load, plan},
    membership::{Membership, State},
    moment::Moment,
    slot::Slot,
    times,
};

/// In mode Credential: the Secrets of the terms that lose slots. They go before the map says so, so that whoever sees an
/// orphan knows that its Secret is gone.
pub(super) fn secrets(members: &Membership, seen: &Seen, before: &Draft, next: &Draft) -> Vec<Command> {
    if seen.ring.fence != FenceMode::Credential {
        return Vec::new();
    }
    let lost = before.0.iter().zip(&next.0).filter(|(before, next)| before.owner != next.owner);
    let losers: BTreeSet<&str> = lost.filter_map(|(before, _)| before.owner.as_deref()).collect();
    let ended = losers.into_iter().filter(|shard| matches!(members.state(shard), State::Left(_)));
    ended.map(|shard| Command::DeleteSecret { shard: shard.to_owned(), term: members.term(shard) }).collect()
}

// === impl Coordinator ===

impl Coordinator {
    /// The map as it should be next, and the slots that no move can help.
    pub(super) fn draft(
        &mut self,
        now: Moment,
        seen: &Seen,
        before: &Draft,
        decision: &mut Decision,
    ) -> (Draft, Vec<Slot>) {
        let mut next = Draft(before.0.clone());
        for entry in &mut next.0 {
            entry.pin = seen.pins.get(&Slot(entry.first)).cloned();
            self.let_go(now, seen, entry, decision);
            if seen.ring.deleting {
                drain_to_nobody(entry);
            }
        }
        let hot = if seen.ring.deleting || !seen.locks_held {
            Vec::new()
        } else {
            self.place(now, seen, before, &mut next, decision);
            self.plan_moves(now, seen, &mut next)
        };
        (next, hot)
    }

    /// A slot whose owner let go of it, or was made to, has none.
    fn let_go(&mut self, now: Moment, seen: &Seen, entry: &mut SlotRange, decision: &mut Decision) {
        match self.safety.owner(Slot(entry.first), entry, &self.members, seen.looked) {
            Owner::LetGo | Owner::Deposed => draft::orphan(entry),
            Owner::LookAgain => decision.wake = now,
            Owner::Holds => {}
        }
    }

    /// Finds a place for each slot without an owner, and grants those that may be.
    fn place(&self, now: Moment, seen: &Seen, before: &Draft, next: &mut Draft, decision: &mut Decision) {
        let is_settled = self.is_settled(now, seen);
        let living = self.living(now, seen);
        let shards: Vec<_> = living.iter().copied().chain(self.others(seen, next)).collect();
        let heading = |entry: &'_ SlotRange| entry.to.clone().or_else(|| entry.owner.clone());
        let headings: Vec<Option<String>> = next.0.iter().map(heading).collect();
        let rows = next.0.iter().zip(&headings);
        let loads: Vec<_> =
            rows.map(|(entry, heading)| load(seen, entry, heading.as_deref(), true)).collect();
        let plan = plan(&loads, &shards, Aim::Place);
        let mut places = headings.clone();
        for (slot, to) in plan.moves {
            places[usize::from(slot.0)] = Some(to);
        }
        for ((entry, place), before) in next.0.iter_mut().zip(places).zip(&before.0) {
            if entry.state != SlotState::Orphan || (before.state == SlotState::Orphan && !is_settled) {
                continue;
            }
            let fits = |to: &String| living.iter().any(|shard| shard.name == to && may_own(shard, entry));
            entry.to = place.filter(fits);
            self.grant(now, seen, entry, decision);
        }
    }

    fn grant(&self, now: Moment, seen: &Seen, entry: &mut SlotRange, decision: &mut Decision) {
        let slot = Slot(entry.first);
        let Some(to) = entry.to.clone() else { return };
        if self.safety.may_grant(slot, now, seen.ring.fence) {
            draft::grant(entry, to);
        } else if let Some(at) = self.safety.quiet_at(slot, seen.ring.fence) {
            decision.wake = decision.wake.min(at);
        }
    }

    /// Goes on with the planned moves, and begins new ones once all have ended.
    fn plan_moves(&mut self, now: Moment, seen: &Seen, next: &mut Draft) -> Vec<Slot> {
        let living = self.living(now, seen);
        let mut withdrawn = false;
        for entry in &mut next.0 {
            withdrawn |= self.advance(now, entry, &living);
        }
        let is_moving = |entry: &SlotRange| entry.to.is_some() || entry.state == SlotState::Draining;
        if withdrawn
            || !self.has_watched(now)
            || next.0.iter().any(is_moving)
            || self.is_in_between(seen, next)
        {
            return self.reported.as_ref().map(|report| report.hot.clone()).unwrap_or_default();
        }
        self.announce(now, seen, next, &living)
    }

    /// Drains an announced slot once its next owner is ready, or withdraws it; tells whether it did the latter.
    fn advance(&self, now: Moment, entry: &mut SlotRange, living: &[Candidate<'_>]) -> bool {
        let (SlotState::Owned, Some(to), Some(owner)) = (entry.state, &entry.to, &entry.owner) else {
            return false;
        };
        let slot = Slot(entry.first);
        let can_come = living.iter().any(|shard| shard.name == to && may_own(shard, entry));
        if !can_come || self.safety.is_overdue(slot, now) {
            entry.to = None;
            return true;
        }
        let is_ready =
            self.members.lease(to).is_some_and(|lease| lease.acks.ready.contains(&(slot, entry.epoch)));
        if is_ready && self.members.state(owner) == State::Alive {
            entry.state = SlotState::Draining;
        }
        false
    }

    /// Announces the next batch of moves: first what was asked for by hand, then what must move, then balance.
    fn announce(
        &mut self,
        now: Moment,
        seen: &Seen,
        next: &mut Draft,
        living: &[Candidate<'_>],
    ) -> Vec<Slot> {
        let wish = |entry: &SlotRange| {
            let to = seen.wishes.moves.get(&Slot(entry.first)).filter(|_| entry.owner.is_some())?;
            living.iter().find(|shard| shard.name == to && may_own(shard, entry)).map(|shard| shard.name)
        };
        let mut moves: Vec<(Slot, String)> = Vec::new();
        let mut loads = Vec::new();
        for entry in &next.0 {
            let slot = Slot(entry.first);
            let wished = wish(entry);
            if let Some(to) = wished.filter(|to| entry.owner.as_deref() != Some(*to)) {
                moves.push((slot, to.to_owned()));
            }
            let fixed = wished.is_some() || self.safety.is_held(slot, now);
            loads.push(load(seen, entry, wished.or(entry.owner.as_deref()), fixed));
        }
        let plan = plan(&loads, living, if self.unfinished { Aim::Finish } else { Aim::Balance });
        moves.extend(plan.moves);
        let most = usize::from(seen.ring.max_moving.max(1));
        self.unfinished = moves.len() > most;
        for (slot, to) in moves.into_iter().take(most) {
            let entry = &mut next.0[usize::from(slot.0)];
            // A slot without an owner is no planned move.
            if entry.state == SlotState::Owned {
                entry.to = Some(to);
            }
        }
        plan.hot
    }

    /// Whether this coordinator knows the ring well enough to give slots to the shards that it sees: before, the others may
    /// merely not have come yet.
    fn is_settled(&self, now: Moment, seen: &Seen) -> bool {
        let all = seen.ring.shards.iter().all(|shard| self.members.state(&shard.name) == State::Alive);
        all || self.has_watched(now)
    }

    /// Whether it has watched for a full period: before, a dead shard is not told from a living one.
    fn has_watched(&self, now: Moment) -> bool {
        self.started.is_some_and(|started| now.since(started) >= times::observed_lease())
    }

    /// Whether it is open if some shard stays: nothing is balanced then, or each restart would move slots.
    fn is_in_between(&self, seen: &Seen, next: &Draft) -> bool {
        let owners = next.0.iter().filter_map(|entry| entry.owner.as_deref());
        let owners: BTreeSet<&str> = owners.collect();
        let waits = seen.ring.shards.iter().any(|shard| self.members.state(&shard.name) == State::Silent);
        waits || owners.into_iter().any(|owner| self.members.state(owner) != State::Alive)
    }

    /// The shards that may get slots.
    fn living<'a>(&self, now: Moment, seen: &'a Seen) -> Vec<Candidate<'a>> {
        let may = |shard: &&super::RingShard| {
            self.members.state(&shard.name) == State::Alive && !seen.wishes.drained.contains(&shard.name)
        };
        let candidate = |shard: &'a super::RingShard| Candidate {
            name: &shard.name,
            weight: shard.weight,
            version: shard.version.as_deref(),
            gain: if self.members.is_steady(&shard.name, now) { Gain::Yes } else { Gain::AtNeed },
        };
        seen.ring.shards.iter().filter(may).map(candidate).collect()
    }

    /// The shards that have slots but get none, so that they count where the others' loads are compared.
    fn others<'a>(&self, seen: &'a Seen, next: &Draft) -> Vec<Candidate<'a>> {
        let is_other = |shard: &&super::RingShard| {
            self.members.state(&shard.name) != State::Alive
                && next.0.iter().any(|entry| entry.owner.as_ref() == Some(&shard.name))
        };
        let candidate = |shard: &'a super::RingShard| Candidate {
            name: &shard.name,
            weight: shard.weight,
            version: shard.version.as_deref(),
            gain: Gain::No,
        };
        seen.ring.shards.iter().filter(is_other).map(candidate).collect()
    }
}

fn drain_to_nobody(entry: &mut SlotRange) {
    entry.to = None;
    if entry.state == SlotState::Owned {
        entry.state = SlotState::Draining;
    }
}

fn may_own(shard: &Candidate<'_>, entry: &SlotRange) -> bool {
    shard.weight > 0 && entry.pin.as_deref().is_none_or(|pin| shard.version == Some(pin))
}

fn load<'a>(seen: &Seen, entry: &'a SlotRange, owner: Option<&'a str>, fixed: bool) -> Load<'a> {
    let weights = seen.weights.as_deref().unwrap_or_default();
    let weight = weights.get(usize::from(entry.first)).copied().unwrap_or(1);
    Load { owner, weight, pin: entry.pin.as_deref(), fixed }
}
