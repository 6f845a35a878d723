use shoal_api::{HashAlgorithm, Keying, ShardMapSpec, SlotRange};

use super::*;
use crate::times;

/// Slot 0 as given, all others an orphan at epoch 1.
fn map(version: i64, owner: Option<&str>, epoch: i64, state: SlotState, to: Option<&str>) -> SlotMap {
    let range = |first, last, owner: Option<&str>, epoch, state, to: Option<&str>| SlotRange {
        first,
        last,
        owner: owner.map(str::to_owned),
        epoch,
        state,
        to: to.map(str::to_owned),
        pin: None,
    };
    let slots = vec![range(0, 0, owner, epoch, state, to), range(1, 255, None, 1, SlotState::Orphan, None)];
    let spec =
        ShardMapSpec { version, keying: Keying { algorithm: HashAlgorithm::Xxh3_64, slots: 256 }, slots };
    SlotMap::try_from(&spec).unwrap()
}

const S: Slot = Slot(0);
const NOW: Moment = Moment(1000);

fn one() -> Slots {
    std::iter::once(S).collect()
}

/// A shard that owns slot 0 at epoch 1, open.
fn owner(name: &str) -> Shard {
    let mut shard = Shard::new(name);
    shard.renewed(NOW);
    assert_eq!(shard.follow(&map(1, Some(name), 1, SlotState::Owned, None)).unwrap().show, one());
    shard.shown(&one());
    shard
}

#[test]
fn a_slot_goes_from_one_shard_to_another() {
    let (mut a, mut b) = (owner("a"), Shard::new("b"));
    b.renewed(NOW);
    let announced = map(2, Some("a"), 1, SlotState::Owned, Some("b"));
    assert_eq!(a.follow(&announced), Ok(Asked::default()));
    assert_eq!(b.follow(&announced).unwrap(), Asked { prepare: one(), ..Asked::default() });
    let ticket = a.enter(S, NOW).unwrap();
    b.prepared(&one());
    assert_eq!(b.acks().to_string(), "map=2 ready=0@1");

    let draining = map(3, Some("a"), 1, SlotState::Draining, Some("b"));
    assert_eq!(a.follow(&draining), Ok(Asked::default()));
    assert_eq!(b.follow(&draining), Ok(Asked::default()));
    assert_eq!((a.enter(S, NOW), b.enter(S, NOW)), (Err(Shut::Leaving), Err(Shut::Foreign)));
    assert!(a.idle(NOW).is_empty(), "a write is under way");
    a.leave(ticket, Outcome::Known, NOW);
    assert_eq!(a.idle(NOW), one());
    assert_eq!(a.acks().released, [], "the view still shows it");
    a.released(&one());
    assert_eq!(a.acks().to_string(), "map=3 released=0@1");

    let granted = map(4, Some("b"), 2, SlotState::Owned, None);
    assert_eq!(a.follow(&granted), Ok(Asked::default()));
    assert_eq!(b.follow(&granted).unwrap(), Asked { show: one(), ..Asked::default() });
    assert_eq!((a.enter(S, NOW), b.enter(S, NOW)), (Err(Shut::Foreign), Err(Shut::Arriving)));
    assert_eq!(b.acks().to_string(), "map=3", "not shown yet");
    b.shown(&one());
    assert_eq!(b.enter(S, NOW), Ok(Ticket { slot: S, epoch: 2 }));
    assert_eq!(b.acks().to_string(), "map=4");
}

#[test]
fn an_unknown_outcome_holds_the_slot_until_it_can_no_longer_come() {
    let mut a = owner("a");
    let ticket = a.enter(S, NOW).unwrap();
    a.leave(ticket, Outcome::Unknown, NOW);
    a.follow(&map(2, Some("a"), 1, SlotState::Draining, None)).unwrap();
    let over = NOW + times::WRITE + times::STORE;
    assert!(a.idle(Moment(over.0 - 1)).is_empty());
    assert_eq!(a.unknowns(), 1);
    assert_eq!(a.idle(over), one());
    assert_eq!(a.unknowns(), 0);
}

