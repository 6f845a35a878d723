//! What this proxy reads and writes on the hub with its Pod's own identity: its ring, the ring's map, the ring's Leases.

use std::{pin::pin, time::Duration};

use futures_util::StreamExt;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, Client, Config, Resource, ResourceExt,
    config::{KubeConfigOptions, Kubeconfig},
    runtime::watcher::{self, Event, watcher},
};
use serde::de::DeserializeOwned;
use shoal_api::{ShardMap, ShardedController, names};
use tokio::{sync::mpsc, time::sleep};

use super::News;
use crate::upstream::endpoint::Source;

/// How long to wait after a watch that failed.
const PAUSE: Duration = Duration::from_millis(500);
/// How long any call to the hub may take; less than the Lease has in reserve.
const CALL: Duration = Duration::from_secs(4);

/// The hub, for the proxy's own business.
#[derive(Clone)]
pub struct Hub {
    /// The ring's namespace.
    pub namespace: String,
    /// The ring's name.
    pub ring: String,
    client: Client,
}

/// Why the hub cannot be reached with the Pod's identity. Its kubeconfig or service account is at fault.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// The kubeconfig.
    #[error("{0}")]
    Kubeconfig(#[from] kube::config::KubeconfigError),
    /// The service account of the Pod.
    #[error("{0}")]
    InCluster(#[from] kube::config::InClusterError),
    /// The client cannot be made.
    #[error("{0}")]
    Client(#[from] kube::Error),
}

// === impl Hub ===

impl Hub {
    /// The hub at `source`, as the user that is written there.
    pub async fn new(source: &Source, namespace: String, ring: String) -> Result<Self, HubError> {
        let mut config = match source {
            Source::Kubeconfig(path) => {
                let file = Kubeconfig::read_from(path)?;
                Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?
            }
            Source::InCluster(_) => Config::incluster()?,
        };
        config.connect_timeout = Some(CALL);
        config.write_timeout = Some(CALL);
        config.headers.push((
            http::header::USER_AGENT,
            http::HeaderValue::from_static(concat!("shoal-proxy/", env!("CARGO_PKG_VERSION"))),
        ));
        Ok(Self { namespace, ring, client: Client::try_from(config)? })
    }

    /// The Leases of the ring's namespace.
    pub fn leases(&self) -> Api<Lease> {
        self.api()
    }

    /// The client, for what else the proxy does with its own identity.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Reads the ring, once.
    pub async fn controller(&self) -> Result<ShardedController, kube::Error> {
        self.api().get(&self.ring).await
    }

    /// Reads the map as it is now, not as some watch has seen it; none if there is none yet.
    pub async fn map(&self) -> Result<Option<ShardMap>, kube::Error> {
        self.api().get_opt(&self.ring).await
    }

    /// Tells what changes, for as long as somebody listens.
    pub(super) fn watch(&self, news: &mpsc::Sender<News>) {
        let named = || watcher::Config::default().fields(&format!("metadata.name={}", self.ring));
        let labelled = watcher::Config::default().labels(&format!("{}={}", names::RING_LABEL, self.ring));
        tokio::spawn(tell(self.api(), named(), news.clone(), one(News::Controller)));
        tokio::spawn(tell(self.api(), named(), news.clone(), one(News::Map)));
        tokio::spawn(tell(self.leases(), labelled, news.clone(), |event| Some(lease(event))));
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }
}

/// Bounds a call to the hub.
pub(super) async fn in_time<T>(call: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(CALL, call).await.ok()
}

/// Watches one kind, and begins again when the watch fails.
async fn tell<K>(
    api: Api<K>,
    config: watcher::Config,
    news: mpsc::Sender<News>,
    mut of: impl FnMut(Event<K>) -> Option<News>,
) where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let mut events = pin!(watcher(api, config));
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                if let Some(told) = of(event)
                    && news.send(told).await.is_err()
                {
                    return;
                }
            }
            Err(error) => {
                tracing::warn!(%error, "a watch on the hub failed; it is begun again");
                sleep(PAUSE).await;
            }
        }
    }
}

/// The news of an object that there is one of. That it is gone is none: what is in force stays.
fn one<K>(news: impl Fn(Box<K>) -> News) -> impl FnMut(Event<K>) -> Option<News> {
    move |event| match event {
        Event::Apply(object) | Event::InitApply(object) => Some(news(Box::new(object))),
        Event::Delete(_) | Event::Init | Event::InitDone => None,
    }
}

/// The news of a Lease. After a new list those that are not in it are gone.
fn lease(event: Event<Lease>) -> News {
    match event {
        Event::Apply(lease) | Event::InitApply(lease) => News::Lease(Box::new(lease)),
        Event::Delete(lease) => News::LeaseGone(lease.name_any()),
        Event::Init => News::LeasesBegin,
        Event::InitDone => News::LeasesEnd,
    }
}
