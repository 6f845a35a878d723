//! What a coordinator does for one ring, from what it has read: a pure step.
//!
//! ```text
//!              announce            drain: `to` is ready          grant: A let go
//!  Owned(A,e) ──────────▶ Owned(A,e)+to=B ─────▶ Draining(A,e)+to=B ─────▶ Owned(B,e+1)
//!      │ A's Lease is taken or let go                                           ▲
//!      └────────────────▶ Orphan(e)+to=B ── no write of A can come any more ────┘
//! ```
//!
//! A step is given all that was read and returns what to do, in order. It returns the same again until what it reads shows the
//! effect, so a lost answer or a refused compare-and-swap needs no care. Nothing is decided while the API gives no answers.
//! Whatever two coordinators do at once is safe, see `safety`.

mod draft;
mod leases;
mod moves;
mod report;
mod safety;

pub use self::report::{Report, ShardReport, Trouble};

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use shoal_api::{FenceMode, ShardMapSpec};

use self::{draft::Draft, safety::Safety};
use crate::{
    identity::{Left, Observed, Seat},
    map::SlotMap,
    membership::Membership,
    moment::Moment,
    slot::Slot,
    times,
    wishes::Wishes,
};

/// The coordinator of one ring. It may be started anew at any moment: all that it needs is read again or measured again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Coordinator {
    /// When it first looked.
    started: Option<Moment>,
    members: Membership,
    safety: Safety,
    /// The newest map version that was seen.
    version: i64,
    /// Whether the last batch left a balance half done.
    unfinished: bool,
    /// The last report, so that only news is reported.
    reported: Option<Report>,
}

/// All that was read of a ring.
#[derive(Clone, Debug)]
pub struct Seen {
    /// When the last look at the Leases was asked for: a consistent read of all of them, not one of a cache. Each Lease here is
    /// at least as new as that.
    pub looked: Moment,
    /// What the ring is to be.
    pub ring: Ring,
    /// The map and its resourceVersion; none if there is no map.
    pub map: Option<(ShardMapSpec, String)>,
    /// The identity Leases.
    pub leases: Vec<Observed>,
    /// The standby Leases.
    pub standbys: Vec<Observed>,
    /// Whether all original locks of the controller are held for the ring.
    pub locks_held: bool,
    /// What was asked for by hand.
    pub wishes: Wishes,
    /// The controller versions that slots are bound to: all pins of the ring.
    pub pins: BTreeMap<Slot, String>,
    /// How much work each slot is, 256 of them in any unit; none where it is not known.
    pub weights: Option<Vec<u64>>,
}

/// What a ring is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ring {
    /// Its shards.
    pub shards: Vec<RingShard>,
    /// How many slots may be moving at once by plan.
    pub max_moving: u16,
    /// How long slots wait for the next holder of a shard that left gracefully.
    pub restart_grace: Duration,
    /// What makes late writes fail.
    pub fence: FenceMode,
    /// Whether the ring is being deleted.
    pub deleting: bool,
}

/// A shard of a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingShard {
    /// Its name.
    pub name: String,
    /// Its share in relation to the others'.
    pub weight: u32,
    /// The version of its controller, where a rollout tells them apart.
    pub version: Option<String>,
}

/// One thing to do. A command that fails ends the batch: those after it may rest on it.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Write the map.
    PutMap {
        /// What to write.
        spec: ShardMapSpec,
        /// The resourceVersion that it replaces; none creates it.
        over: Option<String>,
    },
    /// Create a Lease without a holder.
    CreateLease {
        /// The shard.
        shard: String,
        /// Which of its Leases.
        seat: Seat,
        /// The annotation that says why it has no holder.
        left: Option<Left>,
        /// The leaseTransitions to begin with.
        term: i64,
    },
    /// Write an identity Lease without a holder, with that annotation, over exactly that version.
    Depose {
        /// The shard.
        shard: String,
        /// The resourceVersion that it replaces.
        version: String,
        /// Why it has no holder.
        left: Left,
    },
    /// Delete the Secret that the tokens of a shard's term are bound to. That there is none is success.
    DeleteSecret {
        /// The shard.
        shard: String,
        /// The term.
        term: i64,
    },
    /// Delete a Lease, if it has exactly that version.
    DeleteLease {
        /// The shard.
        shard: String,
        /// Which of its Leases.
        seat: Seat,
        /// The resourceVersion.
        version: String,
    },
    /// Release the original locks: no shard writes any more.
    ReleaseLocks,
    /// Let the ring go: remove its finalizer.
    Finish,
    /// Something about the ring is new.
    Report(Report),
}

