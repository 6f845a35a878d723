//! Which Lease of the ring this proxy goes for.
//!
//! An identity is claimed only when it has no holder: to take it from one that is silent is the coordinator's part. One
//! whose last holder did not leave it gracefully is claimed only when the map shows nothing of the shard: its slots are
//! being given away, and must not be taken up again at their old epochs. A standby Lease protects nothing, so one that
//! does not change any more is taken as well.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use shoal_api::names;
use shoal_sharding::{
    Moment,
    identity::{Left, Observed, Seat},
    times,
};

/// How much longer others wait for an identity than the standby that keeps its objects warm.
const DESIGNATED_FIRST: Duration = Duration::from_secs(1);

/// The ring's Leases by name, as they were seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Leases(BTreeMap<String, Seen>);

/// One Lease.
#[derive(Clone, Debug)]
struct Seen {
    lease: Observed,
    /// When it was seen to change.
    changed: Moment,
    /// Whether a claim of this version failed.
    lost: bool,
}

/// Who looks for a Lease.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seeker<'a> {
    /// The ring.
    pub(super) ring: &'a str,
    /// How many shards it has.
    pub(super) shards: u16,
    /// The name that it claims by.
    pub(super) holder: &'a str,
    /// The shard whose standby Lease it holds.
    pub(super) standby: Option<&'a str>,
}

/// What to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// Claim the identity of this shard.
    Identity(String),
    /// Claim the standby Lease of this shard.
    Standby(String),
    /// Nothing, until then or until a Lease changes.
    Wait(Option<Moment>),
}

// === impl Leases ===

impl Leases {
    /// A Lease was read.
    pub(super) fn saw(&mut self, seat: Seat, lease: Observed, now: Moment) {
        let name = seat.lease(&lease.shard);
        let same = self.0.get(&name).is_some_and(|seen| seen.lease.version == lease.version);
        if !same {
            self.0.insert(name, Seen { lease, changed: now, lost: false });
        }
    }

    /// What a Lease said when it was seen last.
    pub(super) fn get(&self, seat: Seat, shard: &str) -> Option<&Observed> {
        self.0.get(&seat.lease(shard)).map(|seen| &seen.lease)
    }

