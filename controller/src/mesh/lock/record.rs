//! The record in a leader election lock, in both of its forms, as client-go keeps it (tools/leaderelection/resourcelock).

use std::{collections::BTreeMap, time::Duration};

use jiff::{Timestamp, Unit};
use k8s_openapi::{
    api::{
        coordination::v1::{Lease, LeaseSpec},
        core::v1::ConfigMap,
    },
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api, Client,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use shoal_api::{Lock, LockResource};
use shoal_sharding::kube::Fault;

use super::DURATION;

/// Where a ConfigMap keeps the record.
const ANNOTATION: &str = "control-plane.alpha.kubernetes.io/leader";

/// Who holds a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Empty if nobody does.
    pub holder: String,
    /// How long it holds after a renewal.
    pub duration: Duration,
    /// How often it changed hands.
    pub transitions: i64,
    /// The object's resourceVersion.
    pub version: String,
}

/// The record as JSON, in a ConfigMap.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Text {
    holder_identity: String,
    lease_duration_seconds: u64,
    acquire_time: Option<Timestamp>,
    renew_time: Option<Timestamp>,
    leader_transitions: i64,
}

/// The record of a lock; none if the object is absent.
pub(super) async fn read(client: &Client, lock: &Lock) -> Result<Option<Record>, Fault> {
    let found = match lock.resource {
        LockResource::Leases => {
            leases(client, lock).get_opt(&lock.name).await.map(|lease| lease.map(of_lease))
        }
        LockResource::ConfigMaps => {
            maps(client, lock).get_opt(&lock.name).await.map(|map| map.map(|map| of_map(&map)))
        }
    };
    found.map_err(|error| Fault::of(&what(lock), error))
}

/// Becomes its holder: of the object that was read, or of a new one. Gives the version written.
pub(super) async fn take(
    client: &Client,
    lock: &Lock,
    found: Option<&Record>,
    holder: &str,
) -> Result<String, Fault> {
    let Some(found) = found else { return create(client, lock, holder).await };
    let taken = Record {
        holder: holder.to_owned(),
        duration: DURATION,
        transitions: found.transitions.saturating_add(1),
        version: found.version.clone(),
    };
    write(client, lock, &taken, true).await
}

/// Renews a lock that is held.
pub(super) async fn renew(client: &Client, lock: &Lock, found: &Record) -> Result<String, Fault> {
    write(client, lock, &Record { duration: DURATION, ..found.clone() }, false).await
}

/// Gives a lock up; a second is the shortest duration that a Lease may have, and what client-go writes here.
pub(super) async fn release(client: &Client, lock: &Lock, found: &Record) -> Result<(), Fault> {
    let free = Record { holder: String::new(), duration: Duration::from_secs(1), ..found.clone() };
    write(client, lock, &free, true).await.map(drop)
}

async fn create(client: &Client, lock: &Lock, holder: &str) -> Result<String, Fault> {
    let (params, name, now) = (PostParams::default(), Some(lock.name.clone()), Timestamp::now());
    let created = match lock.resource {
        LockResource::Leases => {
            let spec = LeaseSpec {
                holder_identity: Some(holder.to_owned()),
                lease_duration_seconds: i32::try_from(DURATION.as_secs()).ok(),
                lease_transitions: Some(0),
                acquire_time: Some(MicroTime(now)),
                renew_time: Some(MicroTime(now)),
                ..LeaseSpec::default()
            };
            let metadata = ObjectMeta { name, ..ObjectMeta::default() };
            let lease = Lease { metadata, spec: Some(spec) };
            leases(client, lock).create(&params, &lease).await.map(|lease| lease.metadata)
        }
        LockResource::ConfigMaps => {
            let annotations: BTreeMap<_, _> =
                [(ANNOTATION.to_owned(), text(holder, DURATION, 0, now))].into();
            let metadata = ObjectMeta { name, annotations: Some(annotations), ..ObjectMeta::default() };
            let map = ConfigMap { metadata, ..ConfigMap::default() };
            maps(client, lock).create(&params, &map).await.map(|map| map.metadata)
        }
    };
    version(lock, created)
}

