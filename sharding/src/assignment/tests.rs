use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn names(number: usize) -> Vec<String> {
    (0..number).map(|shard| format!("s-{shard}")).collect()
}

fn shards(names: &[String]) -> Vec<Candidate<'_>> {
    names.iter().map(|name| Candidate { name, weight: 1, version: None, gain: Gain::Yes }).collect()
}

const FREE: Load<'_> = Load { owner: None, weight: 1, pin: None, fixed: false };

/// The owners after a plan.
fn done(slots: &[Load<'_>], plan: &Plan) -> Vec<Option<String>> {
    let mut owners: Vec<_> = slots.iter().map(|load| load.owner.map(str::to_owned)).collect();
    for (slot, to) in &plan.moves {
        owners[usize::from(slot.0)] = Some(to.clone());
    }
    owners
}

fn owned(owners: &[Option<String>]) -> Vec<Load<'_>> {
    owners.iter().map(|owner| Load { owner: owner.as_deref(), ..FREE }).collect()
}

fn counts(owners: &[Option<String>]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for owner in owners.iter().flatten() {
        *counts.entry(owner.as_str()).or_default() += 1;
    }
    counts
}

fn begun(names: &[String]) -> Vec<Option<String>> {
    let free = [FREE; 256];
    done(&free, &plan(&free, &shards(names), Aim::Balance))
}

proptest! {
    #[test]
    fn no_shard_gets_more_than_its_fair_share_rounded_up(number in 1_usize..40) {
        let most = *counts(&begun(&names(number))).values().max().unwrap();
        prop_assert_eq!(most, 256_usize.div_ceil(number));
    }

    #[test]
    fn a_shard_that_comes_gets_its_share_and_nothing_else_moves(number in 1_usize..40) {
        let (owners, more) = (begun(&names(number)), names(number + 1));
        let plan = plan(&owned(&owners), &shards(&more), Aim::Balance);
        prop_assert!(plan.moves.iter().all(|(_, to)| *to == more[number]));
        prop_assert!(plan.moves.len() <= 256_usize.div_ceil(number + 1));
        let after = done(&owned(&owners), &plan);
        prop_assert!(counts(&after).values().max().unwrap() - counts(&after).values().min().unwrap() <= 1);
    }

    #[test]
    fn of_a_shard_that_goes_only_its_own_slots_move(number in 2_usize..40, which in any::<prop::sample::Index>()) {
        let all = names(number);
        let (owners, gone) = (begun(&all), &all[which.index(number)]);
        let left: Vec<String> = all.iter().filter(|name| *name != gone).cloned().collect();
        let plan = plan(&owned(&owners), &shards(&left), Aim::Balance);
        prop_assert!(plan.moves.iter().all(|(slot, _)| owners[usize::from(slot.0)].as_ref() == Some(gone)));
        let after = done(&owned(&owners), &plan);
        prop_assert!(counts(&after).values().max().unwrap() - counts(&after).values().min().unwrap() <= 1);
    }

    #[test]
    fn a_plan_ends_and_a_second_one_finds_nothing_to_do(
        weights in prop::collection::vec(0_u64..100, 256),
        shares in prop::collection::vec(1_u32..5, 1..8),
    ) {
        let all = names(shares.len());
        let mut shards = shards(&all);
        shards.iter_mut().zip(&shares).for_each(|(shard, share)| shard.weight = *share);
        let loads: Vec<_> = weights.iter().map(|weight| Load { weight: *weight, ..FREE }).collect();
        let owners = done(&loads, &plan(&loads, &shards, Aim::Finish));
        let again: Vec<_> =
            loads.iter().zip(&owners).map(|(load, owner)| Load { owner: owner.as_deref(), ..*load }).collect();
        prop_assert_eq!(plan(&again, &shards, Aim::Finish).moves, vec![]);
    }
}

#[test]
fn with_equal_weights_nobody_has_more_than_two_percent_above_its_share() {
    for number in 1..=10_u32 {
        let all = names(number as usize);
        let most = *counts(&begun(&all)).values().max().unwrap();
        assert!(most * number as usize * 100 <= 256 * 102, "{number}: {most}");
    }
}

