//! What is written into the status of a ring.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use shoal_api::{ShardMapSpec, ShardState, ShardStatus, ShardedControllerStatus};
use shoal_sharding::{
    Left, Seat,
    coordinator::{Report, Trouble},
    membership::State,
};

use super::world::World;

/// What there is to say, and about what.
#[derive(Debug)]
pub struct About<'a> {
    /// The generation of the spec.
    pub generation: i64,
    /// The map, if there is one.
    pub map: Option<&'a ShardMapSpec>,
    /// The Leases.
    pub world: &'a World,
    /// What the coordinator makes of them.
    pub report: &'a Report,
    /// What is wrong beside that.
    pub also: Option<String>,
}

/// The status, with the times of conditions that have not changed since `last`.
pub fn status(about: &About<'_>, last: Option<&ShardedControllerStatus>) -> ShardedControllerStatus {
    let last = last.map(|status| status.conditions.as_slice()).unwrap_or_default();
    let conditions = [ready(about), progressing(about), degraded(about)];
    let shards =
        about.report.shards.iter().map(|(name, shard)| self::shard(about, name, shard.state, shard.slots));
    let mut shards: Vec<ShardStatus> = shards.collect();
    // By number: a name of more digits comes later.
    shards.sort_by(|a, b| (a.name.len(), &a.name).cmp(&(b.name.len(), &b.name)));
    ShardedControllerStatus {
        observed_generation: about.generation,
        map_version: about.map.map_or(0, |map| map.version),
        shards,
        conditions: conditions
            .into_iter()
            .map(|condition| dated(condition, about.generation, last))
            .collect(),
    }
}

fn shard(about: &About<'_>, name: &str, state: State, slots: usize) -> ShardStatus {
    let lease = about.world.get(Seat::Identity, name);
    ShardStatus {
        name: name.to_owned(),
        state: match state {
            State::Alive => ShardState::Alive,
            State::Silent => ShardState::Silent,
            State::Left(Left::Graceful) => ShardState::Restarting,
            State::Left(_) | State::Vacant | State::Absent => ShardState::Vacant,
        },
        holder: lease.and_then(|lease| lease.holder.clone()),
        term: lease.map_or(0, |lease| lease.term),
        slots: u16::try_from(slots).unwrap_or(u16::MAX),
        moving: about.map.map_or(0, |map| moving(map, name)),
    }
}

fn moving(map: &ShardMapSpec, shard: &str) -> u16 {
    let comes = |to: &Option<String>| to.as_deref() == Some(shard);
    let goes = |range: &&shoal_api::SlotRange| {
        comes(&range.to)
            || (comes(&range.owner) && (range.to.is_some() || range.state != shoal_api::SlotState::Owned))
    };
    map.slots.iter().filter(goes).map(|range| u16::from(range.last - range.first) + 1).sum()
}

/// A condition without its time: type, whether, reason, message.
type Said = (&'static str, bool, &'static str, String);

fn ready(About { map, report, .. }: &About<'_>) -> Said {
    // A shard without a holder is none of these: its slots are at others.
    let serious = |trouble: &&Trouble| !matches!(trouble, Trouble::NoHolder(_) | Trouble::NotReady(_));
    let trouble = report.troubles.iter().find(serious);
    match (map, trouble) {
        (None, _) => ("Ready", false, "NoMap", "there is no ShardMap yet".to_owned()),
        (_, Some(trouble)) => ("Ready", false, reason(trouble), trouble.to_string()),
        _ if report.orphans > 0 => {
            ("Ready", false, "Orphans", format!("{} slots have no owner", report.orphans))
        }
        _ => ("Ready", true, "AllOwned", "every slot has an owner that is alive".to_owned()),
    }
}

fn progressing(About { report, .. }: &About<'_>) -> Said {
    if report.moving + report.orphans == 0 {
        return ("Progressing", false, "Settled", "no slot is on its way".to_owned());
    }
    let message = format!("{} slots are moving, {} have no owner", report.moving, report.orphans);
    ("Progressing", true, "Moving", message)
}

