//! `verify`: the map, the Leases and the locks against each other.

use std::path::Path;

use k8s_openapi::api::{coordination::v1::Lease, core::v1::ConfigMap};
use kube::{Api, Client};
use serde::Serialize;
use shoal_api::{Lock, LockResource, SlotState};
use shoal_sharding::{
    Left, Observed, Seat, Slot, SlotMap,
    kube::{Fault, lease},
};

use super::audit::{self, Audit};
use crate::{
    app::Answer,
    error::CliError,
    hub::{Hub, Ring},
};

/// Where a ConfigMap keeps the record of a lock (client-go, tools/leaderelection/resourcelock).
const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";

/// What was checked and found.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Verified {
    ring: String,
    map_version: i64,
    /// Slots that a shard owns.
    owned: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    audit: Option<Audit>,
    /// What is wrong, one line each.
    problems: Vec<String>,
}

/// What there is to say about `--evict`.
#[derive(Debug, Serialize)]
pub(super) struct EvictAdvice {
    advice: &'static str,
}

pub(super) async fn verify(hub: &Hub, ring: &Ring, log: Option<&Path>) -> Result<Verified, CliError> {
    // Refused whole if it has gaps, overlaps or impossible entries.
    let map = hub.map(ring).await?;
    let leases = hub.leases(ring).await?;
    let seats = leases.iter().filter_map(|object| lease::seat_of(&ring.name, object));
    let identities = seats.filter(|(seat, _)| *seat == Seat::Identity).map(|(_, lease)| lease);
    let identities: Vec<Observed> = identities.collect();
    let mut problems: Vec<String> = orphans(&map).into_iter().collect();
    problems.extend(map.owners().into_keys().filter_map(|owner| owner_flaw(owner, &identities)));
    problems.extend(identities.iter().filter_map(|lease| ack_flaw(lease, &map)));
    for lock in &ring.controller.spec.leader_election.locks {
        problems.extend(lock_flaw(&hub.client, lock, &format!("shoal/{}", ring.full_name())).await?);
    }
    let audit = log.map(|path| audit::read(path, &ring.name, &map)).transpose()?;
    problems.extend(audit.iter().flat_map(|audit| audit.foreign.iter().cloned()));
    let owned = map.owners().values().sum();
    Ok(Verified { ring: ring.full_name(), map_version: map.version(), owned, audit, problems })
}

/// What there is to say about `--evict`.
pub(super) fn evict() -> EvictAdvice {
    let advice = "Whether a controller survives handover.mode Evict cannot be seen from outside: it has to be tried.\n\
        Run a copy of it in a test cluster as a ring with that mode, move slots to and fro under load (shoal shard\n\
        move), and look in the audit log for deletions that nobody asked for; `make chaos` of this repository does so\n\
        with its own controllers. Nothing was checked now. Never use Evict for a garbage collector.";
    EvictAdvice { advice }
}

fn orphans(map: &SlotMap) -> Option<String> {
    let orphans = (0..=u8::MAX).filter(|slot| map.entry(Slot(*slot)).state == SlotState::Orphan).count();
    (orphans > 0).then(|| format!("{orphans} slots have no owner"))
}

fn owner_flaw(owner: &str, identities: &[Observed]) -> Option<String> {
    match identities.iter().find(|lease| lease.shard == owner) {
        None => Some(format!("{owner} owns slots and has no Lease")),
        Some(Observed { holder: Some(_), .. } | Observed { left: Some(Left::Graceful), .. }) => None,
        Some(_) => Some(format!("{owner} owns slots and has no holder")),
    }
}

/// Whether a shard says of itself what the map rules out.
fn ack_flaw(lease: &Observed, map: &SlotMap) -> Option<String> {
    let shard = &lease.shard;
    if lease.acks.map > map.version() {
        return Some(format!("{shard} has seen map {}, which is newer than the map", lease.acks.map));
    }
    let kept = |(slot, epoch): &&(Slot, i64)| map.owned_at(*slot, shard) == Some(*epoch);
    let (slot, epoch) = lease.acks.released.iter().find(kept)?;
    Some(format!("{shard} let go of slot {slot} at epoch {epoch}, and the map says it owns it"))
}

async fn lock_flaw(client: &Client, lock: &Lock, holder: &str) -> Result<Option<String>, CliError> {
    let what = format!("the lock {}/{}", lock.namespace, lock.name);
    let found = lock_holder(client, lock).await.map_err(|error| Fault::of(&what, error))?;
    Ok(match found.as_deref() {
        Some(found) if found == holder => None,
        Some("") | None => {
            Some(format!("{what} is free: a replica without a proxy could lead beside the shards"))
        }
        Some(other) => Some(format!("{what} is held by {other}, who leads beside the shards")),
    })
}

async fn lock_holder(client: &Client, lock: &Lock) -> Result<Option<String>, kube::Error> {
    match lock.resource {
        LockResource::Leases => {
            let api: Api<Lease> = Api::namespaced(client.clone(), &lock.namespace);
            Ok(api.get_opt(&lock.name).await?.and_then(|lease| lease.spec?.holder_identity))
        }
        LockResource::ConfigMaps => {
            let api: Api<ConfigMap> = Api::namespaced(client.clone(), &lock.namespace);
            let annotations = api.get_opt(&lock.name).await?.and_then(|map| map.metadata.annotations);
            let text = annotations.and_then(|mut all| all.remove(LEADER));
            let record: Option<serde_json::Value> = text.and_then(|text| serde_json::from_str(&text).ok());
            Ok(record.and_then(|record| Some(record.get("holderIdentity")?.as_str()?.to_owned())))
        }
    }
}

impl Answer for Verified {
    fn text(&self, _: bool) -> String {
        let mut lines: Vec<String> =
            self.problems.iter().map(|problem| format!("wrong: {problem}")).collect();
        lines.extend(self.audit.as_ref().map(|audit| {
            format!("audit log: {} writes of the ring, {} foreign", audit.writes, audit.foreign.len())
        }));
        lines
            .push(format!("ring {}, map {}: {} of 256 slots owned", self.ring, self.map_version, self.owned));
        lines.push(if self.is_good() { "ok" } else { "not ok" }.to_owned());
        lines.join("\n") + "\n"
    }

    fn is_good(&self) -> bool {
        self.problems.is_empty()
    }
}

impl Answer for EvictAdvice {
    fn text(&self, _: bool) -> String {
        format!("{}\n", self.advice)
    }

    fn is_good(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(left: Option<Left>, holder: Option<&str>) -> Vec<Observed> {
        let holder = holder.map(str::to_owned);
        vec![Observed { shard: "k-0".to_owned(), left, holder, ..Observed::default() }]
    }

    #[test]
    fn an_owner_is_held_or_about_to_be() {
        assert_eq!(owner_flaw("k-0", &lease(None, Some("a"))), None);
        assert_eq!(owner_flaw("k-0", &lease(Some(Left::Graceful), None)), None);
        assert!(owner_flaw("k-0", &lease(Some(Left::Deposed), None)).is_some());
        assert!(owner_flaw("k-1", &lease(None, Some("a"))).is_some());
    }
}
