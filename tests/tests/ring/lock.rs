//! Every replica leads: each holds a Lease of its own, which it knows by the name that it asked for.

use std::collections::BTreeSet;
use std::pin::pin;

use futures_util::TryStreamExt;
use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use shoal_tests::ring::Shard;
use shoal_tests::{ControlPlane, Ring, User, wait_for};

use super::DEADLINE;

const NAMESPACE: &str = "kube-system";
/// The name that a stock kube-controller-manager asks for.
const LOCK: &str = "kube-controller-manager";
/// The Lease as it was, and a renewal.
const EVENTS: usize = 2;

/// Every replica holds `<lock>-<shard>`, and through its own proxy sees that one alone, as `<lock>`.
pub(crate) async fn each_replica_leads_its_own(plane: &ControlPlane, ring: &Ring) {
    let direct = Api::<Lease>::namespaced(plane.client(&User::ADMIN).await.unwrap(), NAMESPACE);
    let mut holders = BTreeSet::new();
    for shard in &ring.shards {
        let holder = holder_upstream(&direct, shard).await;
        assert_says_that_it_leads(shard).await;
        assert_shows_its_own_alone(plane, shard, &holder).await;
        assert!(holders.insert(holder), "{}'s holder holds another lock too", shard.proxy.shard());
    }
    assert!(direct.get_opt(LOCK).await.unwrap().is_none(), "{LOCK} exists under its original name");
}

async fn holder_upstream(direct: &Api<Lease>, shard: &Shard) -> String {
    let name = format!("{LOCK}-{}", shard.proxy.shard());
    wait_for(&format!("a holder of {name}"), DEADLINE, || async {
        let lease = direct.get(&name).await.map_err(|error| error.to_string())?;
        holder(&lease).filter(|holder| !holder.is_empty()).ok_or_else(|| format!("{lease:?}"))
    })
    .await
    .unwrap()
}

fn holder(lease: &Lease) -> Option<String> {
    lease.spec.as_ref()?.holder_identity.clone()
}

/// What client-go's leader election logs when it has become the leader, which is a moment after the Lease says so.
async fn assert_says_that_it_leads(shard: &Shard) {
    let log = shard.manager.process().log_path();
    let said = format!("lock=\"{NAMESPACE}/{LOCK}\"");
    wait_for(&format!("{} to say that it leads {said}", log.display()), DEADLINE, || async {
        let text = std::fs::read_to_string(log).map_err(|error| error.to_string())?;
        let leads = |line: &str| line.contains("uccessfully acquired lease") && line.contains(&said);
        if text.lines().any(leads) { Ok(()) } else { Err(format!("{} lines", text.lines().count())) }
    })
    .await
    .unwrap();
}

async fn assert_shows_its_own_alone(plane: &ControlPlane, shard: &Shard, holder: &str) {
    let through = Api::<Lease>::namespaced(shard.proxy.client(plane, &User::ADMIN).await.unwrap(), NAMESPACE);
    let own = (LOCK.to_owned(), Some(holder.to_owned()));
    let name = shard.proxy.shard();
    assert_eq!(named(&through.get(LOCK).await.unwrap()), own, "get of {name}");
    let list = through.list(&ListParams::default()).await.unwrap();
    let locks: Vec<_> = list.iter().filter(|lease| is_lock(lease)).map(named).collect();
    assert_eq!(locks, std::slice::from_ref(&own), "list of {name}");
    assert_eq!(watched(&through).await, vec![own; EVENTS], "watch of {name}");
}

/// The first events of locks on a watch that begins with what is there.
async fn watched(api: &Api<Lease>) -> Vec<(String, Option<String>)> {
    let mut events = pin!(api.watch(&WatchParams::default(), "0").await.unwrap());
    let mut seen = Vec::new();
    while seen.len() < EVENTS {
        match events.try_next().await.unwrap() {
            Some(WatchEvent::Added(lease) | WatchEvent::Modified(lease)) if is_lock(&lease) => {
                seen.push(named(&lease));
            }
            Some(WatchEvent::Added(_) | WatchEvent::Modified(_) | WatchEvent::Bookmark(_)) => {}
            other => panic!("the watch of leases saw {other:?}"),
        }
    }
    seen
}

fn is_lock(lease: &Lease) -> bool {
    lease.name_any().starts_with(LOCK)
}

fn named(lease: &Lease) -> (String, Option<String>) {
    (lease.name_any(), holder(lease))
}
