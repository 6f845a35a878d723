//! The identity and standby Leases of a ring: read, claim, renew, leave, depose.
//!
//! Writes are merge patches with the object's resourceVersion, not replacements: a replacement of a Lease that was deleted in
//! between would create it again (registry/coordination/lease/strategy.go allows that), a patch is answered `NotFound`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api,
    api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions},
};
use serde_json::{Value, json};
use shoal_api::names;

use super::Fault;
use crate::{
    acks::Acks,
    identity::{Left, Observed, Seat},
    times,
};

/// A Lease that this process holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Which of the shard's Leases it is.
    pub seat: Seat,
    /// The shard.
    pub shard: String,
    /// Who holds it: `<pod>_<random>`.
    pub holder: String,
    /// How often it was claimed, this time included.
    pub term: i64,
    /// The resourceVersion of the last write.
    pub version: String,
}

/// The Leases of a ring, read at once.
#[derive(Clone, Debug, Default)]
pub struct RingLeases {
    /// The identities.
    pub identities: Vec<Observed>,
    /// The standbys.
    pub standbys: Vec<Observed>,
    /// The version of the list, from which a watch can go on.
    pub version: String,
}

// === impl Held ===

impl Held {
    /// The same Lease at the version that was read, if it is still held: what to go on with after a renewal whose outcome is
    /// not known, or that met a conflict.
    pub fn at(&self, read: &Observed) -> Option<Self> {
        let mine = read.shard == self.shard
            && read.term == self.term
            && read.holder.as_deref() == Some(self.holder.as_str());
        mine.then(|| Self { version: read.version.clone(), ..self.clone() })
    }
}

/// Reads one Lease.
pub async fn read(api: &Api<Lease>, seat: Seat, shard: &str) -> Result<Observed, Fault> {
    let name = seat.lease(shard);
    let lease = api.get(&name).await.map_err(|error| Fault::of(&name, error))?;
    Ok(observed(shard, &lease))
}

/// Reads all Leases of a ring.
pub async fn read_all(api: &Api<Lease>, ring: &str) -> Result<RingLeases, Fault> {
    let labelled = ListParams::default().labels(&format!("{}={ring}", names::RING_LABEL));
    let list = api.list(&labelled).await.map_err(|error| Fault::of("the ring's Leases", error))?;
    let mut found =
        RingLeases { version: list.metadata.resource_version.unwrap_or_default(), ..RingLeases::default() };
    for lease in &list.items {
        match seat_of(ring, lease) {
            Some((Seat::Identity, seen)) => found.identities.push(seen),
            Some((Seat::Standby, seen)) => found.standbys.push(seen),
            None => {}
        }
    }
    Ok(found)
}

/// Which Lease of the ring an object is, and what it says; none if it is none of the ring's.
pub fn seat_of(ring: &str, lease: &Lease) -> Option<(Seat, Observed)> {
    let (seat, shard) = Seat::of_lease(ring, lease.metadata.name.as_deref()?)?;
    Some((seat, observed(shard, lease)))
}

/// What a Lease of that shard says.
pub fn observed(shard: &str, lease: &Lease) -> Observed {
    let annotation = |name| lease.metadata.annotations.as_ref()?.get(name);
    let spec = lease.spec.as_ref();
    let holder = spec.and_then(|spec| spec.holder_identity.clone()).filter(|holder| !holder.is_empty());
    Observed {
        shard: shard.to_owned(),
        version: lease.metadata.resource_version.clone().unwrap_or_default(),
        left: annotation(names::LEFT_ANNOTATION)
            .filter(|_| holder.is_none())
            // A reason that is not known counts as the one with the longest wait.
            .map(|left| left.parse().unwrap_or(Left::Deposed)),
        acks: annotation(names::ACKS_ANNOTATION).and_then(|acks| acks.parse().ok()).unwrap_or_default(),
        term: spec.and_then(|spec| spec.lease_transitions).unwrap_or_default().into(),
        holder,
    }
}

