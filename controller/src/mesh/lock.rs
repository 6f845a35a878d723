//! The controller's original leader election locks, which the ring holds for its life.
//!
//! No gate of the ring opens before, and while it holds, a replica without a proxy can never lead beside the shards. The holder
//! is the ring, not a process: any coordinator renews it. Its duration outlives a coordinator that is away for long.

mod record;

use std::time::Duration;

use kube::Client;
use shoal_api::Lock;
use shoal_sharding::{Moment, kube::Fault};

pub use self::record::Record;

/// How long other candidates wait for a ring whose coordinators are all gone.
const DURATION: Duration = Duration::from_hours(24);
/// How often a lock is renewed.
const RENEW: Duration = Duration::from_secs(10);

/// The locks of a ring.
#[derive(Debug)]
pub struct Locks {
    holder: String,
    watched: Vec<Watched>,
    /// Whether each was looked at.
    known: bool,
    /// Whether they were given up.
    released: bool,
}

/// One lock and since when it was seen to stay as it is.
#[derive(Debug)]
struct Watched {
    lock: Lock,
    /// The version seen, and when it was seen first.
    seen: Option<(String, Moment)>,
    held: bool,
}

/// What is to be done about a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Wait,
    Create,
    Take,
    Renew,
}

// === impl Locks ===

impl Locks {
    /// Nothing is known of the locks yet.
    pub fn new(namespace: &str, ring: &str) -> Self {
        Self {
            holder: format!("shoal/{namespace}/{ring}"),
            watched: Vec::new(),
            known: false,
            released: false,
        }
    }

    /// Whether it is known who holds them.
    pub fn known(&self) -> bool {
        self.known
    }

    /// Whether every lock was held when it was last looked at; also if there is none, until they are released.
    pub fn held(&self) -> bool {
        !self.released && self.watched.iter().all(|watched| watched.held)
    }

    /// The locks that others hold, as `resource namespace/name`.
    pub fn missing(&self) -> Vec<String> {
        let missing = self.watched.iter().filter(|watched| !watched.held);
        missing.map(|Watched { lock, .. }| format!("{}/{}", lock.namespace, lock.name)).collect()
    }

    /// Follows the ring's spec. A lock that is no longer named is left to its duration: it may be another ring's.
    pub fn follow(&mut self, wanted: &[Lock]) {
        self.watched.retain(|watched| wanted.contains(&watched.lock));
        for lock in wanted {
            if !self.watched.iter().any(|watched| watched.lock == *lock) {
                self.watched.push(Watched { lock: lock.clone(), seen: None, held: false });
                self.known = false;
            }
        }
    }

    /// Looks at each lock; takes what is free and renews what is due.
    pub async fn keep(&mut self, client: &Client, now: Moment) -> Result<(), Fault> {
        if !self.released {
            for watched in &mut self.watched {
                watched.keep(client, now, &self.holder).await?;
            }
        }
        self.known = true;
        Ok(())
    }

    /// Gives up what the ring holds. Nothing of the ring may write any more.
    pub async fn release(&mut self, client: &Client) -> Result<(), Fault> {
        for watched in &mut self.watched {
            let record = record::read(client, &watched.lock).await?;
            if let Some(record) = record.filter(|record| record.holder == self.holder) {
                record::release(client, &watched.lock, &record).await?;
            }
            watched.held = false;
        }
        self.released = true;
        Ok(())
    }
}

// === impl Watched ===

impl Watched {
    async fn keep(&mut self, client: &Client, now: Moment, holder: &str) -> Result<(), Fault> {
        let found = record::read(client, &self.lock).await?;
        let act = self.look(now, found.as_ref(), holder);
        let written = match (act, &found) {
            (Act::Wait, _) => return Ok(()),
            (Act::Renew, Some(found)) => record::renew(client, &self.lock, found).await,
            (_, found) => record::take(client, &self.lock, found.as_ref(), holder).await,
        };
        match written {
            Ok(version) => {
                self.held = true;
                self.seen = Some((version, now));
                Ok(())
            }
            // Somebody else was faster; the next look tells who.
            Err(Fault::Conflict(_) | Fault::AlreadyExists(_) | Fault::NotFound(_)) => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    /// As client-go does (tools/leaderelection): a lock of another is free when it stayed as it is for its duration.
    fn look(&mut self, now: Moment, found: Option<&Record>, holder: &str) -> Act {
        let Some(found) = found else {
            self.held = false;
            return Act::Create;
        };
        let since = match &self.seen {
            Some((version, since)) if *version == found.version => *since,
            _ => now,
        };
        self.seen = Some((found.version.clone(), since));
        self.held = found.holder == holder;
        let unchanged = now.since(since);
        if self.held {
            return if unchanged >= RENEW { Act::Renew } else { Act::Wait };
        }
        // A tenth more, as clocks differ.
        let over = found.duration * 11 / 10;
        if found.holder.is_empty() || unchanged > over { Act::Take } else { Act::Wait }
    }
}

#[cfg(test)]
mod tests {
    use shoal_api::LockResource;

    use super::*;

    const ME: &str = "shoal/kube-system/kcm";

    fn watched() -> Watched {
        let lock = Lock {
            resource: LockResource::Leases,
            namespace: "kube-system".to_owned(),
            name: "kcm".to_owned(),
        };
        Watched { lock, seen: None, held: false }
    }

    fn record(holder: &str, version: &str) -> Record {
        Record {
            holder: holder.to_owned(),
            duration: Duration::from_secs(15),
            transitions: 0,
            version: version.to_owned(),
        }
    }

    #[test]
    fn a_free_or_absent_lock_is_taken_at_once() {
        assert_eq!(watched().look(Moment(0), None, ME), Act::Create);
        assert_eq!(watched().look(Moment(0), Some(&record("", "1")), ME), Act::Take);
    }

    #[test]
    fn a_lock_of_another_is_taken_only_after_it_was_silent_for_its_duration() {
        let mut watched = watched();
        assert_eq!(watched.look(Moment(0), Some(&record("old", "1")), ME), Act::Wait);
        assert_eq!(watched.look(Moment(16_000), Some(&record("old", "1")), ME), Act::Wait);
        // It is alive.
        assert_eq!(watched.look(Moment(16_400), Some(&record("old", "2")), ME), Act::Wait);
        assert_eq!(watched.look(Moment(32_900), Some(&record("old", "2")), ME), Act::Wait);
        assert_eq!(watched.look(Moment(32_901), Some(&record("old", "2")), ME), Act::Take);
        assert!(!watched.held);
    }

    #[test]
    fn a_held_lock_is_renewed_when_nobody_did_for_ten_seconds() {
        let mut watched = watched();
        assert_eq!(watched.look(Moment(0), Some(&record(ME, "1")), ME), Act::Wait);
        assert!(watched.held);
        assert_eq!(watched.look(Moment(9_999), Some(&record(ME, "1")), ME), Act::Wait);
        assert_eq!(watched.look(Moment(10_000), Some(&record(ME, "1")), ME), Act::Renew);
        assert_eq!(watched.look(Moment(12_000), Some(&record("thief", "2")), ME), Act::Wait);
        assert!(!watched.held, "whoever took it leads");
    }

    #[test]
    fn a_ring_without_locks_holds_all_of_them() {
        let mut locks = Locks::new("kube-system", "kcm");
        assert!(locks.held());
        locks.follow(&[watched().lock]);
        assert!(!locks.held());
        assert_eq!(locks.missing(), ["kube-system/kcm"]);
        locks.follow(&[]);
        assert!(locks.held());
    }
}
