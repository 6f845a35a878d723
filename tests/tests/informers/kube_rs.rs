//! kube-rs' caches.

use std::fmt::Debug;
use std::hash::Hash;

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DynamicObject};
use kube::runtime::reflector::{self, Store};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use shoal_tests::widgets;
use tokio::task::AbortHandle;

use crate::Lines;

/// Few enough that a list is of several pages.
const PAGE: u32 = 50;

/// Caches of `ConfigMaps` and Widgets. Dropping them ends their watches.
pub(crate) struct Watchers {
    name: &'static str,
    config_maps: Store<ConfigMap>,
    widgets: Store<DynamicObject>,
    tasks: [AbortHandle; 2],
}

// === impl Watchers ===

impl Watchers {
    /// Watches all namespaces, `streaming` or by a list and a watch.
    pub(crate) fn start(client: &Client, streaming: bool) -> Self {
        let (name, config) = if streaming {
            ("kube-rs, streaming lists", watcher::Config::default().streaming_lists())
        } else {
            ("kube-rs, lists", watcher::Config::default().page_size(PAGE))
        };
        let (config_maps, one) = watch(Api::all(client.clone()), (), config.clone());
        let resource = widgets::resource();
        let (widgets, two) = watch(Api::all_with(client.clone(), &resource), resource, config);
        Self { name, config_maps, widgets, tasks: [one, two] }
    }

    pub(crate) fn name(&self) -> &str {
        self.name
    }

    /// What the stores hold now.
    pub(crate) fn print(&self) -> Lines {
        let config_maps = self.config_maps.state();
        let widgets = self.widgets.state();
        let of_config_maps = config_maps.iter().map(|object| line("configmaps", &**object));
        of_config_maps.chain(widgets.iter().map(|object| line("widgets", &**object))).collect()
    }
}

impl Drop for Watchers {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

fn watch<K>(api: Api<K>, kind: K::DynamicType, config: watcher::Config) -> (Store<K>, AbortHandle)
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Clone + Debug + Eq + Hash + Send + Sync,
{
    let writer = reflector::store::Writer::new(kind);
    let store = writer.as_reader();
    let events = watcher(api, config).default_backoff().reflect(writer);
    // An error is followed by a new try.
    let task = tokio::spawn(events.for_each(|_| std::future::ready(())));
    (store, task.abort_handle())
}

/// An object in the words of the Go program.
pub(crate) fn line(store: &str, object: &impl ResourceExt) -> String {
    let namespace = object.namespace().unwrap_or_default();
    let (uid, version) = (object.uid().unwrap_or_default(), object.resource_version().unwrap_or_default());
    format!("{store} {namespace}/{} {uid} {version}", object.name_any())
}
