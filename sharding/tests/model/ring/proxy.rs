//! A proxy: the shard's own code, and as much IO as the model needs.

use std::{cell::RefCell, collections::HashMap, hash::Hash};

use shoal_sharding::{
    Acks, Left, Moment, Observed, Shard,
    shard::{Outcome, Ticket},
};

use super::api::{self, Api, Kept, Right, SLOTS, Write};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Proxy {
    pub(crate) own: Kept<Own>,
    /// Which process it is: a restart makes another one.
    pub(crate) process: u8,
    pub(crate) held: Option<Held>,
    /// A free Lease that a fresh map lets it claim: shard and version.
    pub(crate) goal: Option<(usize, String)>,
    /// The version of the map that it has seen.
    pub(crate) map: i64,
    /// A write that was let in and is not sent.
    pub(crate) write: Option<Pending>,
    /// It has left, and does not come back.
    pub(crate) is_gone: bool,
}

/// A shard, and what it would tell the coordinator.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Own {
    pub(crate) shard: Shard,
    acks: Kept<Acks>,
    /// Whether a write of its may still be done.
    pub(crate) is_busy: bool,
}

thread_local! {
    /// What came of a change; many states share it.
    static CHANGES: RefCell<HashMap<u64, Kept<Own>>> = RefCell::default();
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Held {
    pub(crate) shard: usize,
    pub(crate) version: String,
    pub(crate) term: i64,
    /// What it wrote there.
    pub(crate) acks: Kept<Acks>,
    pub(crate) renewed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pending {
    pub(crate) object: usize,
    pub(crate) ticket: Ticket,
    pub(crate) version: u8,
    pub(crate) term: i64,
    /// It was looked at again, and its bytes leave some time after.
    pub(crate) checked: bool,
}

// === impl Proxy ===

impl Proxy {
    pub(crate) fn new(process: u8) -> Self {
        Self {
            own: Kept::new(Own::new(Shard::new(""), Moment(0))),
            process,
            held: None,
            goal: None,
            map: 0,
            write: None,
            is_gone: false,
        }
    }

    /// Changes the shard; `key` says how.
    fn change(&mut self, now: Moment, key: impl Hash, change: impl FnOnce(&mut Shard)) {
        let key = Kept::new((&self.own, now, key)).hash();
        if let Some(known) = CHANGES.with_borrow(|changes| changes.get(&key).cloned()) {
            self.own = known;
            return;
        }
        let mut shard = self.own.shard.clone();
        change(&mut shard);
        // It lets go at once of what has come to rest.
        let idle = shard.idle(now);
        shard.released(&idle);
        self.own = Kept::new(Own::new(shard, now));
        CHANGES.with_borrow_mut(|changes| changes.insert(key, self.own.clone()));
    }

    /// Finds a Lease to claim, and reads the map afresh if that one was not left gracefully.
    pub(crate) fn seek(&mut self, api: &Api, shard: usize) -> bool {
        let Some(lease) = api.leases[shard].as_ref().filter(|lease| lease.holder.is_none()) else {
            return false;
        };
        let names = |map: &api::Map| map.slots().owners().contains_key(api::name(shard).as_str());
        if lease.left != Some(Left::Graceful) && api.map.as_ref().is_some_and(names) {
            return false;
        }
        self.goal = Some((shard, lease.version.clone()));
        true
    }

    /// Claims it, and reads the map afresh.
    pub(crate) fn claim(&mut self, api: &mut Api, now: Moment) {
        let Some((shard, seen)) = self.goal.take() else { return };
        let term = api.leases[shard].as_ref().map_or(0, |lease| lease.term) + 1;
        let lease = api::held(shard, self.process, term, Acks::default());
        let Some(version) = api.put_lease(shard, Some(&seen), lease) else { return };
        self.held = Some(Held { shard, version, term, acks: Kept::new(Acks::default()), renewed: now.0 });
        self.change(now, ("claim", shard), |own| {
            own.become_shard(api::name(shard));
            own.renewed(now);
        });
        self.map = 0;
        self.follow(api, now);
    }

    pub(crate) fn renew(&mut self, api: &mut Api, now: Moment) {
        let Some(held) = self.held.clone() else { return };
        let acks = self.own.acks.clone();
        let is_gone = api.leases[held.shard].is_none();
        let term = held.term + i64::from(is_gone);
        let over = (!is_gone).then_some(held.version.as_str());
        if is_gone {
            // The gate shuts before the Lease is made anew.
            self.change(now, "lapse", Shard::lapse);
        }
        let lease = api::held(held.shard, self.process, term, Acks::clone(&acks));
        match api.put_lease(held.shard, over, lease) {
            Some(version) => {
                self.held = Some(Held { version, term, acks, renewed: now.0, ..held });
                self.change(now, "renewed", |shard| shard.renewed(now));
            }
            None => self.lose(now),
        }
    }

    /// Whether there is something to tell the coordinator at once.
    pub(crate) fn has_news(&self) -> bool {
        let acks = &self.own.acks;
        self.held
            .as_ref()
            .is_some_and(|held| (&held.acks.ready, &held.acks.released) != (&acks.ready, &acks.released))
    }

    fn lose(&mut self, now: Moment) {
        self.held = None;
        self.change(now, "lapse", Shard::lapse);
    }

    /// Takes the newest map over, and does at once what it asks for.
    pub(crate) fn follow(&mut self, api: &Api, now: Moment) {
        let Some(map) = &api.map else { return };
        self.map = map.slots().version();
        self.change(now, map, |shard| {
            if let Ok(asked) = shard.follow(map.slots()) {
                shard.prepared(&asked.prepare);
                shard.shown(&asked.show);
            }
        });
    }

    /// Lets go of what has come to rest.
    pub(crate) fn settle(&mut self, now: Moment) {
        self.change(now, "settle", |_| {});
    }

    pub(crate) fn enter(&mut self, api: &Api, object: usize, now: Moment) {
        let Some(Right { epoch, term, .. }) = self.opened(object, now) else { return };
        let ticket = Ticket { slot: SLOTS[object], epoch };
        self.change(now, ("enter", object), |shard| {
            let _ = shard.enter(SLOTS[object], now);
        });
        let version = api.objects[object].version;
        self.write = Some(Pending { object, ticket, version, term, checked: false });
    }

    /// Looks again; a write that may not go on ends here.
    pub(crate) fn check(&mut self, now: Moment) {
        let Some(write) = self.write else { return };
        if self.own.shard.still(write.ticket, now).is_ok() {
            self.write = Some(Pending { checked: true, ..write });
        } else {
            self.write = None;
            self.leave(write.ticket, Outcome::Known, now);
        }
    }

    pub(crate) fn send(&mut self, number: usize, api: &mut Api, now: Moment) {
        let Some(write) = self.write.take() else { return };
        let right = Right { epoch: write.ticket.epoch, term: write.term, process: self.process };
        let (object, version) = (write.object, write.version);
        api.under_way.push(Write { proxy: number, object, right, version, sent: now.0, awaited: true });
    }

    pub(crate) fn leave(&mut self, ticket: Ticket, outcome: Outcome, now: Moment) {
        let key = (ticket, outcome == Outcome::Known);
        self.change(now, key, |shard| shard.leave(ticket, outcome, now));
    }

    /// Gives the identity up; only with no write under way.
    pub(crate) fn release(&mut self, api: &mut Api, left: Left, now: Moment) {
        let Some(held) = self.held.take() else { return };
        self.is_gone = true;
        self.change(now, "lapse", Shard::lapse);
        if let Some(lease) = api.leases[held.shard].clone() {
            let lease = Observed { acks: Acks::clone(&self.own.acks), ..Observed::clone(&lease) };
            api.vacate(&lease, &held.version, left);
        }
    }

    /// By what right it would let a write in; none if it would not.
    pub(crate) fn opened(&self, object: usize, now: Moment) -> Option<Right> {
        let term = self.held.as_ref()?.term;
        let epoch = self.own.shard.phase(SLOTS[object])?.epoch();
        let ticket = Ticket { slot: SLOTS[object], epoch };
        self.own.shard.still(ticket, now).is_ok().then_some(Right { epoch, term, process: self.process })
    }
}

// === impl Own ===

impl Own {
    fn new(mut shard: Shard, now: Moment) -> Self {
        let is_busy = shard.is_busy(now);
        Self { acks: Kept::new(shard.acks()), shard, is_busy }
    }
}
