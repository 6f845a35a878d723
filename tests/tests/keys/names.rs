//! Mode `name`.

use http::StatusCode;
use serde_json::json;
use shoal_tests::protobuf::{message, pack};
use shoal_tests::raw::{Answer, Encoding};

use crate::fixture::{Cluster, Fixture, Kind, assert_foreign, assert_refused, owner_of_name};

const CONFIG_MAPS: Kind =
    Kind { api_version: "v1", name: "ConfigMap", path: "/api/v1/namespaces/default/configmaps" };
const CLUSTER_ROLES: Kind = Kind {
    api_version: "rbac.authorization.k8s.io/v1",
    name: "ClusterRole",
    path: "/apis/rbac.authorization.k8s.io/v1/clusterroles",
};

/// What a name ends with that the API server drew.
const ALPHABET: &str = "bcdfghjklmnpqrstvwxz2456789";

/// In each encoding, with and without a namespace, every shard gets its own names and sees just what it owns.
pub(crate) async fn are_drawn_from_own_slots(fixture: &Fixture) {
    let hub = fixture.hub();
    for kind in [CONFIG_MAPS, CLUSTER_ROLES] {
        for content in Encoding::ALL {
            for shard in 0..3 {
                for _ in 0..6 {
                    is_own(hub, shard, "drawn-", &create(hub, shard, kind, content, "", "drawn-").await);
                }
                let long = "x".repeat(70);
                let answer = create(hub, shard, kind, content, "?dryRun=All", &long).await;
                is_own(hub, shard, &long[..58], &answer);
            }
        }
        for accept in Encoding::ALL {
            let owner = |object: &shoal_tests::protobuf::ObjectMeta| owner_of_name(hub, &object.name);
            assert!(hub.is_divided(kind.path, accept, owner).await >= 36);
        }
    }
    let body = CONFIG_MAPS.object(json!({}));
    let answer = hub.json(0, "POST", CONFIG_MAPS.path, &body).await;
    assert_refused(&answer, 403, "NoName", Some("metadata.name"), "neither name nor generateName");
}

/// The stored object is as if the API server had drawn the name.
fn is_own(hub: &Cluster, shard: usize, base: &str, answer: &Answer) {
    assert_eq!(answer.code, StatusCode::CREATED, "{answer:?}");
    let object = answer.metadata().unwrap();
    assert_eq!(owner_of_name(hub, &object.name), shard, "{object:?}");
    let suffix = object.name.strip_prefix(base).unwrap();
    assert!(suffix.len() == 5 && suffix.chars().all(|c| ALPHABET.contains(c)), "{object:?}");
    assert!(object.generate_name.starts_with(base), "{object:?}");
}

async fn create(
    hub: &Cluster,
    shard: usize,
    kind: Kind,
    content: Encoding,
    query: &str,
    generate_name: &str,
) -> Answer {
    let body = match content {
        Encoding::Json => kind.object(json!({"generateName": generate_name})).to_string().into_bytes(),
        Encoding::Protobuf => {
            let metadata = message(&[(2, generate_name.as_bytes())]);
            pack(kind.api_version, kind.name, message(&[(1, &metadata)]))
        }
    };
    let (path, body) = (format!("{}{query}", kind.path), Some((content.media_type(), body)));
    hub.request(Some(shard), "POST", &path, content, body).await
}

/// Objects of one namespace are several shards'; each refuses the others'.
pub(crate) async fn decide_about_writes(fixture: &Fixture) {
    let (hub, path) = (fixture.hub(), CONFIG_MAPS.path);
    for number in 0..12 {
        let name = format!("named-{number}");
        let (body, at) = (CONFIG_MAPS.object(json!({"name": name})), format!("{path}/{name}"));
        let (owner, narrowed) =
            (owner_of_name(hub, &name), format!("{path}?fieldSelector=metadata.name%3D{name}"));
        for shard in (0..3).filter(|shard| *shard != owner) {
            let answer = hub.json(shard, "POST", path, &body).await;
            assert_foreign(&answer, 503, "metadata.name", "POST");
        }
        assert_eq!(hub.json(owner, "POST", path, &body).await.code, StatusCode::CREATED);
        for shard in (0..3).filter(|shard| *shard != owner) {
            for method in ["PUT", "PATCH", "DELETE"] {
                let body = if method == "DELETE" { json!({}) } else { body.clone() };
                assert_foreign(&hub.json(shard, method, &at, &body).await, 409, "metadata.name", method);
            }
            let answer = hub.json(shard, "DELETE", &narrowed, &json!({})).await;
            assert_foreign(&answer, 403, "metadata.name", &narrowed);
        }
        name_that_is_taken(hub, owner, &name).await;
        let change = json!({"data": {"a": "b"}});
        assert_eq!(hub.json(owner, "PATCH", &at, &change).await.code, StatusCode::OK);
        let whole = hub.json(owner, "DELETE", path, &json!({})).await;
        assert_refused(&whole, 403, "NotNarrowed", Some("metadata.name"), "deletecollection");
        assert_eq!(hub.json(owner, "DELETE", &at, &json!({})).await.code, StatusCode::OK);
    }
}

/// What a client sees if a name that was drawn is taken: the API server's answer about a name that it drew itself.
async fn name_that_is_taken(hub: &Cluster, owner: usize, name: &str) {
    let body = CONFIG_MAPS.object(json!({"name": name, "generateName": "named-"}));
    let status = hub.json(owner, "POST", CONFIG_MAPS.path, &body).await.status().unwrap();
    assert_eq!((status.code, status.reason.as_deref()), (Some(409), Some("AlreadyExists")));
    assert!(status.message.unwrap().contains("not able to generate a unique name"));
    assert_eq!(status.details.unwrap().retry_after_seconds, Some(1));
}
