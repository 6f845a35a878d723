//! A real node: containerd and kubelet, for what kwok can't play (exec, attach, port-forward, logs, `kubectl cp`).
//!
//! It runs in the box that `tests/node.sh run` makes, together with the control plane, the proxies and the test itself:
//! to all of them the box is a machine. `make test-node` says what that needs.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node as NodeObject;
use kube::Api;
use tokio::process::Command;

use crate::cluster::takes_pods;
use crate::programs::Programs;
use crate::{ControlPlane, HarnessError, Process, User, wait_for};

mod cluster;
mod config;

pub use cluster::NodeCluster;

/// The name of the node.
pub const NAME: &str = "node-1";
/// The only image: `podtools` of `tests/control-plane/cmd` and busybox. It sleeps unless told otherwise.
pub const IMAGE: &str = "shoal.test/podtools:1";

/// How kubelet logs in; the Node authorizer lets it see its own Pods only.
const KUBELET: User = User { name: "system:node:node-1", groups: &["system:nodes"] };
const BUSYBOX: &str = "/bin/busybox";
/// containerd's namespace for what kubelet runs.
const CRI: &str = "k8s.io";
const DEADLINE: Duration = Duration::from_mins(3);

/// A running node. Dropping it ends its programs; the Pods end with the box.
#[derive(Debug)]
pub struct Node {
    // Dropped in this order.
    kubelet: Process,
    containerd: Process,
}

/// Where the box keeps what must not be in a test's folder: mounts and sockets.
#[derive(Debug)]
struct Machine {
    dir: PathBuf,
    ip: String,
}

// === impl Node ===

impl Node {
    /// Starts both programs, with logs beside the control plane's, and returns when the node takes Pods.
    ///
    /// The control plane is one of [`NodeCluster`]'s, and its node-lifecycle-controller runs.
    pub async fn start(plane: &ControlPlane) -> Result<Self, HarnessError> {
        let machine = Machine::entered()?;
        let containerd = start_containerd(&machine, plane)?;
        import_image(&machine).await?;
        let kubelet = start_kubelet(&machine, plane)?;
        let node = Self { kubelet, containerd };
        node.wait_until_ready(plane).await?;
        Ok(node)
    }

    /// kubelet's process.
    pub fn kubelet(&self) -> &Process {
        &self.kubelet
    }

    /// containerd's process.
    pub fn containerd(&self) -> &Process {
        &self.containerd
    }

    async fn wait_until_ready(&self, plane: &ControlPlane) -> Result<(), HarnessError> {
        let api: Api<NodeObject> = Api::all(plane.client(&User::ADMIN).await?);
        let ready = wait_for("a real node that takes Pods", DEADLINE, || async {
            let node = api.get(NAME).await.map_err(|error| error.to_string())?;
            if takes_pods(&node) { Ok(()) } else { Err(format!("{:?}", node.status)) }
        });
        tokio::select! {
            ready = ready => ready,
            code = self.kubelet.wait() => Err(HarnessError::Exited {
                program: self.kubelet.name().to_owned(),
                code,
                awaited: "its node was ready".to_owned(),
                log: self.kubelet.log_path().to_owned(),
            }),
        }
    }
}

// === impl Machine ===

impl Machine {
    /// The box that this process is in.
    fn entered() -> Result<Self, HarnessError> {
        let told = |name| env::var(name).map_err(|_| HarnessError::NoBox);
        Ok(Self { dir: told("SHOAL_BOX")?.into(), ip: told("SHOAL_NODE_IP")? })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    fn socket(&self) -> PathBuf {
        self.path("containerd.sock")
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf, HarnessError> {
        let path = self.path(name);
        fs::write(&path, text).map_err(HarnessError::io("write", &path))?;
        Ok(path)
    }
}

fn start_containerd(machine: &Machine, plane: &ControlPlane) -> Result<Process, HarnessError> {
    let config = machine.write("containerd.toml", &config::containerd(machine))?;
    let args = [format!("--config={}", config.display()), "--log-level=warn".to_owned()];
    Process::spawn("containerd", Path::new("containerd"), &args, &[], plane.dir())
}

fn start_kubelet(machine: &Machine, plane: &ControlPlane) -> Result<Process, HarnessError> {
    let config = machine.write("kubelet.yaml", &config::kubelet(machine, plane))?;
    let args = [
        format!("--config={}", config.display()),
        format!("--kubeconfig={}", plane.kubeconfig(&KUBELET)?.display()),
        format!("--root-dir={}", machine.path("kubelet").display()),
        format!("--cert-dir={}", machine.path("kubelet-pki").display()),
        format!("--hostname-override={NAME}"),
        format!("--node-ip={}", machine.ip),
    ];
    Process::spawn("kubelet", &Programs::of_a_node()?.path("kubelet")?, &args, &[], plane.dir())
}

/// Makes the image and gives it to containerd, as soon as that answers.
async fn import_image(machine: &Machine) -> Result<(), HarnessError> {
    let (tar, socket) = (machine.path("image.tar"), machine.socket());
    let (tar, socket) = (tar.display().to_string(), socket.display().to_string());
    let podtools = Programs::of_a_node()?.path("podtools")?;
    run(&podtools, &["image", &tar, IMAGE, BUSYBOX, "/bin/podtools", "pause"]).await?;
    let import = ["--address", &socket, "--namespace", CRI, "images", "import", &tar];
    wait_for("containerd to take an image", DEADLINE, || run(Path::new("ctr"), &import)).await
}

/// Runs a short command; what it printed is in the error.
async fn run(program: &Path, args: &[&str]) -> Result<(), HarnessError> {
    let output = Command::new(program).args(args).stdin(Stdio::null()).kill_on_drop(true).output().await;
    let output = output.map_err(HarnessError::io("run", program))?;
    let printed = || String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).trim().to_owned();
    if output.status.success() {
        return Ok(());
    }
    Err(HarnessError::Answer { url: format!("{} {}", program.display(), args.join(" ")), reason: printed() })
}
