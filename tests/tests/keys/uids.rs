//! Mode `uid`, on a server that cuts lists by itself and on one that does not.

use http::StatusCode;
use serde_json::{Value, json};
use shoal_judge::slot_of_uid;
use shoal_tests::protobuf::{ObjectMeta, message, pack};
use shoal_tests::raw::Encoding;

use crate::fixture::{Cluster, Fixture, Kind, assert_foreign, assert_refused, owner_of_uid};
use crate::selectors::{HALF, escaped};

const DEPLOYMENTS: Kind =
    Kind { api_version: "apps/v1", name: "Deployment", path: "/apis/apps/v1/namespaces/default/deployments" };
const PRIORITY_CLASSES: Kind = Kind {
    api_version: "scheduling.k8s.io/v1",
    name: "PriorityClass",
    path: "/apis/scheduling.k8s.io/v1/priorityclasses",
};
const WIDGETS: Kind = Kind {
    api_version: "test.shoal.dev/v1",
    name: "Widget",
    path: "/apis/test.shoal.dev/v1/namespaces/default/widgets",
};
/// Of each kind.
const OBJECTS: usize = 24;

/// Any shard creates, and each object is then seen by its owner alone. Returns how many were created.
#[allow(clippy::float_cmp, reason = "a count")]
pub(crate) async fn divide_reads(fixture: &Fixture, cluster: &Cluster) -> u64 {
    for kind in [DEPLOYMENTS, PRIORITY_CLASSES, WIDGETS] {
        for number in 0..OBJECTS {
            let body = kind.object(json!({"name": format!("of-{number}")}));
            let answer = cluster.json(number % 3, "POST", kind.path, &body).await;
            assert_eq!(answer.code, StatusCode::CREATED, "{answer:?}");
        }
    }
    let before = fixture.hidden().await;
    let everywhere = ["/apis/apps/v1/deployments", "/apis/test.shoal.dev/v1/widgets"];
    let others = [
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "/apis/apiregistration.k8s.io/v1/apiservices",
    ];
    let kinds = [DEPLOYMENTS, PRIORITY_CLASSES, WIDGETS].map(|kind| kind.path);
    for path in kinds.into_iter().chain(everywhere) {
        for accept in
            Encoding::ALL.into_iter().filter(|it| *it == Encoding::Json || !path.contains("widgets"))
        {
            assert!(cluster.is_divided(path, accept, owner_of_uid).await >= OBJECTS, "{path}");
        }
    }
    for path in others {
        assert!(cluster.is_divided(path, Encoding::Json, owner_of_uid).await > 0, "{path}");
    }
    // Foreign objects either do not come, or come and are left out here.
    assert_eq!(fixture.hidden().await - before == 0.0, cluster.cuts, "{}", cluster.name);
    with_a_selector_of_the_clients_own(cluster).await;
    3 * OBJECTS as u64
}

/// Only one selector can be said, and it is the client's: the rest is cut here.
async fn with_a_selector_of_the_clients_own(cluster: &Cluster) {
    let path = format!("{}?shardSelector={}", DEPLOYMENTS.path, escaped(HALF));
    let whole = cluster.list(None, DEPLOYMENTS.path, Encoding::Json).await;
    for shard in 0..3 {
        let wanted = |object: &&ObjectMeta| {
            let in_half = slot_of_uid(&object.uid) >= 128 || !cluster.cuts;
            owner_of_uid(object) == shard && in_half
        };
        let own: Vec<_> = whole.iter().filter(wanted).cloned().collect();
        assert_eq!(cluster.list(Some(shard), &path, Encoding::Json).await, own, "kcm-{shard}");
    }
}

/// The owner writes, nobody else does, in any form. Returns how many objects were created.
pub(crate) async fn decide_about_writes(fixture: &Fixture, cluster: &Cluster) -> u64 {
    let objects = cluster.list(None, DEPLOYMENTS.path, Encoding::Json).await;
    let of = |shard: usize| objects.iter().filter(move |object| owner_of_uid(object) == shard);
    for shard in 0..3 {
        let own: Vec<&ObjectMeta> = of(shard).collect();
        let foreign = of((shard + 1) % 3).nth(1).unwrap();
        every_foreign_form_is_refused(cluster, shard, foreign).await;
        own_forms_pass(cluster, shard, own[0]).await;
        deletes_meet_their_object_only(cluster, shard, own[0], foreign).await;
    }
    let left = cluster.list(None, DEPLOYMENTS.path, Encoding::Json).await;
    assert_eq!(left.len(), objects.len() - 3);
    what_is_not_there(cluster).await;
    who_may_not_look_may_not_write(fixture, cluster, &objects[5]).await;
    3
}

