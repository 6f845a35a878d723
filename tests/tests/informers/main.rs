//! Caches behind the proxies end equal to what the API server has, whatever happened to their connections meanwhile.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code, helpers included")]

mod changes;
mod kube_rs;
mod program;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use shoal_tests::relay::{Cut, Relay};
use shoal_tests::{ControlPlane, Options, RunDir, Shards, User, kubeconfig, wait_for, widgets};

use crate::changes::Changes;
use crate::kube_rs::Watchers;
use crate::program::Informer;

const CHANGES: usize = 5000;
const CUTS: usize = 50;
/// A client that lost its connection often waits up to half a minute before it comes back.
const DEADLINE: Duration = Duration::from_mins(5);

const WATCHLIST: User = whoever("client-go-watchlist");
const LISTING: User = whoever("client-go-list");
const STREAMING_KUBE: User = whoever("kube-rs-streaming");
const LISTING_KUBE: User = whoever("kube-rs-list");

/// What a cache holds, as `<store> <namespace>/<name> <uid> <resourceVersion>`.
type Lines = BTreeSet<String>;

/// A user of its own for each sort of client, so that the audit log tells them apart.
const fn whoever(name: &'static str) -> User {
    User { name, groups: &["system:masters"] }
}

#[tokio::test]
async fn every_cache_ends_equal_to_a_list_of_what_the_shard_owns() {
    let dir = RunDir::for_test("informers").unwrap();
    let users = vec![WATCHLIST, LISTING, STREAMING_KUBE, LISTING_KUBE];
    let mut plane = ControlPlane::start(dir.path(), Options { users, ..Options::default() }).await.unwrap();
    let admin = plane.client(&User::ADMIN).await.unwrap();
    widgets::install(&admin).await.unwrap();
    let mut changes = Changes::new(admin.clone()).await;
    let relays = Relays::start(&plane).await;
    let mut caches = Vec::new();
    for (index, relay) in relays.clients.iter().enumerate() {
        caches.push(Caches::start(&plane, &relays.shards, index, relay).await);
    }

    let cut = cut_while_changing(&mut changes, &relays).await;
    println!("{CHANGES} changes, {CUTS} cuts of {cut} connections");
    assert!(cut >= CUTS);
    let everything = changes::everything(&admin).await;
    for caches in &mut caches {
        caches.become_equal(&everything, &relays.shards).await;
    }
    drop((caches, relays));
    // What was still open is in its log then.
    plane.stop_apiserver();
    asked_as_they_should(&plane);
}

/// The shards, with a relay on each side of each proxy.
struct Relays {
    clients: Vec<Relay>,
    upstreams: Vec<Relay>,
    shards: Shards,
}

/// The caches behind one shard.
struct Caches {
    shard: String,
    informers: Vec<Informer>,
    watchers: Vec<Watchers>,
}

// === impl Relays ===

impl Relays {
    async fn start(plane: &ControlPlane) -> Self {
        let (mut upstreams, mut kubeconfigs) = (Vec::new(), Vec::new());
        for index in 0..3 {
            let relay = Relay::start(address(plane.url())).await.unwrap();
            kubeconfigs.push(via(plane, &format!("upstream-{index}"), &relay, &plane.pki().ca, &User::ADMIN));
            upstreams.push(relay);
        }
        let shards = Shards::start(plane, &kubeconfigs).await.unwrap();
        let mut clients = Vec::new();
        for proxy in &shards.proxies {
            clients.push(Relay::start(address(proxy.url())).await.unwrap());
        }
        Self { clients, upstreams, shards }
    }

    /// Both sides of each shard in turn, both ways to end a connection on each.
    fn nth(&self, cut: usize) -> (&Relay, Cut) {
        let all: Vec<&Relay> = self.clients.iter().chain(&self.upstreams).collect();
        let how = if (cut / all.len()).is_multiple_of(2) { Cut::Reset } else { Cut::Close };
        (all[cut % all.len()], how)
    }
}

// === impl Caches ===

impl Caches {
    async fn start(plane: &ControlPlane, shards: &Shards, index: usize, relay: &Relay) -> Self {
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
    async fn become_equal(&mut self, everything: &BTreeMap<String, Vec<String>>, shards: &Shards) {
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
    }
}

/// Changes objects and cuts connections, evenly among the changes; returns how many connections it cut.
async fn cut_while_changing(changes: &mut Changes, relays: &Relays) -> usize {
    let mut cut = 0;
    for round in 0..CUTS {
        changes.go_on(CHANGES / CUTS).await;
        let (relay, how) = relays.nth(round);
        let held = || async { if relay.held() > 0 { Ok(()) } else { Err("nobody is connected") } };
        wait_for("a connection to cut", DEADLINE, held).await.unwrap();
        cut += relay.cut(how);
    }
    changes.finish(&relays.shards).await;
    cut
}

/// The lines of a shard's own namespaces; `ConfigMaps` of kube-system are everybody's in this ring.
fn own(everything: &BTreeMap<String, Vec<String>>, shards: &Shards, shard: &str) -> Lines {
    let is_own = |line: &str, namespace: &str| {
        shards.owner(namespace) == shard || (namespace == "kube-system" && line.starts_with("configmaps "))
    };
    let lines =
        everything.iter().flat_map(|(namespace, lines)| lines.iter().map(move |line| (namespace, line)));
    lines.filter(|(namespace, line)| is_own(line, namespace)).map(|(_, line)| line.clone()).collect()
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

/// The audit log's own word for how each client got its state.
fn asked_as_they_should(plane: &ControlPlane) {
    let log = std::fs::File::open(plane.audit_log()).unwrap();
    let mut asked: BTreeMap<(String, &str), usize> = BTreeMap::new();
    for event in shoal_judge::read_events(std::io::BufReader::new(log)) {
        let event = event.unwrap();
        let uri = &event.request_uri;
        let how = match event.verb.as_str() {
            "watch" if uri.contains("sendInitialEvents=true") => "streaming",
            "watch" => "watch",
            "list" => "list",
            _ => continue,
        };
        if uri.contains("/configmaps?") || uri.contains("/widgets?") {
            *asked.entry((event.user.username.clone(), how)).or_default() += 1;
        }
    }
    let count = |user: &User, how| asked.get(&(user.name.to_owned(), how)).copied().unwrap_or_default();
    // client-go lists once where a WatchList breaks off before its bookmark (reflector.go, ListAndWatchWithContext).
    assert!(count(&WATCHLIST, "streaming") > count(&WATCHLIST, "list"), "{asked:?}");
    assert!(count(&STREAMING_KUBE, "streaming") > 0 && count(&STREAMING_KUBE, "list") == 0, "{asked:?}");
    for user in [LISTING, LISTING_KUBE] {
        assert!(count(&user, "list") > 0 && count(&user, "watch") > 0, "{asked:?}");
        assert_eq!(count(&user, "streaming"), 0, "{asked:?}");
    }
}

fn address(url: &str) -> SocketAddr {
    url.strip_prefix("https://").unwrap().parse().unwrap()
}

fn via(plane: &ControlPlane, name: &str, relay: &Relay, ca: &std::path::Path, user: &User) -> PathBuf {
    plane.kubeconfig_via(name, user, &format!("https://{}", relay.address()), ca).unwrap()
}
