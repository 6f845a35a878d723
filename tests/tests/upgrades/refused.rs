//! Upgrades that the proxy refuses: no byte of them reaches an API server.

use shoal_tests::scripted::Stage;
use shoal_tests::scripted::pods::namespaces;

use crate::fixture::{answered, asking, exec, stage, websocket};

/// What a client sends on, which is nobody's business.
const BEHIND: &str = "GET /api/v1/namespaces/default/configmaps/hidden HTTP/1.1\r\nHost: a\r\n\r\n";

#[tokio::test]
async fn a_foreign_pod_is_refused_before_anything_is_sent() {
    let stage = stage("upgrade_foreign").await;
    let pod = exec(false);
    let spdy = "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 0\r\n";
    let mut refused = 0.0;
    for subresource in ["exec?command=sh", "attach", "portforward", "proxy/a/b"] {
        let target = pod.replace("exec", subresource);
        for head in [websocket(&target), asking("POST", &target, spdy), asking("GET", &target, spdy)] {
            let heard = answered(&stage, &format!("{head}{BEHIND}")).await;
            assert!(heard.starts_with("HTTP/1.1 409 Conflict\r\n"), "{target}: {heard}");
            assert!(heard.contains("\r\nconnection: close\r\n"), "{target}: {heard}");
            assert!(heard.contains(r#""reason":"ForeignSlot""#) && heard.ends_with('}'), "{target}: {heard}");
            refused += 1.0;
        }
    }
    let metrics = stage.proxy.metrics().await.unwrap();
    assert!((metrics.sum("shoal_refused_writes_total", &[r#"verb="connect""#]) - refused).abs() < 0.5);
    nothing_arrived(&stage).await;
}

#[tokio::test]
async fn what_is_no_upgrade_of_kubernetes_is_refused() {
    let stage = stage("upgrade_unknown").await;
    let pod = exec(true);
    for lines in [
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n",
        "Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n",
        "Connection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: SPDY/3.1\r\n",
        "Connection: Upgrade\r\nUpgrade: TLS/1.2\r\n",
        "Upgrade: websocket\r\n",
    ] {
        for method in ["GET", "POST"] {
            refused(&stage, &asking(method, &pod, lines), "an upgrade is asked for by").await;
        }
    }
    for method in ["DELETE", "PUT", "PATCH"] {
        let lines = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
        refused(&stage, &asking(method, pod.trim_end_matches("/exec"), lines), "only GET and POST").await;
    }
    let body = "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 5\r\n";
    refused(&stage, &(asking("POST", &pod, body) + "hello"), "has no body").await;
    refused(&stage, &websocket(&pod).replace("HTTP/1.1", "HTTP/1.0"), "HTTP/1.1").await;
    nothing_arrived(&stage).await;
}

/// Its events would pass unread.
#[tokio::test]
async fn a_watch_over_websocket_is_refused_where_objects_are_hidden() {
    let stage = stage("upgrade_watch").await;
    let foreign = namespaces(false).next().unwrap();
    for target in [
        "/api/v1/pods?watch=true".to_owned(),
        "/api/v1/watch/pods".to_owned(),
        format!("/api/v1/namespaces/{foreign}/pods?watch=1"),
        "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases?watch=true".to_owned(),
    ] {
        refused(&stage, &websocket(&target), "cannot be filtered").await;
    }
    nothing_arrived(&stage).await;
}

async fn refused(stage: &Stage, head: &str, why: &str) {
    let answer = answered(stage, &format!("{head}{BEHIND}")).await;
    assert!(answer.contains(" 400 Bad Request\r\n"), "{head}: {answer}");
    assert!(answer.contains(r#""kind":"Status""#) && answer.contains(why), "{head}: {answer}");
    assert_eq!(answer.matches("\r\n\r\n").count(), 1, "{head}: {answer}");
}

async fn nothing_arrived(stage: &Stage) {
    let metrics = stage.proxy.metrics().await.unwrap();
    assert!(metrics.sum("shoal_upstream_connections", &[r#"traffic="tunnel""#]) < 0.5);
    assert!(stage.upstream.seen().requests.is_empty(), "{:?}", stage.upstream.seen().requests);
}