#[test]
fn neighbours_stay_together() {
    let ranges = |owners: &[Option<String>]| 1 + owners.windows(2).filter(|pair| pair[0] != pair[1]).count();
    let begun = begun(&names(3));
    assert_eq!(ranges(&begun), 3);
    let (four, two) = (names(4), names(2));
    let more = done(&owned(&begun), &plan(&owned(&begun), &shards(&four), Aim::Balance));
    assert!(ranges(&more) <= 7, "{more:?}");
    let fewer = done(&owned(&begun), &plan(&owned(&begun), &shards(&two), Aim::Balance));
    assert!(ranges(&fewer) <= 4, "{fewer:?}");
}

#[test]
fn shares_follow_the_weights() {
    let all = names(2);
    let mut shards = shards(&all);
    shards[1].weight = 3;
    let free = [FREE; 256];
    let owners = done(&free, &plan(&free, &shards, Aim::Balance));
    assert_eq!(counts(&owners), [("s-0", 64), ("s-1", 192)].into());
    shards[0].weight = 0;
    let owners = done(&owned(&owners), &plan(&owned(&owners), &shards, Aim::Balance));
    assert_eq!(counts(&owners), [("s-1", 256)].into());
}

#[test]
fn what_is_off_by_less_than_five_percent_stays() {
    let all = names(2);
    let split = |first: usize| -> Vec<Option<String>> {
        (0..256).map(|slot| Some(all[usize::from(slot >= first)].clone())).collect()
    };
    let moves = |first, aim| plan(&owned(&split(first)), &shards(&all), aim).moves.len();
    assert_eq!((moves(134, Aim::Balance), moves(134, Aim::Finish)), (0, 6));
    assert_eq!((moves(135, Aim::Balance), moves(135, Aim::Place)), (7, 0));
}

#[test]
fn a_hot_slot_is_reported_and_left_where_it_is() {
    let all = names(2);
    let mut owners = vec![Some(all[0].clone()); 128];
    owners.resize(256, Some(all[1].clone()));
    let mut loads = owned(&owners);
    loads[7].weight = 1000;
    let plan = plan(&loads, &shards(&all), Aim::Balance);
    assert_eq!(plan.hot, [Slot(7)]);
    assert_eq!(plan.moves.len(), 127, "the rest goes out of its way");
    assert!(plan.moves.iter().all(|(slot, to)| slot.0 < 128 && slot.0 != 7 && *to == all[1]));
}

#[test]
fn held_slots_stay_unless_they_must_go() {
    let all = names(2);
    let owners = vec![Some(all[0].clone()); 256];
    let mut loads = owned(&owners);
    loads.iter_mut().skip(10).for_each(|load| load.fixed = true);
    assert_eq!(plan(&loads, &shards(&all), Aim::Balance).moves.len(), 10);
    assert_eq!(plan(&loads, &shards(&all[1..]), Aim::Balance).moves.len(), 256);
}

#[test]
fn a_pinned_slot_goes_to_its_version_only() {
    let all = names(3);
    let mut shards = shards(&all);
    shards[0].version = Some("new");
    let mut loads = [FREE; 256];
    loads.iter_mut().take(20).for_each(|load| load.pin = Some("new"));
    loads[30].pin = Some("unknown");
    let plan = plan(&loads, &shards, Aim::Balance);
    let owners = done(&loads, &plan);
    assert!(owners[..20].iter().all(|owner| owner.as_ref() == Some(&all[0])));
    assert_eq!((plan.homeless, &owners[30]), (vec![Slot(30)], &None));
    assert_eq!(counts(&owners), [("s-0", 85), ("s-1", 85), ("s-2", 85)].into());
}

#[test]
fn a_shard_that_gains_at_need_gets_only_what_nobody_else_may_have() {
    let all = names(2);
    let mut shards = shards(&all);
    shards[1].gain = Gain::AtNeed;
    let free = [FREE; 256];
    assert_eq!(counts(&done(&free, &plan(&free, &shards, Aim::Balance))), [("s-0", 256)].into());
    shards[0].gain = Gain::No;
    assert_eq!(counts(&done(&free, &plan(&free, &shards, Aim::Balance))), [("s-1", 256)].into());
    shards[1].gain = Gain::No;
    assert_eq!(plan(&free, &shards, Aim::Balance).moves, []);
}
