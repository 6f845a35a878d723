//! How moves go, as one map after the other shows it: for the metrics only.

use std::{collections::BTreeMap, time::Duration};

use shoal_api::{ShardMapSpec, SlotRange, SlotState};
use shoal_sharding::{Left, Moment, Seat, Slot};

use crate::{mesh::world::World, metrics::Metrics};

/// What was seen of each slot, and what has not been told yet.
#[derive(Debug, Default)]
pub(super) struct Progress {
    version: i64,
    tracks: BTreeMap<Slot, Track>,
    /// When the map was last looked at.
    at: Moment,
    unowned: Duration,
    moves: Vec<&'static str>,
    phases: Vec<(&'static str, Duration)>,
}

/// One slot.
#[derive(Clone, Copy, Debug)]
struct Track {
    phase: Phase,
    since: Moment,
    epoch: i64,
    /// Why it last lost its owner, or is to lose it.
    reason: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Owned,
    Announced,
    Draining,
    Orphan,
}

// === impl Progress ===

impl Progress {
    /// Takes over a map that was read or written.
    pub(super) fn follow(&mut self, now: Moment, map: Option<&ShardMapSpec>, world: &World) {
        let orphans = u32::try_from(self.count(Phase::Orphan)).unwrap_or(u32::MAX);
        self.unowned += now.since(self.at) * orphans;
        self.at = now;
        let Some(map) = map else { return };
        self.version = map.version;
        for range in &map.slots {
            for slot in range.first..=range.last {
                self.slot(now, Slot(slot), range, world);
            }
        }
    }

    fn slot(&mut self, now: Moment, slot: Slot, range: &SlotRange, world: &World) {
        let (phase, epoch, owner) = (Phase::of(range), range.epoch, range.owner.as_deref());
        let track = self.tracks.entry(slot).or_insert(Track { phase, since: now, epoch, reason: "first" });
        // The owner's Lease is looked at while the map still names it.
        let left = owner.and_then(|owner| world.get(Seat::Identity, owner)?.left);
        let reason = left.map_or("planned", reason);
        if (track.phase, track.epoch) == (phase, epoch) {
            if phase != Phase::Orphan {
                track.reason = reason;
            }
            return;
        }
        if track.epoch != epoch {
            self.moves.push(track.reason);
        }
        self.phases.extend(track.phase.handover().map(|name| (name, now.since(track.since))));
        let reason = if phase == Phase::Orphan { track.reason } else { reason };
        *track = Track { phase, since: now, epoch, reason };
    }

    fn count(&self, phase: Phase) -> usize {
        self.tracks.values().filter(|track| track.phase == phase).count()
    }

    /// Adds what is new to the metrics.
    pub(super) fn tell(&mut self, metrics: &Metrics, ring: &str) {
        let moving = self.count(Phase::Announced) + self.count(Phase::Draining);
        let states =
            [("owned", self.count(Phase::Owned)), ("moving", moving), ("orphan", self.count(Phase::Orphan))];
        for (state, slots) in states {
            metrics.slots.with_label_values(&[ring, state]).set(i64::try_from(slots).unwrap_or_default());
        }
        metrics.map_version.with_label_values(&[ring]).set(self.version);
        metrics.unowned.with_label_values(&[ring]).inc_by(self.unowned.as_secs_f64());
        self.unowned = Duration::ZERO;
        for reason in self.moves.drain(..) {
            metrics.moves.with_label_values(&[ring, reason]).inc();
        }
        for (phase, took) in self.phases.drain(..) {
            metrics.handover.with_label_values(&[ring, phase]).observe(took.as_secs_f64());
        }
    }
}

// === impl Phase ===

impl Phase {
    fn of(range: &SlotRange) -> Self {
        match range.state {
            SlotState::Owned if range.to.is_some() => Self::Announced,
            SlotState::Owned => Self::Owned,
            SlotState::Draining => Self::Draining,
            SlotState::Orphan => Self::Orphan,
        }
    }

    /// The phase of a hand-over that it is, if any.
    fn handover(self) -> Option<&'static str> {
        match self {
            Self::Owned => None,
            Self::Announced => Some("prepare"),
            Self::Draining => Some("drain"),
            Self::Orphan => Some("orphan"),
        }
    }
}

fn reason(left: Left) -> &'static str {
    match left {
        Left::Graceful => "left",
        Left::ControllerExit => "exit",
        Left::Deposed => "deposed",
    }
}

#[cfg(test)]
mod tests {
    use shoal_api::{HashAlgorithm, Keying};
    use shoal_sharding::Observed;

    use super::*;

    fn map(
        version: i64,
        epoch: i64,
        state: SlotState,
        owner: Option<&str>,
        to: Option<&str>,
    ) -> ShardMapSpec {
        let (owner, to) = (owner.map(str::to_owned), to.map(str::to_owned));
        let slots = vec![SlotRange { first: 0, last: 255, owner, epoch, state, to, pin: None }];
        ShardMapSpec { version, keying: Keying { algorithm: HashAlgorithm::Xxh3_64, slots: 256 }, slots }
    }

    fn text(metrics: &Metrics) -> String {
        String::from_utf8(metrics.render().unwrap()).unwrap()
    }

    #[test]
    fn a_move_is_counted_by_its_reason_and_timed_by_its_phases() {
        let (mut progress, mut world) = (Progress::default(), World::default());
        let metrics = Metrics::new().unwrap();
        let (a, b) = (Some("a-0"), Some("a-1"));
        progress.follow(Moment(0), Some(&map(1, 1, SlotState::Orphan, None, None)), &world);
        progress.follow(Moment(1000), Some(&map(2, 2, SlotState::Owned, a, None)), &world);
        progress.follow(Moment(2000), Some(&map(3, 2, SlotState::Owned, a, b)), &world);
        progress.follow(Moment(2250), Some(&map(4, 2, SlotState::Draining, a, b)), &world);
        progress.follow(Moment(2500), Some(&map(5, 3, SlotState::Owned, b, None)), &world);
        let deposed = Observed {
            shard: "a-1".into(),
            version: "9".into(),
            left: Some(Left::Deposed),
            ..Default::default()
        };
        world.changed(Seat::Identity, deposed);
        progress.follow(Moment(3000), Some(&map(5, 3, SlotState::Owned, b, None)), &world);
        progress.follow(Moment(3100), Some(&map(6, 3, SlotState::Orphan, None, a)), &world);
        progress.follow(Moment(8100), Some(&map(7, 4, SlotState::Owned, a, None)), &world);
        progress.tell(&metrics, "n/a");
        let text = text(&metrics);
        for line in [
            r#"shoal_ring_moves_total{reason="first",ring="n/a"} 256"#,
            r#"shoal_ring_moves_total{reason="planned",ring="n/a"} 256"#,
            r#"shoal_ring_moves_total{reason="deposed",ring="n/a"} 256"#,
            r#"shoal_ring_handover_seconds_sum{phase="prepare",ring="n/a"} 64"#,
            r#"shoal_ring_handover_seconds_sum{phase="drain",ring="n/a"} 64"#,
            r#"shoal_ring_slots{ring="n/a",state="owned"} 256"#,
            r#"shoal_ring_map_version{ring="n/a"} 7"#,
            // A second at first, five after the shard was deposed.
            r#"shoal_ring_unowned_slot_seconds_total{ring="n/a"} 1536"#,
        ] {
            assert!(text.contains(line), "{line} in\n{text}");
        }
    }
}
