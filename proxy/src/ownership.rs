//! Room 5: the write gate. A write passes only where this shard owns the object's slot.
//!
//! ```text
//! write -> lane? -> mode of its kind -> key -> slot -> owned here at epoch e? -> claim :<slot>.<e>
//! ```
//!
//! What the key is made of may not be in the head of a request: the name of a new object is in its body, the uid of an
//! existing one at the API server. The gate says so, and is asked again.
//!
//! Reads are not refused here: a GET by name passes (a 404 would make garbage collectors delete),
//! lists and watches are filtered.

pub mod lane;
pub mod lens;
pub mod live;
pub mod names;
pub mod ring;
pub mod token;

use fastrand::Rng;
use http::StatusCode;
use shoal_api::{RuleMode, SlotState};
use shoal_sharding::{Object, Part, Slot, shard::Shut};

pub use self::live::Live;
pub use self::ring::{Ring, Role};
pub use self::token::TermToken;
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
    /// A create of an object whose owner depends on its name, which is in the body: ask [`Gate::named`].
    Unnamed,
    /// A write to an object whose owner depends on its uid, which the API server knows: ask [`Gate::identified`].
    Unidentified,
}

/// The gate of one request.
#[derive(Clone, Copy)]
pub struct Gate<'a> {
    ring: &'a Ring,
    cluster: &'a str,
    verb: &'a Verb,
    target: &'a Target,
}

/// The namespace of the object that a request is about; empty for a cluster-scoped one. In the path
/// a Namespace is inside itself, as an object it is not.
pub fn namespace_of(target: &Target) -> &str {
    let is_namespace = target.resource.group.is_empty() && target.resource.resource == "namespaces";
    if is_namespace { "" } else { &target.namespace }
}

// === impl Gate ===

impl<'a> Gate<'a> {
    /// The gate of a request; none for what is no write to a resource.
    pub fn of(ring: &'a Ring, cluster: &'a str, request: &'a KubeRequest) -> Option<Self> {
        let target = request.target().filter(|_| request.is_write())?;
        Some(Self { ring, cluster, verb: &request.info.verb, target })
    }

    /// Decides by the head of the request alone.
    pub fn check(self) -> Result<Passage, Refusal> {
        let (group, namespace) = (&self.target.resource.group, namespace_of(self.target));
        let resource = if self.is_binding() { "pods" } else { &self.target.resource.resource };
        let treatment = self.ring.rules.treatment(group, resource, namespace);
        if lane::holds(self.ring, group, resource, namespace) || treatment.mode == RuleMode::Unsharded {
            return Ok(Passage::Free);
        }
        let is_nameless = self.target.name.is_empty();
        match Part::of(treatment.key, namespace) {
            part if *self.verb == Verb::DeleteCollection => self.collection(part),
            Part::Name if is_nameless => Ok(Passage::Unnamed),
            Part::Uid if self.is_binding() => Err(self.legacy_binding()),
            // A new object has no uid yet, and so no owner.
            Part::Uid if is_nameless => Ok(Passage::Free),
            Part::Uid => Ok(Passage::Unidentified),
            part => self.claim(part, self.object(&self.target.name)),
        }
    }

    /// Whether this is the old form of `pods/NAME/binding`: it creates nothing, but writes the Pod that its body names
    /// (kubernetes `pkg/registry/core/pod/storage/storage.go`, `LegacyBindingREST`).
    pub fn is_binding(self) -> bool {
        let resource = &self.target.resource;
        resource.group.is_empty() && resource.resource == "bindings"
    }

    fn legacy_binding(self) -> Refusal {
        self.forbidden(
            "LegacyBinding",
            "metadata.uid",
            "it writes to a Pod that its path does not name, and the Pod's uid says whose it is: send it to the \
             Pod's subresource binding",
        )
    }

    /// The refusal of a binding in the old form that demands no version of its Pod.
    pub fn unfenced_binding(self) -> Refusal {
        self.forbidden(
            "LegacyBinding",
            "metadata.resourceVersion",
            "it writes to a Pod that its path does not name: name the Pod's version, or send it to the Pod's \
             subresource binding",
        )
    }

    /// Decides on a create whose body names `name`.
    pub fn named(self, name: &str) -> Result<Passage, Refusal> {
        if name.is_empty() {
            return Err(self.forbidden(
                "NoName",
                "metadata.name",
                "which shard owns the new object depends on its name: it needs metadata.name or \
                 metadata.generateName",
            ));
        }
        self.claim(Part::Name, self.object(name))
    }

    /// A name in a slot of this shard for a new object, which begins with `generate_name`.
    pub fn draw(self, generate_name: &str) -> Result<String, Refusal> {
        let drawn = names::draw(generate_name, &mut Rng::new(), &self.ring.slots, |name| self.slot_of(name));
        drawn.ok_or_else(|| self.no_own_name(generate_name))
    }

    /// The slot of a name that may be drawn. A lock's may not: the object would be taken for it, and hidden.
    fn slot_of(self, name: &str) -> Option<Slot> {
        let Target { resource, namespace, .. } = self.target;
        let verdict = self.ring.locks.verdict(&resource.group, &resource.resource, namespace, name);
        verdict.is_none().then(|| Part::Name.slot(self.cluster, self.object(name)))
    }

    /// The refusal of a create for which no name of an own slot was found.
    fn no_own_name(self, generate_name: &str) -> Refusal {
        let Ring { namespace, name, shard, .. } = self.ring;
        let why = format!(
            "no name that begins with {generate_name:?} was found in a slot of shard {shard} of ring \
             {namespace}/{name}: it owns too few slots, or none"
        );
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", why.clone())
            .about(self.subject())
            .because("NoName", "metadata.generateName", why)
    }

