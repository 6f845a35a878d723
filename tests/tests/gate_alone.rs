//! The gate alone keeps two owners from writing: every shard is shown everything, and tries.
#![allow(clippy::unwrap_used, reason = "test code, helpers included")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, Client};
use shoal_tests::{Cluster, Load, Options, Ring, RunDir, User, evidence, ring};

/// Each object is tried by three replicas, of which two come back to it ever later.
const DEADLINE: Duration = Duration::from_mins(8);

/// Nothing is hidden, so nothing but the gate stands between a replica and the objects of its sisters.
const FILTER_OFF: &str = "
apiVersion: mesh.shoal.dev/v1alpha1
kind: ShardedController
metadata: {name: kcm, namespace: kube-system}
spec:
  shards: 3
  resources:
  - {groups: [coordination.k8s.io], resources: [leases], namespaces: [kube-node-lease], scope: Namespaced, mode: Unsharded}
  - {groups: ['*'], resources: ['*'], scope: '*', mode: SharedRead}
  leaderElection:
    locks:
    - {resource: leases, namespace: kube-system, name: kube-controller-manager}
";

#[tokio::test]
async fn with_the_filter_off_the_gate_refuses_and_nothing_foreign_is_written() {
    let dir = RunDir::for_test("gate_alone").unwrap();
    let cluster = Cluster::start(dir.path(), Options::default(), 3, &[]).await.unwrap();
    let plane = &cluster.control_plane;
    let config = config(dir.path());
    let ring = Ring::start(plane, &config, 3).await.unwrap();
    let client = plane.client(&User::ADMIN).await.unwrap();

    // One namespace on each side of every edge: two for each shard.
    let load = Load::new(6);
    load.create(&client).await.unwrap();
    load.wait_settled(&client, DEADLINE, |_| {}).await.unwrap();

    for shard in &ring.shards {
        let (name, metrics) = (shard.proxy.shard(), shard.proxy.metrics().await.unwrap());
        let refused = metrics.sum("shoal_refused_writes_total", &["reason=\"ForeignSlot\""]);
        assert!(refused > 0.0, "{name} was refused nothing: it was not shown what is foreign");
        let shown = pods(&shard.proxy.client(plane, &User::ADMIN).await.unwrap()).await;
        assert_eq!(shown, pods(&client).await, "{name} hides Pods");
    }
    // Nothing was asked to be deleted.
    let log = evidence::snapshot(&plane.audit_log()).unwrap();
    let report = evidence::judge(&log, &config, "").unwrap();
    assert!(report.is_clean(), "{report}");
    for shard in ["kcm-0", "kcm-1", "kcm-2"] {
        let pods = report.shards.get(shard).and_then(|writes| writes.resources.get("pods"));
        assert!(pods.is_some_and(|pods| *pods > 0), "{shard} wrote no Pod: {report}");
    }
}

async fn pods(client: &Client) -> BTreeSet<String> {
    let pods = Api::<Pod>::all(client.clone()).list(&ListParams::default()).await.unwrap();
    pods.items.into_iter().map(|pod| pod.metadata.uid.unwrap()).collect()
}

/// The ring above with the map of the example.
fn config(dir: &Path) -> PathBuf {
    let config = dir.join("filter-off");
    fs::create_dir(&config).unwrap();
    fs::write(config.join("ring.yaml"), FILTER_OFF).unwrap();
    fs::copy(ring::example().join("shardmap.yaml"), config.join("shardmap.yaml")).unwrap();
    config
}
