//! What the controller is shown while slots come and go.
//!
//! ```text
//!                 prepare: their objects, by a request for each open watch
//!  identity ──▶ View ──────────────────────────────────────▶ Watching ◀── events of the watch ── Spliced ──▶ client
//!                │ show: children before owners, then a bookmark │ Splice                          ▲
//!                │ lose: nothing told, or all told as deleted    └── outbox: events made here ─────┘
//!                └ Past: who may resume a watch, and what its last one left
//! ```
//!
//! Lists and new watches show the slots of the moment. Open watches are told of a change by events, if their client can be:
//! it asked for bookmarks, and no tables. Every other watch ends with a 410, after which its client asks for everything.

mod away;
mod body;
mod change;
mod fetch;
mod heights;
mod list;
mod open;
mod past;
mod splice;
mod token;
mod watching;

pub use self::{
    body::Spliced,
    fetch::{Ask, asking},
    list::ListLens,
    open::{Opened, Opening, client},
};

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use shoal_api::HandoverMode;
use shoal_sharding::Slots;
use tokio::time::{Instant, sleep};

use self::{past::Past, splice::Burst, watching::Watching};
use crate::metrics::Metrics;

/// What the controller of this proxy has been shown. In a ring of files nothing of it changes.
pub struct View {
    sight: Mutex<Sight>,
    metrics: Arc<Metrics>,
}

struct Sight {
    own: Slots,
    /// Lost slots that are shown as they are.
    frozen: Slots,
    /// Changes whenever something that was not shown is, or the other way round.
    generation: u64,
    watches: HashMap<u64, Arc<Watching>>,
    next: u64,
    past: HashMap<Arc<str>, Past>,
}

/// The place of an open watch in the view, until its body ends.
pub(crate) struct Seat {
    view: Arc<View>,
    number: u64,
    watching: Arc<Watching>,
}

/// Watches that could not be told of a change.
pub struct Ended {
    watches: Vec<Arc<Watching>>,
    /// The number of the first watch that opened later.
    next: u64,
}

/// How long clients get to ask for everything again; client-go waits about a second before it does.
const CATCH_UP: Duration = Duration::from_secs(10);
/// How often that is looked at.
const LOOK: Duration = Duration::from_millis(50);

// === impl Ended ===

impl Ended {
    /// Whether every watch was told.
    pub fn is_empty(&self) -> bool {
        self.watches.is_empty()
    }
}

// === impl View ===

impl View {
    /// A view of nothing.
    pub fn new(metrics: Arc<Metrics>) -> Self {
        let sight = Sight {
            own: Slots::NONE,
            frozen: Slots::NONE,
            // Tokens of an earlier process are of no use.
            generation: u64::from(fastrand::u32(..)),
            watches: HashMap::new(),
            next: 0,
            past: HashMap::new(),
        };
        Self { sight: Mutex::new(sight), metrics }
    }

    /// What lists and new watches show: own slots and frozen ones.
    pub fn shown(&self) -> Slots {
        let sight = self.sight.lock();
        sight.own.union(&sight.frozen)
    }

    /// The slots that are shown though lost.
    pub fn frozen(&self) -> Slots {
        self.sight.lock().frozen
    }

    /// Gets the objects of these slots ready for every open watch. A watch for which that fails will have to begin anew.
    pub async fn prepare(&self, slots: Slots) {
        change::prepare(&self.watches(), slots).await;
    }

    /// Forgets what was got ready of these slots.
    pub fn forget(&self, slots: Slots) {
        let sight = self.sight.lock();
        let slots = slots.minus(&sight.own);
        sight.watches.values().for_each(|watching| watching.change(|splice| splice.forget(&slots)));
    }

    /// Shows these slots; returns when each open watch has handed them over, or will end. What does not read does not hold
    /// this up.
    pub async fn show(&self, slots: Slots) -> Ended {
        let slots = slots.minus(&self.sight.lock().own);
        let watches =
            if slots.is_empty() { Vec::new() } else { change::burst(self, slots, Burst::Show).await };
        Ended { watches, next: self.sight.lock().next }
    }

