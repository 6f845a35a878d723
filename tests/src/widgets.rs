//! A custom resource, for what the API server does with kinds that it was not built with.
//!
//! It lists them with sorted keys: `data` of a Widget comes before its metadata, `spec` after it.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use crate::{HarnessError, wait_for};

const DEADLINE: Duration = Duration::from_mins(2);
const GROUP: &str = "test.shoal.dev";

/// Makes the API server serve `widgets.test.shoal.dev/v1` and returns when it does.
pub async fn install(client: &kube::Client) -> Result<(), HarnessError> {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    crds.create(&PostParams::default(), &definition()?).await?;
    let request = || http::Request::get(format!("/apis/{GROUP}/v1/widgets")).body(Vec::new());
    wait_for("the API server to serve widgets", DEADLINE, || async {
        let request = request().map_err(|error| error.to_string())?;
        client.request_text(request).await.map_err(|error| error.to_string())
    })
    .await
    .map(drop)
}

/// The kind, for kube's dynamic objects.
pub fn resource() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(GROUP, "v1", "Widget"))
}

/// A Widget; `value` is in its data and its spec.
pub fn widget(name: &str, value: &str) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "Widget",
        "data": {"metadata": {"name": "decoy", "namespace": "decoy"}, "value": value},
        "metadata": {"name": name},
        "spec": {"metadata": {"namespace": "decoy"}, "value": value},
    })
}

fn definition() -> Result<CustomResourceDefinition, HarnessError> {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = json!({
        "name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"data": open, "spec": open}}},
    });
    let names = json!({"plural": "widgets", "singular": "widget", "kind": "Widget"});
    let spec = json!({"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]});
    let definition = json!({"metadata": {"name": format!("widgets.{GROUP}")}, "spec": spec});
    serde_json::from_value(definition)
        .map_err(|error| HarnessError::Answer { url: format!("widgets.{GROUP}"), reason: error.to_string() })
}
