//! Random changes of `ConfigMaps` and Widgets, straight at the API server.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use futures_util::future::join_all;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use serde_json::json;
use shoal_tests::{Shards, widgets};

use crate::kube_rs::line;

const NAMESPACES: usize = 40;
/// Names that an object of one kind can have in a namespace.
const NAMES: usize = 12;
/// Writers at the same time, each with namespaces of its own.
const WRITERS: usize = 8;
/// Run again with this variable set to what a failed run printed.
const SEED: &str = "SHOAL_TEST_SEED";

/// Writers and what they have made so far.
pub(crate) struct Changes {
    client: Client,
    writers: Vec<Writer>,
}

struct Writer {
    client: Client,
    namespaces: Vec<String>,
    random: Rng,
    alive: BTreeSet<(ApiKind, String, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ApiKind {
    ConfigMap,
    Widget,
}

// === impl Changes ===

impl Changes {
    /// Makes the namespaces.
    pub(crate) async fn new(client: Client) -> Self {
        let seed = std::env::var(SEED).map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
        println!("{SEED}={seed}");
        let api: Api<Namespace> = Api::all(client.clone());
        let mut writers: Vec<Writer> =
            (0..WRITERS).map(|index| Writer::new(&client, seed.wrapping_add(index as u64))).collect();
        for number in 0..NAMESPACES {
            let name = format!("team-{number:02}");
            let namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
            api.create(&PostParams::default(), &namespace).await.unwrap();
            writers[number % WRITERS].namespaces.push(name);
        }
        Self { client, writers }
    }

    /// So many more changes, by all writers together.
    pub(crate) async fn go_on(&mut self, count: usize) {
        let writers = self.writers.iter_mut().enumerate();
        // The first ones take what does not divide.
        let share = |index| count / WRITERS + usize::from(index < count % WRITERS);
        join_all(writers.map(|(index, writer)| writer.change(share(index)))).await;
    }

    /// One more object of each kind for each shard, so that no cache can be equal before it has seen all until now.
    pub(crate) async fn mark(&self, shards: &Shards, name: &str) {
        for proxy in &shards.proxies {
            let is_own = |namespace: &&String| shards.owner(namespace) == proxy.shard();
            let mut namespaces = self.writers.iter().flat_map(|writer| &writer.namespaces);
            let namespace = namespaces.find(is_own).unwrap();
            for kind in [ApiKind::ConfigMap, ApiKind::Widget] {
                kind.api(&self.client, namespace)
                    .create(&PostParams::default(), &kind.object(name))
                    .await
                    .unwrap();
            }
        }
    }
}

/// The lines of all objects by their namespace.
pub(crate) async fn everything(client: &Client) -> BTreeMap<String, Vec<String>> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let config_maps: Api<ConfigMap> = Api::all(client.clone());
    for object in config_maps.list(&ListParams::default()).await.unwrap() {
        all.entry(object.metadata.namespace.clone().unwrap()).or_default().push(line("configmaps", &object));
    }
    let widgets: Api<DynamicObject> = Api::all_with(client.clone(), &widgets::resource());
    for object in widgets.list(&ListParams::default()).await.unwrap() {
        all.entry(object.metadata.namespace.clone().unwrap()).or_default().push(line("widgets", &object));
    }
    all
}

// === impl Writer ===

impl Writer {
    fn new(client: &Client, seed: u64) -> Self {
        let (client, random) = (client.clone(), Rng::with_seed(seed));
        Self { client, namespaces: Vec::new(), random, alive: BTreeSet::new() }
    }

    async fn change(&mut self, count: usize) {
        for _ in 0..count {
            let kind = if self.random.bool() { ApiKind::ConfigMap } else { ApiKind::Widget };
            let namespace = self.namespaces[self.random.usize(..self.namespaces.len())].clone();
            let name = format!("object-{}", self.random.usize(..NAMES));
            let api = kind.api(&self.client, &namespace);
            let key = (kind, namespace, name.clone());
            if !self.alive.contains(&key) {
                api.create(&PostParams::default(), &kind.object(&name)).await.unwrap();
                self.alive.insert(key);
            } else if self.random.u8(..3) == 0 {
                api.delete(&name, &DeleteParams::default()).await.unwrap();
                self.alive.remove(&key);
            } else {
                let patch = json!({"data": {"value": self.random.u64(..).to_string()}});
                api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
            }
        }
    }
}

// === impl ApiKind ===

impl ApiKind {
    fn api(self, client: &Client, namespace: &str) -> Api<DynamicObject> {
        let resource = match self {
            Self::ConfigMap => ApiResource::erase::<ConfigMap>(&()),
            Self::Widget => widgets::resource(),
        };
        Api::namespaced_with(client.clone(), namespace, &resource)
    }

    fn object(self, name: &str) -> DynamicObject {
        let object = match self {
            Self::ConfigMap => {
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": "first"}})
            }
            Self::Widget => widgets::widget(name, "first"),
        };
        serde_json::from_value(object).unwrap()
    }
}
