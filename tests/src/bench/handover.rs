//! How long a planned hand-over takes where there is much to show: 5000 `ReplicaSets` with four Pods each.
//!
//! ```text
//! control plane, no nodes ─▶ objects ─▶ live ring of 3 ─▶ moves of 8 slots, one after the other ─▶ figures
//! ```
//! The time of a move is that from the map that drains a slot to the Lease that says its new owner has opened it, by the API
//! server's own audit log; what was fetched for it, by the proxies' metrics.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetSpec};
use k8s_openapi::api::core::v1::{Container, Namespace, Pod, PodSpec, PodTemplateSpec, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, OwnerReference};
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use shoal_api::{ShardedController, names};
use shoal_judge::{Asked, Case, Figures, Judge, Owners, Ring};
use shoal_sharding::{Slot, wishes::Wishes};
use tokio::task::JoinSet;

use super::{FOLDER, joined};
use crate::controllers::{RING, RING_WRITERS};
use crate::live::{LiveRing, Work};
use crate::ring::{self, HUB};
use crate::{ControlPlane, HarnessError, Options, RunDir, User, evidence};

const NAMESPACES: usize = 200;
const SETS: usize = 5000;
const PODS: i32 = 4;
/// Requests at once.
const WRITERS: usize = 16;
const SHARDS: u16 = 3;
const MOVES: usize = 40;
/// Slots of a move.
const BATCH: usize = 8;
const DEADLINE: Duration = Duration::from_mins(5);
/// How long nothing must be written for the ring to be at rest.
const QUIET: Duration = Duration::from_secs(10);

/// What came of it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Outcome {
    /// From the audit log.
    pub(super) figures: Figures,
    /// Bytes of objects that were fetched for all moves together.
    pub(super) fetched: f64,
    /// Writes of the ring to objects while slots moved.
    pub(super) writes: u64,
}

/// Makes the objects, moves slots about, and tells what it took.
pub(super) async fn run() -> Result<Outcome, HarnessError> {
    let dir = RunDir::kept(FOLDER)?;
    let plane = ControlPlane::start(dir.path(), Options::default()).await?;
    let client = plane.client(&User::ADMIN).await?;
    println!("creating {SETS} ReplicaSets and {} Pods", SETS * 4);
    create(&client).await?;
    let mut controller: ShardedController = ring::read(&ring::example().join("ring.yaml"))?;
    controller.spec.shards = SHARDS;
    let work = Work::ControllerManager(RING.map(str::to_owned).into());
    let ring = LiveRing::start(&plane, &controller, work, DEADLINE).await?;
    // What the controllers have to do with the new objects is done before anything moves.
    settle_writes(&plane).await?;
    let before = writes(&plane)?;
    for number in 0..MOVES {
        move_some(&ring, number).await?;
        println!("move {} of {MOVES}", number + 1);
    }
    let mut fetched = 0.0;
    for pod in &ring.pods {
        fetched += pod.metrics().await?.sum("shoal_prefetched_bytes_total", &[]);
    }
    let figures = judge(&plane, &controller)?;
    Ok(Outcome { figures, fetched, writes: writes(&plane)? - before })
}

/// Moves slots from the shard that has most to the one after it, and waits until they are open there.
async fn move_some(ring: &LiveRing, number: usize) -> Result<(), HarnessError> {
    let state = ring.wait_settled(SHARDS, DEADLINE).await?;
    let (from, to) = (number % usize::from(SHARDS), (number + 1) % usize::from(SHARDS));
    let name = |index: usize| names::shard(ring.name(), u16::try_from(index).unwrap_or_default());
    let (from, to) = (name(from), name(to));
    let ranges = state.map.iter().flat_map(|map| &map.spec.slots);
    let owned = ranges.filter(|range| range.owner.as_deref() == Some(&from));
    let slots = owned.flat_map(|range| range.first..=range.last).take(BATCH);
    let wishes = Wishes { moves: slots.map(|slot| (Slot(slot), to.clone())).collect(), ..Wishes::default() };
    let wanted = wishes.moves.clone();
    ring.patch(&json!({"metadata": {"annotations": {names::WISHES_ANNOTATION: wishes.to_string()}}})).await?;
    crate::wait_for("the slots to be where they were sent", DEADLINE, || async {
        let state = ring.state().await.map_err(|error| error.to_string())?;
        let holder = |slot: u8| {
            let mut ranges = state.map.iter().flat_map(|map| &map.spec.slots);
            ranges
                .find(|range| (range.first..=range.last).contains(&slot))
                .and_then(|range| range.owner.clone())
        };
        match wanted.keys().find(|slot| holder(slot.0).as_deref() != Some(&to)) {
            None => Ok(()),
            Some(slot) => Err(format!("slot {slot} is at {:?}", holder(slot.0))),
        }
    })
    .await?;
    ring.wait_settled(SHARDS, DEADLINE).await.map(drop)
}

