//! A coordinator: it looks, and some time later does what it then decided, command by command.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use shoal_api::FenceMode;
use shoal_sharding::{
    Coordinator, Moment, Observed, Slot, Wishes,
    coordinator::{self, Command, RingShard, Seen},
};

use super::{Ring, api, api::Api};

#[derive(Clone, Debug, Default)]
pub(crate) struct Brain {
    coordinator: Arc<Coordinator>,
    plans: Arc<Vec<Command>>,
    done: usize,
    /// Of coordinator and plans.
    hash: u64,
}

thread_local! {
    /// What came of a look; many states share it.
    static LOOKS: RefCell<HashMap<u64, Brain>> = RefCell::default();
}

// === impl Brain ===

impl Brain {
    pub(crate) fn has_plans(&self) -> bool {
        self.done < self.plans.len()
    }

    pub(crate) fn look(&mut self, ring: &Ring, api: &Api, locks_held: bool, now: Moment) {
        let key = hash(&(self.hash, &api.leases, &api.map, locks_held, now));
        if let Some(known) = LOOKS.with_borrow(|looks| looks.get(&key).cloned()) {
            *self = known;
            return;
        }
        let mut coordinator = Coordinator::clone(&self.coordinator);
        let mut plans = coordinator.step(now, &seen(ring, api, locks_held, now)).commands;
        plans.retain(|command| !matches!(command, Command::Report(_)));
        let hash = hash(&(&coordinator, format!("{plans:?}")));
        *self = Self { coordinator: Arc::new(coordinator), plans: Arc::new(plans), done: 0, hash };
        LOOKS.with_borrow_mut(|looks| looks.insert(key, self.clone()));
    }

    /// Does the next command; one that fails ends the batch.
    pub(crate) fn execute(&mut self, api: &mut Api) -> Option<&'static str> {
        let command = self.plans.get(self.done)?;
        let (done, broken) = api.execute(command);
        self.done = if done { self.done + 1 } else { self.plans.len() };
        broken
    }
}

impl Hash for Brain {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.hash, self.plans.len() - self.done).hash(state);
    }
}

impl PartialEq for Brain {
    fn eq(&self, other: &Self) -> bool {
        (self.hash, self.plans.len() - self.done) == (other.hash, other.plans.len() - other.done)
    }
}

impl Eq for Brain {}

fn seen(ring: &Ring, api: &Api, locks_held: bool, now: Moment) -> Seen {
    let shard = |number| RingShard { name: api::name(number), weight: 1, version: None };
    let standby = |number| Observed { shard: api::name(number), ..Observed::default() };
    let mut wishes = Wishes::default();
    if ring.wish && now.0 >= super::TICK * 6 {
        wishes.moves.extend((0..=u8::MAX).map(|slot| (Slot(slot), api::name(1))));
    }
    Seen {
        looked: now,
        ring: coordinator::Ring {
            shards: (0..ring.shards).map(shard).collect(),
            max_moving: 256,
            restart_grace: Duration::from_secs(6),
            fence: FenceMode::Preconditions,
            deleting: false,
        },
        map: api.map.as_ref().map(|map| (map.0.0.clone(), map.0.0.version.to_string())),
        leases: api.leases.iter().flatten().map(|lease| Observed::clone(lease)).collect(),
        standbys: (0..ring.shards).map(standby).collect(),
        locks_held,
        wishes,
        pins: BTreeMap::new(),
        weights: None,
    }
}

fn hash(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}
