//! Everything that runs during the demo.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use kube::Client;
use shoal_api::ShardedController;
use shoal_sharding::{Rules, Slot, SlotMap, Slots, slot_of};
use tokio::time::Instant;

use super::DemoError;
use super::screen::{Screen, table};
use crate::controllers::RING;
use crate::live::{LiveRing, Work};
use crate::ring::{self, HUB};
use crate::{Cluster, HarnessError, Options, Process, RunDir, User};

const SHARDS: u16 = 2;
const NODES: usize = 4;
/// For each wait; a loaded machine needs a good part of it.
const DEADLINE: Duration = Duration::from_mins(4);

/// The folder under `target/` where logs and kubeconfigs are left.
pub(super) const FOLDER: &str = "demo";

/// What runs. Dropping it ends everything.
pub(super) struct Stand {
    // Dropped in this order: what depends on others first.
    pub(super) scene: Scene,
    pub(super) cluster: Cluster,
}

/// The ring, as it is at rest.
pub(super) struct Scene {
    pub(super) ring: LiveRing,
    /// An administrator's, straight at the API server.
    pub(super) client: Client,
    pub(super) controller: ShardedController,
    pub(super) rules: Rules,
    pub(super) map: SlotMap,
}

/// What a change of the ring did.
pub(super) struct Change {
    /// How long it took until every slot was open at its owner.
    pub(super) took: Duration,
    /// How many slots changed hands.
    pub(super) moved: usize,
}

// === impl Stand ===

impl Stand {
    /// Starts a control plane with nodes, the coordinator, and two Pods of a proxy and a controller each.
    pub(super) async fn start(screen: &Screen) -> Result<Self, DemoError> {
        let mut controller: ShardedController = ring::read(&ring::example().join("ring.yaml"))?;
        controller.spec.shards = SHARDS;
        let rules = Rules::new(&controller.spec.resources);
        let dir = RunDir::kept(FOLDER)?;
        screen.step(&format!("Starting a control plane: etcd, API server, scheduler, {NODES} kwok nodes"));
        let cluster = Cluster::start(dir.path(), Options::default(), NODES, &[]).await?;
        let client = cluster.control_plane.client(&User::ADMIN).await?;
        let version = client.apiserver_version().await.map_err(HarnessError::from)?.git_version;
        screen.line(&format!("kube-apiserver {version} at {}", cluster.control_plane.url()));
        screen.step("Starting the coordinator, two proxies, and behind each a stock kube-controller-manager");
        let work = Work::ControllerManager(RING.map(str::to_owned).into());
        let ring = LiveRing::start(&cluster.control_plane, &controller, work, DEADLINE).await?;
        let map = settled(&ring, SHARDS).await?;
        let scene = Scene { ring, client, controller, rules, map };
        scene.draw(screen).await;
        Ok(Self { scene, cluster })
    }
}

// === impl Scene ===

impl Scene {
    /// Changes how many shards there are: Pods come before, and go after.
    pub(super) async fn scale(&mut self, cluster: &Cluster, shards: u16) -> Result<Change, DemoError> {
        let begun = Instant::now();
        self.ring.set_shards(shards).await?;
        while self.ring.pods.len() < usize::from(shards) {
            self.ring.add_pod(&cluster.control_plane).await?;
        }
        let change = self.rest(begun, shards).await?;
        while self.ring.pods.len() > usize::from(shards) {
            let index = self.idle_pod().await?;
            if let Some(pod) = self.ring.take(index) {
                pod.end().await;
            }
        }
        Ok(change)
    }

    /// Waits until every slot is open at its owner again.
    async fn rest(&mut self, begun: Instant, shards: u16) -> Result<Change, DemoError> {
        let map = settled(&self.ring, shards).await?;
        let owner = |map: &SlotMap, slot| map.entry(slot).owner.clone();
        let moved = |slot: &Slot| owner(&self.map, *slot) != owner(&map, *slot);
        let moved = Slots::ALL.iter().filter(moved).count();
        self.map = map;
        Ok(Change { took: begun.elapsed(), moved })
    }

    /// A Pod that holds no shard.
    async fn idle_pod(&self) -> Result<usize, HarnessError> {
        crate::wait_for("a Pod that holds no shard", DEADLINE, || async {
            for (index, pod) in self.ring.pods.iter().enumerate() {
                if pod.seat().await.is_ok_and(|seat| seat.role != "holder") {
                    return Ok(index);
                }
            }
            Err("all hold one".to_owned())
        })
        .await
    }

    /// The shards and what each owns, a line each.
    pub(super) async fn draw(&self, screen: &Screen) {
        let mut rows = Vec::new();
        for shard in self.shards() {
            let slots = self.map.slots_of(&shard);
            let pod = self.ring.pod_of(&shard).await.and_then(|index| self.ring.pods.get(index));
            let pod = pod.map(|pod| pod.name().to_owned()).unwrap_or_default();
            rows.push(vec![pod, shard, format!("{} slots", slots.len())]);
        }
        let last = rows.len().saturating_sub(1);
        for (index, line) in table(&rows, false).iter().enumerate() {
            let joint = match index {
                0 => "─┐",
                _ if index == last => "─┘",
                1 => "─┼─▶ kube-apiserver",
                _ => "─┤",
            };
            screen.shard_line(index, &format!("kube-controller-manager ─▶ {line} {joint}"));
        }
    }

    /// The shards' names, in order.
    pub(super) fn shards(&self) -> Vec<String> {
        self.map.owners().into_keys().map(str::to_owned).collect()
    }

    /// The slot of a namespace, and its owner.
    pub(super) fn owner(&self, namespace: &str) -> (u8, &str) {
        let slot = slot_of(HUB, namespace);
        (slot.0, self.map.entry(slot).owner.as_deref().unwrap_or("nobody"))
    }

    /// Those of `namespaces` that a shard owns.
    pub(super) fn owned<'a>(&self, shard: &str, namespaces: &'a [String]) -> Vec<&'a str> {
        let ours = |namespace: &&str| self.owner(namespace).1 == shard;
        namespaces.iter().map(String::as_str).filter(ours).collect()
    }
}

async fn settled(ring: &LiveRing, shards: u16) -> Result<SlotMap, DemoError> {
    let state = ring.wait_settled(shards, DEADLINE).await?;
    let unusable = |reason: String| DemoError::Ring { path: "ShardMap".into(), reason };
    let map = state.map.ok_or_else(|| unusable("there is none".to_owned()))?;
    SlotMap::try_from(&map.spec).map_err(|error| unusable(error.to_string()))
}

/// Returns when a program of the cluster ends, which none should.
pub(super) async fn first_exit(cluster: &Cluster) -> DemoError {
    let mut exits: Vec<_> = cluster.processes().map(|process| Box::pin(exit_of(process))).collect();
    poll_fn(|context| {
        let mut ready = exits.iter_mut().filter_map(|exit| match exit.as_mut().poll(context) {
            Poll::Ready(error) => Some(error),
            Poll::Pending => None,
        });
        ready.next().map_or(Poll::Pending, Poll::Ready)
    })
    .await
}

async fn exit_of(process: &Process) -> DemoError {
    let (program, log) = (process.name().to_owned(), process.log_path().to_owned());
    DemoError::Exited { program, code: process.wait().await, log }
}
