//! Objects for every shard: Pods, Deployments and custom resources in thirty namespaces, and a few of the kinds that
//! all shards see.

use kube::Client;
use serde_json::{Value, json};
use shoal_tests::{ControlPlane, Shards, User, widgets};

/// What is listed and watched.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    /// The path of the list across namespaces.
    pub(crate) path: &'static str,
    /// The forms that the API server has for it.
    pub(crate) forms: &'static [crate::forms::Form],
}

pub(crate) const PODS: Kind = Kind { path: "/api/v1/pods", forms: &crate::forms::Form::ALL };
pub(crate) const DEPLOYMENTS: Kind =
    Kind { path: "/apis/apps/v1/deployments", forms: &crate::forms::Form::ALL };
pub(crate) const WIDGETS: Kind =
    Kind { path: "/apis/test.shoal.dev/v1/widgets", forms: &crate::forms::Form::CUSTOM };
pub(crate) const NAMESPACES: Kind = Kind { path: "/api/v1/namespaces", forms: &crate::forms::Form::ALL };

pub(crate) fn namespaces() -> Vec<String> {
    (0..30).map(|number| format!("team-{number:02}")).collect()
}

// === impl Kind ===

impl Kind {
    /// The path of its list in one namespace.
    pub(crate) fn within(self, namespace: &str) -> String {
        let (prefix, resource) = self.path.rsplit_once('/').unwrap();
        format!("{prefix}/namespaces/{namespace}/{resource}")
    }

    /// An object of this kind.
    pub(crate) fn object(self, name: &str) -> Value {
        match self.path {
            path if path == PODS.path => pod(name),
            path if path == DEPLOYMENTS.path => deployment(name),
            _ => widgets::widget(name, "first"),
        }
    }
}

/// Creates everything, straight at the API server.
pub(crate) async fn create(plane: &ControlPlane) {
    let client = plane.client(&User::ADMIN).await.unwrap();
    widgets::install(&client).await.unwrap();
    for number in 0..2 {
        let node =
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("node-{number}")}});
        post(&client, "/api/v1/nodes", &node).await;
    }
    for (number, namespace) in namespaces().iter().enumerate() {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        post(&client, NAMESPACES.path, &object).await;
        for (kind, count) in [(PODS, 3 + number % 5), (DEPLOYMENTS, 2), (WIDGETS, 3)] {
            for index in 0..count {
                post(&client, &kind.within(namespace), &kind.object(&format!("web-{index}"))).await;
            }
        }
        post(&client, &format!("/api/v1/namespaces/{namespace}/events"), &event(namespace)).await;
    }
}

/// Creates one object of a kind for each shard and returns their namespaces, in the shards' order.
pub(crate) async fn mark(plane: &ControlPlane, shards: &Shards, kind: Kind, name: &str) -> Vec<String> {
    let client = plane.client(&User::ADMIN).await.unwrap();
    let own = |shard| namespaces().into_iter().find(|namespace| shards.owner(namespace) == shard).unwrap();
    let marked: Vec<String> = shards.proxies.iter().map(|proxy| own(proxy.shard())).collect();
    for namespace in &marked {
        post(&client, &kind.within(namespace), &kind.object(name)).await;
    }
    marked
}

pub(crate) async fn post(client: &Client, path: &str, object: &Value) {
    let request = http::Request::post(path).header("content-type", "application/json");
    let body = serde_json::to_vec(object).unwrap();
    client.request::<Value>(request.body(body).unwrap()).await.unwrap();
}

/// What a scanner may take for structure.
fn annotations() -> Value {
    json!({
        "quotes": "\"metadata\":{\"namespace\":\"team-00\"}}],\\\"items\\\":[{",
        "unicode": "\u{7}\u{2028}ß水😀\\u0022",
        "bulk": "x{}[]\"".repeat(700),
    })
}

fn pod(name: &str) -> Value {
    let containers =
        json!([{"name": "web", "image": "web:1", "env": [{"name": "namespace", "value": "team-01"}]}]);
    let metadata = json!({"name": name, "labels": {"namespace": "x"}, "annotations": annotations()});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}})
}

fn deployment(name: &str) -> Value {
    let labels = json!({"app": name});
    let template = json!({"metadata": {"labels": labels, "namespace": "team-02"}, "spec": pod(name)["spec"]});
    let spec = json!({"replicas": 3, "selector": {"matchLabels": labels}, "template": template});
    let metadata = json!({"name": name, "annotations": annotations()});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})
}

fn event(namespace: &str) -> Value {
    let about = json!({"kind": "Pod", "namespace": namespace, "name": "web-0"});
    let metadata = json!({"name": "web-0.started"});
    json!({"apiVersion": "v1", "kind": "Event", "metadata": metadata, "involvedObject": about, "reason": "Started"})
}
