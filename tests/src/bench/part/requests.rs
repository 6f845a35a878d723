//! Small requests, one after the other on each of some connections.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{Extent, as_f64, cpu, median, micros};
use crate::HarnessError;
use crate::bench::bar::Bar;
use crate::bench::connection::{Connection, JSON, Protocol};
use crate::bench::table::Table;
use crate::bench::target::Target;
use crate::bench::{data, joined, nonce};

/// Requests on each connection before it counts; the first opens the proxy's own connections.
const WARM_UP: usize = 20;
/// `mesh-00`, which is owned.
const NAMESPACE: usize = 0;

/// What is sent.
#[derive(Debug, Clone, Copy)]
pub(in crate::bench) enum Verb {
    Get,
    Patch,
}

/// One connection and its object, so that writers do not meet.
struct Sender {
    connection: Connection,
    path: String,
    verb: Verb,
}

pub(super) async fn take(
    verb: Verb,
    connections: usize,
    extent: Extent,
    target: &Target,
    table: &mut Table,
) -> Result<(), HarnessError> {
    let mut senders = Vec::new();
    for nth in 0..connections {
        senders.push(Sender::open(verb, nth, target).await?);
    }
    let before = cpu(target)?;
    let latencies = all(senders, extent.requests).await?;
    let used = cpu(target)?.saturating_sub(before);
    let (count, row) = (as_f64(latencies.len()), |what: &str| format!("{verb}, {connections} conn: {what}"));
    if target.meter.is_some() {
        table.add(&row("CPU us a request"), &[Bar::go(0.5), Bar::FLOOR], target.name, micros(used) / count);
    }
    table.add(&row("p50 us"), &[Bar::FLOOR], target.name, micros(median(latencies)));
    table.add(&row("requests a second"), &[], target.name, count / extent.requests.as_secs_f64());
    Ok(())
}

/// Sends requests on all connections and returns how long each took.
async fn all(senders: Vec<Sender>, time: Duration) -> Result<Vec<Duration>, HarnessError> {
    let end = Instant::now() + time;
    let load: JoinSet<_> = senders.into_iter().map(|sender| sender.until(end)).collect();
    Ok(joined(load).await?.concat())
}

// === impl Sender ===

impl Sender {
    async fn open(verb: Verb, nth: usize, target: &Target) -> Result<Self, HarnessError> {
        let connection = Connection::open(&target.address, Protocol::Two).await?;
        let mut sender = Self { connection, path: data::path(NAMESPACE, nth), verb };
        for _ in 0..WARM_UP {
            sender.send().await?;
        }
        Ok(sender)
    }

    async fn until(mut self, end: Instant) -> Result<Vec<Duration>, HarnessError> {
        let mut latencies = Vec::new();
        while Instant::now() < end {
            let sent = Instant::now();
            self.send().await?;
            latencies.push(sent.elapsed());
        }
        Ok(latencies)
    }

    async fn send(&mut self) -> Result<(), HarnessError> {
        match self.verb {
            Verb::Get => self.connection.read(&self.path, JSON).await.map(drop),
            // A patch that changes nothing would not be written.
            Verb::Patch => self.connection.patch(&self.path, data::patch(nonce())).await,
        }
    }
}

// === impl Verb ===

impl Display for Verb {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Get => "GET",
            Self::Patch => "PATCH",
        })
    }
}