/// Waits until the ring writes nothing for a while.
async fn settle_writes(plane: &ControlPlane) -> Result<(), HarnessError> {
    let mut last = None;
    loop {
        let now = writes(plane)?;
        if last == Some(now) {
            return Ok(());
        }
        last = Some(now);
        tokio::time::sleep(QUIET).await;
    }
}

/// The ring's writes to objects so far.
fn writes(plane: &ControlPlane) -> Result<u64, HarnessError> {
    let log = evidence::snapshot(&plane.audit_log())?;
    let log = String::from_utf8_lossy(&log);
    // Only a write to a slot names one behind its shard.
    let is_write = |line: &&str| {
        let claim = line.split_once("shoal/kcm/").and_then(|(_, rest)| rest.split_once('"'));
        claim.is_some_and(|(mark, _)| mark.contains(" :")) && line.contains("\"stage\":\"ResponseComplete\"")
    };
    Ok(log.lines().filter(is_write).count() as u64)
}

fn judge(plane: &ControlPlane, controller: &ShardedController) -> Result<Figures, HarnessError> {
    let ring = serde_json::to_string(controller).unwrap_or_default();
    let mut judge = Judge::new(Case {
        ring: Ring::parse(&ring)?,
        owners: Owners::default(),
        writers: RING_WRITERS.map(str::to_owned).into(),
        asked: Some(Asked::parse("")?),
        orphan_budget: None,
        adopted: false,
    });
    let log = evidence::snapshot(&plane.audit_log())?;
    judge.survey(HUB, Cursor::new(&log));
    judge.read(HUB, Cursor::new(&log));
    Ok(judge.finish().figures.unwrap_or_default())
}

async fn create(client: &Client) -> Result<(), HarnessError> {
    for number in 0..NAMESPACES {
        let metadata = named(&namespace(number));
        Api::all(client.clone())
            .create(&PostParams::default(), &Namespace { metadata, ..Namespace::default() })
            .await?;
        let account = ServiceAccount { metadata: named("default"), ..ServiceAccount::default() };
        Api::namespaced(client.clone(), &namespace(number)).create(&PostParams::default(), &account).await?;
    }
    let writers = (0..WRITERS).map(|first| write(client.clone(), first));
    joined(writers.collect::<JoinSet<_>>()).await.map(drop)
}

async fn write(client: Client, first: usize) -> Result<(), HarnessError> {
    for number in (first..SETS).step_by(WRITERS) {
        let namespace = namespace(number % NAMESPACES);
        let sets: Api<ReplicaSet> = Api::namespaced(client.clone(), &namespace);
        let set = sets.create(&PostParams::default(), &set(number)).await?;
        let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
        for index in 0..PODS {
            pods.create(&PostParams::default(), &pod(&set, index)).await?;
        }
    }
    Ok(())
}

fn namespace(number: usize) -> String {
    format!("handover-{number:03}")
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}

fn labels(set: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("set".to_owned(), set.to_owned())])
}

fn spec() -> PodSpec {
    let container = Container {
        name: "app".to_owned(),
        image: Some("registry.example/app:1".to_owned()),
        ..Container::default()
    };
    PodSpec { containers: vec![container], ..PodSpec::default() }
}

fn set(number: usize) -> ReplicaSet {
    let name = format!("set-{number:04}");
    let template = PodTemplateSpec {
        metadata: Some(ObjectMeta { labels: Some(labels(&name)), ..ObjectMeta::default() }),
        spec: Some(spec()),
    };
    let selector = LabelSelector { match_labels: Some(labels(&name)), ..LabelSelector::default() };
    let spec = ReplicaSetSpec {
        replicas: Some(PODS),
        selector,
        template: Some(template),
        ..ReplicaSetSpec::default()
    };
    ReplicaSet { metadata: named(&name), spec: Some(spec), ..ReplicaSet::default() }
}

fn pod(set: &ReplicaSet, index: i32) -> Pod {
    let owner = OwnerReference {
        api_version: "apps/v1".to_owned(),
        kind: "ReplicaSet".to_owned(),
        name: set.name_any(),
        uid: set.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    let metadata = ObjectMeta {
        labels: Some(labels(&set.name_any())),
        owner_references: Some(vec![owner]),
        ..named(&format!("{}-{index}", set.name_any()))
    };
    Pod { metadata, spec: Some(spec()), ..Pod::default() }
}
