//! A manager of controller-runtime and a controller of kube-rs come to the same end behind one API server alone and as
//! three shards of a ring, after an hour of changes at sixty times its speed.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code, helpers included")]

mod changes;
mod gadgets;
mod kube_rs;
mod world;

use shoal_tests::RunDir;

use crate::changes::Changes;
use crate::world::World;

/// One a second for an hour.
const CHANGES: usize = 3600;
/// Of them at the most so many at once before the controllers have caught up, so that they meet both a burst and quiet.
const BURST: usize = 900;

#[tokio::test]
async fn an_hour_of_changes_ends_the_same_direct_and_as_shards() {
    let dir = RunDir::for_test("controllers").unwrap();
    let (direct, ring) = tokio::join!(World::direct(dir.path()), World::ring(dir.path()));
    let mut changes = Changes::new();
    tokio::join!(direct.make_namespaces(), ring.make_namespaces());
    for _ in 0..CHANGES / BURST {
        let (burst, wanted) = changes.next(BURST);
        tokio::join!(direct.apply(&burst), ring.apply(&burst));
        tokio::join!(direct.settles(&wanted), ring.settles(&wanted));
    }
    direct.tell();
    ring.tell();
    ring.refused_nothing().await;
}
