//! What the forged logs do not show: the other forms of a reason, and what must stay clean.

use serde_json::{Value, json};

use super::*;

const RING: &str = include_str!("../../tests/fixtures/ring.yaml");
const MAP_2: &str = include_str!("../../tests/fixtures/map-2.yaml");
const WRITER: &str = "system:serviceaccount:kube-system:job-controller";

fn judge_with(ring: &str, asked: Option<&str>) -> Judge {
    let ring = Ring::parse(ring).unwrap();
    let mut owners = Owners::default();
    owners.add(&ring, RING).unwrap();
    owners.add(&ring, MAP_2).unwrap();
    let asked = asked.map(|text| Asked::parse(text).unwrap());
    let writers = vec!["system:serviceaccount:kube-system:*".to_owned()];
    Judge::new(Case { ring, owners, writers, asked, orphan_budget: None, adopted: false })
}

/// An update of pod demo-5/web-1 (slot 20 of cluster hub), with fields replaced.
fn event(mark: &str, fields: &Value) -> Event {
    let mut event = json!({
        "level": "Request", "auditID": "a", "stage": "ResponseComplete", "requestURI": "/x", "verb": "update",
        "user": {"username": WRITER}, "userAgent": format!("kcm/v1 {mark}"), "responseStatus": {"code": 200},
        "objectRef": {"resource": "pods", "namespace": "demo-5", "name": "web-1"},
    });
    for (name, value) in fields.as_object().unwrap() {
        event[name] = value.clone();
    }
    serde_json::from_value(event).unwrap()
}

fn reasons(mut judge: Judge, events: &[Event]) -> Vec<Reason> {
    for (line, event) in (1..).zip(events) {
        judge.step("hub", line, event);
    }
    judge.report.findings.iter().map(|finding| finding.reason).collect()
}

fn one(mark: &str, fields: &Value) -> Vec<Reason> {
    reasons(judge_with(RING, None), &[event(mark, fields)])
}

#[test]
fn a_suffix_that_the_ring_s_proxy_did_not_make() {
    let own = "shoal/kcm/kcm-0@1 :20.1";
    assert_eq!(one(own, &json!({})), []);
    assert_eq!(one("shoal/other/other-0@1 :20.1", &json!({})), [Reason::ClientMadeSuffix]);
    let stranger = json!({"username": "alice"});
    assert_eq!(one(own, &json!({"user": stranger})), [Reason::ClientMadeSuffix]);
    assert_eq!(one(own, &json!({"user": stranger, "verb": "get"})), []);
    assert_eq!(one(own, &json!({"user": stranger, "responseStatus": {"code": 403}})), []);
    assert_eq!(one("shoal/other/other-0@1 :20.1", &json!({"user": stranger})), [], "another ring's business");
}

#[test]
fn a_writer_is_one_by_either_name() {
    let alice = json!({"username": "alice"});
    let writer = json!({"username": WRITER});
    assert_eq!(one("", &json!({"user": alice})), []);
    assert_eq!(one("", &json!({"user": alice, "impersonatedUser": writer})), [Reason::NoSuffix]);
    assert_eq!(one("", &json!({"user": writer, "impersonatedUser": alice})), [Reason::NoSuffix]);
}

#[test]
fn a_claim_is_there_where_a_slot_is_asked_for_and_only_there() {
    assert_eq!(one("shoal/kcm/kcm-0@1", &json!({})), [Reason::MalformedSuffix]);
    let event = json!({"objectRef": {"resource": "events", "namespace": "demo-5", "name": "web.1"}});
    assert_eq!(one("shoal/kcm/kcm-0@1", &event), []);
    assert_eq!(one("shoal/kcm/kcm-0@1 :20.1", &event), [Reason::MalformedSuffix]);
    assert_eq!(one("", &event), [Reason::NoSuffix], "the lane has to pass the proxy too");
    let lease = json!({"objectRef": {"apiGroup": "coordination.k8s.io", "resource": "leases",
        "namespace": "kube-node-lease", "name": "n"}});
    assert_eq!(one("shoal/kcm/kcm-0@1", &lease), []);
    assert_eq!(one("shoal/kcm/kcm-0@1 :187.1", &lease), [Reason::MalformedSuffix]);
}

