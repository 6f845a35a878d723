//! The promise of a ring: stock kube-controller-managers, unmodified, run as three shards. Together they do exactly
//! what one would have done, and the API server's audit log proves that each kept to its own namespaces.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code, helpers included")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use shoal_judge::{Owners, Standing, slot_of};
use shoal_tests::evidence::{self, Creates, differences};
use shoal_tests::load::EDGES;
use shoal_tests::ring::{self, HUB};
use shoal_tests::{Cluster, ControlPlane, Load, Options, Ring, RunDir, User};

mod agent;
mod changes;
mod forge;
mod lock;
mod script;

use script::Script;

const NODES: usize = 3;
const SHARDS: usize = 3;
const NAMESPACES: usize = 24;
/// For a step of the whole ring, on a machine that does other things too.
const DEADLINE: Duration = Duration::from_mins(5);

#[tokio::test]
async fn stock_controllers_run_as_three_shards() {
    let dir = RunDir::for_test("ring").unwrap();
    let mut cluster = Cluster::start(dir.path(), Options::default(), NODES, &[]).await.unwrap();
    let script = run(&cluster.control_plane).await;

    // Nobody writes any more, so the log is whole or it was cut.
    let log = cluster.control_plane.audit_log();
    cluster.control_plane.stop_apiserver();
    let log = evidence::whole(&log).unwrap();
    assert_clean(&log, &script);
    let untouched = changes::untouched(&Load::new(NAMESPACES), "kcm-0");
    forge::each_forgery_is_red_for_its_own_reason(&log, &script.deletions, &untouched);
}

/// The whole life of a ring; what was asked of it.
async fn run(plane: &ControlPlane) -> Script {
    let admin = plane.client(&User::ADMIN).await.unwrap();
    let ring = Ring::start(plane, &ring::example(), SHARDS).await.unwrap();
    lock::each_replica_leads_its_own(plane, &ring).await;

    let load = Load::new(NAMESPACES);
    let mut script = Script::of(&load);
    load.create(&admin).await.unwrap();
    load.wait_settled(&admin, DEADLINE, |_| {}).await.unwrap();
    assert_kept(plane, &ring, &script).await;
    assert_each_shard_did_its_own(plane, &load);

    changes::work_in_namespaces_of_every_shard(&admin, &load, &mut script).await;
    agent::a_client_cannot_bring_a_suffix(plane, &ring, &load).await;
    assert_kept(plane, &ring, &script).await;
    lock::each_replica_leads_its_own(plane, &ring).await;
    assert_filtered(&ring).await;
    script
}

/// The judge has nothing to say, what was created is what was asked for, and no controller ran into the gate.
async fn assert_kept(plane: &ControlPlane, ring: &Ring, script: &Script) {
    assert_clean(&evidence::snapshot(&plane.audit_log()).unwrap(), script);
    for shard in &ring.shards {
        let refused = shard.proxy.metrics().await.unwrap().sum("shoal_refused_writes_total", &[]);
        assert!(
            refused == 0.0,
            "{} refused {refused} writes: its controller saw too much",
            shard.proxy.shard()
        );
    }
}

fn assert_clean(log: &[u8], script: &Script) {
    let creates = Creates::read(log).unwrap();
    let pods = differences(&script.pods, &creates.pods());
    assert!(pods.is_empty(), "Pods that were not created exactly once:\n{}", pods.join("\n"));
    let sets = differences(&script.replica_sets, &creates.replica_sets());
    assert!(sets.is_empty(), "ReplicaSets that are not one for each template:\n{}", sets.join("\n"));
    let report = evidence::judge(log, &ring::example(), &script.deletions).unwrap();
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.shards.len(), SHARDS, "each shard wrote: {report}");
}

/// Each shard created Pods in every namespace that it owns, and in no other.
fn assert_each_shard_did_its_own(plane: &ControlPlane, load: &Load) {
    let slots: BTreeSet<u8> = load.namespaces.iter().map(|namespace| slot_of(HUB, namespace)).collect();
    assert!(
        EDGES.iter().all(|edge| slots.contains(edge)),
        "a namespace on each side of every edge: {slots:?}"
    );
    let created = Creates::read(&*evidence::snapshot(&plane.audit_log()).unwrap()).unwrap();
    assert_eq!(created.namespaces_of_pods(), owned(load));
}

/// The load's namespaces by owner, as the judge reads the map.
fn owned(load: &Load) -> BTreeMap<String, BTreeSet<String>> {
    let owners = evidence::owners(&ring::example()).unwrap();
    let of = |shard: &str| load.namespaces.iter().filter(|it| owns(&owners, shard, it)).cloned().collect();
    (0..SHARDS).map(|index| format!("kcm-{index}")).map(|shard| (shard.clone(), of(&shard))).collect()
}

fn owns(owners: &Owners, shard: &str, namespace: &str) -> bool {
    owners.standing(shard, slot_of(HUB, namespace), 1) == Standing::Owner
}

/// Each proxy hid something and showed something, and broke nothing off.
async fn assert_filtered(ring: &Ring) {
    for shard in &ring.shards {
        let metrics = shard.proxy.metrics().await.unwrap();
        let sum = |name: &str| metrics.sum(name, &[]);
        let (hidden, shown) = (sum("shoal_hidden_objects_total"), sum("shoal_shown_objects_total"));
        assert!(hidden > 0.0 && shown > 0.0, "{}: hidden {hidden}, shown {shown}", shard.proxy.shard());
        assert!(sum("shoal_broken_streams_total") == 0.0, "{} broke a stream off", shard.proxy.shard());
    }
}
