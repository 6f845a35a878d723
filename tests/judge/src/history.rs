//! What a log tells of the ring's own objects: each version of its `ShardMap`, and the holders of its identity Leases.
//!
//! ```text
//! log ─▶ History ─┬─▶ Owners   (slot, epoch) -> shard
//!                 ├─▶ Service  when which slot was served, and the figures of it
//!                 └─▶ spans in which some slot was owned, for replicas that ran without the ring
//! ```

use serde::Deserialize;

use crate::{
    event::{Event, Stage},
    finding::Reason,
    map::{MapSpec, Owners, State},
    object::Object,
    ring::Ring,
    time::Micros,
};

/// A log without a line for longer than this is one of a server that answered nobody: each shard renews every 2 s.
const SILENCE: Micros = 4_000_000;

/// The changes of the ring's own objects, and the times at which the server answered nobody.
#[derive(Debug, Default)]
pub(crate) struct History {
    changes: Vec<Change>,
    silences: Vec<(Micros, Micros)>,
    /// Whether any shard owns a slot, from each version of the map on.
    owned: Vec<(Micros, bool)>,
    last: Option<Micros>,
}

/// One change, and where the log tells of it.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) at: Micros,
    pub(crate) line: u64,
    pub(crate) what: What,
}

/// What changed.
#[derive(Debug, Clone)]
pub(crate) enum What {
    /// A new version of the map.
    Map(MapSpec),
    /// The map was deleted: the ring is gone.
    NoMap,
    /// The identity Lease of a shard.
    Lease(LeaseChange),
}

/// An identity Lease as a write left it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeaseChange {
    pub(crate) shard: String,
    /// None if nobody holds it, or it is gone.
    pub(crate) holder: Option<String>,
    /// Whether the holder was taken off by the coordinator.
    pub(crate) deposed: bool,
    /// Whether the write made the Lease, so that all in it is the writer's.
    pub(crate) created: bool,
    /// The version of the map all of whose slots are open, by the holder's word.
    pub(crate) opened: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Lease {
    metadata: Metadata,
    spec: LeaseSpec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    annotations: std::collections::HashMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct LeaseSpec {
    holder_identity: Option<String>,
}

// === impl History ===

impl History {
    /// Takes an event in; the owners of a new map are added to `owners`. Says what is wrong with a map.
    pub(crate) fn step(
        &mut self,
        ring: &Ring,
        owners: &mut Owners,
        line: u64,
        event: &Event,
    ) -> Result<(), (Reason, String)> {
        self.listen(event);
        if event.stage != Stage::ResponseComplete
            || !event.is_write()
            || !event.took_effect()
            || event.is_dry_run()
        {
            return Ok(());
        }
        let Some(object) = Object::of(event) else { return Ok(()) };
        let what = if ring.is_map(&object) {
            Some(map_change(owners, event)?)
        } else if let Some(shard) = ring.identity_of(&object) {
            lease_change(shard, event).map(What::Lease)
        } else {
            None
        };
        let at = event.at.unwrap_or(0);
        match &what {
            Some(What::Map(map)) => {
                self.owned.push((at, map.slots.iter().any(|it| it.state != State::Orphan)));
            }
            Some(What::NoMap) => self.owned.push((at, false)),
            _ => {}
        }
        self.changes.extend(what.map(|what| Change { at, line, what }));
        Ok(())
    }

    /// Whether it holds a version of the map.
    pub(crate) fn has_map(&self) -> bool {
        self.changes.iter().any(|change| matches!(change.what, What::Map(_)))
    }

    /// All changes, in the order of time.
    pub(crate) fn changes(&self) -> Vec<&Change> {
        let mut changes: Vec<_> = self.changes.iter().collect();
        changes.sort_by_key(|change| change.at);
        changes
    }

    /// The time of the last line.
    pub(crate) fn end(&self) -> Micros {
        self.last.unwrap_or(0)
    }

    /// The time between two moments, without that in which the server answered nobody.
    pub(crate) fn answered(&self, from: Micros, to: Micros) -> Micros {
        let silent = |(begin, end): &(Micros, Micros)| (*end).min(to).saturating_sub((*begin).max(from));
        to.saturating_sub(from).saturating_sub(self.silences.iter().map(silent).sum())
    }

    /// Whether some shard owned a slot at some time between two moments.
    pub(crate) fn owned_between(&self, from: Micros, to: Micros) -> bool {
        let mut owned = false;
        for (at, now) in self.owned.iter().take_while(|(at, _)| *at <= to) {
            owned = *now || (owned && *at > from);
        }
        owned
    }

    fn listen(&mut self, event: &Event) {
        let Some(at) = event.at else { return };
        // A long request's line comes when it ends; only what goes beyond the newest tells of silence.
        match self.last {
            Some(last) if at > last + SILENCE => self.silences.push((last, at)),
            _ => {}
        }
        self.last = self.last.max(Some(at));
    }
}

fn map_change(owners: &mut Owners, event: &Event) -> Result<What, (Reason, String)> {
    if event.is_deletion() {
        return Ok(What::NoMap);
    }
    let spec = event.written_object().and_then(|map| map.get("spec"));
    let spec = spec.ok_or_else(|| {
        let message = format!(
            "the log does not show the map that {} wrote: raise the audit level of shardmaps",
            event.verb
        );
        (Reason::HiddenMap, message)
    })?;
    let map = MapSpec::deserialize(spec).map_err(|error| (Reason::BrokenMap, error.to_string()))?;
    owners.add_map(&map).map_err(|error| (Reason::BrokenMap, error.to_string()))?;
    Ok(What::Map(map))
}

/// Nothing where the log does not show what was written.
fn lease_change(shard: &str, event: &Event) -> Option<LeaseChange> {
    let created = event.is_creation();
    let gone = LeaseChange { shard: shard.to_owned(), holder: None, deposed: false, created, opened: 0 };
    if event.is_deletion() {
        return Some(gone);
    }
    let lease = Lease::deserialize(event.written_object()?).ok()?;
    let note = |name: &str| lease.metadata.annotations.get(name).map_or("", String::as_str);
    let opened =
        note("mesh.shoal.dev/acks").split(' ').find_map(|word| word.strip_prefix("map=")?.parse().ok());
    Some(LeaseChange {
        holder: lease.spec.holder_identity.clone().filter(|holder| !holder.is_empty()),
        deposed: note("mesh.shoal.dev/left") == "Deposed",
        opened: opened.unwrap_or(0),
        ..gone
    })
}
