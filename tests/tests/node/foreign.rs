//! Another shard's Pods are out of reach, and what reaches one's own is told apart in the audit log.

use std::fs;

use serde_json::Value;

use crate::PROTOCOLS;
use crate::ground::{Ground, Way};

#[tokio::test]
#[ignore = "needs a real node: make test-node"]
async fn what_changes_a_pod_of_another_shard_is_refused() {
    let ground = Ground::get().await;
    for (name, setting) in PROTOCOLS {
        for line in [
            "kubectl exec tools -c main -- true",
            "kubectl attach parrot",
            // Before anybody connects to it.
            "kubectl port-forward pod/tools :7000",
        ] {
            let seen = ground.trespass(&format!("{setting}{line}")).await;
            assert_eq!(seen.code, Some(1), "{name}: {line}: {seen:?}");
            assert!(seen.stderr.contains("does not own slot"), "{name}: {line}: {seen:?}");
        }
    }
    let connects = connects(ground);
    assert!(
        connects.iter().all(|event| !event["objectRef"]["namespace"].as_str().unwrap().eq(ground.foreign()))
    );
}

#[tokio::test]
#[ignore = "needs a real node: make test-node"]
async fn the_audit_log_tells_who_came_through_the_proxy() {
    let ground = Ground::get().await;
    ground.shell(Way::Proxied, "kubectl exec tools -c main -- echo audited").await;
    ground.shell(Way::Direct, "kubectl exec tools -c main -- echo direct").await;
    let events = connects(ground);
    let agent = |command: &str| {
        let mut matching =
            events.iter().filter(|event| event["requestURI"].as_str().unwrap().contains(command));
        matching.next().unwrap()["userAgent"].as_str().unwrap().to_owned()
    };
    assert!(agent("command=audited").contains(" shoal/kcm/kcm-0@"), "{}", agent("command=audited"));
    assert!(!agent("command=direct").contains(" shoal/"), "{}", agent("command=direct"));
}

/// The events of exec, attach and port-forward.
fn connects(ground: &Ground) -> Vec<Value> {
    let log = fs::read_to_string(ground.plane().audit_log()).unwrap();
    let events = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events
        .filter(|event| {
            ["exec", "attach", "portforward"].iter().any(|one| event["objectRef"]["subresource"] == *one)
        })
        .collect()
}
