//! What happens in the demo, in order.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use rustix::process::Signal;
use tokio::time::Instant;

use super::changes::Changes;
use super::screen::{Screen, bar, table};
use super::stand::{Change, Scene};
use super::verdict::Verdict;
use super::{DemoError, Outcome, objects};
use crate::load::{DB, ONCE, Progress, WEB};
use crate::{Cluster, Load, wait_for};

const NAMESPACES: usize = 12;
/// For each wait; a loaded machine needs a good part of it.
const DEADLINE: Duration = Duration::from_mins(4);
const BAR: usize = 12;

/// The namespace and name of the controllers' lock.
const LOCK: (&str, &str) = ("kube-system", "kube-controller-manager");

/// A demo under way.
struct Story<'a> {
    cluster: &'a Cluster,
    scene: &'a mut Scene,
    screen: &'a Screen,
}

/// Tells everything, and what came of it.
pub(super) async fn tell(
    cluster: &Cluster,
    scene: &mut Scene,
    screen: &Screen,
) -> Result<Outcome, DemoError> {
    let mut story = Story { cluster, scene, screen };
    story.elect().await?;
    let load = story.fill().await?;
    story.scale(4).await?;
    let (asked, left) = story.change(&load).await?;
    story.scale(3).await?;
    story.kill(&left, &asked).await?;
    screen
        .step("What each shard wrote, by the API server's audit log, and what the judge says of every write");
    let verdict = story.judge(&asked).await?;
    let objects = objects::count(&story.scene.client, &story.scene.rules, &left.namespaces).await?;
    story.look_next();
    let shards = story.scene.shards().len();
    Ok(Outcome { shards, objects, writes: verdict.writes(), foreign: verdict.foreign() })
}

// === impl Story ===

