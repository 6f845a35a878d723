use super::*;

const RING: &str = include_str!("../../tests/fixtures/ring.yaml");

fn object(group: &str, resource: &str, namespace: Option<&str>, name: Option<&str>) -> Object {
    Object {
        group: group.to_owned(),
        resource: resource.to_owned(),
        namespace: namespace.map(str::to_owned),
        name: name.map(str::to_owned),
        uid: None,
    }
}

fn lease(namespace: &str, name: &str) -> Object {
    object("coordination.k8s.io", "leases", Some(namespace), Some(name))
}

#[test]
fn reads_the_ring_out_of_several_documents() {
    let ring = Ring::parse(RING).unwrap();
    assert_eq!((ring.name.as_str(), ring.namespace.as_str()), ("kcm", "kube-system"));
    assert_eq!(ring.fence(), FenceMode::Preconditions);
    assert!(ring.has_shard("kcm-0") && ring.has_shard("kcm-2"));
    for other in ["kcm-3", "kcm-00", "kcm-", "kcm", "kcm-+1", "xkcm-0", "other-0"] {
        assert!(!ring.has_shard(other), "{other}");
    }
}

#[test]
fn the_owner_of_the_key_writes_sharded_and_shared_kinds() {
    let ring = Ring::parse(RING).unwrap();
    assert_eq!(ring.writers(&object("", "pods", Some("x"), None)), Writers::Owner(Key::Text("x")));
    assert_eq!(ring.writers(&object("", "namespaces", None, Some("x"))), Writers::Owner(Key::Text("x")));
    assert_eq!(ring.writers(&object("", "nodes", None, Some("n"))), Writers::Owner(Key::Text("n")));
    assert_eq!(ring.writers(&object("", "nodes", None, None)), Writers::Owner(Key::Hidden));
}

#[test]
fn the_first_rule_that_matches_decides() {
    let ring = Ring::parse(RING).unwrap();
    assert_eq!(ring.writers(&lease("kube-node-lease", "n")), Writers::AnyUnsharded);
    assert_eq!(ring.writers(&lease("elsewhere", "n")), Writers::Owner(Key::Text("elsewhere")));
}

#[test]
fn each_key_mode_looks_at_its_part_of_the_object() {
    let ring = |key: &str| Ring::parse(&RING.replace("key: namespace}", &format!("key: {key}}}")));
    let mut pod = object("", "pods", Some("x"), Some("web"));
    pod.uid = Some("u".to_owned());
    let nameless = object("", "pods", Some("x"), None);
    for (key, of_pod, of_nameless) in [
        ("namespace", Key::Text("x"), Key::Text("x")),
        ("name", Key::Text("web"), Key::Hidden),
        ("uid", Key::Uid(Some("u")), Key::Uid(None)),
        ("cluster", Key::Text(""), Key::Text("")),
    ] {
        let ring = ring(key).unwrap();
        assert_eq!(ring.writers(&pod), Writers::Owner(of_pod), "{key}");
        assert_eq!(ring.writers(&nameless), Writers::Owner(of_nameless), "{key}");
    }
    assert!(ring("colour").is_err());
}

#[test]
fn a_rule_without_a_scope_is_about_both() {
    let ring = Ring::parse(
        &RING.replace("scope: Namespaced, mode: Unsharded", "mode: Unsharded").replace("scope: '*', ", ""),
    );
    let ring = ring.unwrap();
    assert_eq!(ring.writers(&lease("kube-node-lease", "n")), Writers::AnyUnsharded);
    assert_eq!(ring.writers(&object("", "nodes", None, Some("n"))), Writers::Owner(Key::Text("n")));
}

#[test]
fn a_ring_without_rules_shares_reads_and_owns_writes() {
    let yaml = "apiVersion: mesh.shoal.dev/v1alpha1\nkind: ShardedController\nmetadata: {name: r, namespace: n}\nspec: {shards: 1, fence: {mode: Credential}}";
    let ring = Ring::parse(yaml).unwrap();
    assert_eq!(ring.fence(), FenceMode::Credential);
    assert_eq!(ring.writers(&lease("x", "l")), Writers::Owner(Key::Text("x")));
}

#[test]
fn the_lane_is_these_kinds_and_nothing_else() {
    let ring = Ring::parse(RING).unwrap();
    for (group, resource, namespace) in [
        ("", "events", Some("x")),
        ("events.k8s.io", "events", Some("x")),
        ("", "serviceaccounts", Some("kube-system")),
        ("authentication.k8s.io", "tokenreviews", None),
        ("authentication.k8s.io", "selfsubjectreviews", None),
        ("authorization.k8s.io", "selfsubjectrulesreviews", None),
        ("authorization.k8s.io", "subjectaccessreviews", None),
        ("authorization.k8s.io", "selfsubjectaccessreviews", None),
        ("authorization.k8s.io", "localsubjectaccessreviews", Some("x")),
    ] {
        assert_eq!(
            ring.writers(&object(group, resource, namespace, None)),
            Writers::AnyLane,
            "{resource}.{group}"
        );
    }
    for (group, resource, namespace) in [
        ("example.com", "events", "x"),
        ("", "serviceaccounts", "x"),
        ("", "secrets", "kube-system"),
        ("example.com", "accessreviews", "x"),
    ] {
        let object = object(group, resource, Some(namespace), None);
        assert_eq!(ring.writers(&object), Writers::Owner(Key::Text(namespace)), "{resource}.{group}");
    }
}

#[test]
fn locks_and_identities_have_one_writer() {
    let ring = Ring::parse(RING).unwrap();
    let writers = |name: &str| match ring.writers(&lease("kube-system", name)) {
        Writers::Shard(shard) => shard.to_owned(),
        other => format!("{other:?}"),
    };
    assert_eq!(writers("kube-controller-manager"), "Nobody");
    assert_eq!(writers("kube-controller-manager-kcm-1"), "kcm-1");
    assert_eq!(writers("kube-controller-manager-kcm-7"), "kcm-7", "a shard of larger days");
    assert_eq!(writers("shoal-kcm-2"), "kcm-2");
    for ordinary in
        ["kube-controller-manager-other-1", "kube-controller-manager-kcm-01", "shoal-kcm", "kube-scheduler"]
    {
        assert_eq!(writers(ordinary), "Owner(Text(\"kube-system\"))", "{ordinary}");
    }
    let config_map = object("", "configmaps", Some("kube-system"), Some("kube-controller-manager"));
    assert_eq!(ring.writers(&config_map), Writers::Owner(Key::Text("kube-system")), "the lock is a lease");
    assert_eq!(ring.writers(&lease("x", "kube-controller-manager")), Writers::Owner(Key::Text("x")));
}

#[test]
fn refuses_what_it_cannot_judge() {
    assert!(matches!(Ring::parse("kind: Pod"), Err(InputError::NotOneRing)));
    assert!(matches!(Ring::parse(&format!("{RING}\n---\n{RING}")), Err(InputError::NotOneRing)));
    assert!(matches!(Ring::parse("a: ["), Err(InputError::Yaml(_))));
    let by_root = RING.replace("mode: Sharded, key: namespace", "mode: Sharded, key: rootOwner");
    let error = Ring::parse(&by_root).unwrap_err().to_string();
    assert!(error.contains("kcm") && error.contains("rootOwner"), "{error}");
}