fn degraded(About { report, also, .. }: &About<'_>) -> Said {
    let troubles = report.troubles.iter().map(ToString::to_string).chain(also.clone());
    let message = troubles.collect::<Vec<_>>().join("; ");
    match report.troubles.first() {
        Some(trouble) => ("Degraded", true, reason(trouble), message),
        None if also.is_some() => ("Degraded", true, "BadWishes", message),
        None => ("Degraded", false, "AsExpected", "nothing is wrong".to_owned()),
    }
}

fn reason(trouble: &Trouble) -> &'static str {
    match trouble {
        Trouble::BadMap(_) => "BadMap",
        Trouble::LocksNotHeld => "LocksNotHeld",
        Trouble::NoLivingShard => "NoLivingShard",
        Trouble::NoHolder(_) => "NoHolder",
        Trouble::Silent(_) => "Silent",
        Trouble::NotReady(_) => "NotReady",
        Trouble::NoVersion(_) => "NoVersion",
    }
}

fn dated((type_, whether, reason, message): Said, generation: i64, last: &[Condition]) -> Condition {
    let status = if whether { "True" } else { "False" };
    let before = last.iter().find(|condition| condition.type_ == type_ && condition.status == status);
    let since =
        before.map_or_else(|| Time(Timestamp::now()), |condition| condition.last_transition_time.clone());
    Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        observed_generation: Some(generation),
        last_transition_time: since,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(report: &Report, map: Option<&ShardMapSpec>) -> Vec<(String, String, String)> {
        let about = About { generation: 3, map, world: &World::default(), report, also: None };
        let status = status(&about, None);
        let said = |c: &Condition| (c.type_.clone(), c.status.clone(), c.reason.clone());
        status.conditions.iter().map(said).collect()
    }

    fn map() -> ShardMapSpec {
        let keying = shoal_api::Keying { algorithm: shoal_api::HashAlgorithm::Xxh3_64, slots: 256 };
        ShardMapSpec { version: 4, keying, slots: Vec::new() }
    }

    fn troubled(trouble: Trouble) -> Report {
        Report { troubles: [trouble].into(), ..Report::default() }
    }

    fn row(type_: &str, status: &str, reason: &str) -> (String, String, String) {
        (type_.to_owned(), status.to_owned(), reason.to_owned())
    }

    #[test]
    fn a_whole_ring_is_ready_and_nothing_else() {
        assert_eq!(
            said(&Report::default(), Some(&map())),
            [
                row("Ready", "True", "AllOwned"),
                row("Progressing", "False", "Settled"),
                row("Degraded", "False", "AsExpected")
            ]
        );
        assert_eq!(said(&Report::default(), None)[0], row("Ready", "False", "NoMap"));
    }

    #[test]
    fn a_ring_without_one_shard_serves_all_and_is_degraded() {
        let said = said(&troubled(Trouble::NoHolder("a-1".to_owned())), Some(&map()));
        assert_eq!((&said[0].1, &said[2].1), (&"True".to_owned(), &"True".to_owned()));
    }

    #[test]
    fn what_keeps_the_ring_from_its_work_is_the_reason() {
        let said = said(&troubled(Trouble::LocksNotHeld), Some(&map()));
        assert_eq!(said[0], row("Ready", "False", "LocksNotHeld"));
        assert_eq!(said[2], row("Degraded", "True", "LocksNotHeld"));
    }

    #[test]
    fn the_time_of_a_condition_stays_while_its_status_does() {
        let (map, world) = (map(), World::default());
        let about = |report| About { generation: 1, map: Some(&map), world: &world, report, also: None };
        let whole = Report::default();
        let mut first = status(&about(&whole), None);
        for condition in &mut first.conditions {
            condition.last_transition_time = Time(Timestamp::UNIX_EPOCH);
        }
        assert_eq!(status(&about(&whole), Some(&first)), first);
        let worse = troubled(Trouble::NoLivingShard);
        let second = status(&about(&worse), Some(&first));
        assert_ne!(second.conditions[0].last_transition_time, first.conditions[0].last_transition_time);
        assert_eq!(second.conditions[1].last_transition_time, first.conditions[1].last_transition_time);
    }
}
