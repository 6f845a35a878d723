//! What a coordinator makes of death, silence and outages, its own included.

use shoal_api::SlotState;

use super::{World, world::TICK, *};
use crate::membership::State;

#[test]
fn without_a_coordinator_nothing_changes() {
    let mut world = World::running(3);
    let (maps, slots) = (world.maps.len(), world.slots());
    world.coordinators.clear();
    world.run(600);
    assert_eq!((world.maps.len(), world.slots()), (maps, slots));
    assert!(world.proxies.values().all(|proxy| proxy.shard.margin(world.now) > times::MARGIN));
}

#[test]
fn two_coordinators_make_one_chain_of_maps() {
    let mut world = World::running(3);
    world.coordinators.push(Coordinator::default());
    world.run(30);
    for round in 0..4 {
        world.leave(&format!("r-{}", round % 3), Left::ControllerExit);
        world.start(&format!("again-{round}"));
        world.run(100);
    }
    world.kill("r-1");
    world.start("last");
    world.run(100);
    assert!(world.is_balanced(), "{:?}", world.owned());
}

#[test]
fn two_coordinators_that_decide_from_the_same_reading_write_once() {
    let mut world = World::running(3);
    let mut other = world.coordinators[0].clone();
    world.leave("r-1", Left::ControllerExit);
    let (now, seen) = (world.now, world.seen());
    let first = world.coordinators[0].step(now, &seen).commands;
    let second = other.step(now, &seen).commands;
    let maps = world.maps.len();
    world.execute(&first);
    world.execute(&second);
    assert_eq!(world.maps.len(), maps + 1, "the second write names a version that is gone");
}

#[test]
fn a_coordinator_with_a_frozen_view_deposes_nobody() {
    let mut world = World::running(3);
    let mut frozen = world.coordinators[0].clone();
    let old = world.seen();
    let slots = world.slots();
    for _ in 0..240 {
        world.tick();
        // It believes that it looks: only the Leases stand still.
        let seen = Seen { looked: world.now, ..old.clone() };
        let commands = frozen.step(world.now, &seen).commands;
        world.execute(&commands);
    }
    assert_eq!(frozen.members.state("r-0"), State::Silent, "it did try");
    assert_eq!((world.deposed.len(), world.slots()), (0, slots));
}

#[test]
fn no_more_than_a_third_of_a_ring_falls_within_a_period() {
    let mut world = World::running(7);
    world.run(60);
    for shard in 0..5 {
        world.kill(&format!("r-{shard}"));
    }
    world.run(40);
    let moments: Vec<Moment> = world.deposed.iter().map(|(_, at)| *at).collect();
    assert_eq!(moments.len(), 5);
    for window in moments.windows(3) {
        assert!(window[2].since(window[0]) >= times::observed_lease(), "{moments:?}");
    }
    world.run(20);
    assert_eq!(world.owned().len(), 2);
}

#[test]
fn an_outage_of_the_api_is_no_death() {
    let mut world = World::running(3);
    let slots = world.slots();
    let mut coordinator = world.coordinators.remove(0);
    let old = world.seen();
    for _ in 0..120 {
        world.now = world.now + TICK;
        let decision = coordinator.step(world.now, &old);
        assert_eq!(decision.commands, [], "no answer for {:?}", world.now.since(old.looked));
        assert!(decision.wake >= world.now);
    }
    world.coordinators.push(coordinator);
    world.run(60);
    assert_eq!((world.deposed.len(), world.slots()), (0, slots));
}

#[test]
fn a_deleted_lease_of_a_living_shard_moves_nothing() {
    let mut world = World::running(3);
    let (maps, term) = (world.maps.len(), world.leases["r-1"].term);
    world.leases.remove("r-1");
    world.run(60);
    assert_eq!((world.maps.len(), world.leases["r-1"].term), (maps, term + 1));
}

#[test]
fn a_deleted_lease_of_a_dead_shard_counts_as_its_silence() {
    let mut world = World::running(3);
    world.kill("r-1");
    world.leases.remove("r-1");
    let deleted = world.now;
    while world.owned().values().sum::<usize>() == 256 {
        world.tick();
    }
    assert!(world.now.since(deleted) >= times::observed_lease());
    assert_eq!(world.leases["r-1"].left, Some(Left::Deposed));
    assert!(world.leases["r-1"].term > 0, "the term goes on");
    world.run(6);
    assert_eq!(world.owned().len(), 2);
}

#[test]
fn a_new_coordinator_measures_the_wait_itself() {
    let mut world = World::running(3);
    world.run(60);
    world.kill("r-1");
    while world.owned().values().sum::<usize>() == 256 {
        world.tick();
    }
    world.run(4);
    world.coordinators = vec![Coordinator::default()];
    let started = world.now;
    while world.owned().values().sum::<usize>() < 256 {
        world.tick();
    }
    // It does not know whether the third shard only has not come yet, so it waits for longer than the writes.
    assert_eq!(world.now.since(started), times::observed_lease() + TICK);
}

