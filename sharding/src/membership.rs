//! Which shards live, by what an observer of their identity Leases has seen.
//!
//! ```text
//!             claimed             not renewed for a full period
//!  Vacant ──────────────▶ Alive ────────────────────────────────▶ Silent ── deposed ──▶ Left(Deposed)
//!                          │ ▲ claimed again
//!                          ▼ │
//!                         Left(Graceful | ControllerExit)             Absent: there is no Lease
//! ```
//!
//! Only moments of the observer's own clock are compared. A change is dated late, when the answer with it had come; a look is
//! dated early, when it was asked for. So a shard is never held silent for longer than it was.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::{
    identity::{Left, Observed},
    moment::Moment,
    times,
};

/// What an observer makes of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// It has a holder that renews.
    Alive,
    /// It has a holder that has not renewed for a full observed period.
    Silent,
    /// It has no holder any more.
    Left(Left),
    /// It has no holder, and nothing says that it ever had.
    Vacant,
    /// There is no Lease.
    Absent,
}

/// The shards of a ring as one observer sees them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Membership {
    /// When the last look was asked for.
    looked: Option<Moment>,
    members: BTreeMap<String, Member>,
    /// When shards were seen deposed, or asked to be.
    deposed: BTreeMap<String, Moment>,
    /// How many shards the ring is to have.
    size: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Member {
    lease: Option<Observed>,
    /// The newest term that was seen.
    term: i64,
    /// Since when the Lease, or its absence, is unchanged.
    unchanged: Moment,
    /// Since when it has the holder that it has.
    held: Option<Moment>,
    /// Whether it lost a holder other than gracefully and has not held for long since.
    fell: bool,
}

// === impl Membership ===

impl Membership {
    /// Takes over what a look has shown: each Lease is at least as new as `looked`, and `now` is not before the answer came.
    /// The ring is to have `size` shards; `expected` are those and whoever else owns slots.
    pub fn observe(
        &mut self,
        now: Moment,
        looked: Moment,
        size: usize,
        expected: &BTreeSet<&str>,
        leases: &[Observed],
    ) {
        // Nobody is blamed for time in which there was no answer from the API.
        let blind = self.looked.is_none_or(|last| looked.since(last) > times::sight());
        self.looked = self.looked.max(Some(looked));
        self.size = size;
        let leases: BTreeMap<&str, &Observed> =
            leases.iter().map(|lease| (lease.shard.as_str(), lease)).collect();
        let names: BTreeSet<&str> = expected.iter().chain(leases.keys()).copied().collect();
        self.members.retain(|name, _| names.contains(name.as_str()));
        for name in names {
            let lease = leases.get(name).copied();
            let member = self.members.entry(name.to_owned()).or_insert_with(|| Member::new(now));
            member.see(now, lease, blind);
            if member.state(looked) == State::Left(Left::Deposed) && member.unchanged == now {
                self.deposed.insert(name.to_owned(), now);
            }
        }
        self.deposed.retain(|_, at| now.since(*at) < times::observed_lease());
    }

    /// Whether the last answer is too old to decide anything by.
    pub fn is_blind(&self, now: Moment) -> bool {
        self.looked.is_none_or(|looked| now.since(looked) > times::sight())
    }

    /// What is known of a shard. One that was never heard of is absent.
    pub fn state(&self, shard: &str) -> State {
        let looked = self.looked.unwrap_or_default();
        self.members.get(shard).map_or(State::Absent, |member| member.state(looked))
    }

    /// The shard's Lease as it was last seen.
    pub fn lease(&self, shard: &str) -> Option<&Observed> {
        self.members.get(shard)?.lease.as_ref()
    }

    /// All shards that have a Lease or are to have one.
    pub fn shards(&self) -> impl Iterator<Item = &str> {
        self.members.keys().map(String::as_str)
    }

    /// The newest term of the shard that was seen, also of a Lease that is gone; 0 if none was.
    pub fn term(&self, shard: &str) -> i64 {
        self.members.get(shard).map_or(0, |member| member.term)
    }

    /// How long the shard's Lease, or its absence, was seen unchanged.
    pub fn unchanged(&self, shard: &str) -> Duration {
        let looked = self.looked.unwrap_or_default();
        self.members.get(shard).map_or(Duration::ZERO, |member| looked.since(member.unchanged))
    }

    /// When the shard's Lease will have been unchanged for that long.
    pub fn unchanged_for(&self, shard: &str, long: Duration) -> Option<Moment> {
        Some(self.members.get(shard)?.unchanged + long)
    }

    /// Whether slots may be moved to a living shard. One that fell gets none until it has held for `times::HOLD`, or its
    /// slots would come and go with it.
    pub fn is_steady(&self, shard: &str, now: Moment) -> bool {
        let held =
            |member: &Member| member.held.is_some_and(|held| !member.fell || now.since(held) >= times::HOLD);
        self.members.get(shard).is_some_and(held)
    }

    /// The silent shards that may be deposed now, each at the version last seen. Never more than a third of the ring, but at
    /// least one, within an observed period: where more fall silent at once, it is rather the observer or the API.
    pub fn to_depose(&mut self, now: Moment) -> Vec<Observed> {
        let mut found = Vec::new();
        for (name, member) in &self.members {
            let looked = self.looked.unwrap_or_default();
            let Some(lease) = member.lease.as_ref().filter(|_| member.state(looked) == State::Silent) else {
                continue;
            };
            if self.deposed.contains_key(name) || self.deposed.len() < (self.size / 3).max(1) {
                self.deposed.entry(name.clone()).or_insert(now);
                found.push(lease.clone());
            }
        }
        found
    }
}

// === impl Member ===

impl Member {
    fn new(now: Moment) -> Self {
        Self { lease: None, term: 0, unchanged: now, held: None, fell: false }
    }

    fn see(&mut self, now: Moment, lease: Option<&Observed>, blind: bool) {
        let holder = |lease: Option<&Observed>| lease.and_then(|lease| lease.holder.clone());
        if holder(lease).is_none() {
            self.held = None;
        } else if self.held.is_none() || holder(self.lease.as_ref()) != holder(lease) {
            self.held = Some(now);
        }
        let fell = |lease: &Observed| matches!(lease.left, Some(Left::ControllerExit | Left::Deposed));
        let held_well = self.held.is_some_and(|held| now.since(held) >= times::HOLD);
        self.fell = lease.is_some_and(fell) || (self.fell && !held_well);
        let version = |lease: Option<&Observed>| lease.map(|lease| lease.version.clone());
        if blind || version(self.lease.as_ref()) != version(lease) {
            self.unchanged = now;
        }
        self.term = lease.map_or(self.term, |lease| lease.term.max(self.term));
        self.lease = lease.cloned();
    }

    fn state(&self, looked: Moment) -> State {
        match &self.lease {
            None => State::Absent,
            Some(Observed { holder: Some(_), .. })
                if looked.since(self.unchanged) >= times::observed_lease() =>
            {
                State::Silent
            }
            Some(Observed { holder: Some(_), .. }) => State::Alive,
            Some(Observed { left: Some(left), .. }) => State::Left(*left),
            Some(_) => State::Vacant,
        }
    }
}

#[cfg(test)]
mod tests;