impl Story<'_> {
    /// Each replica leads a lock of its own; the controller's is the coordinator's.
    async fn elect(&self) -> Result<(), DemoError> {
        self.screen.step("Each replica leads its own shard, and the coordinator keeps all others out");
        let mut rows = vec![["who", "Lease at the API server", "held by"].map(str::to_owned).to_vec()];
        let own = self.scene.shards().into_iter().map(|shard| {
            let lock = format!("{}-{shard}", LOCK.1);
            (shard, lock)
        });
        let original = ("coordinator".to_owned(), LOCK.1.to_owned());
        for (who, lock) in own.chain([original]) {
            let what = format!("a holder of Lease {lock}");
            let held = wait_for(&what, DEADLINE, || holder(&self.scene.client, &lock)).await?;
            rows.push(vec![who, lock, held]);
        }
        show_shards(self.screen, &rows);
        Ok(())
    }

    async fn fill(&self) -> Result<Load, DemoError> {
        let load = Load::new(NAMESPACES);
        let sizes = load.sizes;
        self.screen.step(&format!(
            "Creating {NAMESPACES} namespaces: Deployment {WEB} ({}), StatefulSet {DB} ({}), Job {ONCE} ({}), Service {WEB}",
            sizes.web, sizes.db, sizes.once
        ));
        self.show_namespaces(&load);
        load.create(&self.scene.client).await?;
        self.settle(&load, "").await?;
        Ok(load)
    }

    fn show_namespaces(&self, load: &Load) {
        for (index, shard) in self.scene.shards().iter().enumerate() {
            let owned = self.scene.owned(shard, &load.namespaces);
            let named = owned.iter().map(|name| format!("{name} ({})", self.scene.owner(name).0));
            self.screen.shard_line(index, &format!("{shard}   {}", named.collect::<Vec<_>>().join("  ")));
        }
    }

    /// Makes the ring larger or smaller while it works.
    async fn scale(&mut self, shards: u16) -> Result<(), DemoError> {
        let before = self.scene.shards().len();
        self.screen.step(&format!(
            "{before} ─▶ {shards} shards: slots move between living shards; no object is written"
        ));
        let change = self.scene.scale(self.cluster, shards).await?;
        self.scene.draw(self.screen).await;
        self.screen.good(&sentence(&change));
        Ok(())
    }

    /// Kills a controller: its proxy sees it, and its slots are served elsewhere before it is back.
    async fn kill(&mut self, load: &Load, asked: &str) -> Result<(), DemoError> {
        let shards = self.scene.shards();
        let Some(shard) = shards.get(1).cloned() else { return Ok(()) };
        let slots = self.scene.map.slots_of(&shard).len();
        self.screen.step(&format!("kill -9 of the controller of {shard}, which owns {slots} slots"));
        let pod = self.scene.ring.pod_of(&shard).await.and_then(|index| self.scene.ring.pods.get(index));
        let Some(pod) = pod else { return Err(DemoError::Idle { shard, what: "has no Pod" }) };
        let begun = Instant::now();
        pod.controller.signal(Signal::KILL);
        let gone = wait_for("its slots to be served elsewhere", DEADLINE, || async {
            let state = self.scene.ring.state().await.map_err(|error| error.to_string())?;
            match state.owners().get(shard.as_str()) {
                None => Ok(begun.elapsed()),
                Some(slots) => Err(format!("it owns {slots} still")),
            }
        });
        let gone = gone.await?;
        let served = format!("its slots were given to others {} ms after the kill", gone.as_millis());
        self.screen.good(&served);
        self.settle(load, asked).await
    }

    /// A ring that does not get there has most likely done something else, which the judge can name.
    async fn settle(&self, load: &Load, asked: &str) -> Result<(), DemoError> {
        let live = self.screen.live();
        let show = |progress: &Progress| live.show(&progress_line(progress));
        if let Err(error) = load.wait_settled(&self.scene.client, DEADLINE, show).await {
            live.end("not settled");
            self.judge(asked).await?;
            return Err(error.into());
        }
        let progress = load.progress(&self.scene.client).await?;
        live.end(&format!("{}  settled", progress_line(&progress)));
        Ok(())
    }

    async fn judge(&self, asked: &str) -> Result<Verdict, DemoError> {
        let verdict = Verdict::of(self.cluster, self.scene, asked).await?;
        for line in table(&verdict.rows(), true) {
            self.screen.line(&line);
        }
        for finding in verdict.findings() {
            self.screen.bad(&finding);
        }
        verdict.check()?;
        self.screen.good(&verdict.closing());
        Ok(verdict)
    }

    /// Returns what was asked to be deleted, and the load as it is then.
    async fn change(&self, load: &Load) -> Result<(String, Load), DemoError> {
        let changes = Changes::plan(self.scene, load);
        self.screen.step("Changing things in namespaces of every shard");
        for line in changes.describe() {
            self.screen.line(&line);
        }
        changes.make(&self.scene.client).await?;
        let left = changes.left(load);
        self.settle(&left, &changes.asked()).await?;
        changes.wait_deleted(&self.scene.client, DEADLINE).await?;
        Ok((changes.asked(), left))
    }

    fn look_next(&self) {
        let logs = super::keep::short(self.cluster.control_plane.dir());
        self.screen.step("Where to look next");
        for (place, what) in [
            ("README.md", "what Shoal is, and how to run a proxy"),
            ("docs/ownership.md", "how slots move, and why a late write fails"),
            ("examples/kube-controller-manager/", "the ring of this demo"),
            (logs.as_str(), "logs: coordinator.log, proxy-kcm-pod0.log, kcm-pod0.log, audit.log"),
            ("make demo KEEP=1", "the same, left up for you to try"),
        ] {
            self.screen.line(&format!("{place:<36}{what}"));
        }
    }
}

/// Who holds a lock, or why nobody does.
async fn holder(client: &Client, lock: &str) -> Result<String, String> {
    let api: Api<Lease> = Api::namespaced(client.clone(), LOCK.0);
    let lease = api.get(lock).await.map_err(|error| error.to_string())?;
    let holder = lease.spec.and_then(|spec| spec.holder_identity).filter(|holder| !holder.is_empty());
    holder.ok_or_else(|| "nobody".to_owned())
}

fn sentence(change: &Change) -> String {
    let Change { took, moved } = change;
    format!(
        "{moved} of 256 slots moved; all were open {:.1} s after the change, start of the replicas included",
        took.as_secs_f64()
    )
}

fn progress_line(progress: &Progress) -> String {
    let (done, of) =
        progress.all().iter().fold((0, 0), |(done, of), (_, count)| (done + count.settled, of + count.of));
    format!("{}  {progress}", bar(done, of, BAR))
}

/// A header, then a row for each shard in its colour.
fn show_shards(screen: &Screen, rows: &[Vec<String>]) {
    for (index, line) in table(rows, false).iter().enumerate() {
        match index.checked_sub(1) {
            Some(shard) => screen.shard_line(shard, line),
            None => screen.line(line),
        }
    }
}
