//! `list`: who is each shard, and how much it owns, by what is on the hub now.

use jiff::Timestamp;
use serde::Serialize;
use shoal_api::{ShardState, SlotState};
use shoal_sharding::{Seat, Slot, SlotMap, kube::lease};

use crate::{
    app::Answer,
    error::CliError,
    hub::{Hub, Ring},
    table::Table,
};

/// The shards of a ring.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct List {
    ring: String,
    map_version: i64,
    shards: Vec<Row>,
    /// Slots that nobody owns.
    orphans: usize,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    shard: String,
    /// As the coordinator last reported it; none before it did.
    state: Option<ShardState>,
    holder: Option<String>,
    term: i64,
    /// How long ago its Lease was renewed, by the clock of this machine.
    renewed_seconds_ago: Option<i64>,
    slots: usize,
    moving: usize,
    /// The newest map all of whose slots it has taken up.
    settled_map: i64,
    standby: Option<String>,
}

pub(super) async fn list(hub: &Hub, ring: &Ring) -> Result<List, CliError> {
    let (map, leases) = (hub.map(ring).await?, hub.leases(ring).await?);
    let mut rows: Vec<Row> = names(ring, &map).into_iter().map(|shard| counted(ring, &map, shard)).collect();
    for object in &leases {
        let Some((seat, seen)) = lease::seat_of(&ring.name, object) else { continue };
        let Some(row) = rows.iter_mut().find(|row| row.shard == seen.shard) else { continue };
        if seat == Seat::Standby {
            row.standby = seen.holder;
            continue;
        }
        let renewed = object.spec.as_ref().and_then(|spec| spec.renew_time.as_ref());
        row.renewed_seconds_ago = renewed.map(|renewed| (Timestamp::now() - renewed.0).get_seconds());
        row.settled_map = seen.acks.map;
        row.term = seen.term;
        row.holder = seen.holder;
    }
    let orphans = entries(&map).filter(|entry| entry.state == SlotState::Orphan).count();
    Ok(List { ring: ring.full_name(), map_version: map.version(), shards: rows, orphans })
}

/// The shards that the ring is to have, then those that still own slots.
fn names(ring: &Ring, map: &SlotMap) -> Vec<String> {
    let mut names = ring.shards();
    for owner in map.owners().into_keys() {
        if !names.iter().any(|name| name == owner) {
            names.push(owner.to_owned());
        }
    }
    names
}

fn counted(ring: &Ring, map: &SlotMap, shard: String) -> Row {
    let mine = |owner: &Option<String>| owner.as_ref() == Some(&shard);
    let slots = entries(map).filter(|entry| mine(&entry.owner)).count();
    let moves = |entry: &&shoal_api::SlotRange| {
        let goes = entry.to.is_some() || entry.state == SlotState::Draining;
        mine(&entry.to) || (mine(&entry.owner) && goes)
    };
    let moving = entries(map).filter(moves).count();
    let mut status = ring.controller.status.iter().flat_map(|status| &status.shards);
    let state = status.find(|status| status.name == shard).map(|status| status.state);
    Row { shard, state, slots, moving, ..Row::default() }
}

/// The entry of each slot.
fn entries(map: &SlotMap) -> impl Iterator<Item = &shoal_api::SlotRange> {
    (0..=u8::MAX).map(|slot| map.entry(Slot(slot)))
}

impl Answer for List {
    fn text(&self, wide: bool) -> String {
        let mut head = vec!["SHARD", "STATE", "HOLDER", "TERM", "RENEWED", "SLOTS", "MOVING"];
        if wide {
            head.extend(["SETTLED-MAP", "STANDBY"]);
        }
        let mut table = Table::new(&head);
        for row in &self.shards {
            let mut cells = vec![
                row.shard.clone(),
                row.state.map(|state| format!("{state:?}")).unwrap_or_default(),
                row.holder.clone().unwrap_or_default(),
                row.term.to_string(),
                row.renewed_seconds_ago.map(|seconds| format!("{seconds}s ago")).unwrap_or_default(),
                row.slots.to_string(),
                row.moving.to_string(),
            ];
            if wide {
                cells.extend([row.settled_map.to_string(), row.standby.clone().unwrap_or_default()]);
            }
            table.row(cells);
        }
        let mut text = format!("{table}ring {}, map {}", self.ring, self.map_version);
        if self.orphans > 0 {
            text = format!("{text}, {} slots without an owner", self.orphans);
        }
        text + "\n"
    }
}
