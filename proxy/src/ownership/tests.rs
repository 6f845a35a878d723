//! The gate, row by row: what DESIGN calls a refusal, in its exact form.

use http::{HeaderMap, Method};
use shoal_api::manifest;
use shoal_sharding::slot_of;

use super::*;

const FILES: &str = include_str!("../testdata/ring.yaml");

/// Shard 0 owns slots 0-127 and shard 1 the rest; see `mine` and `other` for keys of each.
fn ring() -> Ring {
    Ring::compile(&manifest::Ring::parse([FILES]).unwrap(), "kcm-0", 1).unwrap()
}

fn key_where(owned: bool) -> String {
    let ring = ring();
    let mut keys = (0..).map(|n| format!("team-{n}"));
    keys.find(|key| ring.slots.contains(slot_of("hub", key)) == owned).unwrap()
}

/// Asks the gate; `MINE` and `OTHER` in the path are keys of this shard and of the other one.
fn ask(method: &str, path: &str) -> Result<Passage, Refusal> {
    let path = path.replace("MINE", &key_where(true)).replace("OTHER", &key_where(false));
    let method: Method = method.parse().unwrap();
    let request = KubeRequest::parse(&method, &path.parse().unwrap(), &HeaderMap::new()).unwrap();
    Gate::of(&ring(), "hub", &request).map_or(Ok(Passage::Free), Gate::check)
}

fn refusal(method: &str, path: &str) -> Refusal {
    ask(method, path).expect_err(&format!("{method} {path}"))
}

#[test]
fn a_write_in_an_owned_slot_carries_its_claim() {
    let slot = slot_of("hub", &key_where(true));
    let claimed = Ok(Passage::Claimed(Claim { slot, epoch: 1 }));
    for (method, path) in [
        ("POST", "/api/v1/namespaces/MINE/pods"),
        ("POST", "/api/v1/namespaces/MINE/pods/web/eviction"),
        ("PUT", "/apis/apps/v1/namespaces/MINE/deployments/web/status"),
        ("PATCH", "/apis/apps/v1/namespaces/MINE/deployments/web/scale"),
        ("DELETE", "/api/v1/namespaces/MINE"),
        ("PUT", "/api/v1/namespaces/MINE/finalize"),
        ("PATCH", "/api/v1/nodes/MINE/status"),
        ("DELETE", "/api/v1/namespaces/MINE/pods"),
        ("DELETE", "/api/v1/nodes?fieldSelector=metadata.name%3DMINE"),
    ] {
        assert_eq!(ask(method, path), claimed, "{method} {path}");
    }
}

#[test]
fn a_foreign_write_that_names_its_object_is_a_conflict() {
    for (method, path) in [
        ("PUT", "/apis/apps/v1/namespaces/OTHER/deployments/web"),
        ("PUT", "/apis/apps/v1/namespaces/OTHER/deployments/web/status"),
        ("PATCH", "/apis/apps/v1/namespaces/OTHER/deployments/web?fieldManager=x&force=true"),
        ("PUT", "/apis/apps/v1/namespaces/OTHER/deployments/web/scale?dryRun=All"),
        ("DELETE", "/api/v1/namespaces/OTHER/pods/web"),
        ("POST", "/api/v1/namespaces/OTHER/pods/web/binding"),
        ("POST", "/api/v1/namespaces/OTHER/serviceaccounts/default/token"),
        ("PUT", "/api/v1/namespaces/OTHER/finalize"),
        ("DELETE", "/api/v1/namespaces/OTHER"),
        ("PATCH", "/api/v1/nodes/OTHER"),
    ] {
        let refusal = refusal(method, path);
        assert_eq!((refusal.code.as_u16(), refusal.reason), (409, "Conflict"), "{method} {path}");
        assert_eq!(refusal.cause.unwrap().reason, "ForeignSlot");
        assert_eq!(refusal.retry_after, None);
        assert!(refusal.message.contains("kcm-1 does"), "{}", refusal.message);
    }
}

#[test]
fn a_foreign_create_is_unavailable_without_retry_after() {
    for path in ["/api/v1/namespaces/OTHER/pods", "/apis/example.com/v1/namespaces/OTHER/websites?dryRun=All"]
    {
        let refusal = refusal("POST", path);
        assert_eq!((refusal.code.as_u16(), refusal.reason), (503, "ServiceUnavailable"));
        assert_eq!(refusal.retry_after, None);
    }
}