async fn every_foreign_form_is_refused(cluster: &Cluster, shard: usize, object: &ObjectMeta) {
    let path = format!("{}/{}", DEPLOYMENTS.path, object.name);
    let current = DEPLOYMENTS.object(json!({"name": object.name, "uid": object.uid}));
    let proto = pack("v1", "DeleteOptions", message(&[(4, b"Background")]));
    let demanding = json!({"preconditions": {"uid": object.uid}});
    let (text, apply) = (|value: &Value| value.to_string().into_bytes(), "application/apply-patch+yaml");
    let forms: [(&str, String, &str, Vec<u8>); 10] = [
        ("PUT", path.clone(), "application/json", text(&current)),
        ("PUT", format!("{path}/status"), "application/json", text(&current)),
        ("PATCH", path.clone(), "application/merge-patch+json", b"{}".to_vec()),
        ("PATCH", path.clone(), "application/json-patch+json", b"[]".to_vec()),
        ("PATCH", format!("{path}/scale"), "application/merge-patch+json", b"{}".to_vec()),
        ("PATCH", format!("{path}?fieldManager=t&force=true"), apply, text(&current)),
        ("DELETE", path.clone(), "application/json", Vec::new()),
        ("DELETE", format!("{path}?dryRun=All"), "application/json", b"{}".to_vec()),
        ("DELETE", path.clone(), "application/json", text(&demanding)),
        ("DELETE", path, "application/vnd.kubernetes.protobuf", proto),
    ];
    for (method, path, content_type, body) in forms {
        for accept in Encoding::ALL {
            let body = Some((content_type, body.clone()));
            let answer = cluster.request(Some(shard), method, &path, accept, body).await;
            assert_eq!(answer.encoding(), Some(accept), "{method} {path}");
            assert_foreign(&answer, 409, "metadata.uid", &format!("{method} {path}"));
        }
    }
    let all = cluster.json(shard, "DELETE", DEPLOYMENTS.path, &json!({})).await;
    assert_refused(&all, 403, "NotNarrowed", Some("metadata.uid"), "deletecollection");
}

async fn own_forms_pass(cluster: &Cluster, shard: usize, object: &ObjectMeta) {
    let path = format!("{}/{}", DEPLOYMENTS.path, object.name);
    let labelled = json!({"metadata": {"labels": {"a": "b"}}});
    assert_eq!(cluster.json(shard, "PATCH", &path, &labelled).await.code, StatusCode::OK);
    let current = DEPLOYMENTS.object(json!({"name": object.name}));
    assert_eq!(cluster.json(shard, "PUT", &path, &current).await.code, StatusCode::OK);
    let apply = Some(("application/apply-patch+yaml", current.to_string().into_bytes()));
    let target = format!("{path}?fieldManager=t&force=true");
    let answer = cluster.request(Some(shard), "PATCH", &target, Encoding::Protobuf, apply).await;
    assert_eq!(answer.code, StatusCode::OK, "{answer:?}");
}

async fn deletes_meet_their_object_only(
    cluster: &Cluster,
    shard: usize,
    own: &ObjectMeta,
    foreign: &ObjectMeta,
) {
    let path = format!("{}/{}", DEPLOYMENTS.path, own.name);
    // The uid that is demanded decides, and the server has the last word on it.
    let demand = |uid: &str| json!({"preconditions": {"uid": uid}});
    let answer = cluster.json(shard, "DELETE", &path, &demand(&foreign.uid)).await;
    assert_foreign(&answer, 409, "metadata.uid", "a foreign uid under an own name");
    let gone =
        (0..10_000).map(|n| format!("gone-{n}")).find(|uid| crate::fixture::owner(slot_of_uid(uid)) == shard);
    let answer = cluster.json(shard, "DELETE", &path, &demand(&gone.unwrap())).await;
    assert_eq!(answer.status().unwrap().reason.as_deref(), Some("Conflict"), "{answer:?}");
    assert!(answer.status().unwrap().message.unwrap().contains("precondition"), "{answer:?}");
    // Options in the query are heeded although the demand needs a body.
    let tried = format!("{path}?dryRun=All&propagationPolicy=Orphan");
    let answer = cluster.request(Some(shard), "DELETE", &tried, Encoding::Json, None).await;
    assert_eq!(answer.code, StatusCode::OK, "{answer:?}");
    let there = cluster.request(None, "GET", &path, Encoding::Json, None).await;
    assert_eq!(there.metadata().unwrap().uid, own.uid);
    let proto = pack("v1", "DeleteOptions", message(&[(4, b"Background")]));
    let body = Some(("application/vnd.kubernetes.protobuf", proto));
    let answer = cluster.request(Some(shard), "DELETE", &path, Encoding::Protobuf, body).await;
    assert_eq!(answer.code, StatusCode::OK, "{answer:?}");
}

/// A write to nothing is answered as the server does; an apply creates, at any shard.
async fn what_is_not_there(cluster: &Cluster) {
    for shard in 0..3 {
        let name = format!("applied-{shard}");
        let path = format!("{}/{name}", DEPLOYMENTS.path);
        for method in ["PUT", "PATCH", "DELETE"] {
            let body = DEPLOYMENTS.object(json!({"name": name}));
            let body = if method == "DELETE" { json!({}) } else { body };
            let answer = cluster.json(shard, method, &path, &body).await;
            assert_eq!(answer.code, StatusCode::NOT_FOUND, "{method}: {answer:?}");
            let message = answer.status().unwrap().message.unwrap();
            assert_eq!(message, format!("deployments.apps \"{name}\" not found"));
        }
        let body = DEPLOYMENTS.object(json!({"name": name})).to_string().into_bytes();
        let target = format!("{path}?fieldManager=t");
        let body = Some(("application/apply-patch+yaml", body));
        let answer = cluster.request(Some(shard), "PATCH", &target, Encoding::Json, body).await;
        assert_eq!(answer.code, StatusCode::CREATED, "{answer:?}");
    }
}

/// The uid is asked for with the client's own rights.
async fn who_may_not_look_may_not_write(fixture: &Fixture, cluster: &Cluster, object: &ObjectMeta) {
    let path = format!("{}{}/{}", cluster.prefix, DEPLOYMENTS.path, object.name);
    for shard in 0..fixture.proxies.len() {
        let nobody = cluster.views[shard].clone().anonymous();
        let request = http::Request::delete(&path).body(Vec::new()).unwrap();
        let answer = nobody.send(request).await.unwrap();
        assert_eq!(answer.code, StatusCode::FORBIDDEN, "{answer:?}");
        assert!(answer.status().unwrap().message.unwrap().contains("cannot get resource"), "{answer:?}");
    }
}
