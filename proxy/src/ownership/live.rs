//! The gate of a live ring: the shard's state behind a lock, and a clock.
//!
//! The lock is held for a few instructions and never over an await.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use shoal_sharding::{
    Moment, Shard, Slot,
    shard::{Outcome, Shut, Ticket},
};
use tokio::{sync::watch, time::Instant};

/// The gate.
pub struct Live {
    shard: Mutex<Shard>,
    begun: Instant,
    /// Changes with each step that the identity waits for: a write has ended where that is awaited, a controller told who it is.
    steps: watch::Sender<()>,
}

/// A write that was let in. From when it is sent it counts as one of unknown outcome until the contrary is told.
pub struct Entered {
    live: Arc<Live>,
    ticket: Ticket,
    outcome: Outcome,
}

// === impl Live ===

impl Live {
    /// A gate without a shard: it is shut.
    pub fn new() -> Self {
        Self { shard: Mutex::new(Shard::new("")), begun: Instant::now(), steps: watch::Sender::new(()) }
    }

    /// The shard's state. Let go of it before anything is awaited.
    pub fn shard(&self) -> MutexGuard<'_, Shard> {
        self.shard.lock()
    }

    /// Now, on this gate's clock.
    pub fn now(&self) -> Moment {
        Moment::default() + self.begun.elapsed()
    }

    /// When a moment of this gate's clock is.
    pub fn instant(&self, moment: Moment) -> Instant {
        self.begun + moment.since(Moment::default())
    }

    /// Tells the identity to look again.
    pub fn tell(&self) {
        self.steps.send_replace(());
    }

    /// What tells of changes from now on.
    pub fn steps(&self) -> watch::Receiver<()> {
        self.steps.subscribe()
    }

    /// Whether a write to that slot can be let in.
    pub fn may_enter(&self, slot: Slot) -> Result<(), Shut> {
        self.shard().may_write(slot, self.now()).map(drop)
    }

    /// Lets a write in. One to a slot that is on its way here is refused and does not wait: it was decided on a part of what the
    /// slot holds.
    pub fn enter(self: &Arc<Self>, slot: Slot) -> Result<Entered, Shut> {
        let ticket = self.shard().enter(slot, self.now())?;
        Ok(Entered { live: self.clone(), ticket, outcome: Outcome::Known })
    }
}

impl Default for Live {
    fn default() -> Self {
        Self::new()
    }
}

// === impl Entered ===

impl Entered {
    /// The slot, and the epoch that the write is sent under.
    pub fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// Whether the write may be sent now, or once more; if so, it counts as sent.
    pub fn begin(&mut self) -> Result<(), Shut> {
        self.live.shard().still(self.ticket, self.live.now())?;
        self.outcome = Outcome::Unknown;
        Ok(())
    }

    /// The API server has answered, or never got it.
    pub fn known(&mut self) {
        self.outcome = Outcome::Known;
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let awaited = {
            let mut shard = self.live.shard();
            shard.leave(self.ticket, self.outcome, self.live.now());
            shard.awaits_rest()
        };
        if awaited {
            self.live.tell();
        }
    }
}
