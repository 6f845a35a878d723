//! Room 5: the write gate. A write passes only where this shard owns the object's slot.
//!
//! ```text
//! write -> lane? -> mode of its kind -> key -> slot -> owned here at epoch e? -> claim :<slot>.<e>
//! ```
//!
//! Reads are not refused here: a GET by name passes (a 404 would make garbage collectors delete),
//! lists and watches are filtered.

pub mod lane;
pub mod lens;
pub mod ring;

use http::StatusCode;
use shoal_api::RuleMode;
use shoal_sharding::{Slot, slot::namespace_key, slot_of};

pub use self::ring::Ring;
use crate::{
    request::{
        KubeRequest,
        path::{Target, Verb},
        selector,
    },
    respond::{Refusal, Subject},
    upstream::user_agent::Claim,
};

/// What the gate says of a request that it does not refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passage {
    /// A read, or a write that no shard owns: it carries no claim.
    Free,
    /// A write of this shard's own.
    Claimed(Claim),
    /// A create of a cluster-scoped object, whose name is in its body: ask [`check_named`].
    Unnamed,
}

/// The gate of one request.
#[derive(Clone, Copy)]
pub struct Gate<'a> {
    ring: &'a Ring,
    cluster: &'a str,
    verb: &'a Verb,
    target: &'a Target,
}

/// Decides on a request by its head alone.
pub fn check(ring: &Ring, cluster: &str, request: &KubeRequest) -> Result<Passage, Refusal> {
    match request.target() {
        Some(target) if request.is_write() => {
            Gate { ring, cluster, verb: &request.info.verb, target }.check()
        }
        _ => Ok(Passage::Free),
    }
}

/// Decides on the create of a cluster-scoped object whose name is known by now.
pub fn check_named(
    ring: &Ring,
    cluster: &str,
    request: &KubeRequest,
    name: &str,
) -> Result<Passage, Refusal> {
    match request.target() {
        Some(target) => Gate { ring, cluster, verb: &request.info.verb, target }.named(name),
        None => Ok(Passage::Free),
    }
}

/// The namespace of the object that a request is about; empty for a cluster-scoped one. In the path
/// a Namespace is inside itself, as an object it is not.
pub fn namespace_of(target: &Target) -> &str {
    let is_namespace = target.resource.group.is_empty() && target.resource.resource == "namespaces";
    if is_namespace { "" } else { &target.namespace }
}

// === impl Gate ===

impl Gate<'_> {
    fn check(self) -> Result<Passage, Refusal> {
        let (resource, namespace) = (&self.target.resource, namespace_of(self.target));
        if lane::holds(self.ring, &resource.group, &resource.resource, namespace)
            || self.ring.rules.mode(&resource.group, &resource.resource, namespace) == RuleMode::Unsharded
        {
            return Ok(Passage::Free);
        }
        match self.verb {
            Verb::DeleteCollection => self.collection(namespace),
            _ if namespace.is_empty() && self.target.name.is_empty() => Ok(Passage::Unnamed),
            _ => self.claim(namespace_key(namespace, &self.target.name)),
        }
    }

    fn named(self, name: &str) -> Result<Passage, Refusal> {
        if name.is_empty() {
            return Err(self.forbidden(
                "NoName",
                "metadata.name",
                "the create of a cluster-scoped object needs metadata.name: which shard owns it depends on the \
                 name, and the API server would choose one from metadata.generateName",
            ));
        }
        self.claim(name)
    }

    /// A collection is owned whole if its namespace is, or if it is narrowed to one name.
    fn collection(self, namespace: &str) -> Result<Passage, Refusal> {
        let narrowed = selector::required_name(&self.target.field_selector).ok().flatten();
        let key = match narrowed {
            _ if !namespace.is_empty() => namespace.to_owned(),
            Some(name) => name,
            None => {
                return Err(self.forbidden(
                    "NotNarrowed",
                    "metadata.namespace",
                    "deletecollection across namespaces would delete objects of other shards: send one for each \
                     namespace, or narrow it by fieldSelector=metadata.name=NAME",
                ));
            }
        };
        let slot = slot_of(self.cluster, &key);
        match self.ring.map.owned_at(slot, &self.ring.shard) {
            Some(epoch) => Ok(Passage::Claimed(Claim { slot, epoch })),
            None => Err(self.forbidden("ForeignSlot", self.key_field(), &self.foreign(slot, &key))),
        }
    }

    fn claim(self, key: &str) -> Result<Passage, Refusal> {
        let slot = slot_of(self.cluster, key);
        match self.ring.map.owned_at(slot, &self.ring.shard) {
            Some(epoch) => Ok(Passage::Claimed(Claim { slot, epoch })),
            None => Err(self.refuse_foreign(slot, key)),
        }
    }

    /// A foreign create is a 503 without Retry-After, since client-go would retry inside the worker;
    /// everything that names its object is a Conflict, which controllers take back to their queue.
    fn refuse_foreign(self, slot: Slot, key: &str) -> Refusal {
        let why = self.foreign(slot, key);
        let refusal = if self.target.name.is_empty() {
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", why.clone())
        } else {
            let what = self.subject();
            let message = format!("Operation cannot be fulfilled on {what}: {why}");
            Refusal::new(StatusCode::CONFLICT, "Conflict", message)
        };
        refusal.about(self.subject()).because("ForeignSlot", self.key_field(), why)
    }

    /// What the slot depends on.
    fn key_field(self) -> &'static str {
        if namespace_of(self.target).is_empty() { "metadata.name" } else { "metadata.namespace" }
    }

    fn foreign(self, slot: Slot, key: &str) -> String {
        let owner = self.ring.map.entry(slot).owner.as_deref().unwrap_or("nobody");
        let Ring { namespace, name, shard, .. } = self.ring;
        format!("shard {shard} of ring {namespace}/{name} does not own slot {slot} ({key:?}); {owner} does")
    }

    fn forbidden(self, reason: &'static str, field: &'static str, why: &str) -> Refusal {
        let message = format!("{} is forbidden: {why}", self.subject());
        Refusal::new(StatusCode::FORBIDDEN, "Forbidden", message)
            .about(self.subject())
            .because(reason, field, why)
    }

    fn subject(self) -> Subject {
        let resource = &self.target.resource;
        Subject {
            group: resource.group.clone(),
            resource: resource.resource.clone(),
            name: self.target.name.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
