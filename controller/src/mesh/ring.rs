//! The coordinator of one ring: looks, lets the pure rules decide, and does what they say.
//!
//! ```text
//!  every 2 s: list of Leases, map, locks ──▶┐
//!  watch of Leases ────────────────────────▶├─▶ Coordinator::step ──▶ commands ──▶ API server
//!  ring changed ───────────────────────────▶┘        (pure)
//! ```
//!
//! The list is what tells that the API server answers, and what is told of Leases that a watch lost. The watch makes it fast.

mod execute;
mod progress;
mod seen;

use std::{pin::pin, sync::Arc, time::Duration};

use futures_util::TryStreamExt;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, Client, ResourceExt,
    runtime::{WatchStreamExt, watcher},
};
use shoal_api::{ShardMap, ShardedController, ShardedControllerStatus, names};
use shoal_sharding::{
    Moment,
    coordinator::{Coordinator, Report},
    kube::{Fault, lease, map},
    times,
};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout},
};

use self::progress::Progress;
use super::{
    REQUEST,
    clock::Clock,
    lock::Locks,
    status::{self, About},
    world::World,
};
use crate::metrics::Metrics;

/// The least time between two looks: what is decided by a look may ask for another one at once.
const PAUSE: Duration = Duration::from_millis(50);
/// Steps in a row without a look. Each writes a map on the one before, which is rare to need twice.
const STEPS: usize = 4;

/// One ring and what is known of it.
struct Ring {
    client: Client,
    namespace: String,
    name: String,
    clock: Clock,
    controller: Arc<ShardedController>,
    locks: Locks,
    world: World,
    map: Option<ShardMap>,
    /// When the last look that succeeded was asked for.
    looked: Option<Moment>,
    /// When the next one is due.
    due: Instant,
    rules: Coordinator,
    report: Option<Report>,
    /// The status written last.
    status: Option<ShardedControllerStatus>,
    progress: Progress,
    metrics: Arc<Metrics>,
    /// Whether its finalizer is gone, so that nothing is left to do.
    finished: bool,
}

/// Coordinates a ring until it is gone.
pub async fn run(client: Client, mut news: watch::Receiver<Arc<ShardedController>>, metrics: Arc<Metrics>) {
    let controller = news.borrow_and_update().clone();
    let mut ring = Ring::new(client, controller, metrics);
    let labelled = watcher::Config::default().labels(&format!("{}={}", names::RING_LABEL, ring.name));
    let mut events = pin!(watcher(ring.leases(), labelled).default_backoff());
    tracing::info!(ring = ring.full_name(), "coordinating");
    while !ring.finished {
        tokio::select! {
            changed = news.changed() => match changed {
                Ok(()) => ring.controller = news.borrow_and_update().clone(),
                Err(_) => break,
            },
            event = events.try_next() => match event {
                Ok(Some(event)) => ring.note(event),
                Ok(None) => break,
                Err(error) => tracing::debug!(ring = ring.full_name(), %error, "watching Leases"),
            },
            () = sleep_until(ring.due) => ring.look().await,
        }
        ring.act().await;
    }
    ring.metrics.forget(&ring.full_name());
    tracing::info!(ring = ring.full_name(), "gone");
}

// === impl Ring ===

impl Ring {
    fn new(client: Client, controller: Arc<ShardedController>, metrics: Arc<Metrics>) -> Self {
        let (namespace, name) = (controller.namespace().unwrap_or_default(), controller.name_any());
        Self {
            client,
            locks: Locks::new(&namespace, &name),
            namespace,
            name,
            clock: Clock::new(),
            status: controller.status.clone(),
            controller,
            world: World::default(),
            map: None,
            looked: None,
            due: Instant::now(),
            rules: Coordinator::default(),
            report: None,
            progress: Progress::default(),
            metrics,
            finished: false,
        }
    }

    fn full_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    fn leases(&self) -> Api<Lease> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    fn maps(&self) -> Api<ShardMap> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    fn rings(&self) -> Api<ShardedController> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    fn note(&mut self, event: watcher::Event<Lease>) {
        match event {
            watcher::Event::Apply(lease) | watcher::Event::InitApply(lease) => {
                if let Some((seat, seen)) = lease::seat_of(&self.name, &lease) {
                    self.world.changed(seat, seen);
                }
            }
            watcher::Event::Delete(lease) => {
                if let Some((seat, seen)) = lease::seat_of(&self.name, &lease) {
                    self.world.gone(seat, &seen);
                }
            }
            // What a new watch lacks, the next look tells.
            watcher::Event::Init | watcher::Event::InitDone => {}
        }
    }