#[test]
fn a_new_coordinator_rebalances_and_deposes_nobody_in_its_first_period() {
    let mut world = World::running(3);
    world.run(60);
    world.coordinators.clear();
    world.kill("r-1");
    world.scale(4);
    world.run(60);
    world.coordinators.push(Coordinator::default());
    let maps = world.maps.len();
    world.start("r-3-pod");
    world.run(10);
    assert_eq!((world.maps.len(), world.deposed.len()), (maps, 0));
    world.run(60);
    assert_eq!(world.owned().len(), 3);
}

#[test]
fn a_flapping_shard_moves_each_slot_once() {
    let mut world = World::running(3);
    world.run(60);
    let before = world.slots();
    for flap in 0..150 {
        if world.leases["r-1"].holder.is_some() {
            world.leave("r-1", Left::ControllerExit);
            world.start(&format!("flap-{flap}"));
        }
        world.run(2);
    }
    let moves = world.slots().iter().zip(&before).map(|(now, before)| now.1 - before.1).max();
    assert_eq!(moves, Some(1));
    world.run(130);
    assert!(world.is_balanced(), "once it holds, it gets its share again: {:?}", world.owned());
}

#[test]
fn with_no_living_shard_slots_are_orphans() {
    let mut world = World::running(3);
    for shard in ["r-0", "r-1", "r-2"] {
        world.leave(shard, Left::ControllerExit);
    }
    world.run(2);
    assert_eq!(world.owned().len(), 0);
    assert!(world.report().troubles.contains(&Trouble::NoLivingShard));
    assert_eq!(world.report().orphans, 256);
}

#[test]
fn a_ring_that_died_comes_back_in_whatever_order() {
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    for order in orders {
        for left in [Left::Graceful, Left::ControllerExit, Left::Deposed] {
            let mut world = World::running(3);
            for shard in order {
                match left {
                    Left::Deposed => world.kill(&format!("r-{shard}")),
                    left => world.leave(&format!("r-{shard}"), left),
                }
                world.run(u64::from(left != Left::Graceful) * 5 + 1);
            }
            for number in 0..3 {
                world.start(&format!("again-{number}"));
                world.run(3);
            }
            world.run(200);
            assert!(world.is_balanced(), "{order:?} {left:?} {:?}", world.owned());
            assert_eq!(world.report().troubles, BTreeSet::new());
        }
    }
}

#[test]
fn a_graceful_lease_is_kept_from_its_next_holder_before_its_slots_go() {
    let mut world = World::running(3);
    world.leave("r-1", Left::Graceful);
    world.run(29);
    let mut coordinator = world.coordinators.remove(0);
    let slow = world.seen();
    // Another takes the identity up at the last moment, unseen by the coordinator.
    world.start("late");
    world.tick();
    let seen = Seen { looked: slow.looked + Duration::from_secs(2), ..slow };
    let now = seen.looked;
    let commands = coordinator.step(now, &seen).commands;
    assert!(
        matches!(&commands[..], [Command::Depose { left: Left::ControllerExit, .. }, ..]),
        "{commands:?}"
    );
    assert!(!world.execute(&commands), "the Lease has changed");
    assert_eq!(world.owned().len(), 3);
}

#[test]
fn the_secret_of_a_deposed_term_goes_before_the_map_says_so() {
    let mut world = World::running(3);
    world.ring.fence = FenceMode::Credential;
    world.run(60);
    let term = world.leases["r-1"].term;
    world.kill("r-1");
    while world.owned().values().sum::<usize>() == 256 {
        assert_eq!(world.secrets_deleted, []);
        world.tick();
    }
    let orphaned = world.now;
    assert_eq!(world.secrets_deleted, [("r-1".to_owned(), term)]);
    while world.owned().values().sum::<usize>() < 256 {
        world.tick();
    }
    assert!(world.now.since(orphaned) >= times::TOKEN_CACHE);
}

#[test]
fn a_lease_that_was_free_before_the_slots_came_proves_nothing() {
    let mut world = World::running(3);
    let seen = world.seen();
    let mut late = Coordinator::default();
    let stale = |seen: &Seen, looked: Moment| {
        let mut seen = Seen { looked, ..seen.clone() };
        for lease in &mut seen.leases {
            *lease = Observed { holder: None, left: Some(Left::ControllerExit), ..lease.clone() };
        }
        seen
    };
    // The Leases were asked for before the map was read: the slots may have been granted in between.
    let asked = world.now;
    world.tick();
    let decision = late.step(world.now, &stale(&seen, asked));
    assert!(!decision.commands.iter().any(|command| matches!(command, Command::PutMap { .. })));
    assert_eq!(decision.wake, world.now, "it wants to look again");
    let decision = late.step(world.now + TICK, &stale(&seen, world.now + TICK));
    let orphans = |command: &Command| match command {
        Command::PutMap { spec, .. } => spec.slots.iter().all(|range| range.state == SlotState::Orphan),
        _ => false,
    };
    assert!(decision.commands.iter().any(orphans));
}
