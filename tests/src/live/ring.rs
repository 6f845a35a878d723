//! A whole live ring on a control plane.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use shoal_api::{ShardMap, ShardedController, SlotState};
use shoal_sharding::kube::lease::{self, RingLeases};

use super::{Command, Container, Pod, Work};
use crate::ports::Port;
use crate::{ControlPlane, HarnessError, User, programs, wait_for};

/// Where the rings of the harness are.
pub const NAMESPACE: &str = "kube-system";

/// A ring with its coordinator and its Pods. Dropping it kills them.
pub struct LiveRing {
    /// The Pods, oldest first.
    pub pods: Vec<Pod>,
    /// The coordinator.
    pub coordinator: Container,
    /// An administrator's, straight at the API server.
    pub client: kube::Client,
    name: String,
    work: Work,
    /// How many Pods there were so far.
    made: usize,
    _port: Port,
}

/// What the hub says of a ring at one moment.
#[derive(Debug, Clone)]
pub struct State {
    /// The map, if there is one.
    pub map: Option<ShardMap>,
    /// The holders.
    pub leases: RingLeases,
}

// === impl LiveRing ===

impl LiveRing {
    /// Makes the API server know the kinds of a ring, creates `ring`, and starts a coordinator and as many Pods as the
    /// ring has shards. Returns when every slot is owned and open.
    pub async fn start(
        plane: &ControlPlane,
        ring: &ShardedController,
        work: Work,
        deadline: Duration,
    ) -> Result<Self, HarnessError> {
        let client = plane.client(&User::ADMIN).await?;
        install(plane).await?;
        let api: Api<ShardedController> = Api::namespaced(client.clone(), NAMESPACE);
        api.create(&PostParams::default(), ring).await?;
        let port = Port::reserve()?;
        let coordinator = Container::start(coordinator(plane, "coordinator", true, port.number())?)?;
        let name = ring.metadata.name.clone().unwrap_or_default();
        let mut this = Self { pods: Vec::new(), coordinator, client, name, work, made: 0, _port: port };
        for _ in 0..ring.spec.shards {
            this.add_pod(plane).await?;
        }
        this.wait_settled(ring.spec.shards, deadline).await?;
        Ok(this)
    }

    /// The ring's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Starts one more Pod.
    pub async fn add_pod(&mut self, plane: &ControlPlane) -> Result<&Pod, HarnessError> {
        let name = format!("{}-pod{}", self.name, self.made);
        self.made += 1;
        let pod = Pod::start(plane, &format!("{NAMESPACE}/{}", self.name), &name, &self.work).await?;
        self.pods.push(pod);
        self.pods.last().ok_or_else(|| HarnessError::Answer { url: name, reason: "no Pod".to_owned() })
    }

    /// Takes a Pod out, running as it is.
    pub fn take(&mut self, index: usize) -> Option<Pod> {
        (index < self.pods.len()).then(|| self.pods.remove(index))
    }

    /// Changes how many shards the ring is to have; Pods are the caller's part.
    pub async fn set_shards(&self, shards: u16) -> Result<(), HarnessError> {
        self.patch(&json!({"spec": {"shards": shards}})).await
    }

    /// Changes the ring.
    pub async fn patch(&self, change: &Value) -> Result<(), HarnessError> {
        let api: Api<ShardedController> = Api::namespaced(self.client.clone(), NAMESPACE);
        api.patch(&self.name, &PatchParams::default(), &Patch::Merge(change)).await?;
        Ok(())
    }

    /// The identity Leases and whatever else of that kind there is beside them.
    pub fn leases(&self) -> Api<Lease> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// What the hub says now.
    pub async fn state(&self) -> Result<State, HarnessError> {
        let maps: Api<ShardMap> = Api::namespaced(self.client.clone(), NAMESPACE);
        let map = maps.get_opt(&self.name).await?;
        let leases = lease::read_all(&self.leases(), &self.name).await;
        let leases = leases.map_err(|error| HarnessError::Answer {
            url: "the ring's Leases".to_owned(),
            reason: error.to_string(),
        })?;
        Ok(State { map, leases })
    }

    /// Waits until the ring is at rest: `shards` shards own every slot between them, each is held, and each has opened
    /// what it owns.
    pub async fn wait_settled(&self, shards: u16, deadline: Duration) -> Result<State, HarnessError> {
        wait_for("the ring to settle", deadline, || async {
            let state = self.state().await.map_err(|error| error.to_string())?;
            state.check_settled(&self.name, shards).map(|()| state)
        })
        .await
    }