#[test]
fn a_collection_is_deleted_only_where_it_is_owned_whole() {
    for (path, cause) in [
        ("/api/v1/namespaces/OTHER/pods", "ForeignSlot"),
        ("/api/v1/nodes?fieldSelector=metadata.name%3DOTHER", "ForeignSlot"),
        ("/api/v1/pods", "NotNarrowed"),
        ("/api/v1/nodes?labelSelector=a%3Db", "NotNarrowed"),
        ("/api/v1/nodes?fieldSelector=metadata.name%21%3DMINE", "NotNarrowed"),
    ] {
        let refusal = refusal("DELETE", path);
        assert_eq!((refusal.code.as_u16(), refusal.reason), (403, "Forbidden"), "{path}");
        assert_eq!(refusal.cause.unwrap().reason, cause, "{path}");
    }
}

#[test]
fn the_name_of_a_cluster_scoped_create_is_in_its_body() {
    assert_eq!(ask("POST", "/api/v1/namespaces"), Ok(Passage::Unnamed));
    let path = "/api/v1/namespaces".parse().unwrap();
    let request = KubeRequest::parse(&Method::POST, &path, &HeaderMap::new()).unwrap();
    let named = |name: &str| Gate::of(&ring(), "hub", &request).unwrap().named(name);
    assert!(matches!(named(&key_where(true)), Ok(Passage::Claimed(_))));
    assert_eq!(named(&key_where(false)).unwrap_err().code, 503);
    let nameless = named("").unwrap_err();
    assert_eq!((nameless.code.as_u16(), nameless.cause.unwrap().reason), (403, "NoName"));
}