#[test]
fn only_writes_that_may_have_happened_are_judged() {
    assert_eq!(one("", &json!({"responseStatus": {"code": 409}})), []);
    assert_eq!(one("", &json!({"stage": "ResponseStarted"})), []);
    assert_eq!(one("", &json!({"verb": "watch"})), []);
    assert_eq!(one("", &json!({"requestURI": "/x?dryRun=All"})), []);
    assert_eq!(one("", &json!({"stage": "Panic", "responseStatus": {"code": 500}})), [Reason::NoSuffix]);
}

#[test]
fn a_cluster_scoped_create_takes_its_name_from_the_body() {
    let create =
        |body: Value| json!({"verb": "create", "objectRef": {"resource": "nodes"}, "requestObject": body});
    let named = create(json!({"metadata": {"name": "node-0.example.internal"}}));
    assert_eq!(one("shoal/kcm/kcm-1@1 :101.1", &named), []);
    let generated = create(json!({"metadata": {"generateName": "node-"}}));
    assert_eq!(one("shoal/kcm/kcm-1@1 :101.1", &generated), [Reason::Unjudgeable]);
}

#[test]
fn subresources_and_collections_follow_their_object() {
    let reference = |it: Value| json!({"verb": "deletecollection", "objectRef": it});
    let pods = reference(json!({"resource": "pods", "namespace": "demo-5"}));
    assert_eq!(one("shoal/kcm/kcm-0@1 :20.1", &pods), []);
    assert_eq!(
        one("shoal/kcm/kcm-0@1 :20.1", &reference(json!({"resource": "nodes"}))),
        [Reason::Unjudgeable]
    );
    let scale = json!({"resource": "deployments", "apiGroup": "apps", "namespace": "demo-5", "name": "web",
        "subresource": "scale"});
    assert_eq!(one("shoal/kcm/kcm-0@1 :20.1", &json!({"objectRef": scale})), []);
}

#[test]
fn each_form_of_deletion_has_to_be_asked_for() {
    let asked = r#"{"resource":"pods","namespace":"demo-5","namePrefix":"web-"}"#;
    let find = |fields: Value| {
        let deletion = event("shoal/kcm/kcm-0@1 :20.1", &fields);
        reasons(judge_with(RING, Some(asked)), &[deletion])
    };
    let pod = |name: &str, subresource: &str| json!({"resource": "pods", "namespace": "demo-5", "name": name, "subresource": subresource});
    assert_eq!(find(json!({"verb": "delete", "objectRef": pod("web-1", "")})), []);
    assert_eq!(find(json!({"verb": "delete", "objectRef": pod("db-1", "")})), [Reason::Unasked]);
    assert_eq!(find(json!({"verb": "create", "objectRef": pod("web-1", "eviction")})), []);
    assert_eq!(find(json!({"verb": "create", "objectRef": pod("db-1", "eviction")})), [Reason::Unasked]);
    assert_eq!(find(json!({"verb": "deletecollection", "objectRef": pod("", "")})), [Reason::Unasked]);
    assert_eq!(find(json!({"verb": "update", "objectRef": pod("db-1", "")})), []);
    assert_eq!(
        one("shoal/kcm/kcm-0@1 :20.1", &json!({"verb": "delete"})),
        [],
        "without a list: by owner alone"
    );
}

#[test]
fn a_namespace_is_not_in_itself() {
    let own = json!({"resource": "namespaces", "namespace": "demo-5", "name": "demo-5"});
    let deletion = event("shoal/kcm/kcm-0@1 :20.1", &json!({"verb": "delete", "objectRef": own}));
    let asked = r#"{"resource":"namespaces","namePrefix":"demo-"}"#;
    assert_eq!(reasons(judge_with(RING, Some(asked)), &[deletion]), []);
}

