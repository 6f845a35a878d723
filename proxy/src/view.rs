//! What the controller is shown while slots come and go.

use parking_lot::Mutex;
use shoal_api::HandoverMode;
use shoal_sharding::Slots;

/// What the controller of this proxy has been shown.
#[derive(Debug, Default)]
pub struct View {
    sight: Mutex<Sight>,
}

#[derive(Debug, Default)]
struct Sight {
    own: Slots,
    /// Lost slots that are shown as they are.
    frozen: Slots,
}

// === impl View ===

impl View {
    /// What lists and new watches show: own slots and frozen ones.
    pub fn shown(&self) -> Slots {
        let sight = self.sight.lock();
        sight.own.union(&sight.frozen)
    }

    /// The slots that are shown though lost.
    pub fn frozen(&self) -> Slots {
        self.sight.lock().frozen
    }

    /// Gets the objects of these slots ready for every open watch.
    #[allow(clippy::unused_async, reason = "streams are to come")]
    pub async fn prepare(&self, _slots: Slots) {}

    /// Forgets what was got ready of these slots.
    pub fn forget(&self, _slots: Slots) {}

    /// Shows these slots.
    #[allow(clippy::unused_async, reason = "streams are to come")]
    pub async fn show(&self, slots: Slots) {
        let mut sight = self.sight.lock();
        sight.own = sight.own.union(&slots);
        sight.frozen = sight.frozen.minus(&slots);
    }

    /// Shows nothing new of these slots.
    #[allow(clippy::unused_async, reason = "streams are to come")]
    pub async fn lose(&self, slots: Slots, mode: HandoverMode) {
        let mut sight = self.sight.lock();
        sight.own = sight.own.minus(&slots);
        if mode != HandoverMode::Evict {
            sight.frozen = sight.frozen.union(&slots);
        }
    }

    /// The controller is another process: nothing lost is shown any more.
    pub fn restarted(&self) {
        self.sight.lock().frozen = Slots::NONE;
    }
}
