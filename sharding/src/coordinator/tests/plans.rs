//! What a coordinator does by plan.

use shoal_api::SlotState;

use super::{World, *};

#[test]
fn from_three_to_ten_and_back_within_a_minute_ends_balanced() {
    let mut world = World::running(3);
    world.scale(10);
    (3..10).for_each(|number| world.start(&format!("pod-{number}")));
    world.run(30);
    assert!(world.is_balanced(), "{:?}", world.owned());
    world.scale(3);
    let maps = world.maps.len();
    world.run(30);
    assert!(world.is_balanced(), "{:?}", world.owned());
    let orphans = |map: &ShardMapSpec| map.slots.iter().any(|range| range.owner.is_none());
    assert!(!world.maps[maps..].iter().any(orphans), "planned moves leave no slot without an owner");
}

#[test]
fn no_more_slots_move_at_once_than_the_ring_allows() {
    let mut world = World::running(2);
    world.ring.max_moving = 5;
    world.scale(4);
    (2..4).for_each(|number| world.start(&format!("pod-{number}")));
    world.run(60);
    assert!(world.is_balanced());
    for map in &world.maps {
        let moving = map.slots.iter().filter(|range| range.owner.is_some() && range.to.is_some());
        assert!(moving.map(|range| u16::from(range.last - range.first) + 1).sum::<u16>() <= 5);
    }
}

#[test]
fn no_slot_is_granted_before_the_original_locks_are_held() {
    let mut world = World::new(3);
    world.locks_held = false;
    (0..3).for_each(|number| world.start(&format!("pod-{number}")));
    world.run(60);
    assert_eq!(world.owned().len(), 0);
    assert_eq!(world.report().troubles, [Trouble::LocksNotHeld].into());
    world.locks_held = true;
    world.run(1);
    assert!(world.is_balanced());
}

#[test]
fn a_deleted_ring_lets_go_of_all_slots_and_of_the_locks_last() {
    let mut world = World::running(3);
    world.run(60);
    world.leave("r-2", Left::Graceful);
    world.kill("r-1");
    world.ring.deleting = true;
    while world.locks_held {
        assert!(!world.finished);
        world.tick();
    }
    assert_eq!(world.owned().len(), 0);
    let Some((shard, deposed)) = world.deposed.first() else { panic!("r-1 was silent") };
    assert!(shard == "r-1" && world.now.since(*deposed) >= times::WRITE, "its writes were waited for");
    world.tick();
    assert!(world.finished);
}

#[test]
fn what_is_wished_for_is_done_and_stays() {
    let mut world = World::running(3);
    let theirs: Vec<Slot> =
        (0..=u8::MAX).map(Slot).filter(|slot| world.owner(*slot) == Some("r-0".into())).collect();
    let wished = &theirs[..40];
    world.wishes.moves = wished.iter().map(|slot| (*slot, "r-1".to_owned())).collect();
    world.run(5);
    assert_eq!(world.report().fulfilled, wished);
    world.wishes.moves.clear();
    world.run(30);
    assert!(wished.iter().all(|slot| world.owner(*slot) == Some("r-1".into())), "held for a while");
}

#[test]
fn a_drained_shard_owns_nothing_until_it_is_no_longer() {
    let mut world = World::running(3);
    world.wishes.drained.insert("r-1".into());
    world.run(10);
    assert_eq!(world.owned().keys().collect::<Vec<_>>(), ["r-0", "r-2"]);
    world.wishes.drained.clear();
    world.run(70);
    assert!(world.is_balanced());
}

#[test]
fn a_pinned_slot_moves_to_its_version_and_nowhere_else() {
    let mut world = World::running(3);
    world.ring.shards[2].version = Some("new".into());
    world.pins = (0..20).map(|slot| (Slot(slot), "new".to_owned())).collect();
    world.run(10);
    assert!((0..20).all(|slot| world.owner(Slot(slot)) == Some("r-2".into())));
    world.leave("r-2", Left::ControllerExit);
    world.run(10);
    assert!((0..20).all(|slot| world.owner(Slot(slot)).is_none()));
    assert_eq!(world.owned().values().sum::<usize>(), 236);
    assert!(world.report().troubles.contains(&Trouble::NoVersion("new".into())));
}

#[test]
fn a_move_whose_next_owner_dies_is_withdrawn_or_goes_elsewhere() {
    for draining in [false, true] {
        let mut world = World::running(3);
        world.run(60);
        world.scale(4);
        world.start("pod-3");
        world.proxies.get_mut("pod-3").unwrap().prepares = draining;
        let is_announced = |world: &World| {
            let state = if draining { SlotState::Draining } else { SlotState::Owned };
            world.maps.last().unwrap().slots.iter().any(|range| range.to.is_some() && range.state == state)
        };
        while !is_announced(&world) {
            world.tick();
        }
        world.leave("r-3", Left::ControllerExit);
        world.run(3);
        assert_eq!(world.owned().values().sum::<usize>(), 256, "{draining}");
        assert_eq!((world.owned().len(), world.report().moving), (3, 0), "{draining}");
    }
}

#[test]
fn a_shard_that_does_not_get_ready_is_reported_and_given_up() {
    let mut world = World::running(3);
    world.scale(4);
    world.start("pod-3");
    world.proxies.get_mut("pod-3").unwrap().prepares = false;
    world.run(61);
    assert_eq!(world.report().moving, 64);
    world.run(2);
    assert_eq!((world.report().moving, world.owned().len()), (64, 3), "others are tried");
    assert!(world.maps.len() > 3);
}

#[test]
fn a_map_that_is_not_sound_is_left_alone() {
    let mut world = World::running(3);
    world.maps.last_mut().unwrap().slots.remove(0);
    let mut coordinator = world.coordinators.remove(0);
    let commands = coordinator.step(world.now, &world.seen()).commands;
    let [Command::Report(report)] = &commands[..] else { panic!("{commands:?}") };
    assert!(matches!(report.troubles.first(), Some(Trouble::BadMap(_))));
}

#[test]
fn leases_of_shards_that_left_are_deleted() {
    let mut world = World::running(3);
    world.scale(2);
    world.run(10);
    world.leave("r-2", Left::Graceful);
    world.tick();
    assert_eq!(
        world.leases.keys().chain(world.standbys.keys()).collect::<Vec<_>>(),
        ["r-0", "r-1", "r-0", "r-1"]
    );
}

#[test]
fn a_map_that_was_deleted_begins_above_what_proxies_have_seen() {
    let mut world = World::running(3);
    let (version, epochs) = (world.maps.last().unwrap().version, world.slots());
    world.maps.clear();
    world.coordinators = vec![Coordinator::default()];
    world.run(30);
    assert!(world.maps[0].version > version && world.is_balanced());
    assert!(world.slots().iter().zip(&epochs).all(|(now, before)| now.1 > before.1));
}
