//! What a shard sees of a list or a watch.

use std::sync::Arc;

use shoal_api::{KeyMode, RuleMode};
use shoal_sharding::{Object, Treatment, slot_in};

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
    /// Whether the whole response may be left to the API server to cut.
    by_uid: bool,
}

/// What the API server can be asked to leave out by itself.
const BY_UID: Treatment = Treatment { mode: RuleMode::Sharded, key: KeyMode::Uid };

// === impl ShardLens ===

impl ShardLens {
    /// The lens for a list or a watch; none where the whole response may be shown.
    pub fn for_read(ring: &Arc<Ring>, cluster: &Arc<str>, target: &Target) -> Option<Self> {
        let (group, resource) = (&target.resource.group, &target.resource.resource);
        let namespace = namespace_of(target);
        let in_lane = lane::may_hold(ring, group, resource, namespace);
        let sharded =
            ring.rules.may_hide(group, resource, namespace) && !lane::holds(ring, group, resource, namespace);
        let locks = ring.locks.within(group, resource, namespace);
        (sharded || locks).then(|| Self {
            ring: ring.clone(),
            cluster: cluster.clone(),
            group: group.clone(),
            resource: resource.clone(),
            by_uid: !locks && !in_lane && ring.rules.is_uniform(group, resource, namespace, BY_UID),
        })
    }

    /// The `shardSelector` of exactly what this lens shows; none if there is none. Whether a server heeds it is not
    /// known beforehand, and a watch never tells: what comes is looked at all the same.
    pub fn shard_selector(&self) -> Option<&str> {
        self.ring.shard_selector.as_deref().filter(|_| self.by_uid)
    }

    fn is_shown(&self, View { namespace, name, uid }: View<'_>) -> bool {
        let Self { ring, group, resource, .. } = self;
        let treatment = ring.rules.treatment(group, resource, namespace);
        treatment.mode != RuleMode::Sharded
            || lane::holds(ring, group, resource, namespace)
            || ring.slots.contains(slot_in(treatment.key, &self.cluster, Object { namespace, name, uid }))
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
