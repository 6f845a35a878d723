//! Each key mode divides objects exactly: every object is shown to and written by one shard, and which one follows from
//! the mode. A name that the API server would choose is chosen so that the creating shard owns it. Where the uid decides,
//! a server that can leaves out foreign objects by itself, and one that cannot changes nothing but the bytes sent.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code, helpers included")]

mod clusters;
mod fixture;
mod names;
mod refusing;
mod selectors;
mod uids;

use shoal_tests::RunDir;

use self::fixture::Fixture;

#[tokio::test]
async fn every_key_mode_divides_objects_among_the_shards() {
    let dir = RunDir::for_test("keys").unwrap();
    let fixture = Fixture::start(dir.path()).await;
    names::are_drawn_from_own_slots(&fixture).await;
    names::decide_about_writes(&fixture).await;
    clusters::have_one_owner(&fixture).await;
    selectors::every_resource_takes_one(&fixture).await;
    let mut created = 0;
    for cluster in &fixture.clusters {
        created += uids::divide_reads(&fixture, cluster).await;
        created += uids::decide_about_writes(&fixture, cluster).await;
    }
    fixture.judge(created);
}
