//! Following the map: what the view is asked to do, and what the gate is told when it has.

use std::time::Duration;

use shoal_api::{HandoverMode, ShardMap};
use shoal_sharding::{Moment, SlotMap, Slots, shard::Asked};

use super::{Identity, News};

/// How often slots that are to go are looked at while a write of unknown outcome holds them.
pub(super) const LOOK: Duration = Duration::from_millis(250);

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
        if self.tenancy.identity().is_some() {
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
            tokio::spawn(async move {
                view.prepare(prepare).await;
                let _ = news.send(News::Prepared(prepare)).await;
            });
        }
        self.show(show);
        self.lose(lost, HandoverMode::Freeze);
    }

    fn show(&self, slots: Slots) {
        if slots.is_empty() {
            return;
        }
        let (view, news, turns) = (self.view.clone(), self.news.clone(), self.turns.clone());
        tokio::spawn(async move {
            let _turn = turns.lock().await;
            view.show(slots).await;
            let _ = news.send(News::Shown(slots)).await;
        });
    }

    fn lose(&self, slots: Slots, mode: HandoverMode) {
        if slots.is_empty() {
            return;
        }
        let (view, news, turns) = (self.view.clone(), self.news.clone(), self.turns.clone());
        tokio::spawn(async move {
            let _turn = turns.lock().await;
            view.lose(slots, mode).await;
            let _ = news.send(News::Lost(slots)).await;
        });
    }

    /// These slots are shown: writes may begin.
    pub(super) fn open(&mut self, slots: &Slots) {
        self.live.shard().shown(slots);
        self.live.tell();
    }

    /// Takes slots out of the view that have come to rest.
    pub(super) fn let_go(&mut self, now: Moment) {
        let idle = self.live.shard().idle(now);
        if idle.is_empty() {
            return;
        }
        match self.mode() {
            HandoverMode::Restart => {
                self.lapses = true;
                self.lose(idle, HandoverMode::Freeze);
            }
            mode => self.lose(idle, mode),
        }
    }
}
