//! Many watches without events, and the process before them.

use std::time::Duration;

use hyper::body::Incoming;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::{as_f64, mebibytes};
use crate::HarnessError;
use crate::bench::bar::Bar;
use crate::bench::connection::{Connection, JSON, Protocol};
use crate::bench::data;
use crate::bench::table::Table;
use crate::bench::target::Target;

/// More than the streams that the API server allows on one connection (100; apiserver `server/secure_serving.go`).
const WATCHES: usize = 200;
/// Watches on one of the load's HTTP/2 connections.
const SHARED: usize = 50;
/// If no watch opens for so long, the rest never does.
const PATIENCE: Duration = Duration::from_secs(3);
/// For buffers that are given back.
const SETTLE: Duration = Duration::from_secs(1);
/// Nothing happens there.
const QUIET: &str = "/api/v1/namespaces/mesh-00/secrets?watch=1&resourceVersion=0";

type Open = (Connection, Incoming);

pub(super) async fn take(protocol: Protocol, target: &Target, table: &mut Table) -> Result<(), HarnessError> {
    if target.meter.is_some() {
        let idle = mebibytes(0, target.resident()?);
        table.add("idle process: RSS MiB", &[Bar::aim_at(15.0)], target.name, idle);
    }
    let mut warm = Connection::open(&target.address, Protocol::Two).await?;
    warm.read(&data::path(0, 0), JSON).await?;
    // The first watch brings program pages with it that the others share.
    drop(watch(Connection::open(&target.address, protocol).await?).await?);
    sleep(SETTLE).await;
    let base = target.resident()?;
    let open = open(protocol, target).await?;
    sleep(SETTLE).await;
    let (name, aim) = match protocol {
        Protocol::Two => ("h2", Bar::aim_at(12.0)),
        Protocol::One => ("h1", Bar::aim_at(40.0)),
    };
    if target.meter.is_some() {
        let each = mebibytes(base, target.resident()?) * 1024.0 / as_f64(open.len().max(1));
        table.add(&format!("idle watch, {name}: RSS KiB"), &[aim], target.name, each);
    }
    let all = Bar::exactly(as_f64(WATCHES));
    let row = format!("idle watch, {name}: open of {WATCHES}");
    table.add(&row, &[all], target.name, as_f64(open.len()));
    Ok(())
}

/// Opens as many watches as will open.
async fn open(protocol: Protocol, target: &Target) -> Result<Vec<Open>, HarnessError> {
    let mut opening = JoinSet::new();
    let shared = if protocol == Protocol::Two { SHARED } else { 1 };
    for _ in (0..WATCHES).step_by(shared) {
        let connection = Connection::open(&target.address, protocol).await?;
        for connection in connection.shared(shared) {
            opening.spawn(watch(connection));
        }
    }
    let mut open = Vec::new();
    while let Ok(Some(Ok(opened))) = timeout(PATIENCE, opening.join_next()).await {
        open.push(opened?);
    }
    Ok(open)
}

async fn watch(mut connection: Connection) -> Result<Open, HarnessError> {
    let body = connection.get(QUIET, JSON).await?;
    Ok((connection, body))
}
