//! The objects of one namespace, and their creation.

use http::Request;
use kube::Client;
use serde_json::{Value, json};

use super::{DB, ONCE, Sizes, WEB};
use crate::HarnessError;

/// Never pulled: kwok only claims to run it.
const IMAGE: &str = "registry.example/app:1";

/// Creates a namespace and what is in it.
pub(super) async fn create(client: Client, namespace: String, sizes: Sizes) -> Result<(), HarnessError> {
    let inside = |group: &str, resource: &str| format!("/{group}/namespaces/{namespace}/{resource}");
    post(&client, "/api/v1/namespaces", json!({"metadata": {"name": namespace}})).await?;
    post(&client, &inside("api/v1", "services"), service()).await?;
    post(&client, &inside("apis/apps/v1", "deployments"), deployment(sizes.web)).await?;
    post(&client, &inside("apis/apps/v1", "statefulsets"), stateful_set(sizes.db)).await?;
    post(&client, &inside("apis/batch/v1", "jobs"), job(sizes.once)).await
}

async fn post(client: &Client, path: &str, object: Value) -> Result<(), HarnessError> {
    let request = Request::post(path)
        .header("content-type", "application/json")
        .body(object.to_string().into_bytes())
        .map_err(|error| HarnessError::Answer { url: path.to_owned(), reason: error.to_string() })?;
    client.request::<Value>(request).await?;
    Ok(())
}

pub(crate) fn service() -> Value {
    json!({"metadata": {"name": WEB}, "spec": {"selector": {"app": WEB}, "ports": [{"port": 80}]}})
}

pub(crate) fn deployment(replicas: u32) -> Value {
    let spec = json!({
        "replicas": replicas, "selector": {"matchLabels": {"app": WEB}}, "template": template(WEB, "Always"),
    });
    json!({"metadata": {"name": WEB}, "spec": spec})
}

pub(crate) fn stateful_set(replicas: u32) -> Value {
    let spec = json!({
        "replicas": replicas, "serviceName": DB, "selector": {"matchLabels": {"app": DB}},
        "template": template(DB, "Always"),
    });
    json!({"metadata": {"name": DB}, "spec": spec})
}

pub(crate) fn job(completions: u32) -> Value {
    let spec = json!({
        "completions": completions, "parallelism": completions, "template": template(ONCE, "Never"),
    });
    json!({"metadata": {"name": ONCE}, "spec": spec})
}

fn template(app: &str, restart: &str) -> Value {
    let containers = json!([{"name": "app", "image": IMAGE}]);
    json!({
        "metadata": {"labels": {"app": app}},
        // Deleted Pods go at once, so that a load settles.
        "spec": {"containers": containers, "restartPolicy": restart, "terminationGracePeriodSeconds": 0},
    })
}
