use serde_json::{Value, json};

use super::*;

fn read<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

fn deployment(generation: i64, old: i32) -> Deployment {
    read(json!({
        "metadata": {"name": WEB, "namespace": "x", "generation": generation},
        "spec": {"replicas": 1, "selector": {}, "template": {}},
        "status": {
            "observedGeneration": 2, "replicas": 1 + old, "updatedReplicas": 1, "availableReplicas": 1,
        },
    }))
}

fn seen(ready: &str, endpoint: &str) -> Seen {
    let pod = read(json!({
        "metadata": {"namespace": "x", "name": "web-1", "uid": "u1", "labels": {"app": WEB}},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }));
    let slice = read(json!({
        "metadata": {"namespace": "x", "name": "web-s", "labels": {"kubernetes.io/service-name": WEB}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": true}, "targetRef": {"uid": endpoint}}],
    }));
    let (slices, pods) = (vec![slice], vec![pod]);
    Seen { deployments: vec![deployment(2, 0)], stateful_sets: vec![], jobs: vec![], slices, pods }
}

#[test]
fn a_deployment_is_settled_when_its_newest_spec_is_met() {
    assert!(deployment_settled(&deployment(2, 0)));
    assert!(!deployment_settled(&deployment(3, 0)), "the newest spec was not looked at");
    assert!(!deployment_settled(&deployment(2, 1)), "an old Pod is left");
}

#[test]
fn a_service_is_settled_when_its_slices_name_the_ready_pods() {
    assert!(seen("True", "u1").serves("x"));
    assert!(!seen("False", "u1").serves("x"), "names a Pod that is not ready");
    assert!(!seen("True", "u2").serves("x"), "names another Pod");
    assert!(!seen("True", "u1").serves("y"), "nothing is there");
}

#[test]
fn what_is_missing_counts_against() {
    let progress = seen("True", "u1").progress(&["x".to_owned(), "y".to_owned()]);
    assert_eq!(progress.services, Count { settled: 1, of: 2 });
    assert_eq!(progress.jobs, Count { settled: 0, of: 2 });
    assert!(!progress.is_settled());
    assert_eq!(progress.to_string(), "Deployments 1/2, StatefulSets 0/2, Jobs 0/2, Services 1/2");
}
