//! One watch while objects change. A second one, straight at the API server and in this process, sees the same events.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::{as_f64, cpu, micros};
use crate::bench::bar::Bar;
use crate::bench::connection::{Address, Connection, JSON, Protocol};
use crate::bench::events::{Seen, Watcher};
use crate::bench::table::Table;
use crate::bench::target::{Name, Target};
use crate::bench::{data, halves, joined, nonce};
use crate::{ControlPlane, HarnessError};

/// How long objects change: at 5 a second it takes longer to have enough events.
const SECONDS: u32 = 4;
const SLOW_SECONDS: u32 = 6;
/// From this rate on it is not slow.
const FAST: u32 = 50;
/// Connections of the writer, so that a slow write does not delay the next.
const WRITERS: u32 = 4;
/// So many objects change in turn.
const OBJECTS: u32 = 50;
/// Of any collection: its version says where the watches start.
const ONE: &str = "/api/v1/configmaps?limit=1";

/// Whose objects change, as the shard sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::bench) enum Whose {
    Owned,
    Foreign,
}

/// The changes to make.
#[derive(Debug, Clone, Copy)]
struct Changes {
    namespace: usize,
    count: u32,
    rate: u32,
}

pub(super) async fn take(
    plane: &ControlPlane,
    rate: u32,
    whose: Whose,
    target: &Target,
    table: &mut Table,
) -> Result<(), HarnessError> {
    let direct = Target::start(plane, Name::Direct).await?.address.clone();
    let path = since(&direct).await?;
    let mut reference = Watcher::open(&direct, &path).await?;
    let mut watcher = Watcher::open(&target.address, &path).await?;
    let (changes, before) = (Changes::of(rate, whose), cpu(target)?);
    changes.make(&direct).await?;
    let shown = whose.shown(changes.count);
    let expected = if target.name == Name::Shoal { shown } else { changes.count };
    let (first, seen) = (reference.collect(changes.count).await, watcher.collect(expected).await);
    let used = cpu(target)?.saturating_sub(before);

    let row = |what: &str| format!("watch, {rate}/s {whose}: {what}");
    if target.meter.is_some() {
        let per_event = micros(used) / f64::from(changes.count);
        table.add(&row("CPU us an event"), &whose.bars(), target.name, per_event);
    }
    table.add(&row("events out"), &[Bar::exactly(shown.into())], target.name, as_f64(seen.len()));
    if whose == Whose::Owned {
        table.add(&row("added p50 ms"), &[Bar::at_most(0.1)], target.name, added(&first, &seen));
        table.add("watch: head ms", &[Bar::aim_at(5.0)], target.name, micros(watcher.head) / 1e3);
    }
    Ok(())
}

/// The path of a watch that starts now.
async fn since(direct: &Address) -> Result<String, HarnessError> {
    let list = Connection::open(direct, Protocol::Two).await?.read(ONE, JSON).await?.concat();
    let list: serde_json::Value = serde_json::from_slice(&list).unwrap_or_default();
    let version = list["metadata"]["resourceVersion"].as_str().unwrap_or("0");
    Ok(format!("/api/v1/configmaps?watch=1&allowWatchBookmarks=true&resourceVersion={version}"))
}

/// How much later than at the reference the same events came, at the median, in ms. It may be negative: two watches
/// straight at the API server differ as well.
fn added(reference: &Seen, seen: &Seen) -> f64 {
    let pairs = seen.iter().filter_map(|(number, at)| Some((*at, *reference.get(number)?)));
    let mut added: Vec<f64> = pairs.map(|(at, first)| micros(at - first) - micros(first - at)).collect();
    added.sort_by(f64::total_cmp);
    added.get(added.len() / 2).map_or(f64::NAN, |micros| micros / 1e3)
}

// === impl Whose ===

impl Whose {
    /// How many of `count` events the shard is to show.
    fn shown(self, count: u32) -> u32 {
        if self == Self::Owned { count } else { 0 }
    }

    fn bars(self) -> Vec<Bar> {
        match self {
            Self::Owned => vec![Bar::go(0.75), Bar::FLOOR],
            Self::Foreign => vec![Bar::FLOOR],
        }
    }
}

impl Display for Whose {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Owned => "owned",
            Self::Foreign => "foreign",
        })
    }
}

// === impl Changes ===

impl Changes {
    fn of(rate: u32, whose: Whose) -> Self {
        let namespace = if whose == Whose::Owned { 0 } else { halves::foreign() };
        Self { namespace, count: rate * if rate < FAST { SLOW_SECONDS } else { SECONDS }, rate }
    }

    /// Makes them all, in time.
    async fn make(self, direct: &Address) -> Result<(), HarnessError> {
        let mut writers = JoinSet::new();
        let start = Instant::now();
        for first in 0..WRITERS {
            let connection = Connection::open(direct, Protocol::Two).await?;
            writers.spawn(self.write(connection, first, start));
        }
        joined(writers).await.map(drop)
    }

    /// Every fourth of them.
    async fn write(self, mut connection: Connection, first: u32, start: Instant) -> Result<(), HarnessError> {
        for nth in (first..self.count).step_by(WRITERS as usize) {
            sleep_until(start + Duration::from_secs(1) * nth / self.rate).await;
            let path = data::path(self.namespace, (nth % OBJECTS) as usize);
            connection.patch(&path, data::patch(nonce())).await?;
        }
        Ok(())
    }
}