    /// A Lease is gone.
    pub(super) fn gone(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Only these are left.
    pub(super) fn retain(&mut self, is_there: impl Fn(&str) -> bool) {
        self.0.retain(|name, _| is_there(name));
    }

    /// A claim of a Lease failed: it is not tried again before it changes.
    pub(super) fn lost(&mut self, name: &str) {
        if let Some(seen) = self.0.get_mut(name) {
            seen.lost = true;
        }
    }

    /// What to go for; `owns` tells whether the map shows slots of a shard.
    pub(super) fn goal(&self, seeker: Seeker<'_>, owns: impl Fn(&str) -> bool, now: Moment) -> Goal {
        let mut wait = None;
        for shard in seeker.order() {
            let Some(lease) = self.claimable(&names::identity_lease(&shard)) else { continue };
            if is_given_away(&lease.lease) && owns(&shard) {
                continue;
            }
            let due = self.due(lease, &shard, seeker);
            if due <= now {
                return Goal::Identity(shard);
            }
            wait = Some(wait.map_or(due, |wait: Moment| wait.min(due)));
        }
        if seeker.standby.is_some() {
            return Goal::Wait(wait);
        }
        let standby = seeker.order().find(|shard| self.standby_is_free(shard, now));
        standby.map_or(Goal::Wait(wait.or_else(|| self.next_stale(seeker))), Goal::Standby)
    }

    fn claimable(&self, name: &str) -> Option<&Seen> {
        self.0.get(name).filter(|seen| seen.lease.holder.is_none() && !seen.lost)
    }

    /// When an identity that is free may be claimed.
    fn due(&self, lease: &Seen, shard: &str, seeker: Seeker<'_>) -> Moment {
        let designated =
            self.0.get(&names::standby_lease(shard)).and_then(|seen| seen.lease.holder.as_deref());
        match designated {
            Some(other) if other != seeker.holder => lease.changed + DESIGNATED_FIRST,
            _ => Moment::default(),
        }
    }

    fn standby_is_free(&self, shard: &str, now: Moment) -> bool {
        let lease = self.0.get(&names::standby_lease(shard)).filter(|seen| !seen.lost);
        lease.is_some_and(|seen| seen.lease.holder.is_none() || seen.changed + times::observed_lease() <= now)
    }

    fn next_stale(&self, seeker: Seeker<'_>) -> Option<Moment> {
        let standbys = seeker.order().filter_map(|shard| self.0.get(&names::standby_lease(&shard)));
        standbys.map(|seen| seen.changed + times::observed_lease()).min()
    }
}

/// Whether the slots of a shard without a holder go to others, if it has any.
pub(super) fn is_given_away(lease: &Observed) -> bool {
    lease.left != Some(Left::Graceful)
}

// === impl Seeker ===

impl Seeker<'_> {
    /// The ring's shards in the order in which this proxy tries them: its own number first, if its name ends in one as
    /// that of a StatefulSet's Pod does; the others from a place of its own, so that not all try the same one.
    fn order(self) -> impl Iterator<Item = String> {
        let own = self.holder.split_once('_').map_or(self.holder, |(pod, _)| pod);
        let own = own.rsplit_once('-').and_then(|(_, number)| number.parse().ok());
        let mut hasher = DefaultHasher::new();
        self.holder.hash(&mut hasher);
        let start = u16::try_from(hasher.finish() % u64::from(self.shards.max(1))).unwrap_or_default();
        let first = self.standby.and_then(|shard| names::shard_number(self.ring, shard)).or(own);
        let rest = (0..self.shards).map(move |number| (number + start) % self.shards);
        let numbers = first.filter(|number| *number < self.shards).into_iter().chain(rest);
        let ring = self.ring.to_owned();
        numbers.map(move |number| names::shard(&ring, number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Moment = Moment(100_000);

    fn seeker(standby: Option<&'static str>) -> Seeker<'static> {
        Seeker { ring: "kcm", shards: 2, holder: "pod-x_1", standby }
    }

    fn see(leases: &mut Leases, name: &str, holder: Option<&str>, version: &str, now: Moment) {
        let (seat, shard) = Seat::of_lease("kcm", name).unwrap();
        let lease = Observed {
            shard: shard.to_owned(),
            version: version.to_owned(),
            holder: holder.map(str::to_owned),
            term: 1,
            left: None,
            acks: shoal_sharding::Acks::default(),
        };
        leases.saw(seat, lease, now);
    }

    fn leases(rows: &[(&str, Option<&str>, u64)]) -> Leases {
        let mut leases = Leases::default();
        for (name, holder, changed) in rows {
            see(&mut leases, name, *holder, "7", Moment(*changed));
        }
        leases
    }

    #[test]
    fn a_free_identity_is_claimed_and_a_held_one_never() {
        let free = leases(&[("shoal-kcm-0", Some("a"), 0), ("shoal-kcm-1", None, 0)]);
        assert_eq!(free.goal(seeker(None), |_| false, NOW), Goal::Identity("kcm-1".into()));
        let held = leases(&[("shoal-kcm-0", Some("a"), 0), ("shoal-kcm-1", Some("b"), 0)]);
        assert_eq!(held.goal(seeker(None), |_| false, NOW), Goal::Wait(None), "however long it is silent");
        let beyond = leases(&[("shoal-kcm-2", None, 0)]);
        assert_eq!(beyond.goal(seeker(None), |_| false, NOW), Goal::Wait(None), "the ring has two shards");
    }

    #[test]
    fn what_is_given_away_is_not_taken_up_again() {
        for (left, claimed) in [
            (None, false),
            (Some(Left::Graceful), true),
            (Some(Left::ControllerExit), false),
            (Some(Left::Deposed), false),
        ] {
            let mut leases = leases(&[("shoal-kcm-0", None, 0)]);
            leases.0.get_mut("shoal-kcm-0").unwrap().lease.left = left;
            let goal = |owns: bool| leases.goal(seeker(None), |_| owns, NOW);
            assert_eq!(goal(true) == Goal::Identity("kcm-0".into()), claimed, "{left:?}");
            assert_eq!(goal(false), Goal::Identity("kcm-0".into()), "{left:?}");
        }
    }

    #[test]
    fn the_designated_standby_comes_first() {
        let rows = [("shoal-kcm-0", None, NOW.0), ("shoal-kcm-0-standby", Some("pod-y_1"), NOW.0)];
        assert_eq!(
            leases(&rows).goal(seeker(Some("kcm-1")), |_| false, NOW),
            Goal::Wait(Some(Moment(NOW.0 + 1000)))
        );
        assert_eq!(
            leases(&rows).goal(seeker(Some("kcm-1")), |_| false, Moment(NOW.0 + 1000)),
            Goal::Identity("kcm-0".into())
        );
        let own = [("shoal-kcm-0", None, NOW.0), ("shoal-kcm-0-standby", Some("pod-x_1"), NOW.0)];
        assert_eq!(leases(&own).goal(seeker(Some("kcm-0")), |_| false, NOW), Goal::Identity("kcm-0".into()));
    }

    #[test]
    fn a_standby_lease_is_taken_when_it_is_free_or_stale() {
        let rows = |changed| {
            [
                ("shoal-kcm-0", Some("a"), 0),
                ("shoal-kcm-0-standby", Some("b"), changed),
                ("shoal-kcm-1", Some("c"), 0),
            ]
        };
        let stale = Moment(NOW.0 + 11_000);
        assert_eq!(leases(&rows(NOW.0)).goal(seeker(None), |_| false, NOW), Goal::Wait(Some(stale)));
        assert_eq!(leases(&rows(NOW.0)).goal(seeker(None), |_| false, stale), Goal::Standby("kcm-0".into()));
        let mut free = leases(&rows(NOW.0));
        see(&mut free, "shoal-kcm-0-standby", None, "8", NOW);
        assert_eq!(free.goal(seeker(None), |_| false, NOW), Goal::Standby("kcm-0".into()));
        assert_eq!(free.goal(seeker(Some("kcm-1")), |_| false, NOW), Goal::Wait(None), "one is enough");
    }

    #[test]
    fn a_claim_that_failed_waits_for_a_change() {
        let mut leases = leases(&[("shoal-kcm-0", None, 0)]);
        leases.lost("shoal-kcm-0");
        assert_eq!(leases.goal(seeker(None), |_| false, NOW), Goal::Wait(None));
        see(&mut leases, "shoal-kcm-0", None, "7", NOW);
        assert_eq!(leases.goal(seeker(None), |_| false, NOW), Goal::Wait(None), "it is the same still");
        see(&mut leases, "shoal-kcm-0", None, "8", NOW);
        assert_eq!(leases.goal(seeker(None), |_| false, NOW), Goal::Identity("kcm-0".into()));
        leases.gone("shoal-kcm-0");
        assert_eq!(leases.goal(seeker(None), |_| false, NOW), Goal::Wait(None));
    }

    #[test]
    fn a_pod_with_a_number_goes_for_that_shard_first() {
        let both = leases(&[("shoal-kcm-0", None, 0), ("shoal-kcm-1", None, 0)]);
        for number in ["0", "1"] {
            let holder = format!("kcm-{number}_a1b2");
            let goal = both.goal(Seeker { holder: &holder, ..seeker(None) }, |_| false, NOW);
            assert_eq!(goal, Goal::Identity(format!("kcm-{number}")));
        }
    }
}
