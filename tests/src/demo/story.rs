//! What happens in the demo, in order.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};

use super::changes::Changes;
use super::screen::{Screen, bar, table};
use super::stand::Stand;
use super::verdict::Verdict;
use super::{DemoError, Outcome, objects};
use crate::load::{DB, ONCE, Progress, WEB};
use crate::{Load, User, wait_for};

const NAMESPACES: usize = 12;
/// For each wait; a loaded machine needs a good part of it.
const DEADLINE: Duration = Duration::from_mins(4);
const BAR: usize = 12;

/// The namespace and name of the controllers' lock.
const LOCK: (&str, &str) = ("kube-system", "kube-controller-manager");

/// Tells everything, and what came of it.
pub(super) async fn tell(stand: &Stand, screen: &Screen) -> Result<Outcome, DemoError> {
    elect(stand, screen).await?;
    let load = fill(stand, screen).await?;
    screen.step("What each replica was shown and wrote, by its metrics and the API server's audit log");
    judge(stand, screen, "").await?;
    let (asked, left) = change(stand, screen, &load).await?;
    screen.step("The same again, over everything");
    let verdict = judge(stand, screen, &asked).await?;
    let objects = objects::count(&stand.client, &stand.rules, &left.namespaces).await?;
    look_next(stand, screen);
    Ok(Outcome {
        shards: stand.shards().len(),
        objects,
        writes: verdict.writes(),
        foreign: verdict.foreign(),
    })
}

/// Each replica leads: one lock in its own eyes, three at the API server.
async fn elect(stand: &Stand, screen: &Screen) -> Result<(), DemoError> {
    screen.step("Each replica leads its own shard: to it the lock is kube-controller-manager");
    let mut rows = vec![["shard", "Lease at the API server", "held by"].map(str::to_owned).to_vec()];
    for shard in &stand.ring.shards {
        let (name, lock) = (shard.proxy.shard(), format!("{}-{}", LOCK.1, shard.proxy.shard()));
        let what = format!("a holder of Lease {lock}");
        let held = wait_for(&what, DEADLINE, || holder(&stand.client, &lock)).await?;
        let own = shard.proxy.client(&stand.cluster.control_plane, &User::CONTROLLER_MANAGER).await?;
        let read = holder(&own, LOCK.1).await.unwrap_or_else(|reason| reason);
        if read != held {
            return Err(DemoError::Lease { shard: name.to_owned(), read, held });
        }
        rows.push(vec![name.to_owned(), lock, held]);
    }
    show_shards(screen, &rows);
    Ok(())
}

/// Who holds a lock, or why nobody does.
async fn holder(client: &Client, lock: &str) -> Result<String, String> {
    let api: Api<Lease> = Api::namespaced(client.clone(), LOCK.0);
    let lease = api.get(lock).await.map_err(|error| error.to_string())?;
    let holder = lease.spec.and_then(|spec| spec.holder_identity).filter(|holder| !holder.is_empty());
    holder.ok_or_else(|| "nobody".to_owned())
}

async fn fill(stand: &Stand, screen: &Screen) -> Result<Load, DemoError> {
    let load = Load::new(NAMESPACES);
    let sizes = load.sizes;
    screen.step(&format!(
        "Creating {NAMESPACES} namespaces: Deployment {WEB} ({}), StatefulSet {DB} ({}), Job {ONCE} ({}), Service {WEB}",
        sizes.web, sizes.db, sizes.once
    ));
    for (index, shard) in stand.shards().into_iter().enumerate() {
        let owned = stand.owned(shard, &load.namespaces);
        let named = owned.iter().map(|name| format!("{name} (slot {})", stand.owner(name).0));
        screen.shard_line(index, &format!("{shard}   {}", named.collect::<Vec<_>>().join("  ")));
    }
    load.create(&stand.client).await?;
    settle(stand, screen, &load, "").await?;
    Ok(load)
}

/// A ring that does not get there has most likely done something else, which the judge can name.
async fn settle(stand: &Stand, screen: &Screen, load: &Load, asked: &str) -> Result<(), DemoError> {
    let live = screen.live();
    let show = |progress: &Progress| live.show(&progress_line(progress));
    if let Err(error) = load.wait_settled(&stand.client, DEADLINE, show).await {
        live.end("not settled");
        judge(stand, screen, asked).await?;
        return Err(error.into());
    }
    let progress = load.progress(&stand.client).await?;
    live.end(&format!("{}  settled", progress_line(&progress)));
    Ok(())
}

fn progress_line(progress: &Progress) -> String {
    let (done, of) =
        progress.all().iter().fold((0, 0), |(done, of), (_, count)| (done + count.settled, of + count.of));
    format!("{}  {progress}", bar(done, of, BAR))
}

async fn judge(stand: &Stand, screen: &Screen, asked: &str) -> Result<Verdict, DemoError> {
    let verdict = Verdict::of(stand, asked).await?;
    for line in table(&verdict.rows(), true) {
        screen.line(&line);
    }
    for finding in verdict.findings() {
        screen.bad(&finding);
    }
    verdict.check()?;
    screen.good(&verdict.closing());
    Ok(verdict)
}

/// Returns what was asked to be deleted, and the load as it is then.
async fn change(stand: &Stand, screen: &Screen, load: &Load) -> Result<(String, Load), DemoError> {
    let changes = Changes::plan(stand, load);
    screen.step("Changing things in namespaces of every shard");
    for line in changes.describe() {
        screen.line(&line);
    }
    changes.make(&stand.client).await?;
    let left = changes.left(load);
    settle(stand, screen, &left, &changes.asked()).await?;
    changes.wait_deleted(&stand.client, DEADLINE).await?;
    Ok((changes.asked(), left))
}

fn look_next(stand: &Stand, screen: &Screen) {
    let logs = super::keep::short(stand.cluster.control_plane.dir());
    screen.step("Where to look next");
    for (place, what) in [
        ("README.md", "what Shoal is, and how to run a proxy"),
        ("examples/kube-controller-manager/", "the ring of this demo and its map"),
        (logs.as_str(), "logs: kcm-0.log, proxy-kcm-0.log, audit.log"),
        ("make demo KEEP=1", "the same, left up for you to try"),
    ] {
        screen.line(&format!("{place:<36}{what}"));
    }
}

/// A header, then a row for each shard in its colour.
fn show_shards(screen: &Screen, rows: &[Vec<String>]) {
    for (index, line) in table(rows, false).iter().enumerate() {
        match index.checked_sub(1) {
            Some(shard) => screen.shard_line(shard, line),
            None => screen.line(line),
        }
    }
}
