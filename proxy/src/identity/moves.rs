//! Following the map: what the view is asked to do, and what the gate is told when it has.

use std::{collections::BTreeMap, time::Duration};

use shoal_api::{HandoverMode, ShardMap, SlotState};
use shoal_sharding::{Moment, Slot, SlotMap, Slots, shard::Asked};
use tokio::time::{Instant, sleep};

use super::{Identity, News};
use crate::metrics::Metrics;

/// How often slots that are to go are looked at while a write of unknown outcome holds them.
pub(super) const LOOK: Duration = Duration::from_millis(250);

/// How long the gate stays shut after slots are shown: what a controller began to do by half of the change, or by the old state
/// of a slot that came back, is sent by then, and refused, so that it decides anew.
const QUIET: Duration = Duration::from_millis(100);

/// When slots that come here began to leave their last owner.
#[derive(Debug, Default)]
pub(super) struct Arrivals(BTreeMap<Slot, Instant>);

// === impl Arrivals ===

impl Arrivals {
    /// Notes what is on its way to that shard, and forgets what goes elsewhere.
    fn follow(&mut self, map: &SlotMap, shard: &str) {
        for slot in Slots::ALL.iter() {
            let entry = map.entry(slot);
            let comes = entry.state == SlotState::Draining && entry.to.as_deref() == Some(shard);
            if comes {
                self.0.entry(slot).or_insert_with(Instant::now);
            } else if entry.owner.as_deref() != Some(shard) {
                self.0.remove(&slot);
            }
        }
    }

    /// These slots are open: counts one hand-over for all that began together.
    fn opened(&mut self, slots: &Slots, metrics: &Metrics) {
        let begun = slots.iter().filter_map(|slot| self.0.remove(&slot)).min();
        if let Some(begun) = begun {
            metrics.handover.with_label_values(&["whole"]).observe(begun.elapsed().as_secs_f64());
        }
    }
}

// === impl Identity ===

impl Identity {
    /// A map was read. One that is unsound or older leaves the last in force.
    pub(super) fn take_map(&mut self, map: &ShardMap) {
        let read = SlotMap::try_from(&map.spec);
        match read {
            Ok(read) if self.map.as_ref().is_none_or(|seen| seen.version() < read.version()) => {
                self.map = Some(read);
                self.follow();
            }
            Ok(read) => tracing::debug!(version = read.version(), "an older map is ignored"),
            Err(error) => {
                tracing::error!(%error, "the ShardMap is refused whole; the last good stays in force");
            }
        }
    }

    /// Does what the map asks of this shard. A standby is shown what its shard owns.
    pub(super) fn follow(&mut self) {
        let Some(map) = self.map.clone() else { return };
        self.stack.metrics.map_version.set(map.version());
        if let Some(held) = self.tenancy.identity() {
            self.arrivals.follow(&map, &held.shard);
            let asked = self.live.shard().follow(&map);
            match asked {
                Ok(asked) => self.carry_out(&asked),
                Err(error) => tracing::warn!(%error, "the map is refused"),
            }
        } else if let Some(shard) = self.tenancy.standby() {
            let (wanted, shown) = (map.slots_of(shard), self.view.shown());
            self.show(wanted.minus(&shown));
            self.lose(shown.minus(&wanted), HandoverMode::Freeze);
        }
    }

    fn carry_out(&self, asked: &Asked) {
        let Asked { prepare, forget, show, lost } = *asked;
        tracing::info!(?prepare, ?forget, ?show, ?lost, "following the map");
        if !forget.is_empty() {
            self.view.forget(forget);
        }
        if !prepare.is_empty() {
            let (view, news) = (self.view.clone(), self.news.clone());
            let timer = self.stack.metrics.handover.with_label_values(&["prepare"]).start_timer();
            tokio::spawn(async move {
                view.prepare(prepare).await;
                timer.observe_duration();
                let _ = news.send(News::Prepared(prepare)).await;
            });
        }
        self.show(show);
        self.count("lost", &lost);
        self.lose(lost, HandoverMode::Freeze);
    }

    fn count(&self, direction: &str, slots: &Slots) {
        let counter = self.stack.metrics.moved_slots.with_label_values(&[direction]);
        counter.inc_by(u64::try_from(slots.len()).unwrap_or_default());
    }

    fn show(&self, slots: Slots) {
        if slots.is_empty() {
            return;
        }
        let (view, news, turns) = (self.view.clone(), self.news.clone(), self.turns.clone());
        let timer = self.stack.metrics.handover.with_label_values(&["show"]).start_timer();
        tokio::spawn(async move {
            let turn = turns.lock().await;
            let ended = view.show(slots).await;
            drop(turn);
            view.caught_up(&ended).await;
            if view.is_watched() {
                sleep(QUIET).await;
            }
            timer.observe_duration();
            let _ = news.send(News::Shown(slots)).await;
        });
    }

    fn lose(&self, slots: Slots, mode: HandoverMode) {
        if slots.is_empty() {
            return;
        }
        let (view, news, turns) = (self.view.clone(), self.news.clone(), self.turns.clone());
        let timer = self.stack.metrics.handover.with_label_values(&["hide"]).start_timer();
        tokio::spawn(async move {
            let _turn = turns.lock().await;
            view.lose(slots, mode).await;
            timer.observe_duration();
            let _ = news.send(News::Lost(slots)).await;
        });
    }

    /// These slots are shown: writes may begin.
    pub(super) fn open(&mut self, slots: &Slots) {
        self.live.shard().shown(slots);
        self.arrivals.opened(slots, &self.stack.metrics);
        self.count("gained", slots);
    }

    /// Shows nothing new of what this proxy has no part in any more: it lost its shard, or got another.
    pub(super) fn leave_the_rest(&self) {
        let kept = match (&self.map, self.tenancy.identity()) {
            (Some(map), Some(held)) => map.slots_of(&held.shard),
            _ => Slots::NONE,
        };
        self.lose(self.view.shown().minus(&kept).minus(&self.view.frozen()), HandoverMode::Freeze);
    }

    /// A controller that is not there has been shown nothing; one that was shown too much that is lost has to begin anew.
    pub(super) fn look_at_view(&mut self) {
        let frozen = self.view.frozen();
        if frozen.is_empty() {
            return;
        }
        if !self.attended {
            self.view.restarted();
            return;
        }
        let limit = usize::from(self.controller.spec.handover.max_frozen_percent);
        let shown = self.view.shown().len();
        if limit < 100
            && frozen.len() * 100 > shown * limit
            && self.tenancy.identity().is_some()
            && !self.lapses
        {
            tracing::info!(
                frozen = frozen.len(),
                shown,
                "too much that is lost is shown: the lock is let lapse"
            );
            self.lapses = true;
        }
    }

    /// Takes slots out of the view that have come to rest.
    pub(super) fn let_go(&mut self, now: Moment) {
        let idle = self.live.shard().idle(now);
        if idle.is_empty() {
            return;
        }
        self.count("released", &idle);
        match self.mode() {
            HandoverMode::Restart => {
                self.lapses = true;
                self.lose(idle, HandoverMode::Freeze);
            }
            mode => self.lose(idle, mode),
        }
    }
}
