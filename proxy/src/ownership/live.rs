//! The gate of a live ring: the shard's state behind a lock, and a clock.
//!
//! The lock is held for a few instructions and never over an await.

use std::{sync::Arc, time::Duration};

use parking_lot::{Mutex, MutexGuard};
use shoal_sharding::{
    Moment, Shard, Slot, Slots,
    shard::{Outcome, Shut, Ticket},
};
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};

/// How long a write waits for a slot that is on its way to this shard.
const ARRIVAL: Duration = Duration::from_secs(2);

/// The gate.
pub struct Live {
    shard: Mutex<Shard>,
    /// Slots on their way here of whose objects the controller has an older state.
    returning: Mutex<Slots>,
    begun: Instant,
    /// Changes with each step that may let a write in, or a slot go.
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
        Self {
            shard: Mutex::new(Shard::new("")),
            returning: Mutex::default(),
            begun: Instant::now(),
            steps: watch::Sender::new(()),
        }
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

    /// Tells whoever waits that the state has changed.
    pub fn tell(&self) {
        self.steps.send_replace(());
    }

    /// What tells of changes from now on.
    pub fn steps(&self) -> watch::Receiver<()> {
        self.steps.subscribe()
    }

    /// These slots come back, or have come. While they do, the controller has the old state of one object beside the new one of
    /// another: what it decides by that must not wait until the gate opens, but be refused, so that it decides anew.
    pub fn set_returning(&self, slots: &Slots, coming: bool) {
        let mut returning = self.returning.lock();
        *returning = if coming { returning.union(slots) } else { returning.minus(slots) };
    }

    /// Whether a write to that slot can be let in, at once or in a little while.
    pub fn may_enter(&self, slot: Slot) -> Result<(), Shut> {
        match self.shard().may_write(slot, self.now()) {
            Ok(_) => Ok(()),
            Err(Shut::Arriving) if !self.returning.lock().contains(slot) => Ok(()),
            Err(shut) => Err(shut),
        }
    }

    /// Lets a write in; waits a little for a slot that is on its way here.
    pub async fn enter(self: &Arc<Self>, slot: Slot) -> Result<Entered, Shut> {
        let (mut steps, deadline) = (self.steps(), Instant::now() + ARRIVAL);
        loop {
            let entered = self.shard().enter(slot, self.now());
            match entered {
                Ok(ticket) => return Ok(Entered { live: self.clone(), ticket, outcome: Outcome::Known }),
                Err(Shut::Arriving) if !self.returning.lock().contains(slot) => {}
                Err(shut) => return Err(shut),
            }
            if timeout_at(deadline, steps.changed()).await.is_err() {
                return Err(Shut::Arriving);
            }
        }
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
        self.live.shard().leave(self.ticket, self.outcome, self.live.now());
        self.live.tell();
    }
}

#[cfg(test)]
mod tests {
    use shoal_api::{HashAlgorithm, Keying, ShardMapSpec, SlotRange, SlotState};
    use shoal_sharding::SlotMap;

    use super::*;

    /// A gate that has its Lease and whose slots are on their way to it.
    fn arriving() -> Arc<Live> {
        let all = SlotRange {
            first: 0,
            last: 255,
            owner: Some("a".to_owned()),
            epoch: 2,
            state: SlotState::Owned,
            to: None,
            pin: None,
        };
        let keying = Keying { algorithm: HashAlgorithm::Xxh3_64, slots: 256 };
        let map = SlotMap::try_from(&ShardMapSpec { version: 1, keying, slots: vec![all] }).unwrap();
        let live = Arc::new(Live::new());
        {
            let mut shard = live.shard();
            shard.become_shard("a");
            shard.renewed(live.now());
            shard.follow(&map).unwrap();
        }
        live
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_waits_for_a_slot_that_is_new_here() {
        let live = arriving();
        let begun = Instant::now();
        assert_eq!(live.enter(Slot(1)).await.err(), Some(Shut::Arriving));
        assert_eq!(begun.elapsed(), ARRIVAL);
        let opens = async {
            live.shard().shown(&Slots::ALL);
            live.tell();
        };
        assert!(tokio::join!(live.enter(Slot(1)), opens).0.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_decided_while_a_slot_comes_back_is_refused_at_once() {
        let live = arriving();
        live.set_returning(&Slots::ALL, true);
        let begun = Instant::now();
        assert_eq!(live.may_enter(Slot(1)), Err(Shut::Arriving));
        assert_eq!(live.enter(Slot(1)).await.err(), Some(Shut::Arriving));
        assert_eq!(begun.elapsed(), Duration::ZERO);
        live.set_returning(&Slots::ALL, false);
        assert_eq!(live.may_enter(Slot(1)), Ok(()));
    }
}
