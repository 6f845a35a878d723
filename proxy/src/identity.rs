//! Who this proxy is: it claims a shard's identity, keeps it, and follows the map.
//!
//! ```text
//!              Leases, ShardedController, ShardMap
//!  hub ──────────────────────────────▶ news ──▶ Identity ──▶ ring   (what requests are served by)
//!   ▲                                             │  │
//!   └── claim, renew (with acks), release ◀───────┘  ├────▶ live   (Shard: the gate)
//!                                                    └────▶ view   (prepare, show, lose)
//! ```
//!
//! One task decides; what takes time (a call to the hub, a change of the view) runs beside it and comes back as news. All
//! times are of the monotonic clock, and a Lease's deadline counts from before its renewal was sent.

mod attendance;
mod credential;
mod hub;
mod leaseholder;
mod life;
mod moves;
mod seat;

pub use self::attendance::{Attendance, Attending};
pub use self::hub::{Hub, HubError};
pub use self::life::Life;

use std::sync::Arc;

use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt;
use parking_lot::Mutex;
use shoal_api::{HandoverMode, ShardMap, ShardedController};
use shoal_sharding::{Moment, SlotMap, Slots, identity::Left, times};
use tokio::{sync::mpsc, time::sleep_until};

use self::{
    leaseholder::{Called, Tenancy},
    seat::{Goal, Leases, Seeker},
};
use crate::{
    drain::Drain,
    ownership::{Live, Ring, Role},
    stack::Stack,
    view::View,
};

/// News that wait to be taken. Whoever tells some waits when there are as many.
const NEWS: usize = 64;

/// Something that happened.
#[derive(Debug)]
enum News {
    /// The ring, as it is written now.
    Controller(Box<ShardedController>),
    /// The map.
    Map(Box<ShardMap>),
    /// One of the ring's Leases.
    Lease(Box<Lease>),
    /// One that is gone.
    LeaseGone(String),
    /// All Leases follow.
    LeasesBegin,
    /// Those were all.
    LeasesEnd,
    /// A call to the hub has ended.
    Called(Box<Called>),
    /// The objects of these slots are at hand.
    Prepared(Slots),
    /// These slots are shown.
    Shown(Slots),
    /// These slots are out of the view.
    Lost(Slots),
    /// The controller came, or went.
    Attended(bool),
    /// The proxy ends.
    End,
}

/// The task that decides.
pub struct Identity {
    hub: Hub,
    holder: String,
    stack: Arc<Stack>,
    live: Arc<Live>,
    view: Arc<View>,
    drain: Drain,
    life: Arc<Mutex<Life>>,
    news: mpsc::Sender<News>,
    controller: Box<ShardedController>,
    map: Option<SlotMap>,
    leases: Leases,
    /// The names of the Leases while all of them are told anew.
    listed: Option<Vec<String>>,
    tenancy: Tenancy,
    /// Whether the controller is there.
    attended: bool,
    /// Whether the controller was asked to end, or is about to anyway: since when its slots wait for it.
    waits_since: Option<Moment>,
    lapses: bool,
    ends: bool,
    /// Changes of the view go one after the other, in the order in which they were asked for.
    turns: Arc<tokio::sync::Mutex<()>>,
    arrivals: moves::Arrivals,
    credential: credential::Keeper,
}

/// How the rest of the program speaks to the task.
#[derive(Clone)]
pub struct Handle {
    news: mpsc::Sender<News>,
}

// === impl Handle ===

impl Handle {
    /// The proxy ends: the identity is given back. The task has ended when this has.
    pub async fn end(&self) {
        if self.news.send(News::End).await.is_ok() {
            self.news.closed().await;
        }
    }
}

/// What an identity works on.
pub struct Parts {
    /// The hub.
    pub hub: Hub,
    /// The name that Leases are claimed by; no other process may have it.
    pub holder: String,
    /// Where the ring is published.
    pub stack: Arc<Stack>,
    /// The gate.
    pub live: Arc<Live>,
    /// Whether there is a controller.
    pub attendance: Attendance,
    /// Which one.
    pub life: Arc<Mutex<Life>>,
    /// The ring as it was read at the start.
    pub controller: ShardedController,
}

// === impl Identity ===

impl Identity {
    /// Begins to look for an identity.
    pub fn start(parts: Parts) -> Handle {
        let (news, told) = mpsc::channel(NEWS);
        let Parts { hub, holder, stack, live, attendance, life, controller } = parts;
        hub.watch(&news);
        tokio::spawn(attend(attendance, news.clone()));
        let (view, drain) = (stack.view.clone(), stack.drain.clone());
        let this = Self {
            hub,
            holder,
            stack,
            live,
            view,
            drain,
            life,
            news: news.clone(),
            controller: Box::new(controller),
            map: None,
            leases: Leases::default(),
            listed: None,
            tenancy: Tenancy::default(),
            attended: false,
            waits_since: None,
            lapses: false,
            ends: false,
            turns: Arc::default(),
            arrivals: moves::Arrivals::default(),
            credential: credential::Keeper::default(),
        };
        tokio::spawn(this.run(told));
        Handle { news }
    }

    async fn run(mut self, mut told: mpsc::Receiver<News>) {
        self.publish();
        let mut steps = self.live.steps();
        loop {
            let (live, drain) = (self.live.clone(), self.drain.clone());
            let wake = live.instant(self.wake(live.now()));
            tokio::select! {
                news = told.recv() => if let Some(news) = news { self.take(news) },
                _ = steps.changed() => {}
                () = drain.begun(), if self.waits_since.is_none() => self.wait_for_another(),
                () = sleep_until(wake) => {}
            }
            while let Ok(news) = told.try_recv() {
                self.take(news);
            }
            self.settle();
            if self.ends && self.tenancy.is_over() {
                return;
            }
        }
    }

