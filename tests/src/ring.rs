//! Stock kube-controller-managers as a ring: each behind a proxy of its own.

use std::fs;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use crate::controllers::{Controller, ControllerManager, Election, RING};
use crate::proxy::{Proxy, ProxyArgs};
use crate::{ControlPlane, HarnessError, User};

/// The cluster's name in the ring.
pub const HUB: &str = "hub";

/// A ring of stock kube-controller-managers. Dropping it ends them all.
#[derive(Debug)]
pub struct Ring {
    /// The shards, in order.
    pub shards: Vec<Shard>,
}

/// One replica and its proxy.
#[derive(Debug)]
pub struct Shard {
    // Dropped in this order: the controller can still release its lock.
    /// The unmodified kube-controller-manager.
    pub manager: Controller,
    /// The proxy in front of the API server.
    pub proxy: Proxy,
}

// === impl Ring ===

impl Ring {
    /// Starts `kcm-0` to `kcm-<count - 1>` with the ring in `config` (a file or a folder).
    pub async fn start(plane: &ControlPlane, config: &Path, count: usize) -> Result<Self, HarnessError> {
        let mut shards = Vec::new();
        for index in 0..count {
            shards.push(Shard::start(plane, config, &format!("kcm-{index}")).await?);
        }
        Ok(Self { shards })
    }
}

// === impl Shard ===

impl Shard {
    /// Starts a proxy and a kube-controller-manager behind it.
    pub async fn start(plane: &ControlPlane, config: &Path, shard: &str) -> Result<Self, HarnessError> {
        let upstreams = [(HUB, plane.kubeconfig(&User::CONTROLLER_MANAGER)?)];
        let proxy =
            Proxy::start(ProxyArgs { shard, config, upstreams: &upstreams, dir: plane.dir() }).await?;
        let manager = ControllerManager {
            name: shard,
            controllers: &RING,
            kubeconfig: &proxy.kubeconfig(plane, &User::CONTROLLER_MANAGER)?,
            election: Some(Election::default()),
            flags: &[],
        };
        Ok(Self { manager: manager.start(plane).await?, proxy })
    }
}

/// The ring that the demo and the tests use: `examples/kube-controller-manager/`.
pub fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/kube-controller-manager")
}

/// One object in a file of YAML.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<T, HarnessError> {
    let text = fs::read_to_string(path).map_err(HarnessError::io("read", path))?;
    let failed = |reason: String| HarnessError::Answer { url: path.display().to_string(), reason };
    serde_saphyr::from_str(&text).map_err(|error| failed(error.to_string()))
}

/// A copy of [`example`] in `dir/ring`, its `ShardedController` changed.
pub fn changed(dir: &Path, change: impl Fn(&str) -> String) -> Result<PathBuf, HarnessError> {
    let (from, to) = (example(), dir.join("ring"));
    fs::create_dir_all(&to).map_err(HarnessError::io("create", &to))?;
    let ring = from.join("ring.yaml");
    let text = fs::read_to_string(&ring).map_err(HarnessError::io("read", &ring))?;
    let changed = to.join("ring.yaml");
    fs::write(&changed, change(&text)).map_err(HarnessError::io("write", &changed))?;
    let map = to.join("shardmap.yaml");
    fs::copy(from.join("shardmap.yaml"), &map).map_err(HarnessError::io("write", &map))?;
    Ok(to)
}
