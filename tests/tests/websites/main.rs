//! No user sees a move: whatever becomes of shards, no Website ever shows an error, and nothing is created twice.
#![allow(clippy::unwrap_used, reason = "test code, helpers included")]

mod ground;

use ground::Ground;
use shoal_tests::{soon, wait_for};

use crate::ground::DEADLINE;

#[tokio::test(flavor = "multi_thread")]
async fn no_user_sees_a_shard_join() {
    let mut ground = Ground::start("websites_join", 2).await;
    let before = ground.version().await;
    ground.ring.set_shards(3).await.unwrap();
    ground.add_pod().await;
    ground.ring.wait_settled(3, DEADLINE).await.unwrap();
    assert!(ground.version().await > before, "nothing moved");
    ground.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_user_sees_a_planned_move() {
    let ground = Ground::start("websites_move", 3).await;
    for round in 0..4_u8 {
        // There and back: half of the first shard's slots to the second, and home.
        let to = if round % 2 == 0 { "websites-1" } else { "websites-0" };
        ground.send(&format!("0-40>{to}")).await;
    }
    ground.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_user_sees_a_graceful_stop() {
    let mut ground = Ground::start("websites_stop", 3).await;
    let pod = ground.ring.take(0).unwrap();
    soon("the end of a Pod", pod.end()).await;
    ground.add_pod().await;
    ground.ring.wait_settled(3, DEADLINE).await.unwrap();
    ground.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_user_sees_a_rolling_update_and_no_slot_moves() {
    let mut ground = Ground::start("websites_rolling", 3).await;
    let before = ground.version().await;
    for _ in 0..3 {
        ground.add_pod().await;
        ground.stands_by().await;
        let old = ground.ring.take(0).unwrap();
        soon("the end of a Pod", old.end()).await;
        ground.ring.wait_settled(3, DEADLINE).await.unwrap();
    }
    assert_eq!(ground.version().await, before, "a slot moved");
    ground.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_user_sees_a_crash() {
    let mut ground = Ground::start("websites_crash", 3).await;
    let pod = ground.ring.take(0).unwrap();
    let shard = pod.seat().await.unwrap().shard;
    pod.kill();
    wait_for("the slots of the dead to be with others", DEADLINE, || async {
        let state = ground.ring.state().await.map_err(|error| error.to_string())?;
        let owners = state.owners();
        let all = owners.values().sum::<usize>() == 256 && !owners.contains_key(shard.as_str());
        if all { Ok(()) } else { Err(format!("{owners:?}")) }
    })
    .await
    .unwrap();
    ground.add_pod().await;
    ground.ring.wait_settled(3, DEADLINE).await.unwrap();
    ground.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_living_shard_s_deleted_lease_moves_nothing() {
    let ground = Ground::start("websites_lease", 3).await;
    let before = ground.version().await;
    ground.delete_lease("websites-1").await;
    ground.ring.wait_settled(3, DEADLINE).await.unwrap();
    assert_eq!(ground.version().await, before, "a slot moved");
    ground.finish().await;
}
