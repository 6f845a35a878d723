//! `shoal shard` against a ring that lives.

use std::process::{Output, Stdio};

use serde_json::{Value, json};
use shoal_sharding::{Slot, SlotMap, slot_of};
use shoal_tests::{User, programs, wait_for};
use tokio::process::Command;

use crate::ground::{DEADLINE, Ground, RING, is_settled, kubectl, moved};

/// Runs `shoal shard` with those words.
async fn shoal(ground: &Ground, line: &str) -> Output {
    Command::new(programs::own("shoal").unwrap())
        .arg("shard")
        .arg("--kubeconfig")
        .arg(ground.plane.kubeconfig(&User::ADMIN).unwrap())
        .args(line.split_whitespace())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap()
}

/// What it says, if it ends with that code.
async fn said(ground: &Ground, line: &str, code: i32) -> String {
    let output = shoal(ground, line).await;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).unwrap();
    assert_eq!(output.status.code(), Some(code), "shoal shard {line}: {text}");
    text
}

async fn json(ground: &Ground, line: &str) -> Value {
    serde_json::from_str(&said(ground, &format!("{line} -o json"), 0).await).unwrap()
}

#[tokio::test]
async fn people_look_at_a_ring_move_slots_and_drain_shards() {
    let ground = Ground::start("coordinator_cli").await;
    let _coordinator = ground.coordinator("coordinator", &[]);
    assert!(said(&ground, "list", 1).await.contains("--ring"), "without a ring it says how to name one");
    ground.create_ring(2, json!({})).await;
    let _holders = ground.holders(2).await;
    let before = ground.wait_balanced(2).await;
    ground.wait_condition("Ready", "True").await;

    let list = json(&ground, "list").await;
    assert_eq!((&list["ring"], &list["orphans"]), (&json!("kube-system/kcm"), &json!(0)));
    let row = &list["shards"][1];
    assert_eq!(
        (&row["shard"], &row["holder"], &row["slots"]),
        (&json!("kcm-1"), &json!("pod-1_1"), &json!(128))
    );
    assert!(said(&ground, "list -o wide", 0).await.contains("SETTLED-MAP"));
    assert!(said(&ground, "verify", 0).await.ends_with("ok\n"));

    names_the_owner(&ground).await;
    moves_and_drains(&ground, &before).await;
    finds_what_is_wrong(&ground).await;
}

async fn names_the_owner(ground: &Ground) {
    kubectl(&ground.plane, &["create", "configmap", "any", "--namespace=default"]).await;
    let map = ground.map().await;
    let slot = slot_of("hub", "default");
    for name in ["configmap/any", "ConfigMaps/any"] {
        let of = json(ground, &format!("of {name} -n default")).await;
        assert_eq!((&of["slot"], &of["keyValue"]), (&json!(slot.0), &json!("default")), "{name}");
        assert_eq!(of["entry"]["owner"], json!(map.entry(slot).owner), "{name}");
    }
    assert!(said(ground, "of configmap/absent -n default", 1).await.contains("does not exist"));
    assert!(said(ground, "of gadget/any", 1).await.contains("no kind gadget"));
}

async fn moves_and_drains(ground: &Ground, before: &SlotMap) {
    assert!(said(ground, "move 3 --to kcm-9", 1).await.contains("it has kcm-0, kcm-1"));
    let from_other = (0..=255).map(Slot).find(|slot| before.owned_at(*slot, "kcm-0").is_some());
    let slot = from_other.unwrap();
    assert!(said(ground, &format!("move {slot} --to kcm-1 --wait"), 0).await.contains("done"));
    let after = ground.wait_map("the move", is_settled).await;
    assert!(after.owned_at(slot, "kcm-1").is_some() && moved(before, &after) == 1);
    // What came true is wished for no longer.
    wait_for("the wish to be cleared", DEADLINE, || async {
        let ring = ground.rings().get(RING).await.map_err(|error| error.to_string())?;
        let wish = ring.metadata.annotations.and_then(|all| all.get("mesh.shoal.dev/wishes").cloned());
        wish.map_or(Ok(()), Err)
    })
    .await
    .unwrap();
    assert_eq!(
        json(ground, "rebalance --plan").await["moves"],
        json!([]),
        "one slot is within the hysteresis"
    );

    said(ground, "drain kcm-0 --wait", 0).await;
    let drained = ground.map().await;
    assert_eq!(drained.owners().get("kcm-1"), Some(&256));
    said(ground, "undrain kcm-0", 0).await;
    ground.wait_balanced(2).await;
}

async fn finds_what_is_wrong(ground: &Ground) {
    let log = ground.plane.dir().join("forged.log");
    let event = |agent: &str| json!({"auditID": "a", "stage": "ResponseComplete", "userAgent": agent, "requestURI": "/x"});
    let map = ground.map().await;
    let entry = map.entry(Slot(0));
    let owner = entry.owner.as_deref().unwrap();
    let other = if owner == "kcm-0" { "kcm-1" } else { "kcm-0" };
    let mark = |shard: &str| event(&format!("c/1 shoal/kcm/{shard}@1 :0.{}", entry.epoch));
    let own = mark(owner);
    std::fs::write(&log, format!("{own}\n{}\n", event("kubectl/1"))).unwrap();
    let verify = format!("verify --audit {}", log.display());
    assert!(said(ground, &verify, 0).await.contains("1 writes of the ring, 0 foreign"));
    let forged = mark(other);
    std::fs::write(&log, format!("{own}\n{forged}\n")).unwrap();
    assert!(said(ground, &verify, 3).await.contains(&format!("which is {owner}'s")));
    assert!(said(ground, "verify --evict", 3).await.contains("Nothing was checked"));
}