#[test]
fn reads_and_the_lane_pass_without_a_claim() {
    for (method, path) in [
        ("GET", "/api/v1/namespaces/OTHER/pods/web"),
        ("GET", "/api/v1/pods?watch=true"),
        ("POST", "/api/v1/namespaces/OTHER/events"),
        ("PATCH", "/apis/events.k8s.io/v1/namespaces/OTHER/events/e"),
        ("POST", "/api/v1/namespaces/kube-system/serviceaccounts"),
        ("POST", "/api/v1/namespaces/kube-system/serviceaccounts/job-controller/token"),
        ("POST", "/apis/authentication.k8s.io/v1/tokenreviews"),
        ("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews"),
        ("POST", "/apis/authorization.k8s.io/v1/namespaces/OTHER/localsubjectaccessreviews"),
        ("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews"),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"),
        ("PUT", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-1"),
        ("POST", "/healthz"),
    ] {
        assert_eq!(ask(method, path), Ok(Passage::Free), "{method} {path}");
    }
}

#[test]
fn a_ring_must_fit_its_map_and_its_shard() {
    let files = |text: &str| manifest::Ring::parse([text]).unwrap();
    let error = |text: &str, shard| Ring::compile(&files(text), shard, 1).unwrap_err().to_string();
    assert!(error(FILES, "kcm-2").contains("expected kcm-0 to kcm-1"));
    assert!(error(FILES, "kcm-00").contains("not a shard"));
    assert!(error(&FILES.replace("owner: kcm-1", "owner: kcm-7"), "kcm-0").contains("kcm-7"));
    assert!(error(&FILES.replace("first: 128", "first: 129"), "kcm-0").contains("gapless"));
}

/// The ring with all its sharded kinds keyed in another way.
fn keyed(mode: &str) -> Ring {
    let files = FILES.replace("mode: Sharded}", &format!("mode: Sharded, key: {mode}}}"));
    Ring::compile(&manifest::Ring::parse([files.as_str()]).unwrap(), "kcm-0", 1).unwrap()
}

fn ask_of<T>(mode: &str, method: &str, path: &str, ask: impl FnOnce(Gate<'_>) -> T) -> T {
    let path = path.replace("MINE", &key_where(true)).replace("OTHER", &key_where(false));
    let method: Method = method.parse().unwrap();
    let request = KubeRequest::parse(&method, &path.parse().unwrap(), &HeaderMap::new()).unwrap();
    ask(Gate::of(&keyed(mode), "hub", &request).unwrap())
}

/// The code of a refusal and its cause, or what passes.
fn outcome(result: Result<Passage, Refusal>) -> String {
    match result {
        Ok(Passage::Claimed(_)) => "claimed".to_owned(),
        Ok(passage) => format!("{passage:?}"),
        Err(refusal) => {
            let cause = refusal.cause.unwrap();
            format!("{} {} {}", refusal.code.as_u16(), cause.reason, cause.field)
        }
    }
}

#[test]
fn each_key_mode_asks_for_its_part_of_the_object() {
    for (mode, method, path, wanted) in [
        ("name", "PUT", "/api/v1/namespaces/OTHER/pods/MINE", "claimed"),
        ("name", "POST", "/api/v1/namespaces/OTHER/pods/MINE/binding", "claimed"),
        ("name", "PATCH", "/api/v1/namespaces/MINE/pods/OTHER/status", "409 ForeignSlot metadata.name"),
        ("name", "POST", "/api/v1/namespaces/MINE/pods", "Unnamed"),
        ("name", "DELETE", "/api/v1/namespaces/MINE/pods", "403 NotNarrowed metadata.name"),
        ("name", "DELETE", "/api/v1/namespaces/x/pods?fieldSelector=metadata.name%3DMINE", "claimed"),
        (
            "name",
            "DELETE",
            "/api/v1/namespaces/MINE/pods?fieldSelector=metadata.name%3DOTHER",
            "403 ForeignSlot metadata.name",
        ),
        ("uid", "POST", "/api/v1/namespaces/OTHER/pods", "Free"),
        ("uid", "PATCH", "/api/v1/namespaces/OTHER/pods/web", "Unidentified"),
        ("uid", "POST", "/api/v1/namespaces/OTHER/pods/web/eviction", "Unidentified"),
        ("uid", "DELETE", "/api/v1/namespaces/MINE/pods", "403 NotNarrowed metadata.uid"),
        (
            "uid",
            "DELETE",
            "/api/v1/namespaces/MINE/pods?fieldSelector=metadata.name%3DMINE",
            "403 NotNarrowed metadata.uid",
        ),
        ("uid", "POST", "/api/v1/namespaces/OTHER/events", "Free"),
    ] {
        assert_eq!(
            ask_of(mode, method, path, |gate| outcome(gate.check())),
            wanted,
            "{mode} {method} {path}"
        );
    }
}

/// A binding in its old form writes to a Pod, so the rules of Pods decide.
#[test]
fn an_old_binding_is_no_new_object() {
    let old = "/api/v1/namespaces/OTHER/bindings";
    for (mode, path, wanted) in [
        ("uid", old, "403 LegacyBinding metadata.uid"),
        ("uid", "/api/v1/namespaces/OTHER/bindings/web", "403 LegacyBinding metadata.uid"),
        ("uid", "/apis/example.com/v1/namespaces/OTHER/bindings", "Free"),
        ("name", old, "Unnamed"),
        ("namespace", old, "503 ForeignSlot metadata.namespace"),
        ("namespace", "/api/v1/namespaces/MINE/bindings", "claimed"),
    ] {
        assert_eq!(ask_of(mode, "POST", path, |gate| outcome(gate.check())), wanted, "{mode} {path}");
    }
    // A rule that names only Pods is meant for what is written to them.
    let only_pods = FILES.replace("mode: Sharded}", "mode: Sharded, key: uid}");
    let only_pods = only_pods.replace("resources: [\"*\"]", "resources: [pods]");
    assert!(only_pods.contains("[pods]"));
    let ring = Ring::compile(&manifest::Ring::parse([only_pods.as_str()]).unwrap(), "kcm-0", 1).unwrap();
    let path = old.parse().unwrap();
    let request = KubeRequest::parse(&Method::POST, &path, &HeaderMap::new()).unwrap();
    let checked = Gate::of(&ring, "hub", &request).unwrap().check();
    assert_eq!(outcome(checked), "403 LegacyBinding metadata.uid");
}

#[test]
fn all_objects_of_a_cluster_have_one_owner() {
    let cluster_with = |owner: &str| {
        let mut clusters = (0..).map(|n: u32| format!("cluster-{n}"));
        clusters.find(|cluster| ring().map.owned_at(slot_of(cluster, ""), owner).is_some()).unwrap()
    };
    let (own, foreign) = (cluster_with("kcm-0"), cluster_with("kcm-1"));
    for (method, path, refused) in [
        ("POST", "/api/v1/namespaces/x/pods", "503 ForeignSlot "),
        ("PUT", "/api/v1/namespaces/x/pods/web", "409 ForeignSlot "),
        ("DELETE", "/api/v1/namespaces/x/pods", "403 ForeignSlot "),
    ] {
        let request = KubeRequest::parse(&method.parse().unwrap(), &path.parse().unwrap(), &HeaderMap::new());
        let (ring, request) = (keyed("cluster"), request.unwrap());
        let ask = |cluster| outcome(Gate::of(&ring, cluster, &request).unwrap().check());
        assert_eq!((ask(&own).as_str(), ask(&foreign).as_str()), ("claimed", refused), "{method}");
    }
}

#[test]
fn a_uid_decides_once_it_is_known() {
    let uids = |owned: bool| {
        let uids = (0..).map(|n: u32| format!("uid-{n}"));
        uids.into_iter().find(|uid| ring().slots.contains(shoal_sharding::slot::slot_of_uid(uid)) == owned)
    };
    let ask = |method, path, uid: &str| ask_of("uid", method, path, |gate| outcome(gate.identified(uid)));
    let (own, foreign) = (uids(true).unwrap(), uids(false).unwrap());
    for (method, path) in [("PUT", "/api/v1/nodes/x"), ("DELETE", "/api/v1/namespaces/x/pods/web")] {
        assert_eq!(ask(method, path, &own), "claimed");
        assert_eq!(ask(method, path, &foreign), "409 ForeignSlot metadata.uid");
    }
}

#[test]
fn a_name_is_drawn_only_from_own_slots() {
    let path = "/api/v1/namespaces/x/pods";
    for _ in 0..100 {
        let name = ask_of("name", "POST", path, |gate| gate.draw("web-")).unwrap();
        assert!(ring().slots.contains(slot_of("hub", &name)), "{name}");
        assert_eq!(ask_of("name", "POST", path, |gate| outcome(gate.named(&name))), "claimed");
    }
    let nothing =
        FILES.replace("owner: kcm-0", "owner: kcm-1").replace("mode: Sharded}", "mode: Sharded, key: name}");
    let ring = Ring::compile(&manifest::Ring::parse([nothing.as_str()]).unwrap(), "kcm-0", 1).unwrap();
    let request = KubeRequest::parse(&Method::POST, &path.parse().unwrap(), &HeaderMap::new()).unwrap();
    let none = Gate::of(&ring, "hub", &request).unwrap().draw("web-").unwrap_err();
    assert_eq!((none.code.as_u16(), none.retry_after, none.cause.unwrap().reason), (503, None, "NoName"));
}

/// The suffix of a name may be all digits, as the number of a shard is.
#[test]
fn a_lock_s_name_is_never_drawn() {
    let (own, foreign) = ("kube-system", "x");
    let slot = |namespace: &str, resource: &str, name: &str| {
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/{resource}");
        ask_of("name", "POST", &path, |gate| gate.slot_of(name)).is_some()
    };
    for name in [
        "kube-controller-manager",
        "kube-controller-manager-kcm-0",
        "kube-controller-manager-kcm-1",
        "kube-controller-manager-kcm-24679",
    ] {
        assert!(!slot(own, "leases", name), "{name}");
        assert!(slot(foreign, "leases", name) && slot(own, "leasecandidates", name), "{name}");
    }
    for name in ["kube-controller-manager-kcm-2467b", "kube-controller-manager-kcm-", "web-24679"] {
        assert!(slot(own, "leases", name), "{name}");
    }
}

#[test]
fn the_api_server_is_asked_to_cut_only_what_is_hidden_whole() {
    let selector = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')";
    for (mode, path, asked) in [
        ("uid", "/api/v1/namespaces/x/pods", true),
        ("uid", "/api/v1/namespaces/x/pods?watch=1", true),
        // Across namespaces a kind without namespaces could be meant, whose rule is another one.
        ("uid", "/api/v1/pods", false),
        ("uid", "/apis/coordination.k8s.io/v1/namespaces/x/leases", true),
        ("uid", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", false),
        ("uid", "/api/v1/namespaces/kube-system/serviceaccounts", false),
        ("uid", "/api/v1/namespaces/x/serviceaccounts", true),
        ("name", "/api/v1/namespaces/x/pods", false),
        ("namespace", "/api/v1/namespaces/x/pods", false),
    ] {
        let (ring, request) = (std::sync::Arc::new(keyed(mode)), path.parse().unwrap());
        let request = KubeRequest::parse(&Method::GET, &request, &HeaderMap::new()).unwrap();
        let lens = lens::ShardLens::for_read(&ring, &"hub".into(), request.target().unwrap());
        let sent = lens.as_ref().and_then(lens::ShardLens::shard_selector);
        assert_eq!(sent, asked.then_some(selector), "{mode} {path}");
    }
}