    /// Decides on a write to an object with that uid.
    pub fn identified(self, uid: &str) -> Result<Passage, Refusal> {
        self.claim(Part::Uid, Object { uid, ..self.object(&self.target.name) })
    }

    fn object<'o>(self, name: &'o str) -> Object<'o>
    where
        'a: 'o,
    {
        Object { namespace: namespace_of(self.target), name, uid: "" }
    }

    /// A collection is owned whole if all its keys are the same, or if it is narrowed to one.
    fn collection(self, part: Part) -> Result<Passage, Refusal> {
        let narrowed = match part {
            Part::Name => selector::required_name(&self.target.field_selector).ok().flatten(),
            Part::Namespace | Part::Cluster => Some(String::new()),
            Part::Uid => None,
        };
        let Some(name) = narrowed else { return Err(self.not_narrowed(part)) };
        let object = self.object(&name);
        let slot = part.slot(self.cluster, object);
        match self.ring.map.owned_at(slot, &self.ring.shard) {
            Some(epoch) => Ok(Passage::Claimed(Claim { slot, epoch })),
            None => Err(self.forbidden("ForeignSlot", part.field(), &self.foreign(slot, part.text(object)))),
        }
    }

    fn not_narrowed(self, part: Part) -> Refusal {
        let (field, why) = match part {
            Part::Uid => (
                "metadata.uid",
                "deletecollection would delete objects of other shards, as each object's uid says whose it is: \
                 delete them one by one",
            ),
            _ if namespace_of(self.target).is_empty() => (
                "metadata.namespace",
                "deletecollection across namespaces would delete objects of other shards: send one for each \
                 namespace, or narrow it by fieldSelector=metadata.name=NAME",
            ),
            _ => (
                "metadata.name",
                "deletecollection would delete objects of other shards, as each object's name says whose it is: \
                 narrow it by fieldSelector=metadata.name=NAME",
            ),
        };
        self.forbidden("NotNarrowed", field, why)
    }

    fn claim(self, part: Part, object: Object<'_>) -> Result<Passage, Refusal> {
        let slot = part.slot(self.cluster, object);
        match self.ring.map.owned_at(slot, &self.ring.shard) {
            Some(epoch) => Ok(Passage::Claimed(Claim { slot, epoch })),
            None => Err(match self.why_not(slot) {
                Shut::Foreign => self.refuse_foreign(part, slot, part.text(object)),
                shut => self.shut(slot, shut),
            }),
        }
    }

    /// Why the map does not let this shard write to a slot.
    fn why_not(self, slot: Slot) -> Shut {
        let entry = self.ring.map.entry(slot);
        let is_mine = entry.owner.as_deref() == Some(&*self.ring.shard);
        match entry.state {
            _ if self.ring.role != Role::Holder => Shut::NoLease,
            SlotState::Draining if is_mine => Shut::Leaving,
            _ => Shut::Foreign,
        }
    }

    /// The refusal of a write to a slot that its gate keeps shut.
    pub fn shut(self, slot: Slot, shut: Shut) -> Refusal {
        let Ring { namespace, name, shard, .. } = self.ring;
        let who = match self.ring.role {
            Role::Holder => format!("shard {shard} of ring {namespace}/{name}"),
            Role::Standby | Role::Nobody => {
                format!("this proxy, which is no shard of ring {namespace}/{name},")
            }
        };
        let (reason, why) = match shut {
            Shut::NoLease => (
                "NoLease",
                format!("{who} holds no identity Lease for long enough: somebody else may own slot {slot}"),
            ),
            Shut::Foreign => ("ForeignSlot", format!("{who} does not own slot {slot} any more")),
            Shut::Leaving => {
                ("LeavingSlot", format!("slot {slot} is on its way from {who} to another shard"))
            }
            Shut::Arriving => {
                ("ArrivingSlot", format!("slot {slot} is on its way to {who}, and not shown yet"))
            }
        };
        self.refuse(reason, "", why)
    }

    /// A foreign create is a 503 without Retry-After, since client-go would retry inside the worker;
    /// everything that names its object is a Conflict, which controllers take back to their queue.
    fn refuse_foreign(self, part: Part, slot: Slot, key: &str) -> Refusal {
        self.refuse("ForeignSlot", part.field(), self.foreign(slot, key))
    }

    fn refuse(self, reason: &'static str, field: &'static str, why: String) -> Refusal {
        let refusal = if self.target.name.is_empty() {
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", why.clone())
        } else {
            let what = self.subject();
            let message = format!("Operation cannot be fulfilled on {what}: {why}");
            Refusal::new(StatusCode::CONFLICT, "Conflict", message)
        };
        refusal.about(self.subject()).because(reason, field, why)
    }

    fn foreign(self, slot: Slot, key: &str) -> String {
        let owner = self.ring.map.entry(slot).owner.as_deref().unwrap_or("nobody");
        let Ring { namespace, name, shard, .. } = self.ring;
        let key = if key.is_empty() { self.cluster } else { key };
        format!("shard {shard} of ring {namespace}/{name} does not own slot {slot} ({key:?}); {owner} does")
    }

    fn forbidden(self, reason: &'static str, field: &'static str, why: &str) -> Refusal {
        let message = format!("{} is forbidden: {why}", self.subject());
        Refusal::new(StatusCode::FORBIDDEN, "Forbidden", message)
            .about(self.subject())
            .because(reason, field, why)
    }

    fn subject(self) -> Subject {
        Subject::of(self.target)
    }
}

#[cfg(test)]
mod tests;
