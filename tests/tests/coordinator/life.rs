//! The life of a ring: it begins, grows, is restarted, shrinks and ends.

use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use shoal_sharding::Left;
use shoal_tests::wait_for;

use crate::ground::{DEADLINE, Ground, LOCK, RING, is_settled, moved};
use crate::history::assert_chain;

#[tokio::test]
async fn a_ring_begins_grows_is_restarted_and_shrinks() {
    let ground = Ground::start("coordinator_life").await;
    let history = ground.history().await;
    let coordinator = ground.coordinator("coordinator", &[]);
    ground.create_ring(3, json!({})).await;
    let mut holders = ground.holders(3).await;
    let three = ground.wait_balanced(3).await;
    assert_eq!(ground.wait_condition("Ready", "True").await, "AllOwned");
    assert_eq!(ground.lock_holder().await, "shoal/kube-system/kcm");

    ground.patch_ring(json!({"spec": {"shards": 4}})).await;
    holders.push(ground.holder(3, "pod-3").await);
    let four = ground.wait_balanced(4).await;
    assert!(moved(&three, &four) <= 256 / 4 + 256 / 100, "{} slots moved", moved(&three, &four));

    // One Pod after the other.
    for shard in 0..4_u16 {
        holders.remove(0).leave(Left::Graceful).await;
        holders.push(ground.holder(shard, &format!("new-{shard}")).await);
    }
    for holder in &holders {
        holder.until("its slots to be open", |standing| standing.open.len() == 64).await;
    }
    assert_eq!(moved(&four, &ground.map().await), 0, "a rolling update moved slots");

    ground.patch_ring(json!({"spec": {"shards": 3}})).await;
    let after = ground.wait_balanced(3).await;
    assert_eq!(moved(&four, &after), 64, "only the slots of the shard that leaves move");
    assert_chain(&history.until(after.version()).await);
    coordinator.wait_metric(r#"shoal_ring_slots{ring="kube-system/kcm",state="owned"} 256"#).await;
}

#[tokio::test]
async fn no_slot_opens_while_another_holds_the_original_lock() {
    let ground = Ground::start("coordinator_lock").await;
    let foreign = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": LOCK},
        "spec": {"holderIdentity": "old-replica", "leaseDurationSeconds": 3600},
    });
    let apply = PatchParams::apply("old-replica");
    ground.leases().patch(LOCK, &apply, &Patch::Apply(&foreign)).await.unwrap();
    let _coordinator = ground.coordinator("coordinator", &[]);
    ground.create_ring(2, json!({})).await;
    let holders = ground.holders(2).await;
    assert_eq!(ground.wait_condition("Degraded", "True").await, "LocksNotHeld");
    let map = ground.map().await;
    assert!(map.owners().is_empty(), "{map:?}");

    let released = json!({"spec": {"holderIdentity": ""}});
    ground.leases().patch(LOCK, &PatchParams::default(), &Patch::Merge(&released)).await.unwrap();
    ground.wait_balanced(2).await;
    for holder in &holders {
        holder.until("its slots to be open", |standing| standing.open.len() == 128).await;
    }
}

#[tokio::test]
async fn a_ring_that_is_deleted_frees_its_lock_last() {
    let ground = Ground::start("coordinator_deletion").await;
    let _coordinator = ground.coordinator("coordinator", &[]);
    ground.create_ring(2, json!({})).await;
    let holders = ground.holders(2).await;
    ground.wait_balanced(2).await;
    let history = ground.history().await;
    ground.rings().delete(RING, &DeleteParams::default()).await.unwrap();
    let gone = || async {
        match ground.rings().get_opt(RING).await {
            Ok(None) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    };
    // While the lock is held nobody else leads, so it must be held for as long as a slot is open.
    wait_for("the lock to be free", DEADLINE, || async {
        let (open, holder) = (
            holders.iter().map(|holder| holder.standing().open.len()).sum::<usize>(),
            ground.lock_holder().await,
        );
        assert!(open == 0 || !holder.is_empty(), "{open} slots are open and the lock is free");
        if holder.is_empty() { Ok(()) } else { Err(holder) }
    })
    .await
    .unwrap();
    assert!(holders.iter().all(|holder| holder.standing().open.is_empty()));
    wait_for("the ring to be gone", DEADLINE, gone).await.unwrap();
    let maps = history.until(0).await;
    assert!(maps.last().unwrap().owners().is_empty() && !is_settled(maps.last().unwrap()));
}