fn old(fields: &Value) -> Event {
    event("shoal/kcm/kcm-0@1 :20.1", fields)
}

fn new(fields: &Value) -> Event {
    event("shoal/kcm/kcm-1@1 :20.2", fields)
}

fn named(name: &str) -> Value {
    json!({"objectRef": {"resource": "pods", "namespace": "demo-5", "name": name}})
}

#[test]
fn under_preconditions_lateness_is_per_object() {
    let late = |events: &[Event]| reasons(judge_with(RING, None), events);
    assert_eq!(late(&[old(&named("a")), new(&named("a")), new(&named("a"))]), []);
    assert_eq!(late(&[new(&named("a")), old(&named("a")), old(&named("a"))]), [Reason::Late, Reason::Late]);
    assert_eq!(late(&[new(&named("a")), old(&named("b"))]), []);
    let panicked = new(&json!({"stage": "Panic"}));
    assert_eq!(late(&[panicked, old(&json!({}))]), [], "a handler that died may not have written");
}

#[test]
fn under_preconditions_an_object_created_anew_is_another_one() {
    let create = json!({"verb": "create", "responseStatus": {"code": 201}});
    let events =
        [new(&json!({"verb": "delete"})), old(&create), old(&json!({})), new(&json!({})), old(&json!({}))];
    assert_eq!(
        reasons(judge_with(RING, None), &events),
        [Reason::Late],
        "only after the new owner's own write"
    );
    let unnamed = json!({"verb": "create", "objectRef": {"resource": "pods", "namespace": "demo-5"}});
    assert_eq!(reasons(judge_with(RING, None), &[new(&unnamed), old(&unnamed)]), []);
}

#[test]
fn under_credentials_lateness_is_per_slot_creates_included() {
    let ring = RING.replace("adoption: Recreate", "fence: {mode: Credential}");
    let late = |events: &[Event]| reasons(judge_with(&ring, None), events);
    let create = json!({"verb": "create", "responseStatus": {"code": 201}});
    assert_eq!(late(&[new(&named("a")), old(&named("b"))]), [Reason::Late]);
    assert_eq!(late(&[new(&named("a")), old(&create)]), [Reason::Late]);
    assert_eq!(late(&[old(&named("a")), new(&named("b"))]), []);
}

#[test]
fn findings_are_bounded_and_still_counted() {
    let mut judge = judge_with(RING, None);
    for line in 1..=250 {
        judge.step("hub", line, &event("", &json!({})));
    }
    let report = judge.finish();
    assert_eq!(report.count(Reason::NoSuffix), 250);
    assert_eq!(report.findings.len(), crate::report::MAX_FINDINGS);
    assert!(report.to_string().contains("and 150 more"), "{report}");
}

#[test]
fn a_uid_decides_where_the_log_shows_it() {
    let ring = RING.replace("key: namespace}", "key: uid}");
    let judge = || judge_with(&ring, None);
    // Slot 10, kcm-0's; see the golden vectors.
    let shown = |uid: &str| json!({"responseObject": {"metadata": {"uid": uid}}});
    let seen = |mark: &str, fields: &Value| reasons(judge(), &[event(mark, fields)]);
    let own = "shoal/kcm/kcm-0@1 :10.1";
    assert_eq!(seen(own, &shown("é")), []);
    assert_eq!(seen("shoal/kcm/kcm-0@1 :20.1", &shown("é")), [Reason::WrongSlot]);
    assert_eq!(seen("shoal/kcm/kcm-2@1 :10.1", &shown("é")), [Reason::NotOwner]);
    assert_eq!(seen("shoal/kcm/kcm-0@1", &shown("é")), [Reason::MalformedSuffix]);
    let of_delete = json!({"verb": "delete", "requestObject": {"preconditions": {"uid": "é"}}});
    assert_eq!(seen(own, &of_delete), []);
    assert_eq!(seen("shoal/kcm/kcm-0@1 :20.1", &of_delete), [Reason::WrongSlot]);
    let deleted = json!({"verb": "delete", "responseObject": {"kind": "Status", "details": {"uid": "é"}}});
    assert_eq!(seen("shoal/kcm/kcm-0@1 :20.1", &deleted), [Reason::WrongSlot]);
}