    /// When to look again though nothing happens.
    fn wake(&self, now: Moment) -> Moment {
        let next = self.tenancy.next_renewal().unwrap_or(now + times::RENEW);
        let goal = match self.goal(now) {
            Goal::Wait(Some(then)) => then,
            _ => next,
        };
        let moving = if self.live.shard().is_leaving() { now + moves::LOOK } else { next };
        next.min(goal).min(moving).max(now)
    }

    fn take(&mut self, news: News) {
        let now = self.live.now();
        match news {
            News::Controller(controller) => self.controller = controller,
            News::Map(map) => self.take_map(&map),
            News::Lease(lease) => self.take_lease(&lease, now),
            News::LeaseGone(name) => self.leases.gone(&name),
            News::LeasesBegin => self.listed = Some(Vec::new()),
            News::LeasesEnd => {
                let listed = self.listed.take().unwrap_or_default();
                self.leases.retain(|name| listed.iter().any(|one| one == name));
            }
            News::Called(called) => self.take_call(*called),
            News::Prepared(slots) => self.live.shard().prepared(&slots),
            News::Shown(slots) => self.open(&slots),
            News::Lost(slots) => self.live.shard().released(&slots),
            News::Attended(there) => self.attend(there, now),
            News::End => self.ends = true,
        }
    }

    fn take_lease(&mut self, lease: &Lease, now: Moment) {
        if let Some(listed) = &mut self.listed {
            listed.push(lease.name_any());
        }
        if let Some((seat, seen)) = shoal_sharding::kube::lease::seat_of(&self.hub.ring, lease) {
            self.leases.saw(seat, seen, now);
        }
    }

    /// The controller came or went. One that goes unasked gives its slots to others at once; one that was told to end, or
    /// whose proxy was, leaves them to the next holder.
    fn attend(&mut self, there: bool, now: Moment) {
        self.attended = there;
        if there {
            if !self.drain.has_begun() {
                self.waits_since = None;
            }
            return;
        }
        if let Err(error) = self.life.lock().gone() {
            tracing::warn!(%error, "the note of the last controller cannot be removed");
        }
        self.view.restarted();
        if self.lapses && !self.drain.has_begun() {
            // It comes back with a new view, and finds its slots.
            self.waits_since = Some(now);
        } else {
            self.leave();
        }
        self.lapses = false;
    }

    /// The proxy is to end: whatever happens now, the slots wait for the next holder.
    fn wait_for_another(&mut self) {
        self.waits_since = Some(self.live.now());
        if !self.attended {
            self.leave();
        }
    }

    /// Gives the identity back, once no write is under way.
    fn leave(&mut self) {
        let left = if self.drain.has_begun() { Left::Graceful } else { Left::ControllerExit };
        self.live.shard().lapse();
        self.tenancy.leave(left);
    }

    fn settle(&mut self) {
        let now = self.live.now();
        if self.ends {
            self.leave();
        }
        let grace =
            std::time::Duration::from_secs(self.controller.spec.handover.restart_grace_seconds.into());
        if self.waits_since.is_some_and(|since| !self.attended && now.since(since) > grace) {
            self.leave();
        }
        self.let_go(now);
        self.look_at_view();
        self.call(now);
        self.publish();
        self.measure(now);
    }

    fn goal(&self, now: Moment) -> Goal {
        if !self.attended || self.ends || self.drain.has_begun() || self.life.lock().is_haunted() {
            return Goal::Wait(None);
        }
        let seeker = Seeker {
            ring: &self.hub.ring,
            shards: self.controller.spec.shards,
            holder: &self.holder,
            standby: self.tenancy.standby(),
        };
        let owns = |shard: &str| self.map.as_ref().is_some_and(|map| map.names(shard));
        self.leases.goal(seeker, owns, now)
    }

    /// What requests are served by from now on.
    fn publish(&mut self) {
        let held = self.tenancy.identity().map(|held| (held.shard.as_str(), held.term));
        self.credential.follow(held, &self.controller, self.hub.client(), &self.stack.term_token);
        let (role, shard, term) = match (self.tenancy.identity(), self.tenancy.standby()) {
            (Some(held), _) => (Role::Holder, held.shard.as_str(), held.term),
            (None, Some(shard)) => (Role::Standby, shard, 0),
            (None, None) => (Role::Nobody, "", 0),
        };
        let term = u64::try_from(term).unwrap_or_default();
        let (controller, seat, map) = (&self.controller, (shard, term), self.map.as_ref());
        if !self.stack.ring.load().is_for(controller, role, seat, map, self.lapses) {
            let ring = Ring::live(controller, role, seat, map.cloned(), self.lapses);
            self.stack.ring.store(Arc::new(ring));
        }
    }

    fn measure(&self, now: Moment) {
        let shard = self.live.shard();
        let metrics = &self.stack.metrics;
        let owned = shard.slots(|phase| matches!(phase, shoal_sharding::Phase::Open(_)));
        metrics.owned_slots.set(i64::try_from(owned.len()).unwrap_or_default());
        metrics.lease_margin.set(shard.margin(now).as_secs_f64());
        metrics.term.set(self.tenancy.identity().map_or(0, |held| held.term));
        metrics.unknown_writes.set(i64::try_from(shard.unknowns()).unwrap_or_default());
    }

    fn mode(&self) -> HandoverMode {
        self.controller.spec.handover.mode
    }
}

/// Tells when the controller comes and goes.
async fn attend(attendance: Attendance, news: mpsc::Sender<News>) {
    let mut there = false;
    loop {
        there = attendance.changed(there).await;
        if news.send(News::Attended(there)).await.is_err() {
            return;
        }
    }
}
