//! Logs of a few lines, and what they add up to.

use serde_json::json;

use super::*;

/// A create by shard kcm-1 that took effect, with fields replaced.
fn create(resource: &str, namespace: &str, body: &Value, fields: &Value) -> String {
    let mut event = json!({
        "level": "Request", "auditID": "a", "stage": "ResponseComplete", "requestURI": "/x", "verb": "create",
        "user": {"username": "w"}, "userAgent": "kcm/v1 shoal/kcm/kcm-1@1 :1.1",
        "objectRef": {"resource": resource, "namespace": namespace}, "responseStatus": {"code": 201},
        "requestObject": body,
    });
    for (name, value) in fields.as_object().unwrap() {
        event[name] = value.clone();
    }
    format!("{event}\n")
}

fn owned(kind: &str, owner: &str, uid: &str, name: Option<&str>) -> Value {
    let owner = json!([
        {"kind": "Other", "name": "other", "uid": "u-other"},
        {"kind": kind, "name": owner, "uid": uid, "controller": true},
    ]);
    json!({"metadata": {"name": name, "ownerReferences": owner}, "spec": {"containers": [{"image": "app:1"}]}})
}

fn replica_set(name: &str) -> String {
    let mut body = owned("Deployment", "web", "u-web", Some(name));
    body["spec"] = json!({"template": {"spec": {"containers": [{"image": "app:1"}]}}});
    create("replicasets", "x", &body, &json!({}))
}

fn pod(kind: &str, owner: &str, uid: &str, name: Option<&str>) -> String {
    create("pods", "x", &owned(kind, owner, uid, name), &json!({}))
}

fn read(lines: &[String]) -> Creates {
    Creates::read(lines.concat().as_bytes()).unwrap()
}

/// A Deployment of one Pod, a `StatefulSet` of two, a Job of two.
fn clean() -> Vec<String> {
    vec![
        // The log may have the Pod before its ReplicaSet.
        pod("ReplicaSet", "web-1", "u-web-1", None),
        replica_set("web-1"),
        pod("StatefulSet", "db", "u-db", Some("db-0")),
        pod("StatefulSet", "db", "u-db", Some("db-1")),
        pod("Job", "once", "u-once", None),
        pod("Job", "once", "u-once", None),
    ]
}

fn asked() -> BTreeMap<Work, u64> {
    let work = |kind, name, part, count| (Work::new("x", kind, name, part), count);
    [
        work("Deployment", "web", "app:1", 1),
        work("StatefulSet", "db", "db-0", 1),
        work("StatefulSet", "db", "db-1", 1),
        work("Job", "once", "app:1", 2),
    ]
    .into()
}

#[test]
fn adds_up_what_each_workload_was_given() {
    let creates = read(&clean());
    assert_eq!(differences(&asked(), &creates.pods()), [""; 0]);
    let sets = [(Work::new("x", "Deployment", "web", "app:1"), 1)].into();
    assert_eq!(differences(&sets, &creates.replica_sets()), [""; 0]);
    let namespaces = BTreeMap::from([("kcm-1".to_owned(), BTreeSet::from(["x".to_owned()]))]);
    assert_eq!(creates.namespaces_of_pods(), namespaces);
}

#[test]
fn each_thing_too_many_is_a_difference() {
    for (more, shown) in [
        (
            pod("ReplicaSet", "web-1", "u-web-1", None),
            "Deployment web (app:1): asked for 1, made {\"u-web-1\": 2}",
        ),
        (pod("StatefulSet", "db", "u-db", Some("db-1")), "StatefulSet db (db-1): asked for 1"),
        (pod("StatefulSet", "db", "u-db", Some("db-2")), "StatefulSet db (db-2): asked for 0"),
        (pod("Job", "once", "u-once", None), "Job once (app:1): asked for 2, made {\"u-once\": 3}"),
        (pod("ReplicaSet", "stray", "u-stray", None), "ReplicaSet stray (app:1): asked for 0"),
    ] {
        let found = differences(&asked(), &read(&[clean(), vec![more]].concat()).pods());
        assert!(found.len() == 1 && found[0].contains(shown), "{shown}: {found:?}");
    }
}

#[test]
fn a_second_replica_set_of_a_template_is_a_difference() {
    let second = vec![replica_set("web-2"), pod("ReplicaSet", "web-2", "u-web-2", None)];
    let creates = read(&[clean(), second].concat());
    let found = differences(&asked(), &creates.pods());
    assert!(found.len() == 1 && found[0].contains("{\"u-web-1\": 1, \"u-web-2\": 1}"), "{found:?}");
    let sets = [(Work::new("x", "Deployment", "web", "app:1"), 1)].into();
    assert_eq!(differences(&sets, &creates.replica_sets()).len(), 1);
}

#[test]
fn what_is_missing_is_a_difference() {
    let found = differences(&asked(), &read(&clean()[..3]).pods());
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[0], "x: Job once (app:1): asked for 2, made none");
}

#[test]
fn only_objects_that_were_really_created_count() {
    let body = owned("Job", "once", "u-once", None);
    for fields in [
        json!({"responseStatus": {"code": 409}}),
        json!({"verb": "update"}),
        json!({"stage": "RequestReceived"}),
        json!({"requestURI": "/x?dryRun=All"}),
        json!({"objectRef": {"resource": "pods", "namespace": "x", "name": "p", "subresource": "binding"}}),
    ] {
        let creates = read(&[create("pods", "x", &body, &fields)]);
        assert_eq!(creates, Creates::default(), "{fields}");
    }
}

#[test]
fn who_came_past_the_proxies_has_no_shard() {
    let body = owned("Job", "once", "u-once", None);
    let creates = read(&[create("pods", "x", &body, &json!({"userAgent": "kcm/v1"}))]);
    assert_eq!(creates.namespaces_of_pods().into_keys().collect::<Vec<_>>(), [""]);
}
