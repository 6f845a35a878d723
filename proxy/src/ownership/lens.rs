//! What a shard sees of a list or a watch.

use std::sync::Arc;

use shoal_api::RuleMode;
use shoal_sharding::{slot::namespace_key, slot_of};

use super::{Ring, lane, namespace_of};
use crate::{
    filter::{Lens, Verdict, View},
    request::path::Target,
};

/// One shard's view of one kind in one cluster.
#[derive(Debug)]
pub struct ShardLens {
    ring: Arc<Ring>,
    cluster: Arc<str>,
    group: String,
    resource: String,
}

// === impl ShardLens ===

impl ShardLens {
    /// The lens for a list or a watch; none where the whole response may be shown.
    pub fn for_read(ring: &Arc<Ring>, cluster: &Arc<str>, target: &Target) -> Option<Self> {
        let (group, resource) = (&target.resource.group, &target.resource.resource);
        let namespace = namespace_of(target);
        let sharded = ring.rules.may_hide(group, resource, namespace)
            && !(lane::holds(ring, group, resource, namespace));
        let needed = sharded || ring.locks.within(group, resource, namespace);
        needed.then(|| Self {
            ring: ring.clone(),
            cluster: cluster.clone(),
            group: group.clone(),
            resource: resource.clone(),
        })
    }

    fn is_shown(&self, view: View<'_>) -> bool {
        let Self { ring, group, resource, .. } = self;
        let sharded = ring.rules.mode(group, resource, view.namespace) == RuleMode::Sharded
            && !lane::holds(ring, group, resource, view.namespace);
        !sharded || ring.slots.contains(slot_of(&self.cluster, namespace_key(view.namespace, view.name)))
    }
}

impl Lens for ShardLens {
    fn verdict(&self, view: View<'_>) -> Verdict<'_> {
        let locks = &self.ring.locks;
        if let Some(verdict) = locks.verdict(&self.group, &self.resource, view.namespace, view.name) {
            return verdict;
        }
        if self.is_shown(view) { Verdict::Keep } else { Verdict::Drop }
    }
}
