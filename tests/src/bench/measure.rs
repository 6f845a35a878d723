//! The measures: many small requests, and one large list.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::connection::Connection;
use super::data;
use super::table::Table;
use super::target::Target;
use crate::HarnessError;

/// How long small requests are sent.
const REQUESTS_FOR: Duration = Duration::from_secs(3);
const JSON: &str = "application/json";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// One thing that is measured at every target.
#[derive(Debug, Clone, Copy)]
pub(super) enum Measure {
    /// Small requests, one after the other on each of so many connections.
    Get {
        /// Each has a TCP connection of its own.
        connections: usize,
    },
    /// One list of all objects.
    List {
        /// For the table.
        name: &'static str,
        /// The Accept header.
        accept: &'static str,
    },
}

// === impl Measure ===

impl Measure {
    /// All of them, in the order of a round.
    pub(super) const ALL: [Self; 4] = [
        Self::Get { connections: 1 },
        Self::Get { connections: 32 },
        Self::List { name: "JSON", accept: JSON },
        Self::List { name: "protobuf", accept: PROTOBUF },
    ];

    /// Measures one target.
    pub(super) async fn take(self, target: &Target, table: &mut Table) -> Result<(), HarnessError> {
        match self {
            Self::Get { connections } => get(target, connections, table).await,
            Self::List { name, accept } => list(target, name, accept, table).await,
        }
    }
}

async fn get(target: &Target, connections: usize, table: &mut Table) -> Result<(), HarnessError> {
    let mut open = Vec::new();
    for _ in 0..connections {
        let mut connection = Connection::open(&target.address).await?;
        // The first request opens the proxy's own connections.
        connection.get(data::ONE, JSON).await?;
        open.push(connection);
    }
    let cpu = cpu(target)?;
    let mut latencies = all(open).await?;
    latencies.sort_unstable();
    let (count, row) = (as_f64(latencies.len()), |what: &str| format!("GET, {connections} conn: {what}"));
    if let Some((before, after)) = cpu.zip(self::cpu(target)?) {
        table.add(&row("CPU us a request"), target.name, micros(after.saturating_sub(before)) / count);
    }
    let median = latencies.get(latencies.len() / 2).copied().unwrap_or_default();
    table.add(&row("p50 us"), target.name, micros(median));
    table.add(&row("requests a second"), target.name, count / REQUESTS_FOR.as_secs_f64());
    Ok(())
}

/// Sends requests on all connections and returns how long each took.
async fn all(open: Vec<Connection>) -> Result<Vec<Duration>, HarnessError> {
    let end = Instant::now() + REQUESTS_FOR;
    let mut load: JoinSet<_> = open.into_iter().map(|connection| until(connection, end)).collect();
    let mut latencies = Vec::new();
    while let Some(joined) = load.join_next().await {
        let reason = |error: tokio::task::JoinError| error.to_string();
        let answer = |reason| HarnessError::Answer { url: data::ONE.to_owned(), reason };
        latencies.extend(joined.map_err(reason).map_err(answer)??);
    }
    Ok(latencies)
}

async fn until(mut connection: Connection, end: Instant) -> Result<Vec<Duration>, HarnessError> {
    let mut latencies = Vec::new();
    while Instant::now() < end {
        let sent = Instant::now();
        connection.get(data::ONE, JSON).await?;
        latencies.push(sent.elapsed());
    }
    Ok(latencies)
}

async fn list(target: &Target, name: &str, accept: &str, table: &mut Table) -> Result<(), HarnessError> {
    let mut connection = Connection::open(&target.address).await?;
    connection.get(data::ONE, JSON).await?;
    let before = cpu(target)?;
    if let Some(meter) = &target.meter {
        meter.reset_peak()?;
    }
    let sent = Instant::now();
    let size = connection.get(data::ALL, accept).await?;
    let row = |what: &str| format!("LIST {name}: {what}");
    table.add(&row("s"), target.name, sent.elapsed().as_secs_f64());
    table.add(&row("MB out"), target.name, as_f64(size) / 1e6);
    if let Some((meter, before)) = target.meter.as_ref().zip(before) {
        let used = meter.cpu()?.saturating_sub(before);
        table.add(&row("CPU s"), target.name, used.as_secs_f64());
        table.add(&row("peak RSS MB"), target.name, megabytes(meter.peak()?));
        table.add(&row("RSS after MB"), target.name, megabytes(meter.resident()?));
    }
    Ok(())
}

fn cpu(target: &Target) -> Result<Option<Duration>, HarnessError> {
    target.meter.as_ref().map(super::meter::Meter::cpu).transpose()
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn as_f64(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// Of bytes.
pub(super) fn megabytes(bytes: u64) -> f64 {
    f64::from(u32::try_from(bytes / 1024).unwrap_or(u32::MAX)) * 1024.0 / 1e6
}
