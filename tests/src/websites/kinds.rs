//! The kinds, and the ring that shares them out.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use shoal_api::ShardedController;

use crate::{HarnessError, wait_for};

/// The API group of Websites and Themes.
pub const GROUP: &str = "webhosting.timebertt.dev";
const VERSION: &str = "v1alpha1";
const DEADLINE: Duration = Duration::from_mins(2);

/// Makes the API server serve Websites and Themes.
pub async fn install(client: &Client) -> Result<(), HarnessError> {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    for (kind, plural, scope) in [("Website", "websites", "Namespaced"), ("Theme", "themes", "Cluster")] {
        crds.create(&PostParams::default(), &definition(kind, plural, scope)?).await?;
        wait_for(&format!("the API server to serve {plural}"), DEADLINE, || async {
            let request = http::Request::get(format!("/apis/{GROUP}/{VERSION}/{plural}")).body(Vec::new());
            let request = request.map_err(|error| error.to_string())?;
            client.request_text(request).await.map_err(|error| error.to_string())
        })
        .await?;
    }
    Ok(())
}

/// Websites, for kube's dynamic objects.
pub fn website() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(GROUP, VERSION, "Website"))
}

/// The ring of the controller over Websites: whole namespaces, and nothing but its kinds.
pub fn ring(shards: u16) -> Result<ShardedController, HarnessError> {
    let every = |groups: &[&str]| json!({"groups": groups, "resources": ["*"], "scope": "Namespaced", "mode": "Sharded"});
    let ring = json!({
        "apiVersion": "mesh.shoal.dev/v1alpha1",
        "kind": "ShardedController",
        "metadata": {"name": "websites", "namespace": "kube-system"},
        "spec": {
            "shards": shards,
            "resources": [
                every(&[GROUP, "", "apps", "networking.k8s.io"]),
                {"groups": ["*"], "resources": ["*"], "scope": "*", "mode": "SharedRead"},
            ],
            "leaderElection": {"locks": [{"resource": "leases", "namespace": "kube-system", "name": "websites"}]},
        },
    });
    parse("the ring of Websites", ring)
}

fn definition(kind: &str, plural: &str, scope: &str) -> Result<CustomResourceDefinition, HarnessError> {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = json!({
        "name": VERSION, "served": true, "storage": true, "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": open, "status": open}}},
    });
    let names = json!({"plural": plural, "singular": kind.to_lowercase(), "kind": kind});
    let spec = json!({"group": GROUP, "scope": scope, "names": names, "versions": [version]});
    parse(plural, json!({"metadata": {"name": format!("{plural}.{GROUP}")}, "spec": spec}))
}

fn parse<T: serde::de::DeserializeOwned>(what: &str, value: Value) -> Result<T, HarnessError> {
    let failed =
        |error: serde_json::Error| HarnessError::Answer { url: what.to_owned(), reason: error.to_string() };
    serde_json::from_value(value).map_err(failed)
}
