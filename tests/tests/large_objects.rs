//! The largest that an API server takes and gives passes the proxy as it passes without one, and costs little memory.
#![allow(clippy::unwrap_used, reason = "test code, helpers included")]

use http::{Request, StatusCode};
use http_body_util::Full;
use prost::Message;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use shoal_tests::load::names_in_slot;
use shoal_tests::meter::Growth;
use shoal_tests::raw::{Encoding, Http, RawClient};
use shoal_tests::scripted::client::Reader;
use shoal_tests::shards::Shards;
use shoal_tests::{ControlPlane, Options, RunDir, User, protobuf};

/// An API server takes no more operations in one patch (apiserver `endpoints/handlers/patch.go`).
const OPERATIONS: usize = 10_000;
/// Nor more bytes in a request; a little less, for what stands around the operations.
const PATCH: usize = (3 << 20) - (64 << 10);
/// The data of a `ConfigMap` is at most 1 MiB (`MaxSecretSize` in kubernetes `pkg/apis/core/types.go`).
const DATA: usize = (1 << 20) - 16;
/// Large objects that the shard owns, and that it does not.
const OBJECTS: [usize; 2] = [40, 8];
const ALL: &str = "/api/v1/configmaps";
/// By how much the proxy may grow at its peak, in KiB: less than half of what it shows of one list.
const MAY_GROW: u64 = 20 << 10;

/// A list, and the bytes of its items as they came.
#[derive(Deserialize)]
struct Json<'a> {
    #[serde(borrow)]
    items: Vec<&'a RawValue>,
}

#[derive(Clone, PartialEq, Message)]
struct Protobuf {
    #[prost(bytes = "vec", repeated, tag = "2")]
    items: Vec<Vec<u8>>,
}

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

    let growth = Growth::of(proxy.process()).unwrap();
    patches(&direct, &through, &own).await;
    lists(&direct, &through, [&own, &foreign]).await;
    let (added, before) = (growth.at_peak().unwrap() >> 10, growth.before() >> 10);
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

/// The shard's objects and no others, their bytes as they are.
async fn lists(direct: &RawClient, through: &RawClient, namespaces: [&str; 2]) {
    let data = "x".repeat(DATA);
    let [own, foreign] = namespaces.map(|namespace| format!("/api/v1/namespaces/{namespace}/configmaps"));
    for (target, count) in [&own, &foreign].into_iter().zip(OBJECTS) {
        for number in 0..count {
            let metadata = json!({"name": format!("large-{number}")});
            let body =
                json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": {"a": data}});
            create(direct, target, &body).await;
        }
    }
    for encoding in Encoding::ALL {
        let owned = large(direct, encoding, &own).await;
        let all = large(direct, encoding, ALL).await.len();
        assert_eq!((owned.len(), all), (OBJECTS[0], OBJECTS[0] + OBJECTS[1]), "{encoding:?}");
        for target in [ALL, &own] {
            let shown = large(through, encoding, target).await;
            println!("{encoding:?}, {target}: {} of {all} objects through the proxy", shown.len());
            // Not assert_eq: nobody wants to read them.
            assert!(shown == owned, "{encoding:?}, {target}: not byte for byte what the API server has");
        }
        assert!(large(through, encoding, &foreign).await.is_empty(), "{encoding:?}");
    }
}

/// The large objects of a list, as they came.
async fn large(client: &RawClient, encoding: Encoding, target: &str) -> Vec<Vec<u8>> {
    let request = Request::get(target).header("accept", encoding.media_type()).body(Full::default());
    let response = client.open(Http::Two, request.unwrap()).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK, "{target}");
    let mut items = items(encoding, &Reader::new(response).rest().await.unwrap());
    items.retain(|item| item.len() > DATA);
    items
}

fn items(encoding: Encoding, list: &[u8]) -> Vec<Vec<u8>> {
    match encoding {
        Encoding::Json => {
            let list: Json<'_> = serde_json::from_slice(list).unwrap();
            list.items.into_iter().map(|item| item.get().as_bytes().to_vec()).collect()
        }
        Encoding::Protobuf => Protobuf::decode(&*protobuf::open(list).unwrap().1).unwrap().items,
    }
}

async fn create(client: &RawClient, target: &str, body: &Value) {
    let request = Request::post(target).header("content-type", "application/json");
    let answer = client.send(request.body(serde_json::to_vec(body).unwrap()).unwrap()).await.unwrap();
    assert_eq!(answer.code, StatusCode::CREATED, "{target}: {:?}", answer.status());
}
