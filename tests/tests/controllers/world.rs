//! A control plane with both controllers: alone, or three of each as the shards of a ring.

use std::path::Path;
use std::time::Duration;

use futures_util::future::join_all;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use shoal_tests::controllers::{Controller, ControllerManager};
use shoal_tests::programs::Programs;
use shoal_tests::ring::HUB;
use shoal_tests::{ControlPlane, Options, Process, Proxy, ProxyArgs, User, wait_for};

use crate::changes::{self, Change, What};
use crate::gadgets::{self, GO, GROUPS, State};
use crate::kube_rs::{KubeRs, ignore_not_found};

/// Whom the controllers log in as.
const CONTROLLERS: User = User { name: "gadgets", groups: &["system:masters"] };
const SHARDS: usize = 3;
/// How many times as fast the clocks of controller-runtime's informers run.
const SPEED: u32 = 60;
const DEADLINE: Duration = Duration::from_mins(4);

/// One control plane and the controllers at work on it.
pub(crate) struct World {
    // Dropped in this order: controllers can still release their locks.
    _controllers: Vec<(Process, KubeRs)>,
    proxies: Vec<Proxy>,
    _collector: Controller,
    admin: Client,
    plane: ControlPlane,
}

// === impl World ===

impl World {
    /// One of each controller, straight at the API server.
    pub(crate) async fn direct(dir: &Path) -> Self {
        let (plane, admin, collector) = start(dir, "direct").await;
        let controllers = vec![controllers(&plane, "direct", &plane.kubeconfig(&CONTROLLERS).unwrap()).await];
        Self { _controllers: controllers, proxies: Vec::new(), _collector: collector, admin, plane }
    }

    /// Three of each, behind a proxy a pair.
    pub(crate) async fn ring(dir: &Path) -> Self {
        let (plane, admin, collector) = start(dir, "ring").await;
        let config = dir.join("ring.yaml");
        std::fs::write(&config, RING).unwrap();
        let upstreams = [(HUB, plane.kubeconfig(&CONTROLLERS).unwrap())];
        let (mut proxies, mut all) = (Vec::new(), Vec::new());
        for index in 0..SHARDS {
            let shard = format!("gadgets-{index}");
            let args = ProxyArgs { shard: &shard, config: &config, upstreams: &upstreams, dir: plane.dir() };
            let proxy = Proxy::start(args).await.unwrap();
            let kubeconfig = proxy.kubeconfig(&plane, &CONTROLLERS).unwrap();
            all.push(controllers(&plane, &shard, &kubeconfig).await);
            proxies.push(proxy);
        }
        Self { _controllers: all, proxies, _collector: collector, admin, plane }
    }

    pub(crate) async fn make_namespaces(&self) {
        let api: Api<Namespace> = Api::all(self.admin.clone());
        for name in changes::namespaces() {
            let namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
            api.create(&PostParams::default(), &namespace).await.unwrap();
        }
    }

    /// Makes the changes, those of each namespace in their order.
    pub(crate) async fn apply(&self, changes: &[Change]) {
        let namespaces = changes::namespaces();
        join_all(namespaces.map(|namespace| async move {
            for change in changes.iter().filter(|change| change.namespace == namespace) {
                self.make(change).await.unwrap_or_else(|error| panic!("{change:?}: {error}"));
            }
        }))
        .await;
    }

    async fn make(&self, change: &Change) -> Result<(), kube::Error> {
        let Change { group, namespace, gadget, what } = change;
        let gadgets: Api<DynamicObject> =
            Api::namespaced_with(self.admin.clone(), namespace, &gadgets::resource(group));
        let parts: Api<ConfigMap> = Api::namespaced(self.admin.clone(), namespace);
        let patched = async |patch: Value| {
            gadgets.patch(gadget, &PatchParams::default(), &Patch::Merge(patch)).await.map(drop)
        };
        match what {
            What::Create(spec) => {
                let spec = json!({"size": spec.size, "color": spec.color});
                let new = DynamicObject::new(gadget, &gadgets::resource(group)).data(json!({"spec": spec}));
                gadgets.create(&PostParams::default(), &new).await.map(drop)
            }
            What::Want(spec) => patched(json!({"spec": {"size": spec.size, "color": spec.color}})).await,
            What::Label(value) => patched(json!({"metadata": {"labels": {"n": value.to_string()}}})).await,
            What::Delete => gadgets.delete(gadget, &DeleteParams::default()).await.map(drop),
            What::Paint(index, color) => {
                let patch = Patch::Merge(json!({"data": {"color": color}}));
                let part = format!("{gadget}-{index}");
                ignore_not_found(parts.patch(&part, &PatchParams::default(), &patch).await.map(drop))
            }
            What::Take(index) => {
                let part = format!("{gadget}-{index}");
                ignore_not_found(parts.delete(&part, &DeleteParams::default()).await.map(drop))
            }
        }
    }