#[test]
fn what_is_held_to_its_claim_only_is_counted_apart() {
    let ring = RING.replace("key: namespace}", "key: uid}");
    let created = json!({"verb": "create", "responseStatus": {"code": 201},
        "responseObject": {"metadata": {"uid": "é"}}});
    let report = |mark: &str, fields: &Value| {
        let mut judge = judge_with(&ring, None);
        judge.step("hub", 1, &event(mark, fields));
        let found: Vec<_> = judge.report.findings.iter().map(|finding| finding.reason).collect();
        (judge.report.judged, judge.report.unproved, found)
    };
    assert_eq!(report("shoal/kcm/kcm-0@1 :20.1", &json!({})), (1, 1, vec![]));
    assert_eq!(report("shoal/kcm/kcm-0@1 :200.1", &json!({})), (1, 1, vec![Reason::NotOwner]));
    assert_eq!(report("shoal/kcm/kcm-0@1", &created), (0, 1, vec![]));
    assert_eq!(report("shoal/kcm/kcm-0@1 :10.1", &created), (0, 0, vec![Reason::MalformedSuffix]));
}

/// It is answered 201, as a create is, but the Pod was there before.
#[test]
fn a_binding_in_its_old_form_is_a_write_to_its_pod() {
    let binding = |group: &str| {
        json!({"verb": "create", "responseStatus": {"code": 201},
            "requestObject": {"metadata": {"name": "web-1"}},
            "objectRef": {"apiGroup": group, "resource": "bindings", "namespace": "demo-5"}})
    };
    let by_uid = RING.replace("key: namespace}", "key: uid}");
    let only_pods = by_uid.replacen("resources: ['*']", "resources: [pods]", 1);
    for ring in [&by_uid, &only_pods] {
        let of = |group| reasons(judge_with(ring, None), &[event("shoal/kcm/kcm-0@1", &binding(group))]);
        assert_eq!(of(""), [Reason::MalformedSuffix], "{ring}");
    }
    let other = event("shoal/kcm/kcm-0@1", &binding("example.com"));
    assert_eq!(reasons(judge_with(&by_uid, None), &[other]), []);
    assert_eq!(one("shoal/kcm/kcm-0@1 :20.1", &binding("")), []);
}

fn made(code: u16, name: &str) -> Event {
    let pod = json!({"resource": "pods", "namespace": "demo-5", "name": name});
    let fields = json!({"verb": "create", "responseStatus": {"code": code}, "objectRef": pod});
    event("shoal/kcm/kcm-0@1 :20.1", &fields)
}

fn deleted(user: &str, name: &str) -> Event {
    let pod = json!({"resource": "pods", "namespace": "demo-5", "name": name});
    event("", &json!({"verb": "delete", "user": {"username": user}, "objectRef": pod}))
}

#[test]
fn what_is_made_again_was_not_to_be_deleted() {
    let asked = r#"{"resource":"pods","namespace":"demo-5","namePrefix":"web-"}"#;
    let find = |events: &[Event]| reasons(judge_with(RING, Some(asked)), events);
    assert_eq!(find(&[made(201, "db-0"), made(201, "db-0")]), [Reason::Replaced]);
    assert_eq!(
        find(&[deleted("kubelet", "db-0"), made(201, "db-0")]),
        [Reason::Replaced],
        "whoever deleted it"
    );
    assert_eq!(find(&[made(201, "db-0"), made(409, "db-0"), made(201, "db-1")]), []);
    assert_eq!(find(&[deleted("kubelet", "web-0"), made(201, "web-0")]), [], "asked for");
    let unnamed = json!({"verb": "create", "responseStatus": {"code": 201},
        "objectRef": {"resource": "pods", "namespace": "demo-5"}});
    let unnamed = event("shoal/kcm/kcm-0@1 :20.1", &unnamed);
    assert_eq!(find(&[unnamed.clone(), unnamed]), []);
    let without_a_list = [deleted("kubelet", "db-0"), made(201, "db-0")];
    assert_eq!(reasons(judge_with(RING, None), &without_a_list), []);
}

