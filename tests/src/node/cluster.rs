//! A control plane with one real node.

use std::path::Path;

use super::{KUBELET, Node};
use crate::controllers::{Controller, ControllerManager, RING, SINGLETONS};
use crate::{ControlPlane, HarnessError, Options, User};

/// A running cluster. Dropping it ends everything.
#[derive(Debug)]
pub struct NodeCluster {
    // Dropped in this order: clients before the API server.
    /// The node.
    pub node: Node,
    /// kube-controller-manager with all controllers that the harness knows, none of them in a ring.
    pub controllers: Controller,
    /// kube-scheduler.
    pub scheduler: Controller,
    /// The API server and its store.
    pub control_plane: ControlPlane,
}

// === impl NodeCluster ===

impl NodeCluster {
    /// Starts everything in `run_dir` and returns when the node takes Pods.
    ///
    /// Fails outside of a box, see [`super`].
    pub async fn start(run_dir: &Path) -> Result<Self, HarnessError> {
        let control_plane = ControlPlane::start(run_dir, options()).await?;
        let kubeconfig = control_plane.kubeconfig(&User::SINGLETONS)?;
        let all: Vec<&str> = SINGLETONS.iter().chain(&RING).copied().collect();
        let manager = ControllerManager {
            name: "controllers",
            controllers: &all,
            kubeconfig: &kubeconfig,
            election: None,
            flags: &[],
        };
        let (controllers, scheduler, node) = tokio::try_join!(
            manager.start(&control_plane),
            Controller::scheduler(&control_plane),
            Node::start(&control_plane),
        )?;
        Ok(Self { node, controllers, scheduler, control_plane })
    }
}

fn options() -> Options {
    let flags = [
        "--enable-admission-plugins=NodeRestriction",
        // Nobody resolves the node's name.
        "--kubelet-preferred-address-types=InternalIP",
    ];
    let flags = flags.map(str::to_owned).to_vec();
    Options { flags, authorization: "Node,RBAC", users: vec![KUBELET], ..Options::default() }
}