    /// Reads everything that is not watched, and the Leases once more.
    async fn look(&mut self) {
        let asked = Instant::now();
        let looked = self.clock.now();
        self.due = asked + times::RENEW;
        self.locks.follow(&self.controller.spec.leader_election.locks);
        match timeout(REQUEST, self.read()).await {
            Ok(Ok(())) => {
                self.note_blindness(looked);
                self.looked = Some(looked);
            }
            Ok(Err(fault)) => self.failed(&fault),
            Err(_) => self.silent(),
        }
    }

    async fn read(&mut self) -> Result<(), Fault> {
        let (leases, maps) = (self.leases(), self.maps());
        let found = tokio::join!(lease::read_all(&leases, &self.name), map::read(&maps, &self.name));
        let leases = found.0?;
        let map = match found.1 {
            Ok(map) => Some(map),
            Err(Fault::NotFound(_)) => None,
            Err(fault) => return Err(fault),
        };
        self.locks.keep(&self.client, self.clock.now()).await?;
        self.world.listed(leases);
        self.follow_map(map);
        Ok(())
    }

    fn follow_map(&mut self, map: Option<ShardMap>) {
        let now = self.clock.now();
        self.progress.follow(now, map.as_ref().map(|map| &map.spec), &self.world);
        self.progress.tell(&self.metrics, &format!("{}/{}", self.namespace, self.name));
        self.map = map;
    }

    /// Lets the rules decide on what is known, and does it.
    async fn act(&mut self) {
        let Some(looked) = self.looked.filter(|_| self.locks.known()) else { return };
        match timeout(REQUEST, self.prepare()).await {
            Ok(Ok(false)) => {}
            // What was written comes back by the watch.
            Ok(Ok(true)) => return,
            Ok(Err(fault)) => return self.failed(&fault),
            Err(_) => return self.silent(),
        }
        for _ in 0..STEPS {
            let seen = seen::seen(&self.controller, self.map.as_ref(), &self.world, &self.locks, looked);
            let decision = self.rules.step(self.clock.now(), &seen);
            self.due = self.clock.instant(decision.wake).max(self.clock.instant(looked) + PAUSE);
            if !self.execute(decision.commands).await {
                break;
            }
        }
        if !self.finished {
            self.tell().await;
        }
    }

    /// What has to be so before the rules decide: the finalizer is there, wishes that came true are cleared. Says whether
    /// that had to be written.
    async fn prepare(&mut self) -> Result<bool, Fault> {
        let deleting = self.controller.metadata.deletion_timestamp.is_some();
        let guarded = self.controller.finalizers().iter().any(|finalizer| finalizer == names::RING_FINALIZER);
        match (deleting, guarded) {
            (true, false) => {
                self.finished = true;
                Ok(true)
            }
            (false, false) => self.guard(true).await.map(|()| true),
            (_, true) => self.clear_wishes().await,
        }
    }

    /// Writes the status, if there is news.
    async fn tell(&mut self) {
        let Some(report) = &self.report else { return };
        let about = About {
            generation: self.controller.metadata.generation.unwrap_or_default(),
            map: self.map.as_ref().map(|map| &map.spec),
            world: &self.world,
            report,
            also: seen::wishes(&self.controller).err().map(|error| error.to_string()),
        };
        let status = status::status(&about, self.status.as_ref());
        if self.status.as_ref() == Some(&status) {
            return;
        }
        match timeout(REQUEST, self.write_status(&status)).await {
            Ok(Ok(())) => self.status = Some(status),
            Ok(Err(fault)) => self.failed(&fault),
            Err(_) => self.silent(),
        }
    }

    fn note_blindness(&self, looked: Moment) {
        let gap = self.looked.map_or(Duration::ZERO, |last| looked.since(last));
        if gap > times::sight() {
            tracing::warn!(ring = self.full_name(), seconds = gap.as_secs_f64(), "was blind");
            self.metrics.blind.with_label_values(&[&self.full_name()]).inc_by(gap.as_secs_f64());
        }
    }

    /// Looks again soon: what was decided on has changed, or the API server has trouble.
    fn failed(&mut self, fault: &Fault) {
        let kind = match fault {
            Fault::Conflict(_) | Fault::AlreadyExists(_) | Fault::NotFound(_) => "conflict",
            Fault::Refused(..) => "refused",
            Fault::Unreachable(..) => "unreachable",
        };
        if kind == "conflict" {
            tracing::debug!(ring = self.full_name(), %fault);
            self.due = Instant::now() + PAUSE;
        } else {
            tracing::warn!(ring = self.full_name(), %fault);
            self.due = Instant::now() + times::RENEW / 2;
        }
        self.metrics.faults.with_label_values(&[&self.full_name(), kind]).inc();
    }

    fn silent(&mut self) {
        tracing::warn!(ring = self.full_name(), "no answer in time");
        self.metrics.faults.with_label_values(&[&self.full_name(), "silent"]).inc();
        self.due = Instant::now() + PAUSE;
    }
}