/// Creates a Lease without a holder, with the last term that was seen, or 0.
pub async fn create(
    api: &Api<Lease>,
    ring: &str,
    seat: Seat,
    shard: &str,
    term: i64,
    left: Option<Left>,
) -> Result<Observed, Fault> {
    let annotations = left.map(|left| [(names::LEFT_ANNOTATION.to_owned(), left.to_string())].into());
    let spec = LeaseSpec { holder_identity: Some(String::new()), ..spec_of_term(term) };
    let created = post(api, ring, &seat.lease(shard), annotations, spec).await?;
    Ok(observed(shard, &created))
}

/// Claims a Lease that was read and had no holder: the term rises by one, and what the last holder did is forgotten.
pub async fn claim(api: &Api<Lease>, seat: Seat, free: &Observed, holder: &str) -> Result<Held, Fault> {
    let (name, term, now) =
        (seat.lease(&free.shard), free.term.saturating_add(1), MicroTime(Timestamp::now()));
    let change = json!({
        "metadata": {
            "resourceVersion": free.version,
            "annotations": { names::LEFT_ANNOTATION: null, names::ACKS_ANNOTATION: null },
        },
        "spec": {
            "holderIdentity": holder,
            "leaseTransitions": term,
            "leaseDurationSeconds": times::LEASE.as_secs(),
            "acquireTime": now,
            "renewTime": now,
        },
    });
    let version = patch(api, &name, &change).await?.metadata.resource_version.unwrap_or_default();
    Ok(Held { seat, shard: free.shard.clone(), holder: holder.to_owned(), term, version })
}

/// Renews a Lease that this process holds and says what it has done.
pub async fn renew(api: &Api<Lease>, held: &Held, acks: &Acks) -> Result<Held, Fault> {
    let change = json!({
        "metadata": {
            "resourceVersion": held.version,
            "annotations": { names::ACKS_ANNOTATION: acks.to_string() },
        },
        "spec": { "renewTime": MicroTime(Timestamp::now()) },
    });
    let lease = patch(api, &held.seat.lease(&held.shard), &change).await?;
    Ok(Held { version: lease.metadata.resource_version.unwrap_or_default(), ..held.clone() })
}

/// Gives a Lease up. Whoever does so must have no write under way.
pub async fn release(api: &Api<Lease>, held: &Held, left: Left) -> Result<(), Fault> {
    vacate(api, held.seat, &held.shard, &held.version, left).await.map(drop)
}

/// Writes a Lease without a holder, for that reason, if it still has that version: takes it from a silent holder, or settles
/// why it is free.
pub async fn vacate(
    api: &Api<Lease>,
    seat: Seat,
    shard: &str,
    version: &str,
    left: Left,
) -> Result<Observed, Fault> {
    let change = json!({
        "metadata": {
            "resourceVersion": version,
            "annotations": { names::LEFT_ANNOTATION: left.to_string() },
        },
        "spec": { "holderIdentity": "" },
    });
    let lease = patch(api, &seat.lease(shard), &change).await?;
    Ok(observed(shard, &lease))
}

/// Creates again a Lease that was deleted while this process held it, one term later.
pub async fn recreate(api: &Api<Lease>, ring: &str, held: &Held) -> Result<Held, Fault> {
    let term = held.term.saturating_add(1);
    let now = Some(MicroTime(Timestamp::now()));
    let spec = LeaseSpec {
        holder_identity: Some(held.holder.clone()),
        acquire_time: now.clone(),
        renew_time: now,
        ..spec_of_term(term)
    };
    let created = post(api, ring, &held.seat.lease(&held.shard), None, spec).await?;
    Ok(Held { term, version: created.metadata.resource_version.unwrap_or_default(), ..held.clone() })
}

