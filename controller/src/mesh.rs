//! The role `mesh`: one coordinator for each ring.
//!
//! ```text
//! ShardedControllers ──watch──▶ Mesh ──one task each──▶ ring ──▶ ShardMap, Leases, status
//! ```

pub mod clock;
pub mod election;
pub mod lock;
pub mod ring;
pub mod status;
pub mod world;

use std::{
    collections::{BTreeMap, BTreeSet},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use futures_util::TryStreamExt;
use kube::{
    Api, Client, ResourceExt,
    runtime::{WatchStreamExt, watcher},
};
use shoal_api::ShardedController;
use tokio::{sync::watch, task::JoinSet};

use crate::{metrics::Metrics, pages::Ready};

/// How long a request may take. Longer than that the API server counts as silent.
pub const REQUEST: Duration = Duration::from_secs(3);

/// What the role needs.
pub struct Mesh {
    /// The hub.
    pub client: Client,
    /// Only rings in that namespace.
    pub namespace: Option<String>,
    /// What is measured.
    pub metrics: Arc<Metrics>,
    /// Set when the rings are known.
    pub ready: Ready,
}

/// Why the role ended.
#[derive(Debug, thiserror::Error)]
pub enum MeshError {
    /// A coordinator failed in a way that it was not made for. A new process begins afresh.
    #[error("a coordinator failed: {0}")]
    Ring(#[from] tokio::task::JoinError),
    /// The watch ended for good, which kube promises it does not.
    #[error("the watch of ShardedControllers ended")]
    Watch,
}

/// The coordinators that run. Dropping it ends them.
#[derive(Default)]
struct Rings {
    /// What each is told about its ring, by `namespace/name`.
    told: BTreeMap<String, watch::Sender<Arc<ShardedController>>>,
    /// Those that a list under way has named.
    listed: BTreeSet<String>,
    tasks: JoinSet<()>,
}

// === impl Mesh ===

impl Mesh {
    /// Runs a coordinator for each ring that there is.
    pub async fn run(&self) -> Result<(), MeshError> {
        let api: Api<ShardedController> = match &self.namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        };
        let mut events = pin!(watcher(api, watcher::Config::default()).default_backoff());
        let mut rings = Rings::default();
        loop {
            tokio::select! {
                event = events.try_next() => match event {
                    Ok(Some(event)) => self.follow(&mut rings, event),
                    Ok(None) => return Err(MeshError::Watch),
                    Err(error) => tracing::warn!(%error, "watching the rings"),
                },
                Some(ended) = rings.tasks.join_next() => ended?,
            }
        }
    }

    fn follow(&self, rings: &mut Rings, event: watcher::Event<ShardedController>) {
        match event {
            watcher::Event::Init => rings.listed.clear(),
            watcher::Event::InitApply(ring) => {
                rings.listed.insert(key(&ring));
                self.tell(rings, ring);
            }
            watcher::Event::InitDone => {
                rings.told.retain(|ring, _| rings.listed.contains(ring));
                self.ready.set();
            }
            watcher::Event::Apply(ring) => self.tell(rings, ring),
            watcher::Event::Delete(ring) => drop(rings.told.remove(&key(&ring))),
        }
    }

    fn tell(&self, rings: &mut Rings, ring: ShardedController) {
        let (key, ring) = (key(&ring), Arc::new(ring));
        let running = rings.told.get(&key).is_some_and(|told| told.send(ring.clone()).is_ok());
        if !running {
            let (told, news) = watch::channel(ring);
            rings.tasks.spawn(ring::run(self.client.clone(), news, self.metrics.clone()));
            rings.told.insert(key, told);
        }
    }
}

/// `namespace/name`.
fn key(ring: &ShardedController) -> String {
    format!("{}/{}", ring.namespace().unwrap_or_default(), ring.name_any())
}
