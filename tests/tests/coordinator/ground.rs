//! An API server that knows rings, and control planes beside it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use shoal_api::{ShardMap, ShardedController, SlotState};
use shoal_sharding::SlotMap;
use shoal_tests::ports::Port;
use shoal_tests::{ControlPlane, Options, Process, RunDir, User, programs, wait_for};

use crate::history::History;
use crate::holder::Holder;

/// Where the ring is.
pub(crate) const NAMESPACE: &str = "kube-system";
/// The ring.
pub(crate) const RING: &str = "kcm";
/// The lock of its controller.
pub(crate) const LOCK: &str = "kube-controller-manager";
/// For a step of the ring, on a machine that does other things too.
pub(crate) const DEADLINE: Duration = Duration::from_mins(2);

const COORDINATOR: User = User::plain("coordinator");
const PROXY: User = User::plain("proxy");

/// One API server.
pub(crate) struct Ground {
    /// A client that may do everything.
    pub(crate) admin: Client,
    pub(crate) plane: ControlPlane,
    proxy: Client,
    // Dropped last.
    _dir: RunDir,
}

/// A control plane that runs.
pub(crate) struct Coordinator {
    pub(crate) process: Process,
    metrics: Port,
}

// === impl Ground ===

impl Ground {
    /// Starts an API server with the kinds and rights of the repository.
    pub(crate) async fn start(test: &str) -> Self {
        let dir = RunDir::for_test(test).unwrap();
        let options = Options { users: vec![COORDINATOR, PROXY], ..Options::default() };
        let plane = ControlPlane::start(dir.path(), options).await.unwrap();
        let admin = plane.client(&User::ADMIN).await.unwrap();
        for path in ["charts/shoal/crds", "examples/mesh/rbac.yaml"] {
            let path = repository(path).display().to_string();
            kubectl(&plane, &["apply", "--server-side", "-f", &path]).await;
        }
        bind(&plane).await;
        let ground = Self { proxy: plane.client(&PROXY).await.unwrap(), admin, plane, _dir: dir };
        let rings = || async { ground.rings().list(&ListParams::default()).await.map(drop) };
        wait_for("the API server to serve rings", DEADLINE, rings).await.unwrap();
        let maps = || async { ground.maps().list(&ListParams::default()).await.map(drop) };
        wait_for("the API server to serve maps", DEADLINE, maps).await.unwrap();
        ground
    }

    /// Starts a control plane with the rights in `examples/`.
    pub(crate) fn coordinator(&self, name: &str, flags: &[&str]) -> Coordinator {
        let metrics = Port::reserve().unwrap();
        let kubeconfig = self.plane.kubeconfig(&COORDINATOR).unwrap();
        let mut args = vec![
            "mesh".to_owned(),
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--namespace={NAMESPACE}"),
            format!("--metrics=127.0.0.1:{}", metrics.number()),
            "--leader-elect=false".to_owned(),
            "--log=info,shoal_controller=debug".to_owned(),
        ];
        args.extend(flags.iter().map(|&flag| flag.to_owned()));
        let program = programs::own("shoal-controller").unwrap();
        let process = Process::spawn(name, &program, &args, &[], self.plane.dir()).unwrap();
        Coordinator { process, metrics }
    }

    /// Creates the ring with so many shards; `spec` is laid over its spec.
    pub(crate) async fn create_ring(&self, shards: u16, spec: Value) {
        let mut ring = json!({
            "apiVersion": "mesh.shoal.dev/v1alpha1", "kind": "ShardedController",
            "metadata": {"name": RING, "namespace": NAMESPACE},
            "spec": {
                "shards": shards,
                "resources": [{"groups": ["*"], "resources": ["*"], "scope": "Namespaced", "mode": "Sharded"}],
                "leaderElection": {"locks": [{"resource": "leases", "namespace": NAMESPACE, "name": LOCK}]},
            },
        });
        for (field, value) in spec.as_object().unwrap() {
            ring["spec"][field] = value.clone();
        }
        let ring: ShardedController = serde_json::from_value(ring).unwrap();
        self.rings().create(&PostParams::default(), &ring).await.unwrap();
    }

    pub(crate) async fn patch_ring(&self, change: Value) {
        let params = PatchParams::default();
        self.rings().patch(RING, &params, &Patch::Merge(&change)).await.unwrap();
    }

    /// A shard's holder, played.
    pub(crate) async fn holder(&self, shard: u16, pod: &str) -> Holder {
        Holder::start(self.proxy.clone(), &format!("{RING}-{shard}"), pod).await
    }

    /// The holders of the first so many shards.
    pub(crate) async fn holders(&self, shards: u16) -> Vec<Holder> {
        let mut holders = Vec::new();
        for shard in 0..shards {
            holders.push(self.holder(shard, &format!("pod-{shard}")).await);
        }
        holders
    }

    /// Follows all versions of the map from now on.
    pub(crate) async fn history(&self) -> History {
        History::start(self.maps()).await
    }

