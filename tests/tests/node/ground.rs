//! The cluster that all tests share, and the two ways to it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use shoal_tests::node::NodeCluster;
use shoal_tests::programs::Programs;
use shoal_tests::{ControlPlane, Proxy, RunDir, Shards, User};
use tokio::process::Command;
use tokio::sync::OnceCell;
use tokio::time::timeout;

/// For one line of shell; ends a test that hangs.
const HANGS: Duration = Duration::from_mins(5);

/// Waits until its namespace has an account for Pods, then makes the Pods and waits for them.
const MAKE_PODS: &str = r#"
    kubectl create namespace $NS
    until kubectl get serviceaccount default; do sleep 0.2; done
    kubectl create -f "$PODS"
    kubectl wait --for=condition=Ready --timeout=180s --all pods
"#;

static GROUND: OnceCell<Ground> = OnceCell::const_new();

/// A node, the proxy of one shard, and the same Pods in a namespace of that shard and in one of another.
#[derive(Debug)]
pub(crate) struct Ground {
    shards: Shards,
    cluster: NodeCluster,
    dir: RunDir,
    own: String,
    foreign: String,
}

/// How a client reaches the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Direct,
    Proxied,
}

/// What some lines of shell came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

// === impl Way ===

impl Way {
    pub(crate) const ALL: [Self; 2] = [Self::Direct, Self::Proxied];
}

// === impl Ground ===

impl Ground {
    /// Starts it for the first test that asks. It lasts until the box ends; its logs stay.
    pub(crate) async fn get() -> &'static Self {
        GROUND.get_or_init(Self::start).await
    }

    async fn start() -> Self {
        let dir = RunDir::kept("test-logs/node").unwrap();
        let cluster = NodeCluster::start(dir.path()).await.unwrap();
        let upstream = cluster.control_plane.kubeconfig(&User::ADMIN).unwrap();
        let shards = Shards::start(&cluster.control_plane, &[upstream]).await.unwrap();
        let named = |owned: bool| {
            let mut names = (0..).map(|number| format!("shop-{number}"));
            names.find(|name| (shards.owner(name) == "kcm-0") == owned).unwrap()
        };
        let (own, foreign) = (named(true), named(false));
        let ground = Self { shards, cluster, dir, own, foreign };
        for namespace in [&ground.own, &ground.foreign] {
            let made = outcome(ground.bash_in(namespace, Way::Direct, MAKE_PODS)).await;
            assert_eq!(made.code, Some(0), "{made:?}");
        }
        ground
    }

    pub(crate) fn plane(&self) -> &ControlPlane {
        &self.cluster.control_plane
    }

    /// Where logs and files go.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn proxy(&self) -> &Proxy {
        &self.shards.proxies[0]
    }

    /// Another shard's namespace.
    pub(crate) fn foreign(&self) -> &str {
        &self.foreign
    }

    /// Runs lines of bash in which `kubectl` goes one way, to the shard's own namespace.
    pub(crate) async fn shell(&self, way: Way, lines: &str) -> Outcome {
        outcome(self.bash(way, lines)).await
    }

    /// The same through the proxy, to the namespace of another shard.
    pub(crate) async fn trespass(&self, lines: &str) -> Outcome {
        outcome(self.bash_in(&self.foreign, Way::Proxied, lines)).await
    }

    /// Runs it both ways; both must come to the same.
    pub(crate) async fn same(&self, lines: &str) -> Outcome {
        let direct = self.shell(Way::Direct, lines).await;
        let proxied = self.shell(Way::Proxied, lines).await;
        assert_eq!(proxied, direct, "{lines}");
        proxied
    }

    /// How many bytes a source has, and their digest, in `podtools`' form.
    pub(crate) async fn digest(&self, bytes: u64, seed: u64) -> String {
        let lines = format!("podtools source {bytes} {seed} | podtools digest");
        self.shell(Way::Direct, &lines).await.stdout.trim().to_owned()
    }

    /// Bash that goes one way, to the shard's own namespace.
    pub(crate) fn bash(&self, way: Way, lines: &str) -> Command {
        self.bash_in(&self.own, way, lines)
    }

    fn bash_in(&self, namespace: &str, way: Way, lines: &str) -> Command {
        self.bash_at(&self.kubeconfig(way), namespace, way, lines)
    }

    /// Bash with `kubectl` and `podtools`, and the names of the namespace and of a file of Pods.
    pub(crate) fn bash_at(&self, kubeconfig: &Path, namespace: &str, way: Way, lines: &str) -> Command {
        let home = self.dir.path().join(format!("home-{way:?}"));
        fs::create_dir_all(&home).unwrap();
        let mut command = Command::new("bash");
        command.args(["-ec", &format!("kubectl() {{ command kubectl --namespace=$NS \"$@\"; }}\n{lines}")]);
        command.env("PATH", search_path()).env("HOME", home).env("KUBECONFIG", kubeconfig);
        command.env("NS", namespace).env("PODS", file("pods.yaml"));
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    fn kubeconfig(&self, way: Way) -> PathBuf {
        match way {
            Way::Direct => self.plane().kubeconfig(&User::ADMIN),
            Way::Proxied => self.proxy().kubeconfig(self.plane(), &User::ADMIN),
        }
        .unwrap()
    }
}

/// Runs it to its end.
pub(crate) async fn outcome(mut command: Command) -> Outcome {
    let output = timeout(HANGS, command.output()).await;
    let output = output.unwrap_or_else(|_| panic!("it hangs: {command:?}")).unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Outcome { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

/// A file beside this one.
pub(crate) fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/node").join(name)
}

/// Our own kubectl before the machine's.
fn search_path() -> String {
    let programs = [Programs::find(), Programs::of_a_node()].map(Result::unwrap);
    let [kubectl, podtools] = [programs[0].path("kubectl"), programs[1].path("podtools")].map(Result::unwrap);
    let dirs = [kubectl, podtools].map(|path| path.parent().unwrap().display().to_string());
    format!("{}:{}", dirs.join(":"), env::var("PATH").unwrap())
}
