//! What a shard sees of a list or a watch.

use std::sync::Arc;

use shoal_api::{KeyMode, RuleMode};
use shoal_sharding::{Object, Slot, Slots, Treatment, slot_in};

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
    /// The slots that are shown, if not those of the ring.
    slots: Option<Box<Slots>>,
    /// Whether anything in it is shared out, and not only locks renamed.
    moves: bool,
    /// Whether the whole response may be left to the API server to cut.
    by_uid: bool,
}

/// What decides on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deciding<'a> {
    /// Nothing that moves.
    Settled(Verdict<'a>),
    /// Whether this slot is shown.
    Slot(Slot),
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
            slots: None,
            moves: sharded,
            by_uid: !locks && !in_lane && ring.rules.is_uniform(group, resource, namespace, BY_UID),
        })
    }

    /// The `shardSelector` of exactly what this lens shows; none if there is none. Whether a server heeds it is not
    /// known beforehand, and a watch never tells: what comes is looked at all the same.
    pub fn shard_selector(&self) -> Option<&str> {
        self.ring.shard_selector.as_deref().filter(|_| self.by_uid)
    }

    /// Whether what it shows depends on slots.
    pub fn moves(&self) -> bool {
        self.moves
    }

    /// The same with other slots shown.
    #[must_use]
    pub fn showing(self, slots: Slots) -> Self {
        Self { slots: Some(Box::new(slots)), ..self }
    }

    /// What decides on an object.
    pub fn deciding(&self, view: View<'_>) -> Deciding<'_> {
        let Self { ring, group, resource, .. } = self;
        let View { namespace, name, uid, .. } = view;
        if let Some(verdict) = ring.locks.verdict(group, resource, namespace, name) {
            return Deciding::Settled(verdict);
        }
        let treatment = ring.rules.treatment(group, resource, namespace);
        if treatment.mode != RuleMode::Sharded || lane::holds(ring, group, resource, namespace) {
            return Deciding::Settled(Verdict::Keep);
        }
        Deciding::Slot(slot_in(treatment.key, &self.cluster, Object { namespace, name, uid }))
    }
}

impl Lens for ShardLens {
    fn verdict(&self, view: View<'_>) -> Verdict<'_> {
        match self.deciding(view) {
            Deciding::Settled(verdict) => verdict,
            Deciding::Slot(slot) => {
                let slots = self.slots.as_deref().unwrap_or(&self.ring.slots);
                if slots.contains(slot) { Verdict::Keep } else { Verdict::Drop }
            }
        }
    }
}