    /// The Pod that holds a shard's identity, by what the proxies say.
    pub async fn pod_of(&self, shard: &str) -> Option<usize> {
        for (index, pod) in self.pods.iter().enumerate() {
            if pod.seat().await.is_ok_and(|seat| seat.role == "holder" && seat.shard == shard) {
                return Some(index);
            }
        }
        None
    }
}

// === impl State ===

impl State {
    /// How many slots each shard owns.
    pub fn owners(&self) -> BTreeMap<&str, usize> {
        let mut owners = BTreeMap::new();
        for range in self.map.iter().flat_map(|map| &map.spec.slots) {
            if let (Some(owner), SlotState::Owned) = (&range.owner, range.state) {
                *owners.entry(owner.as_str()).or_default() += usize::from(range.last - range.first) + 1;
            }
        }
        owners
    }

    /// Says what is not at rest.
    pub fn check_settled(&self, ring: &str, shards: u16) -> Result<(), String> {
        let map = self.map.as_ref().ok_or("there is no map")?;
        let moving = |range: &&shoal_api::SlotRange| range.state != SlotState::Owned || range.to.is_some();
        if let Some(range) = map.spec.slots.iter().find(moving) {
            return Err(format!(
                "slots {}-{} are {:?} to {:?}",
                range.first, range.last, range.state, range.to
            ));
        }
        let owners = self.owners();
        let wanted: Vec<String> = (0..shards).map(|number| shoal_api::names::shard(ring, number)).collect();
        if !wanted.iter().map(String::as_str).eq(owners.keys().copied()) {
            return Err(format!("the owners are {owners:?}"));
        }
        for shard in &wanted {
            let lease = self.leases.identities.iter().find(|lease| &lease.shard == shard);
            let lease = lease.ok_or_else(|| format!("{shard} has no Lease"))?;
            if lease.holder.is_none() || lease.acks.map < map.spec.version {
                return Err(format!(
                    "{shard} is held by {:?}, who has opened map {} of {}",
                    lease.holder, lease.acks.map, map.spec.version
                ));
            }
        }
        Ok(())
    }
}

/// The command of a coordinator; one that does not elect works beside the one that leads.
pub fn coordinator(
    plane: &ControlPlane,
    name: &str,
    elects: bool,
    metrics: u16,
) -> Result<Command, HarnessError> {
    let args = vec![
        "mesh".to_owned(),
        format!("--kubeconfig={}", plane.kubeconfig(&User::COORDINATOR)?.display()),
        format!("--namespace={NAMESPACE}"),
        format!("--leader-elect={elects}"),
        format!("--metrics=127.0.0.1:{metrics}"),
    ];
    let program = programs::own("shoal-controller")?;
    let (name, log_dir) = (name.to_owned(), plane.dir().to_owned());
    Ok(Command { name, program, args, env: Vec::new(), log_dir })
}

/// The kinds, and what proxies need beside the rights of their controllers.
async fn install(plane: &ControlPlane) -> Result<(), HarnessError> {
    let rights = plane.dir().join("ring-rights.json");
    fs::write(&rights, ring_rights().to_string()).map_err(HarnessError::io("write", &rights))?;
    for file in [repository("charts/shoal/crds"), rights] {
        let file = file.display().to_string();
        let output = plane.kubectl(&["apply", "--server-side", "-f", &file]).await?;
        if !output.status.success() {
            let reason = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(HarnessError::Answer { url: format!("kubectl apply -f {file}"), reason });
        }
    }
    let client = plane.client(&User::ADMIN).await?;
    let rings: Api<ShardedController> = Api::namespaced(client, NAMESPACE);
    wait_for("the API server to serve rings", Duration::from_mins(2), || async {
        rings.list(&kube::api::ListParams::default()).await.map(drop)
    })
    .await
}

/// Rights of the user that kube-controller-managers and their proxies share.
fn ring_rights() -> Value {
    let rule = |groups: &str, resources: &[&str]| json!({"apiGroups": [groups], "resources": resources, "verbs": ["*"]});
    let rules = json!([
        rule("mesh.shoal.dev", &["shardedcontrollers", "shardmaps"]),
        rule("coordination.k8s.io", &["leases"]),
        rule("", &["secrets", "serviceaccounts/token"]),
    ]);
    let meta = json!({"name": "shoal-proxies", "namespace": NAMESPACE});
    let group = "rbac.authorization.k8s.io";
    json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": format!("{group}/v1"), "kind": "Role", "metadata": meta, "rules": rules},
        {"apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": meta,
         "roleRef": {"apiGroup": group, "kind": "Role", "name": "shoal-proxies"},
         "subjects": [{"apiGroup": group, "kind": "User", "name": User::CONTROLLER_MANAGER.name}]},
    ]})
}

/// A path of this repository.
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}
