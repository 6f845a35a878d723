//! Caches behind the proxies are equal to what the API server has after every fault of the network and of the server,
//! and the faults did happen.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code, helpers included")]

mod caches;
mod changes;
mod evidence;
mod kube_rs;
mod program;
mod readers;
mod relays;

use kube::Client;
use shoal_tests::relay::Cut;
use shoal_tests::{ControlPlane, Options, RunDir, User, widgets};

use crate::caches::{Caches, LISTING, LISTING_KUBE, STREAMING_KUBE, WATCHLIST};
use crate::changes::Changes;
use crate::readers::{READER, Readers};
use crate::relays::Relays;

/// Of all requests over HTTP/2, the most that kube-apiserver allows.
const GOAWAY_CHANCE: &str = "--goaway-chance=0.02";
const CHANGES: usize = 5000;
const CUTS: usize = 50;
const GOAWAYS: u64 = 20;
/// While bytes do not come through.
const CHANGES_UNSEEN: usize = 300;

#[tokio::test]
async fn every_cache_equals_a_list_of_what_the_shard_owns_after_every_fault() {
    let dir = RunDir::for_test("informers").unwrap();
    let mut ground = Ground::start(&dir).await;
    ground.black_holes().await;
    ground.a_restart_while_cut_off().await;
    ground.cuts_and_goaways().await;
    let mut plane = ground.leave();
    // What was still open is in its log then.
    plane.stop_apiserver();
    evidence::asked_as_they_should(&plane);
}

/// All that runs.
struct Ground {
    plane: ControlPlane,
    admin: Client,
    changes: Changes,
    readers: Readers,
    relays: Relays,
    caches: Vec<Caches>,
}

// === impl Ground ===

impl Ground {
    async fn start(dir: &RunDir) -> Self {
        let users = vec![WATCHLIST, LISTING, STREAMING_KUBE, LISTING_KUBE, READER];
        let options = Options { users, flags: vec![GOAWAY_CHANCE.to_owned()], ..Options::default() };
        let plane = ControlPlane::start(dir.path(), options).await.unwrap();
        let admin = plane.client(&User::ADMIN).await.unwrap();
        widgets::install(&admin).await.unwrap();
        let mut changes = Changes::new(admin.clone()).await;
        changes.go_on(CHANGES_UNSEEN).await;
        let relays = Relays::start(&plane).await;
        let readers = Readers::start(&plane, &relays.shards).await;
        let mut caches = Vec::new();
        for (index, relay) in relays.clients.iter().enumerate() {
            caches.push(Caches::start(&plane, &relays.shards, index, relay).await);
        }
        let mut ground = Self { plane, admin, changes, readers, relays, caches };
        ground.become_equal("start").await;
        ground
    }

    /// Bytes stop on one side of a proxy, on the other, on both; they go on, or are lost with their connections.
    async fn black_holes(&mut self) {
        let (clients, upstreams) = (&self.relays.clients, &self.relays.upstreams);
        let spared = [&clients[0], &upstreams[1]];
        let lost = [&clients[2], &upstreams[2]];
        for relay in spared.iter().chain(&lost) {
            relay.hold();
        }
        self.changes.go_on(CHANGES_UNSEEN).await;
        self.changes.mark(&self.relays.shards, "unseen").await;
        for caches in &mut self.caches {
            caches.know_nothing_of("unseen").await;
        }
        for relay in lost {
            assert!(relay.cut(Cut::Reset) > 0);
        }
        for relay in spared.into_iter().chain(lost) {
            relay.release();
        }
        self.become_equal("black-holes").await;
    }

    /// The API server loses its watch cache and etcd its history while one shard's clients and another's proxy are cut
    /// off; the third sees it happen.
    async fn a_restart_while_cut_off(&mut self) {
        let before = self.relays.seen();
        let told_before: Vec<_> = self.caches.iter().map(Caches::gone).collect();
        let rest = self.readers.first_page().await;
        let (client, upstream) = (&self.relays.clients[0], &self.relays.upstreams[1]);
        for (relay, cut) in [(client, Cut::Reset), (upstream, Cut::Close)] {
            relay.hold();
            assert!(relay.cut(cut) > 0);
        }
        self.changes.go_on(CHANGES_UNSEEN).await;
        let revision = self.plane.compact_etcd().await.unwrap();
        self.plane.stop_apiserver();
        self.plane.start_apiserver().await.unwrap();
        client.release();
        upstream.release();
        self.become_equal("restart").await;
        assert_eq!(self.readers.next_page(&rest).await, Some(410), "compacted at {revision}");
        for (index, (before, after)) in before.iter().zip(self.relays.seen()).enumerate() {
            let told = self.caches[index].gone().into_iter().zip(&told_before[index]);
            let told: Vec<_> = told.map(|(after, before)| after - before).collect();
            println!("shard {index}: 410 sent {} times, to kube-rs {told:?}", after.expired - before.expired);
            assert!(after.expired > before.expired && told.iter().all(|times| *times > 0), "shard {index}");
        }
    }

    /// Connections break on both sides, evenly among the changes, and the API server ends others in its own way.
    async fn cuts_and_goaways(&mut self) {
        let (mut cut, before) = (0, self.relays.goaways());
        for round in 0..CUTS {
            tokio::join!(self.changes.go_on(CHANGES / CUTS), self.readers.read());
            cut += self.relays.cut(round).await;
            for caches in &mut self.caches {
                caches.hold_only_own(&self.relays.shards).await;
            }
        }
        let goaways = self.relays.goaways() - before;
        println!("{CHANGES} changes, {CUTS} cuts of {cut} connections, {goaways} GOAWAYs");
        assert!(cut >= CUTS && goaways >= GOAWAYS);
        self.become_equal("cuts").await;
    }

    /// A quiet point: nothing changes, and all caches get to it.
    async fn become_equal(&mut self, when: &str) {
        self.changes.mark(&self.relays.shards, when).await;
        let everything = changes::everything(&self.admin).await;
        for caches in &mut self.caches {
            caches.become_equal(&everything, &self.relays.shards).await;
        }
        println!("equal after: {when}");
    }

    /// Ends all but the control plane.
    fn leave(self) -> ControlPlane {
        self.plane
    }
}