/// Deletes a Lease, if it still has that version.
pub async fn delete(api: &Api<Lease>, seat: Seat, shard: &str, version: &str) -> Result<(), Fault> {
    let name = seat.lease(shard);
    let unchanged = Preconditions { resource_version: Some(version.to_owned()), uid: None };
    let params = DeleteParams::default().preconditions(unchanged);
    api.delete(&name, &params).await.map(drop).map_err(|error| Fault::of(&name, error))
}

async fn patch(api: &Api<Lease>, name: &str, change: &Value) -> Result<Lease, Fault> {
    let patched = api.patch(name, &PatchParams::default(), &Patch::Merge(change)).await;
    patched.map_err(|error| Fault::of(name, error))
}

async fn post(
    api: &Api<Lease>,
    ring: &str,
    name: &str,
    annotations: Option<BTreeMap<String, String>>,
    spec: LeaseSpec,
) -> Result<Lease, Fault> {
    let labels = Some([(names::RING_LABEL.to_owned(), ring.to_owned())].into());
    let metadata = ObjectMeta { name: Some(name.to_owned()), labels, annotations, ..ObjectMeta::default() };
    let lease = Lease { metadata, spec: Some(spec) };
    api.create(&PostParams::default(), &lease).await.map_err(|error| Fault::of(name, error))
}

fn spec_of_term(term: i64) -> LeaseSpec {
    LeaseSpec {
        lease_duration_seconds: i32::try_from(times::LEASE.as_secs()).ok(),
        // The API server's field has 32 bits; a term beyond it could only be forged.
        lease_transitions: Some(i32::try_from(term).unwrap_or(i32::MAX)),
        ..LeaseSpec::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(holder: &str, annotations: &[(&str, &str)]) -> Lease {
        let annotations = annotations.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let metadata = ObjectMeta {
            name: Some(Seat::Identity.lease("kcm-1")),
            resource_version: Some("77".to_owned()),
            annotations: Some(annotations.collect()),
            ..ObjectMeta::default()
        };
        let spec = LeaseSpec { holder_identity: Some(holder.to_owned()), ..spec_of_term(4) };
        Lease { metadata, spec: Some(spec) }
    }

    #[test]
    fn a_held_lease_says_who_holds_it_and_what_he_did() {
        let held = lease("a_1", &[(names::ACKS_ANNOTATION, "map=3"), (names::LEFT_ANNOTATION, "Deposed")]);
        let (seat, seen) = seat_of("kcm", &held).unwrap();
        assert_eq!(seat, Seat::Identity);
        assert_eq!((seen.holder.as_deref(), seen.term, seen.left), (Some("a_1"), 4, None));
        assert_eq!((seen.version.as_str(), seen.acks.map), ("77", 3));
        assert_eq!(seat_of("other", &held), None);
    }

    #[test]
    fn a_free_lease_says_why() {
        let free = observed("kcm-1", &lease("", &[(names::LEFT_ANNOTATION, "Graceful")]));
        assert_eq!((free.holder, free.left), (None, Some(Left::Graceful)));
    }

    #[test]
    fn acks_that_cannot_be_read_acknowledge_nothing() {
        let seen = observed("kcm-1", &lease("a_1", &[(names::ACKS_ANNOTATION, "ready=1")]));
        assert_eq!(seen.acks, Acks::default());
    }

    #[test]
    fn only_the_same_holder_in_the_same_term_holds_still() {
        let seen = observed("kcm-1", &lease("a_1", &[]));
        let held = Held {
            seat: Seat::Identity,
            shard: "kcm-1".to_owned(),
            holder: "a_1".to_owned(),
            term: 4,
            version: "70".to_owned(),
        };
        assert_eq!(held.at(&seen).map(|held| held.version), Some("77".to_owned()));
        for other in [
            Observed { term: 5, ..seen.clone() },
            Observed { holder: Some("b_1".to_owned()), ..seen.clone() },
            Observed { holder: None, ..seen },
        ] {
            assert_eq!(held.at(&other), None);
        }
    }
}