    pub(crate) fn rings(&self) -> Api<ShardedController> {
        Api::namespaced(self.admin.clone(), NAMESPACE)
    }

    pub(crate) fn maps(&self) -> Api<ShardMap> {
        Api::namespaced(self.admin.clone(), NAMESPACE)
    }

    pub(crate) fn leases(&self) -> Api<Lease> {
        Api::namespaced(self.admin.clone(), NAMESPACE)
    }

    pub(crate) async fn map(&self) -> SlotMap {
        SlotMap::try_from(&self.maps().get(RING).await.unwrap().spec).unwrap()
    }

    /// Waits until that is true of the map.
    pub(crate) async fn wait_map(&self, what: &str, is_so: impl Fn(&SlotMap) -> bool) -> SlotMap {
        let look = || async {
            let map = self.maps().get(RING).await.map_err(|error| error.to_string())?;
            let sound = SlotMap::try_from(&map.spec).map_err(|error| error.to_string())?;
            if is_so(&sound) { Ok(sound) } else { Err(format!("{:?}", map.spec)) }
        };
        wait_for(what, DEADLINE, look).await.unwrap()
    }

    /// Waits until these shards own everything, in equal parts, and nothing moves.
    pub(crate) async fn wait_balanced(&self, shards: u16) -> SlotMap {
        let fair = 256 / usize::from(shards);
        self.wait_map(&format!("{shards} shards in balance"), |map| {
            let owners = map.owners();
            owners.len() == usize::from(shards)
                && owners.values().all(|slots| (fair..=fair + 1).contains(slots))
                && is_settled(map)
        })
        .await
    }

    /// Waits until a condition of the ring has that status, and returns its reason.
    pub(crate) async fn wait_condition(&self, type_: &str, status: &str) -> String {
        let look = || async {
            let ring = self.rings().get(RING).await.map_err(|error| error.to_string())?;
            let conditions = ring.status.unwrap_or_default().conditions;
            let found =
                conditions.iter().find(|condition| condition.type_ == type_ && condition.status == status);
            found.map(|condition| condition.reason.clone()).ok_or_else(|| format!("{conditions:?}"))
        };
        wait_for(&format!("{type_}={status}"), DEADLINE, look).await.unwrap()
    }

    /// Who holds the original lock.
    pub(crate) async fn lock_holder(&self) -> String {
        let lock = self.leases().get_opt(LOCK).await.unwrap();
        lock.and_then(|lock| lock.spec).and_then(|spec| spec.holder_identity).unwrap_or_default()
    }
}

// === impl Coordinator ===

impl Coordinator {
    /// Waits until its metrics have a line that begins so.
    pub(crate) async fn wait_metric(&self, line: &str) {
        let url = format!("http://127.0.0.1:{}", self.metrics.number());
        let look = || async {
            let text = page(&url, "/metrics").await?;
            if text.lines().any(|found| found.starts_with(line)) { Ok(()) } else { Err(text) }
        };
        wait_for(line, DEADLINE, look).await.unwrap();
    }
}

/// Whether every slot is owned, and none is on its way.
pub(crate) fn is_settled(map: &SlotMap) -> bool {
    (0..=255).all(|slot| {
        let entry = map.entry(shoal_sharding::Slot(slot));
        entry.state == SlotState::Owned && entry.to.is_none()
    })
}

/// How many slots have another owner.
pub(crate) fn moved(before: &SlotMap, after: &SlotMap) -> usize {
    let slots = (0..=255).map(shoal_sharding::Slot);
    slots.filter(|slot| before.entry(*slot).owner != after.entry(*slot).owner).count()
}

pub(crate) async fn kubectl(plane: &ControlPlane, args: &[&str]) -> String {
    let output = plane.kubectl(args).await.unwrap();
    assert!(output.status.success(), "kubectl {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Gives the rights in `examples/` to the users of the test.
async fn bind(plane: &ControlPlane) {
    let namespace = format!("--namespace={NAMESPACE}");
    let user = |user: User| format!("--user={}", user.name);
    let (coordinator, proxy) = (user(COORDINATOR), user(PROXY));
    for args in [
        ["clusterrolebinding", "c", "--clusterrole=shoal-controller", &coordinator, "--output=name"],
        ["rolebinding", "c", "--role=shoal-controller", &coordinator, &namespace],
        ["rolebinding", "p", "--role=shoal-proxy-kcm", &proxy, &namespace],
    ] {
        kubectl(plane, &[&["create"], args.as_slice()].concat()).await;
    }
}

async fn page(base: &str, path: &str) -> Result<String, String> {
    let config = kube::Config::new(base.parse().map_err(|_| "no URL")?);
    let client = Client::try_from(config).map_err(|error| error.to_string())?;
    let request = http::Request::get(path).body(Vec::new()).map_err(|error| error.to_string())?;
    client.request_text(request).await.map_err(|error| error.to_string())
}

/// A path of this repository.
fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}