#[test]
fn what_was_let_go_is_never_taken_up_at_the_same_epoch() {
    let mut a = owner("a");
    a.follow(&map(2, Some("a"), 1, SlotState::Draining, Some("b"))).unwrap();
    a.idle(NOW);
    a.released(&one());
    let back = a.follow(&map(3, Some("a"), 1, SlotState::Owned, None)).unwrap();
    assert_eq!((back, a.enter(S, NOW)), (Asked::default(), Err(Shut::Leaving)));
    assert_eq!(a.follow(&map(4, Some("a"), 2, SlotState::Owned, None)).unwrap().show, one());
}

#[test]
fn a_write_needs_a_lease_with_a_margin() {
    let mut a = owner("a");
    let end = NOW + times::held_lease();
    let margin = u64::try_from(times::MARGIN.as_millis()).unwrap();
    let ticket = a.enter(S, Moment(end.0 - margin - 1)).unwrap();
    assert_eq!(a.enter(S, Moment(end.0 - margin)), Err(Shut::NoLease));
    assert_eq!(a.still(ticket, end), Err(Shut::NoLease), "it is checked again before it is sent");
    a.renewed(Moment(0));
    assert_eq!(a.still(ticket, NOW), Ok(()), "an old answer takes nothing away");
    a.lapse();
    assert_eq!(a.still(ticket, NOW), Err(Shut::NoLease));
}

#[test]
fn a_ticket_is_good_for_its_epoch_only() {
    let mut a = owner("a");
    let ticket = a.enter(S, NOW).unwrap();
    let asked = a.follow(&map(5, Some("a"), 3, SlotState::Owned, None)).unwrap();
    assert_eq!((asked.show, a.still(ticket, NOW)), (one(), Err(Shut::Arriving)));
    a.shown(&one());
    assert_eq!(a.still(ticket, NOW), Err(Shut::Foreign));
}

#[test]
fn an_older_map_is_refused() {
    let mut a = owner("a");
    a.follow(&map(7, Some("b"), 2, SlotState::Owned, None)).unwrap();
    let old = a.follow(&map(6, Some("a"), 1, SlotState::Owned, None));
    assert_eq!(old, Err(OldMap { found: 6, seen: 7 }));
    assert_eq!(a.enter(S, NOW), Err(Shut::Foreign));
}

#[test]
fn a_shard_that_was_deposed_loses_what_it_showed() {
    let mut a = owner("a");
    let asked = a.follow(&map(2, None, 1, SlotState::Orphan, Some("b"))).unwrap();
    assert_eq!(asked, Asked { lost: one(), ..Asked::default() });
    assert_eq!(a.phase(S), None);
}

#[test]
fn what_was_prepared_is_forgotten_when_it_goes_elsewhere_and_kept_when_it_comes() {
    let mut b = Shard::new("b");
    b.follow(&map(1, Some("a"), 1, SlotState::Owned, Some("b"))).unwrap();
    b.prepared(&one());
    let again = b.follow(&map(2, None, 1, SlotState::Orphan, Some("b"))).unwrap();
    assert_eq!((again, b.phase(S)), (Asked::default(), Some(Phase::Ready(1))));
    let asked = b.follow(&map(3, Some("c"), 2, SlotState::Owned, None)).unwrap();
    assert_eq!(asked, Asked { forget: one(), ..Asked::default() });
}

#[test]
fn another_identity_owns_nothing_of_the_last_one() {
    let mut a = owner("a");
    let ticket = a.enter(S, NOW).unwrap();
    a.become_shard("b");
    a.renewed(NOW);
    assert_eq!(a.enter(S, NOW), Err(Shut::Foreign));
    assert!(a.follow(&map(2, Some("b"), 2, SlotState::Draining, None)).is_ok());
    assert!(a.idle(NOW).is_empty(), "the write is still under way");
    a.leave(ticket, Outcome::Known, NOW);
    assert_eq!(a.idle(NOW), one());
}

#[test]
fn the_end_of_a_write_is_awaited_only_where_something_is_to_rest() {
    let mut a = owner("a");
    assert!(!a.awaits_rest());
    a.follow(&map(2, Some("a"), 1, SlotState::Draining, Some("b"))).unwrap();
    assert!(a.awaits_rest());
    a.idle(NOW);
    assert!(!a.awaits_rest());
    a.lapse();
    assert!(a.awaits_rest(), "the whole shard is given back");
}
