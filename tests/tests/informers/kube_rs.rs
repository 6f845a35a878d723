//! kube-rs' caches.

use std::fmt::Debug;
use std::hash::Hash;

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DynamicObject};
use kube::runtime::reflector::{self, Store};
use kube::runtime::watcher::{Error, Event};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use shoal_tests::widgets;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::caches::Lines;

/// Few enough that a list is of several pages.
const PAGE: u32 = 50;

/// Caches of `ConfigMaps` and Widgets. Dropping them ends their watches.
pub(crate) struct Watchers {
    name: &'static str,
    config_maps: Store<ConfigMap>,
    widgets: Store<DynamicObject>,
    record: watch::Sender<Record>,
    tasks: [AbortHandle; 2],
}

/// What was ever told to them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Record {
    /// A line of each namespace that an object was in, whether it came to stay or went.
    pub(crate) namespaces: Lines,
    /// Answers and events of code 410.
    pub(crate) gone: usize,
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
        let record = watch::Sender::default();
        let resource = widgets::resource();
        let api = Api::all_with(client.clone(), &resource);
        let (widgets, one) = keep("widgets", api, resource, config.clone(), record.clone());
        let api = Api::all(client.clone());
        let (config_maps, two) = keep("configmaps", api, (), config, record.clone());
        Self { name, config_maps, widgets, record, tasks: [one, two] }
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

    /// What they were told until now.
    pub(crate) fn record(&self) -> Record {
        self.record.borrow().clone()
    }
}

impl Drop for Watchers {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

// === impl Record ===

impl Record {
    fn note<K: ResourceExt>(&mut self, store: &str, told: &Result<Event<K>, Error>) {
        match told {
            Ok(Event::Apply(object) | Event::Delete(object) | Event::InitApply(object)) => {
                let namespace = object.namespace().unwrap_or_default();
                self.namespaces.insert(format!("{store} {namespace}/"));
            }
            Ok(Event::Init | Event::InitDone) => {}
            Err(error) => self.gone += usize::from(is_gone(error)),
        }
    }
}

fn is_gone(error: &Error) -> bool {
    let status = match error {
        Error::WatchError(status) => &**status,
        Error::InitialListFailed(kube::Error::Api(status))
        | Error::WatchStartFailed(kube::Error::Api(status))
        | Error::WatchFailed(kube::Error::Api(status)) => status,
        _ => return false,
    };
    status.code == 410
}

fn keep<K>(
    name: &'static str,
    api: Api<K>,
    kind: K::DynamicType,
    config: watcher::Config,
    record: watch::Sender<Record>,
) -> (Store<K>, AbortHandle)
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Clone + Debug + Eq + Hash + Send + Sync,
{
    let writer = reflector::store::Writer::new(kind);
    let store = writer.as_reader();
    let told = watcher(api, config).inspect(move |told| record.send_modify(|record| record.note(name, told)));
    let events = told.default_backoff().reflect(writer);
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
