//! A stock kube-controller-manager that makes 600 Pods at once, behind each target.

use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client, Resource};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{as_f64, cpu, mebibytes};
use crate::bench::bar::Bar;
use crate::bench::table::Table;
use crate::bench::target::Target;
use crate::bench::{halves, joined};
use crate::controllers::{Controller, ControllerManager};
use crate::{ControlPlane, HarnessError, User, wait_for};

const DEPLOYMENTS: usize = 200;
const REPLICAS: usize = 3;
const PODS: usize = DEPLOYMENTS * REPLICAS;
/// Requests at once of whoever creates the Deployments.
const WRITERS: usize = 8;
const CONTROLLERS: [&str; 2] = ["deployment-controller", "replicaset-controller"];
/// The controllers' own brake is not what is measured.
const FLAGS: [&str; 2] = ["--kube-api-qps=1000", "--kube-api-burst=2000"];
const DEADLINE: Duration = Duration::from_mins(3);

pub(super) async fn take(
    plane: &ControlPlane,
    target: &Target,
    table: &mut Table,
) -> Result<(), HarnessError> {
    let (client, manager) = (plane.client(&User::ADMIN).await?, manager(plane, target).await?);
    // Its informers are in step once it has answered the first Deployment.
    create(client.clone(), "first".to_owned(), 1).await?;
    pods(&client, 1).await?;

    target.reset_peak()?;
    let (before, started) = (cpu(target)?, Instant::now());
    create_all(&client).await?;
    pods(&client, 1 + PODS).await?;
    let (time, used) = (started.elapsed(), cpu(target)?.saturating_sub(before));
    drop(manager);
    empty(&client).await?;

    table.add("burst: s for 600 Pods", &[Bar::DIRECT], target.name, time.as_secs_f64());
    if target.meter.is_some() {
        let each = used.as_secs_f64() * 1e3 / as_f64(PODS);
        table.add("burst: CPU ms a Pod", &[Bar::FLOOR], target.name, each);
        table.add("burst: peak RSS MiB", &[], target.name, mebibytes(0, target.peak()?));
    }
    Ok(())
}

/// Without election: there is one.
async fn manager(plane: &ControlPlane, target: &Target) -> Result<Controller, HarnessError> {
    let (user, name) = (User::CONTROLLER_MANAGER, format!("kcm-{}", target.name));
    let kubeconfig = plane.kubeconfig_via(&name, &user, &target.address.url, &target.address.ca)?;
    let flags = FLAGS.map(str::to_owned);
    let manager = ControllerManager {
        name: &name,
        controllers: &CONTROLLERS,
        kubeconfig: &kubeconfig,
        election: None,
        flags: &flags,
    };
    manager.start(plane).await
}

async fn create_all(client: &Client) -> Result<(), HarnessError> {
    let writers = (0..WRITERS).map(|first| {
        let client = client.clone();
        async move {
            for number in (first..DEPLOYMENTS).step_by(WRITERS) {
                create(client.clone(), format!("d-{number:03}"), REPLICAS).await?;
            }
            Ok(())
        }
    });
    joined(writers.collect::<JoinSet<_>>()).await.map(drop)
}

async fn create(client: Client, name: String, replicas: usize) -> Result<(), HarnessError> {
    let (labels, containers) = (json!({"d": name}), json!([{"name": "c", "image": "i"}]));
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": containers}});
    let spec = json!({"replicas": replicas, "selector": {"matchLabels": labels}, "template": template});
    let deployment: Deployment = serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec}))
        .map_err(|error| HarnessError::Answer { url: name.clone(), reason: error.to_string() })?;
    all::<Deployment>(&client).create(&PostParams::default(), &deployment).await?;
    Ok(())
}

/// Waits for so many Pods.
async fn pods(client: &Client, count: usize) -> Result<(), HarnessError> {
    let api = all::<Pod>(client);
    let look = || async {
        let list = api.list_metadata(&ListParams::default().limit(1)).await.map_err(|e| e.to_string())?;
        let rest = list.metadata.remaining_item_count.and_then(|rest| usize::try_from(rest).ok());
        let seen = list.items.len() + rest.unwrap_or(0);
        if seen == count { Ok(()) } else { Err(format!("{seen} Pods")) }
    };
    wait_for(&format!("{count} Pods"), DEADLINE, look).await
}

/// Deletes everything, once no controller makes it anew.
async fn empty(client: &Client) -> Result<(), HarnessError> {
    let (now, one) = (DeleteParams::default().grace_period(0), ListParams::default());
    all::<Deployment>(client).delete_collection(&now, &one).await?;
    all::<ReplicaSet>(client).delete_collection(&now, &one).await?;
    all::<Pod>(client).delete_collection(&now, &one).await?;
    pods(client, 0).await
}

/// The objects of a kind in the namespace of the burst, which is owned.
fn all<K>(client: &Client) -> Api<K>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
{
    Api::namespaced(client.clone(), &halves::another())
}
