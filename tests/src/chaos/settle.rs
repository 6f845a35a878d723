//! When everything that users asked for is there, and nothing else.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DynamicObject, ListParams};
use kube::{Client, ResourceExt};

use super::changes::Wanted;
use super::ground::Ground;
use crate::load::Sizes;
use crate::{HarnessError, Load, kinds, wait_for};

/// Waits until every workload is at its size, every Job is complete, deleted namespaces are gone, and every object's owner
/// lives.
pub(super) async fn wait(ground: &Ground, wanted: &Wanted, deadline: Duration) -> Result<(), HarnessError> {
    let client = &ground.ring.client;
    let namespaces: Vec<String> = wanted.namespaces.keys().cloned().collect();
    let load = Load { namespaces, sizes: Sizes::default() };
    load.wait_settled(client, deadline, |_| {}).await?;
    wait_for("deleted namespaces to be gone", deadline, || gone(client, wanted)).await?;
    wait_for("all Jobs to be complete", deadline, || complete(client, wanted)).await?;
    wait_for("objects without a living owner to be gone", deadline, || owned(client, wanted)).await
}

async fn gone(client: &Client, wanted: &Wanted) -> Result<(), String> {
    let there = Api::<Namespace>::all(client.clone()).list(&ListParams::default()).await;
    let there = there.map_err(|error| error.to_string())?;
    let left = there.iter().map(ResourceExt::name_any).find(|name| wanted.deleted.contains(name));
    left.map_or(Ok(()), |name| Err(format!("{name} is there")))
}

async fn complete(client: &Client, wanted: &Wanted) -> Result<(), String> {
    let jobs = Api::<Job>::all(client.clone()).list(&ListParams::default()).await;
    let jobs = jobs.map_err(|error| error.to_string())?;
    let open = |job: &&Job| {
        let ours = job.namespace().is_some_and(|namespace| wanted.namespaces.contains_key(&namespace));
        ours && job.status.as_ref().is_none_or(|status| status.completion_time.is_none())
    };
    jobs.iter().find(open).map_or(Ok(()), |job| {
        Err(format!("{}/{} is not", job.namespace().unwrap_or_default(), job.name_any()))
    })
}

/// The garbage collector has nothing left to do.
async fn owned(client: &Client, wanted: &Wanted) -> Result<(), String> {
    let mut all = Vec::new();
    for kind in kinds::namespaced(client).await.map_err(|error| error.to_string())? {
        let list = Api::<DynamicObject>::all_with(client.clone(), &kind).list(&ListParams::default()).await;
        all.extend(list.map_err(|error| error.to_string())?.items);
    }
    let living: BTreeSet<String> = all.iter().filter_map(ResourceExt::uid).collect();
    let orphan = |object: &&DynamicObject| {
        let ours = object.namespace().is_some_and(|namespace| wanted.namespaces.contains_key(&namespace));
        let owners = object.owner_references();
        ours && !owners.is_empty() && owners.iter().all(|owner| !living.contains(&owner.uid))
    };
    all.iter().find(orphan).map_or(Ok(()), |object| {
        Err(format!("{}/{} is there", object.namespace().unwrap_or_default(), object.name_any()))
    })
}
