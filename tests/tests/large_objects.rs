//! The largest that an API server takes and gives passes the proxy as it passes without one, and costs little memory.
#![allow(clippy::unwrap_used, reason = "test code, helpers included")]

use std::fs;

use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use shoal_tests::load::names_in_slot;
use shoal_tests::raw::{Encoding, Http, RawClient};
use shoal_tests::shards::Shards;
use shoal_tests::{ControlPlane, Options, Proxy, RunDir, User};

/// An API server takes no more operations in one patch (apiserver `endpoints/handlers/patch.go`).
const OPERATIONS: usize = 10_000;
/// Nor more bytes in a request; a little less, for what stands around the operations.
const PATCH: usize = (3 << 20) - (64 << 10);
/// The data of a `ConfigMap` is at most 1 MiB (`MaxSecretSize` in kubernetes `pkg/apis/core/types.go`).
const DATA: usize = (1 << 20) - 16;
/// Large objects in each namespace, of which there are two.
const OBJECTS: usize = 24;
/// Once in each large object, and nowhere else.
const MARK: u8 = b'~';
/// By how much the proxy may grow at its peak, in KiB.
const MAY_GROW: usize = 24 << 10;

#[tokio::test]
async fn the_largest_passes_as_without_a_proxy() {
    let dir = RunDir::for_test("large_objects").unwrap();
    let plane = ControlPlane::start(dir.path(), Options::default()).await.unwrap();
    let shards =
        Shards::start(&plane, &[plane.kubeconfig(&User::CONTROLLER_MANAGER).unwrap()]).await.unwrap();
    let proxy = &shards.proxies[0];
    let direct = RawClient::direct(&plane, &User::ADMIN).unwrap();
    let through = RawClient::of_proxy(proxy, &plane, &User::ADMIN).unwrap();
    let (own, foreign) = (names_in_slot(0).next().unwrap(), names_in_slot(255).next().unwrap());
    for namespace in [&own, &foreign] {
        let body = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": namespace}});
        create(&direct, "/api/v1/namespaces", &body).await;
    }

    let before = kib(proxy, "VmRSS:");
    // 5: the peak is what is resident now (proc(5)).
    fs::write(format!("/proc/{}/clear_refs", proxy.process().pid()), "5").unwrap();
    patches(&direct, &through, &own).await;
    lists(&direct, &through, [&own, &foreign]).await;
    let added = kib(proxy, "VmHWM:").saturating_sub(before);
    println!("{added} KiB added to {before}");
    assert!(added <= MAY_GROW, "{added} KiB added to {before}");
}

/// 10,000 operations are done, one more is refused, by the API server both times.
async fn patches(direct: &RawClient, through: &RawClient, namespace: &str) {
    let target = format!("/api/v1/namespaces/{namespace}/configmaps");
    let body =
        json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "patched"}, "data": {"a": ""}});
    create(direct, &target, &body).await;
    for (operations, code) in [(OPERATIONS, StatusCode::OK), (OPERATIONS + 1, StatusCode::PAYLOAD_TOO_LARGE)]
    {
        let value = "x".repeat(PATCH / OPERATIONS - 50);
        let operation = json!({"op": "replace", "path": "/data/a", "value": value});
        let patch = serde_json::to_vec(&vec![operation; operations]).unwrap();
        for (http, client) in [(Http::Two, direct), (Http::Two, through), (Http::One, through)] {
            let request = Request::patch(format!("{target}/patched"))
                .header("content-type", "application/json-patch+json")
                .body(patch.clone());
            let answer = client.send_over(http, request.unwrap()).await.unwrap();
            assert_eq!(answer.code, code, "{http:?} {operations}: {:?}", answer.status());
            let reason = answer.status().and_then(|status| status.reason);
            assert_eq!(reason.is_some(), code != StatusCode::OK, "{http:?} {operations}: {reason:?}");
            let message = answer.status().and_then(|status| status.message).unwrap_or_default();
            println!("{http:?} {client:?}, {operations} operations, {} bytes: {code} {message}", patch.len());
            assert!(!message.contains("shoal"), "{message}");
        }
    }
}

/// The shard's half of the objects, and their bytes as they are.
async fn lists(direct: &RawClient, through: &RawClient, namespaces: [&str; 2]) {
    let data = "x".repeat(DATA);
    for (namespace, number) in
        namespaces.iter().flat_map(|namespace| (0..OBJECTS).map(move |n| (namespace, n)))
    {
        let metadata = json!({"name": format!("large-{number}"), "annotations": {"mark": "~"}});
        let body =
            json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": {"a": data}});
        create(direct, &format!("/api/v1/namespaces/{namespace}/configmaps"), &body).await;
    }
    for encoding in Encoding::ALL {
        let all = list(direct, encoding, "/api/v1/configmaps").await;
        let owned = list(through, encoding, "/api/v1/configmaps").await;
        println!("{encoding:?}: {all:?} direct, {owned:?} through the proxy");
        assert_eq!((all.0, owned.0), (OBJECTS * 2, OBJECTS), "{encoding:?}");
        let [own, foreign] = namespaces.map(|namespace| format!("/api/v1/namespaces/{namespace}/configmaps"));
        assert_eq!(list(through, encoding, &own).await.0, OBJECTS, "{encoding:?}");
        assert_eq!(list(through, encoding, &foreign).await.0, 0, "{encoding:?}");
    }
}

/// How many large objects a list has, and its bytes.
async fn list(client: &RawClient, encoding: Encoding, target: &str) -> (usize, usize) {
    let request = Request::get(target).header("accept", encoding.media_type()).body(Full::default());
    let response = client.open(Http::Two, request.unwrap()).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK, "{target}");
    let (mut body, mut objects, mut bytes) = (response.into_body(), 0, 0);
    while let Some(frame) = body.frame().await {
        let data = frame.unwrap().into_data().unwrap_or_default();
        objects += memchr::memchr_iter(MARK, &data).count();
        bytes += data.len();
    }
    (objects, bytes)
}

async fn create(client: &RawClient, target: &str, body: &Value) {
    let request = Request::post(target).header("content-type", "application/json");
    let answer = client.send(request.body(serde_json::to_vec(body).unwrap()).unwrap()).await.unwrap();
    assert_eq!(answer.code, StatusCode::CREATED, "{target}: {:?}", answer.status());
}

/// A line of `/proc/PID/status`.
fn kib(proxy: &Proxy, name: &str) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", proxy.process().pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
