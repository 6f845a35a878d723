//! The gate, row by row: what DESIGN calls a refusal, in its exact form.

use http::{HeaderMap, Method};
use shoal_api::manifest;

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
    check(&ring(), "hub", &request)
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
    let named = |name: &str| check_named(&ring(), "hub", &request, name);
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
