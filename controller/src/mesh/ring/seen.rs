//! What was read of a ring, in the form that the rules take.

use std::{collections::BTreeMap, time::Duration};

use kube::ResourceExt;
use shoal_api::{ShardMap, ShardedController, names};
use shoal_sharding::{
    Moment, Seat, Wishes,
    coordinator::{self, RingShard, Seen},
    wishes::WishesError,
};

use crate::mesh::{lock::Locks, world::World};

/// Everything that a step is about.
pub(super) fn seen(
    controller: &ShardedController,
    map: Option<&ShardMap>,
    world: &World,
    locks: &Locks,
    looked: Moment,
) -> Seen {
    Seen {
        looked,
        ring: ring(controller),
        map: map.map(|map| (map.spec.clone(), map.resource_version().unwrap_or_default())),
        leases: world.of(Seat::Identity).cloned().collect(),
        standbys: world.of(Seat::Standby).cloned().collect(),
        locks_held: locks.held(),
        // What cannot be read is no wish; the status says so.
        wishes: wishes(controller).unwrap_or_default(),
        pins: BTreeMap::new(),
        weights: None,
    }
}

/// The wishes of people.
pub(super) fn wishes(controller: &ShardedController) -> Result<Wishes, WishesError> {
    controller.annotations().get(names::WISHES_ANNOTATION).map_or(Ok(Wishes::default()), |text| text.parse())
}

fn ring(controller: &ShardedController) -> coordinator::Ring {
    let (name, spec) = (controller.name_any(), &controller.spec);
    let shard = |number| RingShard { name: names::shard(&name, number), weight: 1, version: None };
    coordinator::Ring {
        shards: (0..spec.shards).map(shard).collect(),
        max_moving: spec.handover.max_moving,
        restart_grace: Duration::from_secs(spec.handover.restart_grace_seconds.into()),
        fence: spec.fence.mode,
        deleting: controller.metadata.deletion_timestamp.is_some(),
    }
}
