//! Lists page by page, and the tokens between the pages.

use http::StatusCode;

use crate::ground::{Ground, MANY, OWN, json_of};

const SELECTED: &str = "/api/v1/configmaps?labelSelector=tenant%3Done";

/// As many pages as the server has; most hold nothing, and none says how much is left.
pub(crate) async fn three_own_among_many(ground: &Ground) {
    let (mut next, mut pages, mut seen) = (String::new(), Vec::new(), Vec::new());
    loop {
        let answer = ground.see("GET", &format!("{SELECTED}&limit=1&continue={next}")).await;
        assert_eq!(answer.code, StatusCode::OK, "{answer:?}");
        let list = json_of(&answer);
        assert!(list["metadata"].get("remainingItemCount").is_none(), "{list}");
        let items = answer.items().unwrap();
        pages.push(items.len());
        seen.extend(items.into_iter().map(|item| format!("{}/{}", item.namespace, item.name)));
        list["metadata"]["continue"].as_str().unwrap_or_default().clone_into(&mut next);
        if next.is_empty() || pages.len() > MANY + OWN {
            break;
        }
    }
    let own: Vec<String> = (0..OWN).map(|number| format!("{}/cm-{number:02}", ground.own)).collect();
    assert_eq!(seen, own);
    assert_eq!(pages.len(), MANY + OWN, "{pages:?}");
    assert_eq!((pages[0], pages[pages.len() - 1]), (0, 0), "empty pages lead on, and end");
}

/// Tampered with, of another list, of nobody.
pub(crate) async fn tokens_that_the_server_refuses(ground: &Ground) {
    let first = json_of(&ground.see("GET", &format!("{SELECTED}&limit=1")).await);
    let token = first["metadata"]["continue"].as_str().unwrap();
    let tampered = format!("{}x", &token[..token.len() - 4]);
    for (path, token) in [
        ("/api/v1/configmaps", tampered.as_str()),
        ("/api/v1/configmaps", "bm9uc2Vuc2U"),
        ("/api/v1/configmaps", "%00"),
        ("/api/v1/configmaps", "e30"),
    ] {
        let [direct, seen] = ground.both("GET", &format!("{path}?limit=1&continue={token}"), &[]).await;
        assert!(direct.code.is_client_error(), "{token}: {direct:?}");
        assert_eq!((seen.code, &seen.body), (direct.code, &direct.body), "{token}");
    }
}

/// The state that they belong to is gone: the server says 410 and how to go on.
pub(crate) async fn tokens_that_are_too_old(ground: &mut Ground) {
    let first = json_of(&ground.see("GET", &format!("{SELECTED}&limit=1")).await);
    let token = first["metadata"]["continue"].as_str().unwrap().to_owned();
    ground.config_map(&ground.own, "later").await;
    ground.plane.compact_etcd().await.unwrap();
    // A cache would still know that state.
    ground.plane.stop_apiserver();
    ground.plane.start_apiserver().await.unwrap();
    let seen = ground.see("GET", &format!("{SELECTED}&limit=1&continue={token}")).await;
    assert_eq!(seen.code, StatusCode::GONE, "{seen:?}");
    let status = seen.status().unwrap();
    assert_eq!(status.reason.as_deref(), Some("Expired"));
    let list = json_of(&seen);
    let again = list["metadata"]["continue"].as_str().unwrap();
    let rest = ground.see("GET", &format!("{SELECTED}&continue={again}")).await;
    assert_eq!(rest.code, StatusCode::OK, "{rest:?}");
    let items = rest.items().unwrap();
    assert!(items.iter().all(|item| item.namespace == ground.own), "{items:?}");
    assert!(items.iter().any(|item| item.name == "later"), "{items:?}");
}
