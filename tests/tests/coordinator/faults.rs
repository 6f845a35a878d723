//! What goes wrong: holders that fall silent, Leases that vanish, control planes that are away, frozen or double.

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::DeleteParams;
use rustix::process::Signal;
use serde_json::json;
use shoal_sharding::kube::{Fault, lease};
use shoal_sharding::{Acks, Left, Seat, Slot, SlotMap};
use shoal_tests::wait_for;

use crate::ground::{DEADLINE, Ground, kubectl, moved};
use crate::history::assert_chain;
use crate::holder::Holder;

#[tokio::test]
async fn a_silent_shard_loses_its_identity_and_its_slots_go_to_the_living() {
    let ground = Ground::start("coordinator_silent").await;
    let coordinator = ground.coordinator("coordinator", &[]);
    ground.create_ring(3, json!({})).await;
    let mut holders = ground.holders(3).await;
    let before = ground.wait_balanced(3).await;
    let history = ground.history().await;

    let silent = holders.remove(1);
    let last = silent.standing().held.unwrap();
    silent.vanish();
    let is_theirs = |map: &SlotMap| map.owners().len() == 2 && map.owners().values().sum::<usize>() == 256;
    let after = ground.wait_map("two shards to own all", is_theirs).await;
    assert_eq!(moved(&before, &after), before.slots_of("kcm-1").len(), "only the silent shard's slots move");
    let taken = lease::read(&ground.leases(), Seat::Identity, "kcm-1").await.unwrap();
    assert_eq!((taken.holder, taken.left), (None, Some(Left::Deposed)));
    // It wakes up, and its Lease is another one.
    let late = lease::renew(&ground.leases(), &last, &Acks::default()).await;
    assert!(matches!(late, Err(Fault::Conflict(_))), "{late:?}");
    assert_eq!(ground.wait_condition("Degraded", "True").await, "NoHolder");
    let maps = history.until(after.version()).await;
    assert!(
        maps.iter().any(|map| map.owners().values().sum::<usize>() < 256),
        "granted without a wait as orphans"
    );
    assert_chain(&maps);
    coordinator.wait_metric(r#"shoal_ring_deposed_total{ring="kube-system/kcm"} 1"#).await;
}

#[tokio::test]
async fn an_identity_is_taken_by_the_version_last_seen_only() {
    let ground = Ground::start("coordinator_version").await;
    let coordinator = ground.coordinator("coordinator", &[]);
    ground.create_ring(2, json!({})).await;
    let holders = ground.holders(2).await;
    let before = ground.wait_balanced(2).await;
    let leases = ground.leases();
    let seen = lease::read(&leases, Seat::Identity, "kcm-0").await.unwrap();
    renewals(&holders[0], 1).await;
    let refused = lease::vacate(&leases, Seat::Identity, "kcm-0", &seen.version, Left::Deposed).await;
    assert!(matches!(refused, Err(Fault::Conflict(_))), "{refused:?}");

    // A control plane that slept through many renewals wakes up and takes nothing.
    coordinator.process.signal(Signal::STOP);
    renewals(&holders[0], 8).await;
    coordinator.process.signal(Signal::CONT);
    coordinator.wait_metric(r#"shoal_ring_blind_seconds_total{ring="kube-system/kcm"}"#).await;
    for holder in &holders {
        renewals(holder, 1).await;
    }
    assert_eq!(moved(&before, &ground.map().await), 0);
    assert_eq!(before.version(), ground.map().await.version());
}

#[tokio::test]
async fn a_deleted_lease_of_a_living_shard_moves_nothing() {
    let ground = Ground::start("coordinator_deleted").await;
    let _coordinator = ground.coordinator("coordinator", &[]);
    ground.create_ring(2, json!({})).await;
    let holders = ground.holders(2).await;
    let before = ground.wait_balanced(2).await;
    let term = holders[0].standing().held.unwrap().term;
    ground.leases().delete(&Seat::Identity.lease("kcm-0"), &DeleteParams::default()).await.unwrap();
    holders[0]
        .until("it to be created anew", |standing| standing.held.as_ref().unwrap().term == term + 1)
        .await;
    // A coordinator that held its absence against the shard would have decided by then.
    renewals(&holders[1], 7).await;
    let after = ground.map().await;
    assert_eq!((moved(&before, &after), after.version()), (0, before.version()));
}

/// Waits for so many renewals: each takes two seconds.
async fn renewals(holder: &Holder, count: usize) {
    for _ in 0..count {
        let version = holder.standing().held.unwrap().version;
        holder.until("a renewal", |standing| standing.held.as_ref().unwrap().version != version).await;
    }
}

#[tokio::test]
async fn nothing_changes_while_no_control_plane_runs() {
    let ground = Ground::start("coordinator_away").await;
    let coordinator = ground.coordinator("coordinator", &[]);
    ground.create_ring(2, json!({})).await;
    let holders = ground.holders(2).await;
    let before = ground.wait_balanced(2).await;
    coordinator.process.kill();
    coordinator.process.wait().await;
    renewals(&holders[0], 8).await;
    assert_eq!(holders.iter().map(|holder| holder.standing().open.len()).sum::<usize>(), 256);
    // The next one knows nothing of the past and changes nothing either.
    let next = ground.coordinator("next", &[]);
    next.wait_metric(r#"shoal_ring_slots{ring="kube-system/kcm",state="owned"} 256"#).await;
    renewals(&holders[0], 7).await;
    assert_eq!(ground.map().await.version(), before.version());
}

#[tokio::test]
async fn two_control_planes_at_once_make_one_chain() {
    let ground = Ground::start("coordinator_double").await;
    let history = ground.history().await;
    let _one = ground.coordinator("one", &[]);
    let _other = ground.coordinator("other", &[]);
    ground.create_ring(3, json!({"handover": {"maxMoving": 16}})).await;
    let mut holders = ground.holders(3).await;
    ground.wait_balanced(3).await;
    ground.patch_ring(json!({"spec": {"shards": 4}})).await;
    holders.push(ground.holder(3, "pod-3").await);
    ground.wait_balanced(4).await;
    holders.remove(0).leave(Left::ControllerExit).await;
    ground
        .wait_map("three shards to own all", |map| {
            map.owners().len() == 3 && map.owners().values().sum::<usize>() == 256
        })
        .await;
    ground.patch_ring(json!({"spec": {"shards": 3}})).await;
    let after = ground
        .wait_map("the last two", |map| {
            map.owners().len() == 2 && (0..=255).all(|slot| map.entry(Slot(slot)).to.is_none())
        })
        .await;
    assert_chain(&history.until(after.version()).await);
}

#[tokio::test]
async fn a_ring_without_a_living_shard_is_degraded_and_comes_back() {
    let ground = Ground::start("coordinator_none").await;
    let _coordinator = ground.coordinator("coordinator", &[]);
    ground.create_ring(2, json!({"handover": {"restartGraceSeconds": 1}})).await;
    let holders = ground.holders(2).await;
    ground.wait_balanced(2).await;
    for holder in holders {
        holder.leave(Left::ControllerExit).await;
    }
    ground.wait_map("every slot an orphan", |map| map.owners().is_empty()).await;
    let look = || async {
        let reason = ground.wait_condition("Degraded", "True").await;
        if reason == "NoLivingShard" { Ok(()) } else { Err(reason) }
    };
    wait_for("the condition to say why", DEADLINE, look).await.unwrap();
    let _holders = ground.holders(2).await;
    ground.wait_balanced(2).await;
    ground.wait_condition("Ready", "True").await;
}

#[tokio::test]
async fn a_wish_that_cannot_be_read_is_told_and_does_nothing() {
    let ground = Ground::start("coordinator_wishes").await;
    let _coordinator = ground.coordinator("coordinator", &[]);
    ground.create_ring(2, json!({})).await;
    let _holders = ground.holders(2).await;
    ground.wait_balanced(2).await;
    let wish = json!({"metadata": {"annotations": {"mesh.shoal.dev/wishes": "move=everything"}}});
    ground.patch_ring(wish).await;
    assert_eq!(ground.wait_condition("Degraded", "True").await, "BadWishes");
}

#[tokio::test]
async fn of_two_control_planes_one_works_until_it_ends() {
    let ground = Ground::start("coordinator_election").await;
    let default = "--namespace=default";
    let role = ["create", "role", "election", "--verb=get,create,patch", "--resource=leases", default];
    kubectl(&ground.plane, &role).await;
    let bound = ["create", "rolebinding", "election", "--role=election", "--user=coordinator", default];
    kubectl(&ground.plane, &bound).await;
    let leases: Api<Lease> = Api::namespaced(ground.admin.clone(), "default");
    let elected = |but: Option<String>| {
        let leases = leases.clone();
        wait_for("a control plane to be elected", DEADLINE, move || {
            let (leases, but) = (leases.clone(), but.clone());
            async move {
                let read = lease::read(&leases, Seat::Identity, "controller-mesh").await;
                let holder = read.map_err(|fault| fault.to_string())?.holder;
                holder.clone().filter(|_| holder != but).ok_or_else(|| format!("{holder:?}"))
            }
        })
    };
    let mut one = ground.coordinator("one", &["--leader-elect=true"]);
    let first = elected(None).await.unwrap();
    let other = ground.coordinator("other", &["--leader-elect=true"]);
    ground.create_ring(2, json!({})).await;
    let mut holders = ground.holders(2).await;
    ground.wait_balanced(2).await;
    // Told to end, it lets the other one go on at once; killed, it is waited for.
    one.process.terminate();
    let second = elected(Some(first)).await.unwrap();
    ground.patch_ring(json!({"spec": {"shards": 3}})).await;
    holders.push(ground.holder(2, "pod-2").await);
    ground.wait_balanced(3).await;
    let _third = ground.coordinator("third", &["--leader-elect=true"]);
    other.process.kill();
    elected(Some(second)).await.unwrap();
}