/// What a step decides.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// What to do, in order.
    pub commands: Vec<Command>,
    /// When to look and step again, if nothing changes before.
    pub wake: Moment,
}

// === impl Coordinator ===

impl Coordinator {
    /// Decides what to do, given what was read. `now` must not be before the answers came.
    pub fn step(&mut self, now: Moment, seen: &Seen) -> Decision {
        let mut decision = Decision { commands: Vec::new(), wake: now.max(seen.looked + times::RENEW) };
        let map = seen.map.as_ref().map(|(spec, _)| SlotMap::try_from(spec));
        let map = match map {
            None => None,
            Some(Ok(map)) => Some(map),
            Some(Err(error)) => {
                self.report(&mut decision, Report::broken(error.to_string()));
                return decision;
            }
        };
        let owners: BTreeSet<&str> = map.iter().flat_map(|map| map.owners().into_keys()).collect();
        let expected = seen.ring.shards.iter().map(|shard| shard.name.as_str()).chain(owners.iter().copied());
        self.members.observe(now, seen.looked, seen.ring.shards.len(), &expected.collect(), &seen.leases);
        self.started.get_or_insert(now);
        let is_old = map.as_ref().is_some_and(|map| map.version() < self.version);
        if is_old || self.members.is_blind(now) {
            return decision;
        }
        decision.commands = leases::commands(&mut self.members, now, seen, &owners);
        match map {
            None => decision.commands.extend(self.first_map(seen)),
            Some(map) => self.next_map(now, seen, &map, &mut decision),
        }
        decision.wake =
            leases::wake(&self.members, now, seen).map_or(decision.wake, |wake| wake.min(decision.wake));
        decision
    }

    /// The first map of a ring; or one again, if it was deleted. Proxies refuse versions that are older than what they have
    /// seen, and epochs never exceed versions, so both begin above whatever is known.
    fn first_map(&self, seen: &Seen) -> Option<Command> {
        let acked = seen.leases.iter().map(|lease| lease.acks.map).max().unwrap_or(0);
        let version = self.version.max(acked) + 1;
        let create = || Command::PutMap { spec: Draft::orphans(version).into_spec(version), over: None };
        (!seen.ring.deleting).then(create)
    }

    fn next_map(&mut self, now: Moment, seen: &Seen, map: &SlotMap, decision: &mut Decision) {
        self.version = map.version();
        self.safety.learn(now, map);
        let before = Draft::of(map);
        let (next, hot) = self.draft(now, seen, &before, decision);
        let secrets = moves::secrets(&self.members, seen, &before, &next);
        decision.commands.extend(secrets);
        if next.0 != before.0 {
            let over = seen.map.as_ref().map(|(_, version)| version.clone());
            decision.commands.push(Command::PutMap { spec: next.into_spec(map.version() + 1), over });
        } else if seen.ring.deleting {
            let ending = self.ending(now, seen, map, decision);
            decision.commands.extend(ending);
        }
        self.report(decision, Report::of(&self.members, &self.safety, seen, now, &before, hot));
    }

    /// Locks go last, when nothing of the ring can write any more.
    fn ending(&self, now: Moment, seen: &Seen, map: &SlotMap, decision: &mut Decision) -> Option<Command> {
        let all = || (0..=u8::MAX).map(Slot);
        if !map.owners().is_empty() {
            return None;
        }
        let last = all().map(|slot| self.safety.quiet_at(slot, seen.ring.fence)).max().flatten()?;
        if last > now {
            decision.wake = decision.wake.min(last);
            return None;
        }
        Some(if seen.locks_held { Command::ReleaseLocks } else { Command::Finish })
    }

    fn report(&mut self, decision: &mut Decision, report: Report) {
        if self.reported.as_ref() != Some(&report) {
            self.reported = Some(report.clone());
            decision.commands.push(Command::Report(report));
        }
    }
}

// === impl Ring ===

impl Ring {
    fn has(&self, shard: &str) -> bool {
        self.shards.iter().any(|member| member.name == shard)
    }
}

#[cfg(test)]
mod tests;