    /// Whether any client watches.
    pub fn is_watched(&self) -> bool {
        !self.sight.lock().watches.is_empty()
    }

    /// Waits until the clients of watches that ended watch again, and have all that there is: until then they may see owners
    /// whose children they have not seen. Whoever does not come back is not waited for long.
    pub async fn caught_up(&self, ended: &Ended) {
        let deadline = Instant::now() + CATCH_UP;
        while !ended.watches.iter().all(|watching| self.is_back(watching, ended.next)) {
            if Instant::now() >= deadline {
                tracing::warn!("some clients do not watch again after a change of the view");
                return;
            }
            sleep(LOOK).await;
        }
    }

    fn is_back(&self, ended: &Watching, next: u64) -> bool {
        let sight = self.sight.lock();
        let mut later = sight.watches.iter().filter(|(number, _)| **number >= next);
        later.any(|(_, watching)| {
            watching.cluster == ended.cluster
                && watching.client == ended.client
                && watching.splice().has_begun()
        })
    }

    /// Takes these slots out of the view: nothing is told of them any more (Freeze, and Restart, whose controller finds a new
    /// view), or that they are gone (Evict).
    pub async fn lose(&self, slots: Slots, mode: HandoverMode) {
        {
            let mut sight = self.sight.lock();
            let lost: Slots = slots.iter().filter(|slot| sight.own.contains(*slot)).collect();
            sight.own = sight.own.minus(&lost);
            sight.frozen = sight.frozen.union(&lost);
            sight.watches.values().for_each(|watching| watching.change(|splice| splice.freeze(&lost)));
            self.measure(&sight);
        }
        if mode == HandoverMode::Evict {
            change::burst(self, slots, Burst::Hide).await;
        }
    }

    /// The controller is another process: nothing lost is shown any more.
    pub fn restarted(&self) {
        let mut sight = self.sight.lock();
        sight.frozen = Slots::NONE;
        sight.generation += 1;
        for past in sight.past.values_mut() {
            past.changed();
            past.forget();
        }
        self.measure(&sight);
    }

    fn watches(&self) -> Vec<Arc<Watching>> {
        self.sight.lock().watches.values().cloned().collect()
    }

    /// Lists and new watches are as after the burst from now on; all watches that are not.
    fn turn_over(&self, slots: &Slots, burst: Burst) -> Vec<Arc<Watching>> {
        let mut sight = self.sight.lock();
        sight.frozen = sight.frozen.minus(slots);
        if burst == Burst::Show {
            sight.own = sight.own.union(slots);
        }
        sight.generation += 1;
        sight.past.values_mut().for_each(Past::changed);
        self.measure(&sight);
        sight.watches.values().cloned().collect()
    }

    fn measure(&self, sight: &Sight) {
        self.metrics.view.frozen_slots.set(i64::try_from(sight.frozen.len()).unwrap_or_default());
    }
}

// === impl Sight ===

impl Sight {
    fn past(&mut self, cluster: &Arc<str>) -> &mut Past {
        self.past.entry(cluster.clone()).or_default()
    }
}

// === impl Seat ===

impl Seat {
    /// Notes that the client was told of the last change, once it was.
    fn settle(&self) {
        if let Some(version) = self.watching.paid() {
            let mut sight = self.view.sight.lock();
            sight.past(&self.watching.cluster).told(&self.watching.client, version);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let rest = self.watching.splice().rest();
        let mut sight = self.view.sight.lock();
        sight.watches.remove(&self.number);
        let past = sight.past(&self.watching.cluster);
        past.leave(&self.watching.client, rest);
        if self.watching.is_owed() {
            past.untold(&self.watching.client);
        }
    }
}

#[cfg(test)]
mod tests;
