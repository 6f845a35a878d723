//! A ring as one shard sees it: compiled once, read by every request.

use shoal_api::manifest;
use shoal_sharding::{MapError, Rules, SlotMap, Slots};

use crate::election::Locks;

/// What a shard knows of its ring.
#[derive(Clone, Debug)]
pub struct Ring {
    /// The ring's name.
    pub name: String,
    /// The namespace of its `ShardedController`.
    pub namespace: String,
    /// This shard.
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
}

fn is_shard(ring: &str, shards: u16, shard: &str) -> bool {
    let number = shard.strip_prefix(ring).and_then(|rest| rest.strip_prefix('-'));
    (0..shards).any(|index| number == Some(index.to_string().as_str()))
}
