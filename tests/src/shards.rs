//! The proxies of a ring without controllers behind them, for tests that are the client themselves.

use std::path::{Path, PathBuf};

use shoal_api::{ShardMap, ShardMapSpec};

use crate::ring::{self, HUB};
use crate::{ControlPlane, HarnessError, Proxy, ProxyArgs};

/// Proxies `kcm-0`, `kcm-1`, ... of a ring with the map in `examples/`. Dropping it ends them.
#[derive(Debug)]
pub struct Shards {
    /// The proxies, in order.
    pub proxies: Vec<Proxy>,
    map: ShardMapSpec,
}

// === impl Shards ===

impl Shards {
    /// Starts one proxy for each of `upstreams`, kubeconfigs that say where the API server is, with the ring in
    /// `examples/`.
    pub async fn start(plane: &ControlPlane, upstreams: &[PathBuf]) -> Result<Self, HarnessError> {
        Self::start_with(plane, &ring::example(), upstreams).await
    }

    /// The same with the ring in `config`.
    pub async fn start_with(
        plane: &ControlPlane,
        config: &Path,
        upstreams: &[PathBuf],
    ) -> Result<Self, HarnessError> {
        let mut proxies = Vec::new();
        for (index, upstream) in upstreams.iter().enumerate() {
            let (shard, upstreams) = (format!("kcm-{index}"), [(HUB, upstream.clone())]);
            let args = ProxyArgs { shard: &shard, config, upstreams: &upstreams, dir: plane.dir() };
            proxies.push(Proxy::start(args).await?);
        }
        Ok(Self { proxies, map: map()? })
    }

    /// The shard that owns a namespace, by the judge's own hash.
    pub fn owner(&self, namespace: &str) -> &str {
        let slot = shoal_judge::slot_of(HUB, namespace);
        let range = self.map.slots.iter().find(|range| (range.first..=range.last).contains(&slot));
        range.and_then(|range| range.owner.as_deref()).unwrap_or_default()
    }
}

fn map() -> Result<ShardMapSpec, HarnessError> {
    let map: ShardMap = ring::read(&ring::example().join("shardmap.yaml"))?;
    Ok(map.spec)
}
