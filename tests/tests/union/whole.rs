//! Kinds that are not divided: every shard is answered as the API server itself answers.

use serde_json::Value;

use crate::Ground;
use crate::forms::Form;
use crate::stream::get;

/// Read by all shards; the last one by a rule for one namespace.
const SHARED: [&str; 3] = [
    "/api/v1/nodes",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/api/v1/namespaces/kube-system/configmaps",
];
/// Sharded by no rule.
const LANE: [&str; 2] = ["/api/v1/events", "/apis/events.k8s.io/v1/events"];

/// Not one object is hidden, in any form.
pub(crate) async fn kinds_that_all_shards_see(ground: &Ground) {
    for path in SHARED.into_iter().chain(LANE) {
        for form in Form::OBJECTS {
            let target = format!("{path}?resourceVersion={}&resourceVersionMatch=Exact", ground.version);
            let whole = get(&ground.direct, &target, form.of_list()).await;
            assert!(whole.code.is_success(), "{target} {:?}", whole.status());
            for view in &ground.views {
                let seen = get(view, &target, form.of_list()).await;
                assert!(seen.body == whole.body, "{target} {form:?}");
            }
        }
        let body = get(&ground.direct, path, Form::Json.of_list()).await.body;
        let list: Value = serde_json::from_slice(&body).unwrap();
        assert!(!list["items"].as_array().unwrap().is_empty(), "{path}: nothing in it, so nothing was shown");
    }
}
