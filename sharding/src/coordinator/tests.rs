mod faults;
mod plans;
mod world;

use self::world::World;
use super::*;

#[test]
fn a_ring_begins_balanced() {
    let world = World::running(3);
    assert!(world.is_balanced(), "{:?}", world.owned());
    assert!(world.slots().iter().all(|(_, epoch)| *epoch == 2), "each slot was granted once");
    assert_eq!(world.report().troubles, BTreeSet::new());
}

#[test]
fn a_steady_ring_is_left_alone() {
    let mut world = World::running(3);
    let (maps, mut coordinator) = (world.maps.len(), world.coordinators.remove(0));
    for _ in 0..1000 {
        world.tick();
        assert_eq!(coordinator.step(world.now, &world.seen()).commands, []);
    }
    assert_eq!(world.maps.len(), maps);
}

#[test]
fn a_planned_move_takes_three_writes_and_leaves_no_slot_without_an_owner() {
    let mut world = World::running(3);
    let (before, maps) = (world.slots(), world.maps.len());
    world.scale(4);
    world.start("pod-3");
    world.run(20);
    let moved = world.slots().iter().zip(&before).filter(|(now, before)| now != before).count();
    assert!(world.is_balanced() && moved == 64, "{moved} {:?}", world.owned());
    assert_eq!(world.maps.len() - maps, 3, "one batch");
    let orphans = |map: &ShardMapSpec| map.slots.iter().any(|range| range.owner.is_none());
    assert!(!world.maps[maps..].iter().any(orphans));
}

#[test]
fn a_rolling_restart_moves_nothing() {
    let mut world = World::running(3);
    let maps = world.maps.len();
    for number in 0..3 {
        world.leave(&format!("r-{number}"), Left::Graceful);
        world.run(10);
        world.start(&format!("new-{number}"));
        world.run(10);
    }
    assert_eq!(world.maps.len(), maps);
    assert_eq!(world.report().troubles, BTreeSet::new());
}

#[test]
fn after_the_grace_slots_of_a_shard_without_a_holder_go_to_the_others() {
    let mut world = World::running(3);
    world.leave("r-1", Left::Graceful);
    world.run(29);
    assert_eq!(world.owned().len(), 3);
    world.run(3);
    assert_eq!(world.owned().keys().collect::<Vec<_>>(), ["r-0", "r-2"]);
    assert_eq!(world.report().troubles, [Trouble::NoHolder("r-1".into())].into());
}

#[test]
fn when_a_controller_exits_its_slots_are_elsewhere_at_once() {
    let mut world = World::running(3);
    let maps = world.maps.len();
    world.leave("r-1", Left::ControllerExit);
    world.tick();
    assert_eq!(world.owned().keys().collect::<Vec<_>>(), ["r-0", "r-2"]);
    assert_eq!((world.owned().values().sum::<usize>(), world.maps.len()), (256, maps + 1));
}

#[test]
fn a_silent_shard_is_deposed_after_a_period_and_its_slots_granted_after_its_writes() {
    let mut world = World::running(3);
    world.run(60);
    world.kill("r-1");
    let last = world.now;
    while world.deposed.is_empty() {
        world.tick();
    }
    assert!(world.now.since(last) <= times::observed_lease() + world::TICK, "{:?}", world.now.since(last));
    let deposed = world.now;
    while world.owned().values().sum::<usize>() < 256 {
        assert!(world.now.since(deposed) <= times::WRITE);
        world.tick();
    }
    assert!(world.now.since(deposed) >= times::WRITE);
    assert_eq!(world.owned().len(), 2);
}
