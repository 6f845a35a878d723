//! Lists of all objects, one after the other.

use std::fmt::{self, Display, Formatter};

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::{Extent, as_f64, cpu, mebibytes};
use crate::bench::bar::Bar;
use crate::bench::connection::{Connection, JSON, Protocol};
use crate::bench::table::Table;
use crate::bench::target::Target;
use crate::bench::{data, halves};
use crate::{HarnessError, protobuf};

const LISTS: u32 = 8;
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub(in crate::bench) enum Form {
    Json,
    Protobuf,
}

/// As much of a list as is counted.
#[derive(Deserialize)]
struct Items<'a> {
    #[serde(borrow)]
    items: Vec<&'a RawValue>,
}

pub(super) async fn take(
    form: Form,
    extent: Extent,
    target: &Target,
    table: &mut Table,
) -> Result<(), HarnessError> {
    let mut connection = Connection::open(&target.address, Protocol::Two).await?;
    connection.read(&data::path(0, 0), JSON).await?;
    let (base, before) = (target.resident()?, cpu(target)?);
    let (mut peak, mut body, started) = (0.0_f64, Vec::new(), Instant::now());
    for _ in 0..LISTS {
        let now = target.reset_peak()?;
        body = connection.read(data::ALL, form.accept()).await?;
        peak = peak.max(mebibytes(now, target.peak()?));
    }
    let (time, used) = (started.elapsed() / LISTS, cpu(target)?.saturating_sub(before) / LISTS);
    let row = |what: &str| format!("LIST {form}: {what}");
    if target.meter.is_some() {
        table.add(&row("CPU ms"), &[Bar::go(1.0), Bar::FLOOR], target.name, used.as_secs_f64() * 1e3);
        table.add(&row("extra peak RSS MiB"), &[Bar::at_most(16.0)], target.name, peak);
        let kept = mebibytes(base, target.resident()?);
        table.add(&row("RSS after 8 less base MiB"), &[Bar::at_most(8.0)], target.name, kept);
    }
    table.add(&row("s"), &[Bar::FLOOR], target.name, time.as_secs_f64());
    let owned = Bar::exactly(as_f64(halves::owned_of(extent.objects)));
    let items = form.count(&body.concat()).ok_or_else(|| unreadable(target))?;
    table.add(&row("items out"), &[owned], target.name, as_f64(items));
    table.add(&row("MB out"), &[], target.name, as_f64(body.iter().map(Bytes::len).sum()) / 1e6);
    Ok(())
}

fn unreadable(target: &Target) -> HarnessError {
    HarnessError::Answer { url: target.address.url.clone(), reason: "the list cannot be read".to_owned() }
}

// === impl Form ===

impl Form {
    fn accept(self) -> &'static str {
        match self {
            Self::Json => JSON,
            Self::Protobuf => PROTOBUF,
        }
    }

    fn count(self, body: &[u8]) -> Option<usize> {
        match self {
            Self::Json => serde_json::from_slice(body).ok().map(|list: Items<'_>| list.items.len()),
            Self::Protobuf => protobuf::items(body).map(|items| items.len()),
        }
    }
}

impl Display for Form {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Json => "JSON",
            Self::Protobuf => "protobuf",
        })
    }
}
