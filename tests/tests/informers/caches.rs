//! The caches behind one shard, and what they are to hold.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use shoal_tests::relay::Relay;
use shoal_tests::{ControlPlane, Shards, User, kubeconfig, wait_for};

use crate::kube_rs::Watchers;
use crate::program::Informer;
use crate::relays::via;

/// A client that lost its connection often waits up to half a minute before it comes back.
pub(crate) const DEADLINE: Duration = Duration::from_mins(5);

pub(crate) const WATCHLIST: User = whoever("client-go-watchlist");
pub(crate) const LISTING: User = whoever("client-go-list");
pub(crate) const STREAMING_KUBE: User = whoever("kube-rs-streaming");
pub(crate) const LISTING_KUBE: User = whoever("kube-rs-list");

/// What a cache holds, as `<store> <namespace>/<name> <uid> <resourceVersion>`.
pub(crate) type Lines = BTreeSet<String>;

/// The caches behind one shard.
pub(crate) struct Caches {
    shard: String,
    informers: Vec<Informer>,
    watchers: Vec<Watchers>,
}

/// A user of its own for each sort of client, so that the audit log tells them apart.
pub(crate) const fn whoever(name: &'static str) -> User {
    User { name, groups: &["system:masters"] }
}

// === impl Caches ===

impl Caches {
    pub(crate) async fn start(plane: &ControlPlane, shards: &Shards, index: usize, relay: &Relay) -> Self {
        let proxy = &shards.proxies[index];
        let config = |user| via(plane, &format!("relay-{index}"), relay, proxy.ca(), user);
        let informers = vec![
            Informer::start(&config(&WATCHLIST), true, plane.dir()),
            Informer::start(&config(&LISTING), false, plane.dir()),
        ];
        let streaming = kubeconfig::client(&config(&STREAMING_KUBE)).await.unwrap();
        let listing = kubeconfig::client(&config(&LISTING_KUBE)).await.unwrap();
        let watchers = vec![Watchers::start(&streaming, true), Watchers::start(&listing, false)];
        Self { shard: proxy.shard().to_owned(), informers, watchers }
    }

    /// Waits until each store is what its shard owns of `everything`.
    pub(crate) async fn become_equal(&mut self, everything: &BTreeMap<String, Vec<String>>, shards: &Shards) {
        let own = own(everything, shards, &self.shard);
        for informer in &mut self.informers {
            let expected: Lines =
                own.iter().flat_map(|line| [line.clone(), line.replacen(' ', "/metadata ", 1)]).collect();
            let what = format!("{} of {}", informer.name(), self.shard);
            let informer = tokio::sync::Mutex::new(informer);
            let look = || async { differ(&expected, &informer.lock().await.print().await) };
            wait_for(&what, DEADLINE, look).await.unwrap();
        }
        for watchers in &self.watchers {
            let what = format!("{} of {}", watchers.name(), self.shard);
            wait_for(&what, DEADLINE, || async { differ(&own, &watchers.print()) }).await.unwrap();
        }
        self.hold_only_own(shards).await;
    }

    /// Nothing of another shard is in a store now, nor was kube-rs ever told of it.
    pub(crate) async fn hold_only_own(&mut self, shards: &Shards) {
        for (name, lines) in self.print().await {
            let foreign = lines.iter().find(|line| !is_own(line, shards, &self.shard));
            assert_eq!(foreign, None, "in {name} of {}", self.shard);
        }
        for watchers in &self.watchers {
            let told = watchers.record().namespaces;
            let foreign = told.iter().find(|line| !is_own(line, shards, &self.shard));
            assert_eq!(foreign, None, "told to {} of {}", watchers.name(), self.shard);
        }
    }

    /// No store has an object of this name: what happened to it has not come through.
    pub(crate) async fn know_nothing_of(&mut self, name: &str) {
        let wanted = format!("/{name} ");
        for (cache, lines) in self.print().await {
            let known = lines.iter().find(|line| line.contains(&wanted));
            assert_eq!(known, None, "in {cache} of {}", self.shard);
        }
    }

    /// How often each of kube-rs' caches was told 410.
    pub(crate) fn gone(&self) -> Vec<usize> {
        self.watchers.iter().map(|watchers| watchers.record().gone).collect()
    }

    async fn print(&mut self) -> Vec<(String, Lines)> {
        let mut all = Vec::new();
        for informer in &mut self.informers {
            all.push((informer.name().to_owned(), informer.print().await));
        }
        all.extend(self.watchers.iter().map(|watchers| (watchers.name().to_owned(), watchers.print())));
        all
    }
}

/// The lines of a shard's own namespaces.
fn own(everything: &BTreeMap<String, Vec<String>>, shards: &Shards, shard: &str) -> Lines {
    everything.values().flatten().filter(|line| is_own(line, shards, shard)).cloned().collect()
}

/// `ConfigMaps` of kube-system are everybody's in this ring.
fn is_own(line: &str, shards: &Shards, shard: &str) -> bool {
    let (store, object) = line.split_once(' ').unwrap();
    let (namespace, _) = object.split_once('/').unwrap();
    shards.owner(namespace) == shard || (namespace == "kube-system" && store.starts_with("configmaps"))
}

fn differ(expected: &Lines, seen: &Lines) -> Result<(), String> {
    let some = |lines: Vec<&String>| format!("{} such as {:?}", lines.len(), lines.first());
    let missing: Vec<_> = expected.difference(seen).collect();
    let wrong: Vec<_> = seen.difference(expected).collect();
    if missing.is_empty() && wrong.is_empty() {
        return Ok(());
    }
    Err(format!("{} expected, {} missing, {} wrong", expected.len(), some(missing), some(wrong)))
}
