//! Who owns what, without IO; reading and writing Leases and maps is behind the feature `kube`.
//!
//! ```text
//! object --rules--> mode, key mode --key--> slot --map--> owner at an epoch
//!
//! coordinator ──▶ ShardMap ──▶ shard ──▶ gate, view
//!      ▲                         │
//!      └──── identity Lease ◀────┘  acks
//! ```

pub mod acks;
pub mod assignment;
pub mod coordinator;
pub mod evidence;
pub mod identity;
pub mod key;
#[cfg(feature = "kube")]
pub mod kube;
pub mod map;
pub mod membership;
pub mod moment;
pub mod push_down;
pub mod rules;
pub mod shard;
pub mod slot;
pub mod times;
pub mod wishes;

pub use acks::Acks;
pub use coordinator::Coordinator;
pub use identity::{Left, Observed, Seat};
pub use key::{Object, Part, slot_in};
pub use map::{MapError, SlotMap, Slots};
pub use membership::Membership;
pub use moment::Moment;
pub use push_down::shard_selector;
pub use rules::{Rules, Treatment};
pub use shard::{Phase, Shard};
pub use slot::{Slot, slot_of};
pub use wishes::Wishes;
