//! Everything that runs during the demo.

use std::future::poll_fn;
use std::path::Path;
use std::task::Poll;

use kube::Client;
use shoal_api::manifest;
use shoal_sharding::{Rules, Slot, SlotMap, Slots, slot_of};

use super::DemoError;
use super::screen::{Screen, table};
use crate::ring::{self, HUB, Shard};
use crate::{Cluster, HarnessError, Options, Process, Ring, RunDir, User};

const SHARDS: usize = 3;
const NODES: usize = 4;

/// The folder under `target/` where logs and kubeconfigs are left.
pub(super) const FOLDER: &str = "demo";

/// The cluster, the ring, and the ring's own files as the product reads them. Dropping it ends everything.
pub(super) struct Stand {
    // Dropped in this order: what depends on others first.
    pub(super) ring: Ring,
    pub(super) cluster: Cluster,
    /// An administrator's, straight at the API server.
    pub(super) client: Client,
    pub(super) rules: Rules,
    pub(super) map: SlotMap,
}

// === impl Stand ===

impl Stand {
    /// Starts a control plane with nodes, then the proxies and the controllers behind them.
    pub(super) async fn start(screen: &Screen) -> Result<Self, DemoError> {
        let (rules, map) = read(&ring::example())?;
        let dir = RunDir::kept(FOLDER)?;
        screen.step(&format!("Starting a control plane: etcd, API server, scheduler, {NODES} kwok nodes"));
        let cluster = Cluster::start(dir.path(), Options::default(), NODES, &[]).await?;
        let client = cluster.control_plane.client(&User::ADMIN).await?;
        let version = client.apiserver_version().await.map_err(HarnessError::from)?.git_version;
        screen.line(&format!("kube-apiserver {version} at {}", cluster.control_plane.url()));
        screen.step("Starting three proxies and behind each a stock, unmodified kube-controller-manager");
        let ring = Ring::start(&cluster.control_plane, &ring::example(), SHARDS).await?;
        let stand = Self { ring, cluster, client, rules, map };
        stand.draw(screen);
        Ok(stand)
    }

    fn draw(&self, screen: &Screen) {
        let rows: Vec<Vec<String>> = self.ring.shards.iter().map(|shard| self.row(shard)).collect();
        for (index, line) in table(&rows, false).iter().enumerate() {
            let joint = ["─┐", "─┼─▶ kube-apiserver", "─┘"].get(index).unwrap_or(&"");
            screen.shard_line(index, &format!("kube-controller-manager ─▶ {line} {joint}"));
        }
    }

    fn row(&self, shard: &Shard) -> Vec<String> {
        let name = shard.proxy.shard();
        let slots = format!("slots {}", ranges(&self.map.slots_of(name)));
        let address = shard.proxy.url().trim_start_matches("https://").trim_end_matches('/');
        vec![name.to_owned(), slots, address.to_owned()]
    }

    /// The shards' names, in order.
    pub(super) fn shards(&self) -> Vec<&str> {
        self.ring.shards.iter().map(|shard| shard.proxy.shard()).collect()
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

    /// Returns when a program ends, which none should.
    pub(super) async fn first_exit(&self) -> DemoError {
        let ring = self.ring.shards.iter().flat_map(|shard| [shard.proxy.process(), shard.manager.process()]);
        let mut exits: Vec<_> =
            ring.chain(self.cluster.processes()).map(|it| Box::pin(exit_of(it))).collect();
        poll_fn(|context| {
            let mut ready = exits.iter_mut().filter_map(|exit| match exit.as_mut().poll(context) {
                Poll::Ready(error) => Some(error),
                Poll::Pending => None,
            });
            ready.next().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

/// `0-85`, or `0-9,20-30`.
fn ranges(slots: &Slots) -> String {
    let mut ranges: Vec<(u8, u8)> = Vec::new();
    for slot in (0..=u8::MAX).filter(|&slot| slots.contains(Slot(slot))) {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(slot) => *last = slot,
            _ => ranges.push((slot, slot)),
        }
    }
    ranges.iter().map(|(first, last)| format!("{first}-{last}")).collect::<Vec<_>>().join(",")
}

async fn exit_of(process: &Process) -> DemoError {
    let (program, log) = (process.name().to_owned(), process.log_path().to_owned());
    DemoError::Exited { program, code: process.wait().await, log }
}

/// The ring as the proxies read it.
fn read(folder: &Path) -> Result<(Rules, SlotMap), DemoError> {
    let unusable = |reason: String| DemoError::Ring { path: folder.to_owned(), reason };
    let text = |file| std::fs::read_to_string(folder.join(file)).map_err(|error| unusable(error.to_string()));
    let (ring, map) = (text("ring.yaml")?, text("shardmap.yaml")?);
    let ring =
        manifest::Ring::parse([ring.as_str(), map.as_str()]).map_err(|error| unusable(error.to_string()))?;
    let map = SlotMap::try_from(&ring.map.spec).map_err(|error| unusable(error.to_string()))?;
    Ok((Rules::new(&ring.controller.spec.resources), map))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_three_ranges() {
        let (_, map) = read(&ring::example()).unwrap();
        let shown = ["kcm-0", "kcm-1", "kcm-2", "kcm-3"].map(|shard| ranges(&map.slots_of(shard)));
        assert_eq!(shown, ["0-85", "86-170", "171-255", ""]);
    }
}
