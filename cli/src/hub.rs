//! The hub: rings, maps and Leases as they are now.

use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, Client, Config, ResourceExt,
    api::ListParams,
    config::{KubeConfigOptions, Kubeconfig},
};
use shoal_api::{ShardMap, ShardedController, names};
use shoal_sharding::{
    SlotMap,
    kube::{Fault, map},
};

use crate::{
    args::{Common, RingName},
    error::CliError,
};

/// A connection to the hub.
pub struct Hub {
    /// The client.
    pub client: Client,
    /// The namespace of objects that are asked about.
    pub namespace: String,
}

/// A ring as it is now.
pub struct Ring {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What people want of it.
    pub controller: ShardedController,
}

// === impl Hub ===

impl Hub {
    /// Finds the hub as kubectl does. Sends nothing.
    pub async fn connect(args: &Common) -> Result<Self, CliError> {
        let wrong = |error: &dyn std::error::Error| CliError::Config(error.to_string());
        let options = KubeConfigOptions { context: args.context.clone(), ..KubeConfigOptions::default() };
        let config = match (&args.kubeconfig, &args.context) {
            (Some(path), _) => {
                let file = Kubeconfig::read_from(path).map_err(|error| wrong(&error))?;
                Config::from_custom_kubeconfig(file, &options).await.map_err(|error| wrong(&error))?
            }
            (None, Some(_)) => Config::from_kubeconfig(&options).await.map_err(|error| wrong(&error))?,
            (None, None) => Config::infer().await.map_err(|error| wrong(&error))?,
        };
        let namespace = args.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        let client = Client::try_from(config).map_err(|error| wrong(&error))?;
        Ok(Self { client, namespace })
    }

    /// The ring that is meant: the one named, or the only one.
    pub async fn ring(&self, named: Option<&RingName>) -> Result<Ring, CliError> {
        let controller = match named {
            Some(RingName { namespace, name }) => {
                let what = format!("ShardedController {namespace}/{name}");
                let api: Api<ShardedController> = Api::namespaced(self.client.clone(), namespace);
                api.get(name).await.map_err(|error| Fault::of(&what, error))?
            }
            None => self.only_ring().await?,
        };
        let (namespace, name) = (controller.namespace().unwrap_or_default(), controller.name_any());
        Ok(Ring { namespace, name, controller })
    }

    async fn only_ring(&self) -> Result<ShardedController, CliError> {
        let api: Api<ShardedController> = Api::all(self.client.clone());
        let all = api.list(&ListParams::default()).await;
        let mut rings = all.map_err(|error| Fault::of("the ShardedControllers", error))?.items;
        match (rings.pop(), rings.is_empty()) {
            (Some(ring), true) => Ok(ring),
            (None, _) => Err(CliError::NoRing),
            (Some(last), false) => {
                rings.push(last);
                let name = |ring: &ShardedController| {
                    format!("{}/{}", ring.namespace().unwrap_or_default(), ring.name_any())
                };
                Err(CliError::ManyRings(rings.iter().map(name).collect()))
            }
        }
    }

    /// The ring's map, sound.
    pub async fn map(&self, ring: &Ring) -> Result<SlotMap, CliError> {
        let object = self.map_object(ring).await?.ok_or_else(|| CliError::NoMap(ring.full_name()))?;
        SlotMap::try_from(&object.spec).map_err(|error| CliError::Map { ring: ring.full_name(), error })
    }

    /// The ring's map as it is; none if there is none.
    pub async fn map_object(&self, ring: &Ring) -> Result<Option<ShardMap>, CliError> {
        let api: Api<ShardMap> = Api::namespaced(self.client.clone(), &ring.namespace);
        match map::read(&api, &ring.name).await {
            Ok(map) => Ok(Some(map)),
            Err(Fault::NotFound(_)) => Ok(None),
            Err(fault) => Err(fault.into()),
        }
    }

    /// The ring's Leases.
    pub async fn leases(&self, ring: &Ring) -> Result<Vec<Lease>, CliError> {
        let api: Api<Lease> = Api::namespaced(self.client.clone(), &ring.namespace);
        let labelled = ListParams::default().labels(&format!("{}={}", names::RING_LABEL, ring.name));
        let list = api.list(&labelled).await.map_err(|error| Fault::of("the ring's Leases", error))?;
        Ok(list.items)
    }
}

// === impl Ring ===

impl Ring {
    /// `namespace/name`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// The names of the shards that it is to have, in order.
    pub fn shards(&self) -> Vec<String> {
        (0..self.controller.spec.shards).map(|number| names::shard(&self.name, number)).collect()
    }

    /// That shard's name, if it is one of the ring's.
    pub fn shard(&self, name: &str) -> Result<String, CliError> {
        let shards = self.shards();
        let known = shards.iter().find(|shard| *shard == name).cloned();
        known.ok_or_else(|| CliError::NoShard {
            ring: self.full_name(),
            shard: name.to_owned(),
            ring_shards: shards.join(", "),
        })
    }
}
