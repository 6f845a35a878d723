//! The API server as the model knows it: Leases, one map, one object a slot, writes on their way.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    ops::Deref,
    sync::Arc,
};

use shoal_api::{ShardMapSpec, SlotState};
use shoal_sharding::{
    Acks, Left, Moment, Observed, SlotMap, coordinator::Command, shard::Ticket, slot::Slot, times,
};

/// The two slots of the model are halves; each has one object, in its first slot.
pub(crate) const SLOTS: [Slot; 2] = [Slot(0), Slot(128)];

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Api {
    pub(crate) leases: Vec<Option<Kept<Observed>>>,
    /// How often each Lease was written, its past lives included.
    revisions: Vec<u16>,
    pub(crate) map: Option<Map>,
    pub(crate) objects: [Object; 2],
    pub(crate) under_way: Vec<Write>,
}

/// A map, shared by all states that have it.
#[derive(Clone, Debug)]
pub(crate) struct Map(pub(crate) Arc<(ShardMapSpec, SlotMap)>);

/// Something large that many states share, with its hash.
#[derive(Clone, Debug)]
pub(crate) struct Kept<T>(Arc<T>, u64);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Object {
    pub(crate) version: u8,
    /// Who wrote it last.
    pub(crate) last: Right,
}

/// By what right a write is done: the later one is the greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Right {
    pub(crate) epoch: i64,
    pub(crate) term: i64,
    /// The process.
    pub(crate) process: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Write {
    pub(crate) proxy: usize,
    pub(crate) object: usize,
    pub(crate) right: Right,
    /// The version that it names.
    pub(crate) version: u8,
    pub(crate) sent: u64,
    /// Whether its sender waits for the answer still.
    pub(crate) awaited: bool,
}

// === impl Api ===

impl Api {
    pub(crate) fn new(shards: usize) -> Self {
        Self {
            leases: vec![None; shards],
            revisions: vec![0; shards],
            map: None,
            objects: [Object::default(); 2],
            under_way: Vec::new(),
        }
    }

    /// Writes a Lease over exactly that version, none creates it; gives its new version.
    pub(crate) fn put_lease(&mut self, shard: usize, over: Option<&str>, lease: Observed) -> Option<String> {
        if self.leases[shard].as_ref().map(|lease| lease.version.as_str()) != over {
            return None;
        }
        self.revisions[shard] += 1;
        let version = self.revisions[shard].to_string();
        self.leases[shard] = Some(Kept::new(Observed { version: version.clone(), ..lease }));
        Some(version)
    }

    /// Does what a coordinator wants; tells whether it succeeded, and what is wrong with a map.
    pub(crate) fn execute(&mut self, command: &Command) -> (bool, Option<&'static str>) {
        match command {
            Command::PutMap { spec, over } => self.put_map(spec, over.as_deref()),
            Command::CreateLease { shard, left, term, .. } => {
                let new = Observed { shard: shard.clone(), term: *term, left: *left, ..Observed::default() };
                (self.put_lease(number(shard), None, new).is_some(), None)
            }
            Command::Depose { shard, version, left } => {
                let Some(lease) = self.leases[number(shard)].clone() else { return (false, None) };
                (self.vacate(&lease, version, *left), None)
            }
            Command::DeleteLease { shard, .. } => {
                self.leases[number(shard)] = None;
                (true, None)
            }
            _ => (true, None),
        }
    }

    pub(crate) fn vacate(&mut self, lease: &Observed, version: &str, left: Left) -> bool {
        let vacant = Observed { holder: None, left: Some(left), ..lease.clone() };
        self.put_lease(number(&lease.shard), Some(version), vacant).is_some()
    }

    fn put_map(&mut self, spec: &ShardMapSpec, over: Option<&str>) -> (bool, Option<&'static str>) {
        let is = self.map.as_ref().map(|map| map.0.0.version.to_string());
        if is.as_deref() != over {
            return (false, None);
        }
        let Ok(next) = SlotMap::try_from(spec) else { return (true, Some("I6")) };
        let broken = self.map.as_ref().and_then(|map| wrong(&map.0.1, &next));
        self.map = Some(Map(Arc::new((spec.clone(), next))));
        (true, broken)
    }

    /// What the server has not done by then it does no more.
    pub(crate) fn give_up(&mut self, now: Moment) -> Vec<Write> {
        let late = |write: &Write| now.since(Moment(write.sent)) > times::WRITE;
        let (late, rest) = std::mem::take(&mut self.under_way).into_iter().partition(late);
        self.under_way = rest;
        late
    }
}

/// What no change of a map may do: an epoch has one owner, rises by one with it, and is not skipped.
fn wrong(before: &SlotMap, after: &SlotMap) -> Option<&'static str> {
    let chain = after.version() == before.version() + 1;
    let fine = SLOTS.iter().all(|slot| {
        let (old, new) = (before.entry(*slot), after.entry(*slot));
        let is_granted = new.state == SlotState::Owned && new.epoch == old.epoch + 1;
        let goes_on = new.epoch == old.epoch && (new.owner == old.owner || new.owner.is_none());
        // Nobody takes up again what it began to let go.
        let returns = goes_on && new.state == SlotState::Owned && old.state != SlotState::Owned;
        (is_granted || goes_on) && !returns
    });
    (!(chain && fine)).then_some("I6")
}

// === impl Map ===

impl Map {
    pub(crate) fn slots(&self) -> &SlotMap {
        &self.0.1
    }
}

impl Hash for Map {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.0.version.hash(state);
        for range in &self.0.0.slots {
            (range.first, range.last, &range.owner, range.epoch, range.state as u8, &range.to).hash(state);
        }
    }
}

impl PartialEq for Map {
    fn eq(&self, other: &Self) -> bool {
        self.0.0 == other.0.0
    }
}

impl Eq for Map {}

// === impl Kept ===

impl<T: Hash> Kept<T> {
    pub(crate) fn new(of: T) -> Self {
        let mut hasher = DefaultHasher::new();
        of.hash(&mut hasher);
        let hash = hasher.finish();
        Self(Arc::new(of), hash)
    }

    pub(crate) fn hash(&self) -> u64 {
        self.1
    }
}

impl<T> Deref for Kept<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Hash for Kept<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.1.hash(state);
    }
}

impl<T> PartialEq for Kept<T> {
    fn eq(&self, other: &Self) -> bool {
        self.1 == other.1
    }
}

impl<T> Eq for Kept<T> {}

pub(crate) fn name(shard: usize) -> String {
    format!("r-{shard}")
}

pub(crate) fn number(shard: &str) -> usize {
    shard.strip_prefix("r-").and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// A Lease as its holder writes it.
pub(crate) fn held(shard: usize, process: u8, term: i64, acks: Acks) -> Observed {
    let holder = Some(format!("process-{process}"));
    Observed { shard: name(shard), holder, term, acks, ..Observed::default() }
}

pub(crate) fn ticket_of(write: &Write) -> Ticket {
    Ticket { slot: SLOTS[write.object], epoch: write.right.epoch }
}
