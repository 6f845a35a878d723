//! Changes of the view, as open watches are told of them.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, future::join_all, stream};
use shoal_sharding::Slots;
use tokio::time::{sleep, timeout};

use super::{View, heights::levels, splice::Burst, watching::Watching};

/// How many watches have their objects fetched at the same time.
const AT_ONCE: usize = 8;
/// How long a change waits for objects that nobody got ready.
const PREPARE: Duration = Duration::from_secs(10);
/// How long it waits for the initial events of a watch to end.
const BEGIN: Duration = Duration::from_secs(2);
/// How long it waits for a client that does not read.
const FLUSH: Duration = Duration::from_secs(2);
/// How long clients get to take in children before they see their owners, and how much longer for each of them.
const SETTLE: Duration = Duration::from_millis(30);
const SETTLE_EACH: Duration = Duration::from_micros(100);
/// No more than that for all of them.
const SETTLE_MOST: Duration = Duration::from_secs(1);

/// Gets the objects of these slots ready for these watches.
pub(super) async fn prepare(watches: &[Arc<Watching>], slots: Slots) {
    let prepared = stream::iter(watches).for_each_concurrent(AT_ONCE, |watching| watching.prepare(slots));
    prepared.await;
}

/// Tells every watch that these slots come, or go. Lists and new watches follow before the last event is told, so a watch
/// that opens meanwhile is told as if it had been there; one that cannot be told ends. Returns those that ended.
pub(super) async fn burst(view: &View, slots: Slots, burst: Burst) -> Vec<Arc<Watching>> {
    let watches = view.watches();
    if timeout(PREPARE, prepare(&watches, slots)).await.is_err() {
        tracing::warn!(
            ?slots,
            "the objects of slots on their way are not all there; watches will begin anew"
        );
    }
    let begun = join_all(watches.iter().map(|watching| watching.begun()));
    let _ = timeout(BEGIN, begun).await;
    let mut told: Vec<Arc<Watching>> =
        watches.into_iter().filter(|watching| watching.is_ready(&slots)).collect();
    tell(&mut told, &slots, burst).await;
    let all = view.turn_over(&slots, burst);
    let mut ended = Vec::new();
    for watching in &all {
        if told.iter().any(|one| Arc::ptr_eq(one, watching)) && watching.is_ready(&slots) {
            watching.finish(&slots, burst);
        } else {
            watching.expire();
            ended.push(watching.clone());
        }
    }
    let finished = told.clone();
    flush(&mut told).await;
    let is_told = |watching: &Arc<Watching>| told.iter().any(|one| Arc::ptr_eq(one, watching));
    ended.extend(finished.into_iter().filter(|watching| !is_told(watching)));
    ended
}

/// Level by level; owners wait until the clients had time to take their children in.
async fn tell(watches: &mut Vec<Arc<Watching>>, slots: &Slots, burst: Burst) {
    let nodes: Vec<_> = watches.iter().flat_map(|watching| watching.begin(slots)).collect();
    let levels = levels(&nodes);
    let count = levels.len();
    for (number, uids) in (1..).zip(&levels) {
        for watching in watches.iter() {
            watching.emit(slots, uids, burst);
        }
        flush(watches).await;
        if number < count {
            let each = SETTLE_EACH * u32::try_from(uids.len()).unwrap_or(u32::MAX);
            sleep(SETTLE + each.min(SETTLE_MOST)).await;
        }
    }
}

/// Waits until all is sent. Who does not read in time has to begin anew.
async fn flush(watches: &mut Vec<Arc<Watching>>) {
    let _ = timeout(FLUSH, join_all(watches.iter().map(|watching| watching.flushed()))).await;
    watches.retain(|watching| {
        let stuck = watching.is_waiting();
        if stuck {
            watching.expire();
        }
        !stuck
    });
}
