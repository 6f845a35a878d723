//! `rebalance --plan`: what the coordinator's own planner would move, were it to balance now.

use std::collections::BTreeMap;

use kube::ResourceExt;
use serde::Serialize;
use shoal_api::names;
use shoal_sharding::{
    Seat, Slot, SlotMap, Wishes,
    assignment::{self, Aim, Candidate, Gain, Load},
    kube::lease,
};

use crate::{
    app::Answer,
    error::CliError,
    hub::{Hub, Ring},
    table::Table,
};

/// The moves that would be made.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Plan {
    ring: String,
    moves: Vec<Move>,
    shards: BTreeMap<String, Slots>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Move {
    slot: u8,
    from: Option<String>,
    to: String,
}

/// How many slots a shard owns.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct Slots {
    now: usize,
    after: usize,
}

pub(super) async fn plan(hub: &Hub, ring: &Ring) -> Result<Plan, CliError> {
    let (map, living) = (hub.map(ring).await?, living(hub, ring).await?);
    Ok(planned(ring.full_name(), &map, &living))
}

fn planned(ring: String, map: &SlotMap, living: &[String]) -> Plan {
    let names = living.iter().map(String::as_str);
    let candidates: Vec<Candidate<'_>> =
        names.map(|name| Candidate { name, weight: 1, version: None, gain: Gain::Yes }).collect();
    let entries: Vec<_> = (0..=u8::MAX).map(|slot| map.entry(Slot(slot))).collect();
    // A slot on its way counts where it goes.
    let owner = |entry: &shoal_api::SlotRange| entry.to.clone().or_else(|| entry.owner.clone());
    let owners: Vec<Option<String>> = entries.iter().map(|entry| owner(entry)).collect();
    let names = owners.iter().map(Option::as_deref);
    let loads: Vec<Load<'_>> =
        names.map(|owner| Load { owner, weight: 1, pin: None, fixed: false }).collect();
    let mut shards: BTreeMap<String, Slots> =
        living.iter().map(|name| (name.clone(), Slots::default())).collect();
    for owner in owners.iter().flatten() {
        let slots = shards.entry(owner.clone()).or_default();
        slots.now += 1;
        slots.after += 1;
    }
    let mut moves = Vec::new();
    for (slot, to) in assignment::plan(&loads, &candidates, Aim::Balance).moves {
        let from = owners.get(usize::from(slot.0)).cloned().flatten();
        if let Some(from) = &from {
            shards.entry(from.clone()).or_default().after -= 1;
        }
        shards.entry(to.clone()).or_default().after += 1;
        moves.push(Move { slot: slot.0, from, to });
    }
    moves.sort_by_key(|one| one.slot);
    Plan { ring, moves, shards }
}

/// The shards that have a holder and are not drained.
async fn living(hub: &Hub, ring: &Ring) -> Result<Vec<String>, CliError> {
    let text = ring.controller.annotations().get(names::WISHES_ANNOTATION);
    let wishes: Wishes = text.map_or(Ok(Wishes::default()), |text| text.parse())?;
    let leases = hub.leases(ring).await?;
    let seats = leases.iter().filter_map(|object| lease::seat_of(&ring.name, object));
    let held = seats.filter(|(seat, seen)| *seat == Seat::Identity && seen.holder.is_some());
    let held: Vec<String> = held.map(|(_, seen)| seen.shard).collect();
    let may = |shard: &String| held.contains(shard) && !wishes.drained.contains(shard);
    Ok(ring.shards().into_iter().filter(may).collect())
}

impl Answer for Plan {
    fn text(&self, wide: bool) -> String {
        let mut loads = Table::new(&["SHARD", "SLOTS", "AFTER"]);
        for (shard, slots) in &self.shards {
            loads.row(vec![shard.clone(), slots.now.to_string(), slots.after.to_string()]);
        }
        let text = format!("{loads}ring {}: {} slots would move\n", self.ring, self.moves.len());
        if !wide {
            return text;
        }
        let mut moves = Table::new(&["SLOT", "FROM", "TO"]);
        for Move { slot, from, to } in &self.moves {
            moves.row(vec![slot.to_string(), from.clone().unwrap_or_default(), to.clone()]);
        }
        format!("{text}{moves}")
    }
}
