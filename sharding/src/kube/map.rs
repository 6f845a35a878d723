//! The `ShardMap` of a ring on an API server.

use kube::{
    Api, Resource,
    api::{ObjectMeta, PostParams},
};
use shoal_api::{ShardMap, ShardMapSpec, ShardedController, names};

use super::Fault;

/// Reads the map of a ring.
pub async fn read(api: &Api<ShardMap>, ring: &str) -> Result<ShardMap, Fault> {
    api.get(ring).await.map_err(|error| Fault::of(&what(ring), error))
}

/// Writes a map: in the place of the one that was read at `version`, or as the ring's first if there was none. It goes when
/// its ring goes. Gives the object as stored.
pub async fn put(
    api: &Api<ShardMap>,
    ring: &ShardedController,
    spec: ShardMapSpec,
    version: Option<&str>,
) -> Result<ShardMap, Fault> {
    let name = ring.metadata.name.clone().unwrap_or_default();
    let map = ShardMap {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            labels: Some([(names::RING_LABEL.to_owned(), name.clone())].into()),
            owner_references: ring.controller_owner_ref(&()).map(|owner| vec![owner]),
            resource_version: version.map(str::to_owned),
            ..ObjectMeta::default()
        },
        spec,
    };
    let params = PostParams::default();
    let put = match version {
        // A custom resource that is absent is not created by a replacement (apiextensions' strategy): it is NotFound.
        Some(_) => api.replace(&name, &params, &map).await,
        None => api.create(&params, &map).await,
    };
    put.map_err(|error| Fault::of(&what(&name), error))
}

fn what(ring: &str) -> String {
    format!("ShardMap {ring}")
}
