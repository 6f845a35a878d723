//! Mode `cluster`.

use http::StatusCode;
use serde_json::json;
use shoal_tests::raw::Encoding;

use crate::fixture::{Fixture, Kind, assert_foreign, owner_of_name};

const SECRETS: Kind = Kind { api_version: "v1", name: "Secret", path: "/api/v1/namespaces/default/secrets" };

/// One shard does all the work on a cluster's objects.
pub(crate) async fn have_one_owner(fixture: &Fixture) {
    for cluster in &fixture.clusters {
        let (owner, path) = (owner_of_name(cluster, ""), SECRETS.path);
        let others = || (0..3).filter(|shard| *shard != owner);
        for name in ["a", "b", "c"] {
            let body = SECRETS.object(json!({"name": name}));
            for shard in others() {
                assert_foreign(&cluster.json(shard, "POST", path, &body).await, 503, "", name);
            }
            assert_eq!(cluster.json(owner, "POST", path, &body).await.code, StatusCode::CREATED);
            for shard in others() {
                let answer = cluster.json(shard, "PATCH", &format!("{path}/{name}"), &json!({})).await;
                assert_foreign(&answer, 409, "", name);
            }
        }
        for accept in Encoding::ALL {
            assert_eq!(cluster.is_divided(path, accept, |_| owner).await, 3);
        }
        for shard in others() {
            assert_foreign(&cluster.json(shard, "DELETE", path, &json!({})).await, 403, "", "all");
        }
        assert_eq!(cluster.json(owner, "DELETE", path, &json!({})).await.code, StatusCode::OK);
    }
}
