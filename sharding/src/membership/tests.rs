use super::*;
use crate::Acks;

const START: Moment = Moment(100_000);

fn after(seconds: u64) -> Moment {
    START + Duration::from_secs(seconds)
}

fn lease(shard: &str, version: u64, left: Option<Left>) -> Observed {
    let holder = left.is_none().then(|| format!("{shard}-pod"));
    let (shard, version) = (shard.to_owned(), version.to_string());
    Observed { shard, version, holder, term: 1, left, acks: Acks::default() }
}

fn look(members: &mut Membership, at: Moment, leases: &[Observed]) {
    members.observe(at, at, leases.len(), &BTreeSet::new(), leases);
}

/// Looks every second, at Leases that do not change.
fn watch(members: &mut Membership, seconds: std::ops::RangeInclusive<u64>, leases: &[Observed]) {
    seconds.for_each(|second| look(members, after(second), leases));
}

#[test]
fn a_shard_is_silent_after_a_full_period_without_a_change() {
    let (mut members, held) = (Membership::default(), [lease("a", 1, None)]);
    watch(&mut members, 0..=10, &held);
    assert_eq!((members.state("a"), members.to_depose(after(10))), (State::Alive, vec![]));
    watch(&mut members, 11..=11, &held);
    assert_eq!((members.state("a"), members.to_depose(after(11))), (State::Silent, held.to_vec()));
    watch(&mut members, 12..=12, &[lease("a", 2, None)]);
    assert_eq!((members.state("a"), members.to_depose(after(12))), (State::Alive, vec![]));
}

#[test]
fn time_without_an_answer_does_not_count() {
    let (mut members, held) = (Membership::default(), [lease("a", 1, None), lease("b", 1, None)]);
    watch(&mut members, 0..=8, &held);
    assert!(!members.is_blind(after(12)) && members.is_blind(after(13)));
    watch(&mut members, 69..=79, &held);
    assert_eq!(members.state("a"), State::Alive, "both get a full period after the gap");
    watch(&mut members, 80..=80, &held);
    assert_eq!(members.state("a"), State::Silent);
}

#[test]
fn a_change_is_dated_late_and_a_look_early() {
    let (mut members, held) = (Membership::default(), [lease("a", 1, None)]);
    members.observe(after(2), after(0), 1, &BTreeSet::new(), &held);
    for second in 1..=12 {
        members.observe(after(second + 2), after(second), 1, &BTreeSet::new(), &held);
        assert_eq!(members.state("a"), State::Alive, "asked at {second}, renewed until 2 at the latest");
    }
    members.observe(after(15), after(13), 1, &BTreeSet::new(), &held);
    assert_eq!(members.state("a"), State::Silent);
}

#[test]
fn no_more_than_a_third_is_deposed_within_a_period() {
    let names: Vec<String> = (0..7).map(|number| format!("s-{number}")).collect();
    let mut leases: Vec<Observed> = names.iter().map(|name| lease(name, 1, None)).collect();
    let mut members = Membership::default();
    watch(&mut members, 0..=11, &leases);
    let first = members.to_depose(after(11));
    assert_eq!(first.len(), 2, "two of seven");
    assert_eq!(members.to_depose(after(11)), first, "the same again, until it is seen done");
    for deposed in &first {
        let lease = leases.iter_mut().find(|lease| lease.shard == deposed.shard).unwrap();
        *lease = Observed { version: "2".into(), holder: None, left: Some(Left::Deposed), ..lease.clone() };
    }
    watch(&mut members, 12..=22, &leases);
    assert_eq!(members.to_depose(after(22)), []);
    watch(&mut members, 23..=23, &leases);
    assert_eq!(members.to_depose(after(23)).len(), 2);
    assert!(members.to_depose(after(23)).iter().all(|lease| !first.contains(lease)));
}

#[test]
fn the_states_of_a_lease_without_a_holder() {
    let mut members = Membership::default();
    for left in [Left::Graceful, Left::ControllerExit, Left::Deposed] {
        look(&mut members, START, &[lease("a", 1, Some(left))]);
        assert_eq!(members.state("a"), State::Left(left));
    }
    let vacant = Observed { holder: None, ..lease("a", 1, None) };
    look(&mut members, START, &[vacant]);
    assert_eq!(members.state("a"), State::Vacant);
    members.observe(START, START, 1, &["a"].into(), &[]);
    assert_eq!((members.state("a"), members.term("a")), (State::Absent, 1));
    members.observe(START, START, 1, &BTreeSet::new(), &[]);
    assert_eq!((members.shards().count(), members.term("a")), (0, 0));
}

#[test]
fn a_shard_that_fell_is_steady_again_after_it_has_held_for_a_while() {
    let mut members = Membership::default();
    look(&mut members, START, &[lease("a", 1, None)]);
    assert!(members.is_steady("a", START), "it never fell");
    look(&mut members, after(1), &[lease("a", 2, Some(Left::ControllerExit))]);
    look(&mut members, after(2), &[lease("a", 3, None)]);
    assert!(!members.is_steady("a", after(61)) && members.is_steady("a", after(62)));
    look(&mut members, after(62), &[lease("a", 4, None)]);
    look(&mut members, after(63), &[lease("a", 5, Some(Left::Graceful))]);
    look(&mut members, after(64), &[lease("a", 6, None)]);
    assert!(members.is_steady("a", after(64)), "it left gracefully since");
}
