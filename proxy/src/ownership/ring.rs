//! A ring as one shard sees it: compiled once, read by every request.

use shoal_api::{FenceMode, ShardedController, manifest, names};
use shoal_sharding::{MapError, Rules, SlotMap, Slots};

use crate::election::Locks;

/// What this proxy is in its ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It is the shard, and writes what the shard owns.
    Holder,
    /// It keeps its controller warm for the shard, and writes nothing.
    Standby,
    /// It has no shard, and shows and writes nothing that is shared out.
    Nobody,
}

/// What a shard knows of its ring.
#[derive(Clone, Debug)]
pub struct Ring {
    /// The ring's name.
    pub name: String,
    /// The namespace of its `ShardedController`.
    pub namespace: String,
    /// What this proxy is for that shard.
    pub role: Role,
    /// The shard; empty for nobody.
    pub shard: String,
    /// How many times this shard's identity has been claimed.
    pub term: u64,
    /// What happens to which kind.
    pub rules: Rules,
    /// Who owns what.
    pub map: SlotMap,
    /// The slots of this shard, for the filter.
    pub slots: Slots,
    /// The same for the API server, of uids; none where that is of no use.
    pub shard_selector: Option<String>,
    /// The leader election locks.
    pub locks: Locks,
    /// What makes a late write fail, where slots come and go.
    pub fence: FenceMode,
    /// Whether the shard's lock is to run out, so that the controller ends and begins anew.
    pub lapses: bool,
    /// Which edition of the `ShardedController` this is; 0 for a file.
    generation: i64,
    /// `<ring>/<shard>@<term>`, as it stands in the User-Agent.
    pub agent: String,
}

/// Why a ring cannot be served. The ring's files or the shard's name are at fault.
#[derive(Debug, thiserror::Error)]
pub enum RingError {
    /// The map is refused whole.
    #[error("ShardMap: {0}")]
    Map(#[from] MapError),
    /// The shard is none of the ring's.
    #[error("{shard:?} is not a shard of ring {ring:?}: expected {ring}-0 to {ring}-{last}")]
    NotAShard {
        /// The name that was given.
        shard: String,
        /// The ring.
        ring: String,
        /// The number of its last shard.
        last: u16,
    },
    /// The map gives slots to a shard that the ring does not have.
    #[error("ShardMap: owner {owner:?} is not a shard of ring {ring:?}, which has {shards}")]
    StrangeOwner {
        /// The owner in the map.
        owner: String,
        /// The ring.
        ring: String,
        /// How many shards it has.
        shards: u16,
    },
}

// === impl Role ===

impl Role {
    /// Its name, for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Holder => "holder",
            Self::Standby => "standby",
            Self::Nobody => "none",
        }
    }
}

// === impl Ring ===

impl Ring {
    /// Compiles a ring for one of its shards.
    pub fn compile(files: &manifest::Ring, shard: &str, term: u64) -> Result<Self, RingError> {
        let metadata = &files.controller.metadata;
        let (name, namespace) = (metadata.name.clone().unwrap_or_default(), metadata.namespace.clone());
        let spec = &files.controller.spec;
        if !is_shard(&name, spec.shards, shard) {
            let last = spec.shards.saturating_sub(1);
            return Err(RingError::NotAShard { shard: shard.to_owned(), ring: name, last });
        }
        let map = SlotMap::try_from(&files.map.spec)?;
        if let Some(owner) = map.owners().into_keys().find(|owner| !is_shard(&name, spec.shards, owner)) {
            return Err(RingError::StrangeOwner { owner: owner.to_owned(), ring: name, shards: spec.shards });
        }
        let slots = map.slots_of(shard);
        Ok(Self {
            locks: Locks::new(&spec.leader_election.locks, &name, shard),
            lapses: false,
            fence: spec.fence.mode,
            generation: 0,
            role: Role::Holder,
            shard_selector: shoal_sharding::shard_selector(&slots),
            slots,
            rules: Rules::new(&spec.resources),
            agent: format!("{name}/{shard}@{term}"),
            shard: shard.to_owned(),
            namespace: namespace.unwrap_or_default(),
            name,
            term,
            map,
        })
    }

    /// The ring as it is now for a proxy whose part in it changes. Without a map nobody owns anything.
    pub fn live(
        controller: &ShardedController,
        role: Role,
        (shard, term): (&str, u64),
        map: Option<SlotMap>,
        lapses: bool,
    ) -> Self {
        let metadata = &controller.metadata;
        let name = metadata.name.clone().unwrap_or_default();
        let map = map.unwrap_or_else(SlotMap::orphaned);
        let slots = if role == Role::Holder { map.slots_of(shard) } else { Slots::NONE };
        let seat = if role == Role::Holder { shard } else { "standby" };
        Self {
            agent: format!("{name}/{seat}@{term}"),
            locks: Locks::new(&controller.spec.leader_election.locks, &name, shard),
            lapses,
            fence: controller.spec.fence.mode,
            generation: metadata.generation.unwrap_or_default(),
            role,
            shard_selector: None,
            slots,
            rules: Rules::new(&controller.spec.resources),
            shard: shard.to_owned(),
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name,
            term,
            map,
        }
    }

    /// Whether this is the ring for that part in it, by that map and that edition of the `ShardedController`.
    pub fn is_for(
        &self,
        controller: &ShardedController,
        role: Role,
        (shard, term): (&str, u64),
        map: Option<&SlotMap>,
        lapses: bool,
    ) -> bool {
        (self.role, self.term, self.lapses) == (role, term, lapses)
            && self.shard == shard
            && self.map.version() == map.map_or(0, SlotMap::version)
            && self.generation == controller.metadata.generation.unwrap_or_default()
    }
}

fn is_shard(ring: &str, shards: u16, shard: &str) -> bool {
    names::shard_number(ring, shard).is_some_and(|number| number < shards)
}