#[test]
fn the_proxies_own_objects_are_no_writes_of_the_ring() {
    let by = |agent: &str, group: &str, resource: &str, name: &str| {
        let object =
            json!({"apiGroup": group, "resource": resource, "namespace": "kube-system", "name": name});
        one("", &json!({"userAgent": agent, "objectRef": object}))
    };
    let lease = "coordination.k8s.io";
    let own = [
        (lease, "leases", "shoal-kcm-0"),
        (lease, "leases", "shoal-kcm-7-standby"),
        (lease, "leases", "kube-controller-manager-kcm-0"),
        ("", "secrets", "shoal-kcm-1-12"),
    ];
    for (group, resource, name) in own {
        assert_eq!(by("shoal-proxy/0.1.0", group, resource, name), [], "{name}");
        assert_eq!(by("kcm/v1", group, resource, name), [Reason::NoSuffix], "{name}");
    }
    for (group, resource, name) in [
        (lease, "leases", "shoal-kcm"),
        (lease, "leases", "shoal-other-0-standby"),
        (lease, "leases", "kube-controller-manager"),
        ("", "secrets", "shoal-kcm-1"),
        ("", "secrets", "shoal-kcm-0-standby"),
        ("", "configmaps", "shoal-kcm-0"),
    ] {
        assert_eq!(by("shoal-proxy/0.1.0", group, resource, name), [Reason::NoSuffix], "{name}");
    }
    let sister = json!({"objectRef": {"apiGroup": lease, "resource": "leases", "namespace": "kube-system",
        "name": "shoal-kcm-0"}});
    assert_eq!(one("shoal/kcm/kcm-1@1", &sister), [Reason::SisterLock], "by a controller");
}

#[test]
fn a_proxy_without_a_shard_has_the_lane_only() {
    let lane = json!({"objectRef": {"resource": "events", "namespace": "demo-5", "name": "web.1"}});
    assert_eq!(one("shoal/kcm/standby@0", &lane), []);
    assert_eq!(one("shoal/kcm/standby@0 :20.1", &json!({})), [Reason::UnknownShard]);
    let lock = json!({"objectRef": {"apiGroup": "coordination.k8s.io", "resource": "leases",
        "namespace": "kube-system", "name": "kube-controller-manager-kcm-0"}});
    assert_eq!(one("shoal/kcm/standby@0", &lock), [Reason::UnknownShard]);
}

#[test]
fn a_lock_may_be_made_again() {
    let lock = json!({"apiGroup": "coordination.k8s.io", "resource": "leases", "namespace": "kube-system",
        "name": "kube-controller-manager-kcm-0"});
    let freed = event("", &json!({"verb": "delete", "userAgent": "shoal-proxy/0.1.0", "objectRef": lock}));
    let made = json!({"verb": "create", "responseStatus": {"code": 201}, "objectRef": lock});
    let made = event("shoal/kcm/kcm-0@2", &made);
    assert_eq!(reasons(judge_with(RING, Some("")), &[freed, made]), []);
}

#[test]
fn who_writes_with_a_token_of_the_term_is_a_writer() {
    let ring = RING.replace("adoption: Recreate", "fence: {mode: Credential, serviceAccount: kcm-fenced}");
    let writer = json!({"user": {"username": "system:serviceaccount:kube-system:kcm-fenced"}});
    let mut case = judge_with(&ring, None);
    case.case.writers.retain(|writer| !writer.ends_with('*'));
    assert_eq!(reasons(case, &[event("", &writer)]), [Reason::NoSuffix]);
}