/// Writes a record in the place of the one at its version.
async fn write(client: &Client, lock: &Lock, record: &Record, acquired: bool) -> Result<String, Fault> {
    let (params, now) = (PatchParams::default(), Timestamp::now());
    let written = match lock.resource {
        LockResource::Leases => {
            let mut change = json!({
                "metadata": { "resourceVersion": record.version },
                "spec": {
                    "holderIdentity": record.holder,
                    "leaseDurationSeconds": record.duration.as_secs(),
                    "leaseTransitions": record.transitions,
                    "renewTime": MicroTime(now),
                },
            });
            if acquired {
                change["spec"]["acquireTime"] = json!(MicroTime(now));
            }
            let patch = Patch::Merge(&change);
            leases(client, lock).patch(&lock.name, &params, &patch).await.map(|lease| lease.metadata)
        }
        LockResource::ConfigMaps => {
            let leader = text(&record.holder, record.duration, record.transitions, now);
            let change = json!({
                "metadata": { "resourceVersion": record.version, "annotations": { ANNOTATION: leader } },
            });
            let patch = Patch::Merge(&change);
            maps(client, lock).patch(&lock.name, &params, &patch).await.map(|map| map.metadata)
        }
    };
    version(lock, written)
}

fn version(lock: &Lock, written: Result<ObjectMeta, kube::Error>) -> Result<String, Fault> {
    let metadata = written.map_err(|error| Fault::of(&what(lock), error))?;
    Ok(metadata.resource_version.unwrap_or_default())
}

fn of_lease(lease: Lease) -> Record {
    let spec = lease.spec.unwrap_or_default();
    Record {
        holder: spec.holder_identity.unwrap_or_default(),
        duration: Duration::from_secs(
            spec.lease_duration_seconds.and_then(|s| s.try_into().ok()).unwrap_or_default(),
        ),
        transitions: spec.lease_transitions.unwrap_or_default().into(),
        version: lease.metadata.resource_version.unwrap_or_default(),
    }
}

/// A record that cannot be read counts as nobody's, as it does for client-go.
fn of_map(map: &ConfigMap) -> Record {
    let text = map.metadata.annotations.as_ref().and_then(|annotations| annotations.get(ANNOTATION));
    let text: Text = text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    Record {
        holder: text.holder_identity,
        duration: Duration::from_secs(text.lease_duration_seconds),
        transitions: text.leader_transitions,
        version: map.metadata.resource_version.clone().unwrap_or_default(),
    }
}

/// Times in whole seconds, as metav1.Time reads and writes them.
fn text(holder: &str, duration: Duration, transitions: i64, now: Timestamp) -> String {
    let now = now.round(Unit::Second).unwrap_or(now);
    let record = Text {
        holder_identity: holder.to_owned(),
        lease_duration_seconds: duration.as_secs(),
        acquire_time: Some(now),
        renew_time: Some(now),
        leader_transitions: transitions,
    };
    serde_json::to_string(&record).unwrap_or_default()
}

fn leases(client: &Client, lock: &Lock) -> Api<Lease> {
    Api::namespaced(client.clone(), &lock.namespace)
}

fn maps(client: &Client, lock: &Lock) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), &lock.namespace)
}

fn what(lock: &Lock) -> String {
    format!("the lock {}/{}", lock.namespace, lock.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_in_a_config_map_is_read_as_client_go_writes_it() {
        let record = r#"{"holderIdentity":"a_1","leaseDurationSeconds":15,"acquireTime":"2026-01-01T00:00:00Z",
            "renewTime":"2026-01-01T00:00:02Z","leaderTransitions":3,"strategy":"","preferredHolder":""}"#;
        let map = |text: &str| {
            let annotations = Some([(ANNOTATION.to_owned(), text.to_owned())].into());
            let metadata = ObjectMeta { annotations, ..ObjectMeta::default() };
            ConfigMap { metadata, ..ConfigMap::default() }
        };
        let read = of_map(&map(record));
        assert_eq!((read.holder.as_str(), read.duration.as_secs(), read.transitions), ("a_1", 15, 3));
        assert_eq!(of_map(&map("{")).holder, "");
        let own = of_map(&map(&text("shoal/a/b", DURATION, 4, Timestamp::now())));
        assert_eq!((own.holder.as_str(), own.duration, own.transitions), ("shoal/a/b", DURATION, 4));
    }
}
