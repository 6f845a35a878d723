//! deletecollection, really done: the audit log has nothing but what is owned.

use http::StatusCode;
use serde_json::Value;
use shoal_tests::evidence;

use crate::ground::{AGENT, Ground};

pub(crate) async fn only_what_is_owned_is_deleted(ground: &Ground) {
    ground.config_map(&ground.own, "gone").await;
    let [own, foreign] =
        [&ground.own, &ground.foreign[0]].map(|name| format!("/api/v1/namespaces/{name}/configmaps"));
    let before = count(ground).await;
    for target in [
        foreign.clone(),
        format!("{foreign}?labelSelector=tenant%3Done"),
        format!("{foreign}?fieldSelector=metadata.name%3Dcm-00"),
        "/api/v1/nodes".to_owned(),
        "/api/v1/nodes?labelSelector=tenant%3Done".to_owned(),
        format!("/api/v1/nodes?fieldSelector=metadata.name%3D{}", ground.foreign[0]),
    ] {
        let refused = ground.see("DELETE", &target).await;
        assert_eq!(refused.code, StatusCode::FORBIDDEN, "{target}: {refused:?}");
        assert_eq!(refused.status().unwrap().reason.as_deref(), Some("Forbidden"), "{target}");
    }
    let done = ground.see("DELETE", &format!("{own}?fieldSelector=metadata.name%3Dgone")).await;
    assert_eq!(done.code, StatusCode::OK, "{done:?}");
    assert_eq!(count(ground).await, before - 1, "one, and the right one");
    let left = ground.see("GET", &format!("{own}/gone")).await;
    assert_eq!(left.code, StatusCode::NOT_FOUND);
    assert_eq!(arrived(ground), [format!("{}/", ground.own)]);
}

async fn count(ground: &Ground) -> usize {
    let [direct, _] = ground.both("GET", "/api/v1/configmaps", &[]).await;
    direct.items().unwrap().len()
}

/// Namespace and name of each deletecollection that reached the server.
fn arrived(ground: &Ground) -> Vec<String> {
    let log = String::from_utf8(evidence::snapshot(&ground.plane.audit_log()).unwrap()).unwrap();
    let events = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let ours = events.filter(|event| {
        event["verb"] == "deletecollection"
            && event["userAgent"].as_str().is_some_and(|agent| agent.starts_with(AGENT))
    });
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    ours.map(|event| {
        // The server takes the name from the field selector, as the proxy does.
        let name = text(&event["objectRef"]["name"]).replace("gone", "");
        format!("{}/{name}", text(&event["objectRef"]["namespace"]))
    })
    .collect()
}
