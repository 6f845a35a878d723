//! The cluster and the ring that the faults are about.

use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use shoal_api::{Fence, ShardedController};

use super::{Args, DEADLINE, FOLDER};
use crate::controllers::RING_WRITERS;
use crate::live::{Container, LiveRing, Pod, Work};
use crate::{Cluster, HarnessError, Options, RunDir, ring};

const NODES: usize = 4;
/// In mode `Credential`: what the proxies write as.
const FENCED: &str = "kcm-fenced";

/// Everything that runs.
pub(super) struct Ground {
    // Dropped in this order: what depends on others first.
    pub(super) ring: LiveRing,
    /// Beside the coordinator, for a while.
    pub(super) second: Option<Container>,
    pub(super) cluster: Cluster,
    /// How many shards the ring is to have now.
    pub(super) shards: u16,
    pub(super) args: Args,
    pub(super) controller: ShardedController,
    dir: RunDir,
}

// === impl Ground ===

impl Ground {
    pub(super) async fn start(args: &Args) -> Result<Self, HarnessError> {
        let dir = RunDir::kept(FOLDER)?;
        let cluster = Cluster::start(dir.path(), Options::default(), NODES, &[]).await?;
        let controller = ring_of(args)?;
        if args.fence == super::args::Fence::Credential {
            grant(&cluster).await?;
        }
        let work = Work::ControllerManager(args.controllers.clone());
        let ring = LiveRing::start(&cluster.control_plane, &controller, work, DEADLINE).await?;
        let (shards, args) = (args.shards, args.clone());
        Ok(Self { ring, second: None, cluster, shards, args, controller, dir })
    }

    pub(super) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Whom the judge takes for the ring.
    pub(super) fn writers() -> Vec<String> {
        RING_WRITERS.map(str::to_owned).into()
    }

    /// A Pod by chance, of those that run.
    pub(super) fn any_pod(&self, dice: &mut fastrand::Rng) -> Option<&Pod> {
        dice.choice(&self.ring.pods)
    }

    /// Takes back all that can be: nothing is stopped, held or wrong any more, and there are as many Pods as shards.
    pub(super) async fn heal(&mut self) -> Result<(), HarnessError> {
        self.second = None;
        self.ring.coordinator.signal(Signal::CONT);
        for pod in &self.ring.pods {
            pod.signal(Signal::CONT);
            pod.relay.release();
            if let Some(clock) = &pod.clock {
                clock.jump(0)?;
            }
        }
        let plane = &mut self.cluster.control_plane;
        plane.start_etcd()?;
        plane.start_apiserver().await?;
        self.fill().await?;
        self.ring.wait_settled(self.shards, DEADLINE).await.map(drop)
    }

    /// Starts Pods until there are as many as shards.
    pub(super) async fn fill(&mut self) -> Result<(), HarnessError> {
        while self.ring.pods.len() < usize::from(self.shards) {
            self.ring.add_pod(&self.cluster.control_plane).await?;
        }
        Ok(())
    }

    /// Ends Pods that hold nothing until there are as many as shards.
    pub(super) async fn thin(&mut self, deadline: Duration) -> Result<(), HarnessError> {
        while self.ring.pods.len() > usize::from(self.shards) {
            let index = crate::wait_for("a Pod that holds no shard", deadline, || self.surplus()).await?;
            if let Some(pod) = self.ring.take(index) {
                pod.end().await;
            }
        }
        Ok(())
    }

    async fn surplus(&self) -> Result<usize, String> {
        let mut seats = Vec::new();
        for (index, pod) in self.ring.pods.iter().enumerate() {
            match pod.seat().await {
                Ok(seat) if seat.role != "holder" => return Ok(index),
                Ok(seat) => seats.push(seat.shard),
                Err(error) => seats.push(error.to_string()),
            }
        }
        Err(seats.join(", "))
    }
}

/// The example's ring, as the arguments want it.
fn ring_of(args: &Args) -> Result<ShardedController, HarnessError> {
    let mut controller: ShardedController = ring::read(&ring::example().join("ring.yaml"))?;
    let spec = &mut controller.spec;
    spec.shards = args.shards;
    spec.handover.mode = args.mode.into();
    let service_account = (args.fence == super::args::Fence::Credential).then(|| FENCED.to_owned());
    spec.fence = Fence { mode: args.fence.into(), service_account };
    Ok(controller)
}

/// The account that the proxies write as may do what all the controllers may.
async fn grant(cluster: &Cluster) -> Result<(), HarnessError> {
    let account = format!("kube-system:{FENCED}");
    for command in [
        vec!["create", "serviceaccount", FENCED, "-n", "kube-system"],
        vec![
            "create",
            "clusterrolebinding",
            FENCED,
            "--clusterrole=cluster-admin",
            "--serviceaccount",
            &account,
        ],
    ] {
        let output = cluster.control_plane.kubectl(&command).await?;
        if !output.status.success() {
            let reason = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(HarnessError::Answer { url: format!("kubectl {}", command.join(" ")), reason });
        }
    }
    Ok(())
}