    /// The controllers get to the end that is wanted.
    pub(crate) async fn settles(&self, wanted: &[State; 2]) {
        for (group, wanted) in GROUPS.iter().zip(wanted) {
            let what = format!("{group} to settle in {}", self.plane.dir().display());
            wait_for(&what, DEADLINE, || async {
                let state = gadgets::state(&self.admin, group).await;
                if state == *wanted { Ok(()) } else { Err(difference(wanted, &state)) }
            })
            .await
            .unwrap();
        }
    }

    /// Shows how much work it was.
    pub(crate) fn tell(&self) {
        let log = std::fs::read_to_string(self.plane.audit_log()).unwrap();
        let events = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let own = events.filter(|event| event["user"]["username"] == CONTROLLERS.name);
        let (watches, rest): (Vec<_>, Vec<_>) = own
            .filter(|event| event["stage"] == "ResponseComplete")
            .partition(|event| event["verb"] == "watch");
        println!("{}: {} requests, {} watches ended", self.plane.dir().display(), rest.len(), watches.len());
        assert!(watches.len() > 10, "the clocks did not run fast");
    }

    /// A shard that sees only its own writes only its own.
    pub(crate) async fn refused_nothing(&self) {
        for proxy in &self.proxies {
            let refused = proxy.metrics().await.unwrap().sum("shoal_refused_writes_total", &[]);
            assert!(refused < 1.0, "{} refused {refused}", proxy.shard());
        }
    }
}

async fn start(dir: &Path, name: &str) -> (ControlPlane, Client, Controller) {
    let options = Options { name: name.to_owned(), users: vec![CONTROLLERS], ..Options::default() };
    let plane = ControlPlane::start(dir, options).await.unwrap();
    let admin = plane.client(&User::ADMIN).await.unwrap();
    gadgets::install(&admin).await;
    // A controller whose cache is behind makes a part for a Gadget that has just gone: it counts on the collector.
    let collector = ControllerManager {
        name: "garbage-collector",
        controllers: &["garbage-collector-controller"],
        kubeconfig: &plane.kubeconfig(&User::SINGLETONS).unwrap(),
        election: None,
        flags: &[],
    };
    let collector = collector.start(&plane).await.unwrap();
    (plane, admin, collector)
}

async fn controllers(plane: &ControlPlane, name: &str, kubeconfig: &Path) -> (Process, KubeRs) {
    let flags = [
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--group={GO}"),
        format!("--speed={SPEED}"),
    ];
    let program = Programs::find().unwrap().path("manager").unwrap();
    let manager = Process::spawn(&format!("manager-{name}"), &program, &flags, &[], plane.dir()).unwrap();
    (manager, KubeRs::start(shoal_tests::kubeconfig::client(kubeconfig).await.unwrap()))
}

fn difference(wanted: &State, state: &State) -> String {
    let missing = wanted.iter().find(|(key, line)| state.get(*key) != Some(line));
    let extra = state.iter().find(|(key, _)| !wanted.contains_key(*key));
    let seen = missing.map(|(key, _)| state.get(key));
    format!(
        "{} of {} lines; wanted {missing:?}, seen {seen:?}; not wanted {extra:?}",
        state.len(),
        wanted.len()
    )
}

const RING: &str = r#"
apiVersion: mesh.shoal.dev/v1alpha1
kind: ShardedController
metadata: {name: gadgets, namespace: kube-system}
spec:
  shards: 3
  resources:
  - {groups: ["*"], resources: ["*"], scope: Namespaced, mode: Sharded}
  leaderElection:
    locks: [{resource: leases, namespace: kube-system, name: gadgets.go.test.shoal.dev}]
---
apiVersion: mesh.shoal.dev/v1alpha1
kind: ShardMap
metadata: {name: gadgets, namespace: kube-system}
spec:
  version: 1
  keying: {algorithm: XXH3-64, slots: 256}
  slots:
  - {first: 0, last: 84, owner: gadgets-0, epoch: 1, state: Owned}
  - {first: 85, last: 169, owner: gadgets-1, epoch: 1, state: Owned}
  - {first: 170, last: 255, owner: gadgets-2, epoch: 1, state: Owned}
"#;
