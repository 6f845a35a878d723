//! What the demo changes once everything has settled.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::stand::Scene;
use crate::load::WEB;
use crate::{HarnessError, Load, wait_for};

const SCALE_TO: u32 = 6;
const NEXT_IMAGE: &str = "registry.example/app:2";

/// Namespaces by what is changed in them: one of each shard to scale and one to update, and one to delete.
pub(super) struct Changes {
    scale: Vec<String>,
    update: Vec<String>,
    delete: Option<String>,
}

// === impl Changes ===

impl Changes {
    /// Takes the first, the second and the last namespace of a shard, so that none is changed twice.
    pub(super) fn plan(scene: &Scene, load: &Load) -> Self {
        let shards = scene.shards();
        let nth = |index: usize| {
            let of =
                |shard: &String| scene.owned(shard, &load.namespaces).get(index).map(|&name| name.to_owned());
            shards.iter().filter_map(of).collect()
        };
        let last = shards.last().and_then(|shard| scene.owned(shard, &load.namespaces).pop());
        Self { scale: nth(0), update: nth(1), delete: last.map(str::to_owned) }
    }

    /// A line for each kind of change.
    pub(super) fn describe(&self) -> Vec<String> {
        let deleted = self.delete.as_deref().unwrap_or_default();
        vec![
            format!("scale {WEB} to {SCALE_TO}: {}", self.scale.join(", ")),
            format!("new image for {WEB}: {}", self.update.join(", ")),
            format!("delete namespace {deleted} with everything in it"),
        ]
    }

    /// Asks for all of it.
    pub(super) async fn make(&self, client: &Client) -> Result<(), HarnessError> {
        let scaled = json!({"spec": {"replicas": SCALE_TO}});
        let containers = json!([{"name": "app", "image": NEXT_IMAGE}]);
        let updated = json!({"spec": {"template": {"spec": {"containers": containers}}}});
        for (namespaces, change) in [(&self.scale, scaled), (&self.update, updated)] {
            for namespace in namespaces {
                patch(client, namespace, &change).await?;
            }
        }
        if let Some(namespace) = &self.delete {
            Api::<Namespace>::all(client.clone()).delete(namespace, &DeleteParams::default()).await?;
        }
        Ok(())
    }

    /// The load without what is deleted.
    pub(super) fn left(&self, load: &Load) -> Load {
        let mut left = load.clone();
        left.namespaces.retain(|namespace| self.delete.as_ref() != Some(namespace));
        left
    }

    /// Waits until the deleted namespace is gone.
    pub(super) async fn wait_deleted(&self, client: &Client, deadline: Duration) -> Result<(), HarnessError> {
        let Some(namespace) = &self.delete else { return Ok(()) };
        let api: Api<Namespace> = Api::all(client.clone());
        let what = format!("namespace {namespace} to be gone");
        wait_for(&what, deadline, || async {
            match api.get_opt(namespace).await {
                Ok(None) => Ok(()),
                Ok(Some(found)) => Err(format!("{:?}", found.status.and_then(|status| status.phase))),
                Err(error) => Err(error.to_string()),
            }
        })
        .await
    }

    /// The deletions that follow, in the judge's form: old Pods of an update, and all in a deleted namespace.
    pub(super) fn asked(&self) -> String {
        let old = |namespace: &String| json!({"resource": "pods", "namespace": namespace, "namePrefix": format!("{WEB}-")});
        let all = |namespace: &String| json!({"resource": "*", "namespace": namespace});
        let entries = self.update.iter().map(old).chain(self.delete.iter().map(all));
        entries.map(|entry| entry.to_string()).collect::<Vec<_>>().join("\n")
    }
}

async fn patch(client: &Client, namespace: &str, change: &Value) -> Result<(), HarnessError> {
    let api: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    api.patch(WEB, &PatchParams::default(), &Patch::Strategic(change)).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_asked_may_be_deleted() {
        let (update, delete) = (vec!["a".to_owned()], Some("b".to_owned()));
        let changes = Changes { scale: vec!["c".to_owned()], update, delete };
        let asked = changes.asked();
        assert_eq!(asked.lines().count(), 2, "scaling up deletes nothing: {asked}");
        shoal_judge::Asked::parse(&asked).unwrap();
        let load = Load { namespaces: ["a", "b"].map(str::to_owned).to_vec(), ..Load::new(0) };
        assert_eq!(changes.left(&load).namespaces, ["a"]);
    }
}
