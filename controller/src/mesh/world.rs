//! The Leases of a ring as they were last seen, by lists and by a watch at once.
//!
//! Both tell the same story at different speeds. The version of the API server's store (a number that rises with each write,
//! KEP-5504) says which of two readings is older, and an older one changes nothing.

use std::collections::BTreeMap;

use shoal_sharding::{Observed, Seat, kube::lease::RingLeases};

/// The Leases by seat and shard.
#[derive(Debug, Default)]
pub struct World {
    leases: BTreeMap<(Seat, String), Observed>,
    /// The version of the last list.
    listed: u64,
    /// That of the last event of the watch: everything before it was told.
    watched: u64,
}

// === impl World ===

impl World {
    /// Takes a list over, unless the watch has told more already.
    pub fn listed(&mut self, list: RingLeases) {
        let version = number(&list.version);
        if version < self.watched {
            return;
        }
        self.listed = version;
        let identities = list.identities.into_iter().map(|lease| (Seat::Identity, lease));
        let standbys = list.standbys.into_iter().map(|lease| (Seat::Standby, lease));
        let leases = identities.chain(standbys);
        self.leases = leases.map(|(seat, lease)| ((seat, lease.shard.clone()), lease)).collect();
    }

    /// The watch tells that a Lease is there, or changed.
    pub fn changed(&mut self, seat: Seat, lease: Observed) {
        if self.is_news(&lease.version) {
            self.put(seat, lease);
        }
    }

    /// The watch tells that a Lease was deleted, at that version.
    pub fn gone(&mut self, seat: Seat, lease: &Observed) {
        if self.is_news(&lease.version) {
            self.leases.remove(&(seat, lease.shard.clone()));
        }
    }

    /// A write of this process made a Lease so. What others did before it may still be on its way.
    pub fn wrote(&mut self, seat: Seat, lease: Observed) {
        if number(&lease.version) > self.watched {
            self.put(seat, lease);
        }
    }

    /// The Leases of one kind, in order of the shards' names.
    pub fn of(&self, seat: Seat) -> impl Iterator<Item = &Observed> {
        self.leases.iter().filter(move |((of, _), _)| *of == seat).map(|(_, lease)| lease)
    }

    /// One Lease.
    pub fn get(&self, seat: Seat, shard: &str) -> Option<&Observed> {
        self.leases.get(&(seat, shard.to_owned()))
    }

    fn is_news(&mut self, version: &str) -> bool {
        let version = number(version);
        self.watched = self.watched.max(version);
        version > self.listed
    }

    fn put(&mut self, seat: Seat, lease: Observed) {
        let key = (seat, lease.shard.clone());
        let known = self.leases.get(&key).map_or(0, |known| number(&known.version));
        if number(&lease.version) > known {
            self.leases.insert(key, lease);
        }
    }
}

/// What is no number is older than everything, so that the next list decides.
fn number(version: &str) -> u64 {
    version.parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(shard: &str, version: &str) -> Observed {
        Observed { shard: shard.to_owned(), version: version.to_owned(), ..Observed::default() }
    }

    fn list(version: &str, identities: &[Observed]) -> RingLeases {
        RingLeases { identities: identities.to_vec(), version: version.to_owned(), ..RingLeases::default() }
    }

    fn versions(world: &World) -> Vec<&str> {
        world.of(Seat::Identity).map(|lease| lease.version.as_str()).collect()
    }

    #[test]
    fn an_event_older_than_the_list_changes_nothing() {
        let mut world = World::default();
        world.listed(list("10", &[lease("a-0", "9")]));
        world.changed(Seat::Identity, lease("a-0", "8"));
        world.gone(Seat::Identity, &lease("a-0", "8"));
        assert_eq!(versions(&world), ["9"]);
        world.changed(Seat::Identity, lease("a-0", "11"));
        assert_eq!(versions(&world), ["11"]);
    }

    #[test]
    fn a_list_older_than_the_watch_changes_nothing() {
        let mut world = World::default();
        world.listed(list("10", &[lease("a-0", "9"), lease("a-1", "10")]));
        world.gone(Seat::Identity, &lease("a-0", "12"));
        world.listed(list("11", &[lease("a-0", "9"), lease("a-1", "10")]));
        assert_eq!(versions(&world), ["10"], "it was deleted after that list");
        world.listed(list("12", &[lease("a-1", "10")]));
        assert_eq!(versions(&world), ["10"]);
    }

    #[test]
    fn an_own_write_hides_nothing_that_others_did_before_it() {
        let mut world = World::default();
        world.listed(list("10", &[lease("a-0", "9"), lease("a-1", "10")]));
        world.wrote(Seat::Identity, lease("a-0", "13"));
        world.changed(Seat::Identity, lease("a-1", "12"));
        world.changed(Seat::Identity, lease("a-0", "11"));
        assert_eq!(versions(&world), ["13", "12"]);
        world.gone(Seat::Identity, &lease("a-0", "14"));
        world.wrote(Seat::Identity, lease("a-0", "13"));
        assert_eq!(versions(&world), ["12"], "it was deleted after that write");
    }

    #[test]
    fn a_list_forgets_what_it_lacks() {
        let mut world = World::default();
        world.changed(Seat::Standby, lease("a-0", "3"));
        world.listed(list("10", &[lease("a-1", "4")]));
        assert_eq!(world.of(Seat::Standby).count(), 0);
        assert!(world.get(Seat::Identity, "a-1").is_some());
    }
}
