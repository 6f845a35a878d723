//! A control plane on which Pods run: nodes, scheduler, and the controllers that are never sharded.

use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{ListParams, PostParams};
use serde_json::json;

use crate::controllers::{Controller, ControllerManager, SINGLETONS};
use crate::kwok::Kwok;
use crate::{ControlPlane, HarnessError, Options, Process, User, wait_for};

/// A test that stops the API server for a minute loses no node by that.
const NODE_GRACE: &str = "--node-monitor-grace-period=10m";
const NODES_DEADLINE: Duration = Duration::from_mins(2);

/// A running cluster. Dropping it ends everything.
#[derive(Debug)]
pub struct Cluster {
    // Dropped in this order: clients before the API server.
    /// kube-controller-manager with the [`SINGLETONS`].
    pub singletons: Controller,
    /// kube-scheduler.
    pub scheduler: Controller,
    /// kwok.
    pub kwok: Kwok,
    /// The API server and its store.
    pub control_plane: ControlPlane,
}

// === impl Cluster ===

impl Cluster {
    /// Starts everything in `run_dir` and returns when `nodes` nodes take Pods. `stages` are kwok's, beside its own.
    ///
    /// What a ring is to run ([`crate::controllers::RING`]) is not started.
    pub async fn start(
        run_dir: &Path,
        options: Options,
        nodes: usize,
        stages: &[&str],
    ) -> Result<Self, HarnessError> {
        let control_plane = ControlPlane::start(run_dir, options).await?;
        let kubeconfig = control_plane.kubeconfig(&User::SINGLETONS)?;
        let manager = ControllerManager {
            name: "singletons",
            controllers: &SINGLETONS,
            kubeconfig: &kubeconfig,
            election: None,
            flags: &[NODE_GRACE.to_owned()],
        };
        let (singletons, scheduler, kwok, ()) = tokio::try_join!(
            manager.start(&control_plane),
            Controller::scheduler(&control_plane),
            Kwok::start(&control_plane, stages),
            create_nodes(&control_plane, nodes),
        )?;
        wait_for_nodes(&control_plane, nodes).await?;
        Ok(Self { singletons, scheduler, kwok, control_plane })
    }

    /// All its processes that run.
    pub fn processes(&self) -> impl Iterator<Item = &Process> {
        let controllers = [self.singletons.process(), self.scheduler.process(), self.kwok.process()];
        let plane = &self.control_plane;
        controllers.into_iter().chain(plane.apiserver()).chain(plane.etcd())
    }
}

async fn create_nodes(plane: &ControlPlane, count: usize) -> Result<(), HarnessError> {
    let api: Api<Node> = Api::all(plane.client(&User::ADMIN).await?);
    for number in 0..count {
        api.create(&PostParams::default(), &node(number)).await?;
    }
    Ok(())
}

fn node(number: usize) -> Node {
    let mut node = Node::default();
    node.metadata.name = Some(format!("node-{number}"));
    node.metadata.labels = serde_json::from_value(json!({"type": "kwok"})).unwrap_or_default();
    node
}

async fn wait_for_nodes(plane: &ControlPlane, count: usize) -> Result<(), HarnessError> {
    let api: Api<Node> = Api::all(plane.client(&User::ADMIN).await?);
    wait_for(&format!("{count} nodes that take Pods"), NODES_DEADLINE, || async {
        let nodes = api.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let ready = nodes.iter().filter(|node| takes_pods(node)).count();
        if ready == count { Ok(()) } else { Err(format!("{ready} of {} nodes", nodes.items.len())) }
    })
    .await
}

/// Ready, and the node-lifecycle-controller has taken the taints away.
pub(crate) fn takes_pods(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    let ready =
        conditions.is_some_and(|all| all.iter().any(|one| one.type_ == "Ready" && one.status == "True"));
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    ready && taints.is_none_or(Vec::is_empty)
}
