//! What clients know that have no watch open: from which version on one may resume, and what its last watch left.
//!
//! A change of the view is told on open watches only. Whoever resumes at a version that it got before the change would never
//! learn of it, so such a version is too old: 410, and the client asks for everything. Versions that were handed out after the
//! change, by a list or behind the burst of a watch, are good.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use super::splice::Rest;

/// Clients that are remembered; beyond, all are forgotten, and may have to ask for everything once more.
const CLIENTS: usize = 4096;

/// Whose watches follow each other: the cluster, the path and the selectors, and the client's User-Agent.
pub(super) type Client = String;

/// The highest version that was handed out in a cluster.
pub(super) type Seen = Arc<AtomicU64>;

/// What is remembered of one cluster.
#[derive(Debug, Default)]
pub(super) struct Past {
    seen: Seen,
    /// Up to here no version is good by itself.
    floor: u64,
    clients: HashMap<Client, Known>,
    rests: HashMap<Client, Rest>,
}

/// What is known of the versions of one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// From here on they are good.
    Good(u64),
    /// Up to here they are not.
    Bad(u64),
}

// === impl Past ===

impl Past {
    /// Where versions are noted that are handed out.
    pub(super) fn seen(&self) -> Seen {
        self.seen.clone()
    }

    /// The view has changed.
    pub(super) fn changed(&mut self) {
        self.floor = self.floor.max(self.seen.load(Ordering::Relaxed));
        self.clients.clear();
    }

    /// A list of that version was handed out: by the view as it is, or as it was before.
    pub(super) fn listed(&mut self, client: &str, version: u64, is_new: bool) {
        self.seen.fetch_max(version, Ordering::Relaxed);
        if is_new {
            self.rests.insert(client.to_owned(), Rest::default());
            let known = match self.clients.get(client) {
                Some(Known::Good(good)) => Known::Good(version.min(*good)),
                _ => Known::Good(version),
            };
            self.note(client, known);
        } else {
            self.floor = self.floor.max(version);
        }
    }

    /// A watch has handed the change over, and is at that version.
    pub(super) fn told(&mut self, client: &str, version: u64) {
        let known = match self.clients.get(client) {
            Some(bad @ Known::Bad(_)) => *bad,
            Some(Known::Good(good)) => Known::Good(version.max(*good)),
            None => Known::Good(version),
        };
        self.note(client, known);
    }

    /// A watch has ended without that.
    pub(super) fn untold(&mut self, client: &str) {
        let seen = self.seen.load(Ordering::Relaxed);
        self.note(client, Known::Bad(seen));
    }

    /// Whether a client that resumes at that version would miss a change; if so, from where on it would not.
    pub(super) fn is_too_old(&self, client: &str, version: u64) -> Option<u64> {
        match self.clients.get(client) {
            Some(Known::Good(good)) if version >= *good => None,
            Some(Known::Bad(bad)) if version <= *bad => Some(*bad),
            _ => Some(self.floor).filter(|floor| version <= *floor),
        }
    }

    /// A watch has ended.
    pub(super) fn leave(&mut self, client: &str, rest: Rest) {
        if self.rests.len() >= CLIENTS {
            self.rests.clear();
        }
        let rest = if self.rests.contains_key(client) { Rest::unknown() } else { rest };
        self.rests.insert(client.to_owned(), rest);
    }

    /// What the last watch of this client left.
    pub(super) fn take(&mut self, client: &str) -> Rest {
        self.rests.remove(client).unwrap_or_else(Rest::unknown)
    }

    /// A new process: nobody resumes.
    pub(super) fn forget(&mut self) {
        self.rests.clear();
    }

    fn note(&mut self, client: &str, known: Known) {
        if self.clients.len() >= CLIENTS && !self.clients.contains_key(client) {
            self.changed();
        }
        self.clients.insert(client.to_owned(), known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cluster whose highest version is 50 when the view changes.
    fn changed() -> Past {
        let mut past = Past::default();
        past.listed("old", 50, true);
        past.changed();
        past
    }

    #[test]
    fn a_version_from_before_a_change_is_too_old() {
        let mut past = Past::default();
        past.listed("a", 7, true);
        assert_eq!((past.is_too_old("a", 7), past.is_too_old("b", 1)), (None, None));
        let past = changed();
        for (version, wanted) in [(1, Some(50)), (50, Some(50)), (51, None)] {
            assert_eq!(past.is_too_old("old", version), wanted, "{version}");
        }
    }

    #[test]
    fn a_list_after_the_change_makes_its_version_good_for_its_client_alone() {
        let mut past = changed();
        past.listed("a", 50, true);
        assert_eq!((past.is_too_old("a", 50), past.is_too_old("a", 49)), (None, Some(50)));
        assert_eq!(past.is_too_old("b", 50), Some(50));
        past.listed("a", 70, true);
        assert_eq!(past.is_too_old("a", 50), None);
        past.changed();
        assert_eq!(past.is_too_old("a", 70), Some(70));
    }

    #[test]
    fn a_list_that_was_cut_before_the_change_is_too_old_whenever_it_comes() {
        let mut past = changed();
        past.listed("a", 60, false);
        assert_eq!((past.is_too_old("a", 60), past.is_too_old("b", 61)), (Some(60), None));
    }

    #[test]
    fn who_was_told_resumes_and_who_was_not_does_not() {
        let mut past = changed();
        past.told("a", 40);
        assert_eq!((past.is_too_old("a", 40), past.is_too_old("a", 39)), (None, Some(50)));
        past.seen().store(90, Ordering::Relaxed);
        past.untold("b");
        assert_eq!((past.is_too_old("b", 90), past.is_too_old("b", 91)), (Some(90), None));
        // Another watch of the same client was not told.
        past.untold("a");
        past.told("a", 95);
        assert_eq!(past.is_too_old("a", 90), Some(90));
        past.listed("a", 95, true);
        assert_eq!(past.is_too_old("a", 95), None);
    }

    #[test]
    fn of_two_watches_alike_neither_takes_what_the_other_left() {
        let mut past = Past::default();
        assert!(past.take("a").away.is_unknown());
        past.leave("a", Rest::default());
        assert!(!past.take("a").away.is_unknown());
        past.leave("a", Rest::default());
        past.leave("a", Rest::default());
        assert!(past.take("a").away.is_unknown());
        past.listed("a", 1, true);
        assert!(!past.take("a").away.is_unknown());
    }
}
