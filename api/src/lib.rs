//! Shoal's Kubernetes API types.
//!
//! ```text
//! ShardedController   what to shard: the ring, its kinds, its locks      (written by people)
//! ShardMap            who owns what: slot -> shard at an epoch           (written by the control plane)
//! ```
//!
//! The chart's CRDs are generated from these types (`make crds`) and a test refuses drift.

pub mod crds;
pub mod handover;
pub mod manifest;
pub mod names;
pub mod shard_map;
pub mod sharded_controller;
pub mod status;

pub use handover::{Adoption, Fence, FenceMode, Handover, HandoverMode};
pub use shard_map::{HashAlgorithm, Keying, ShardMap, ShardMapSpec, SlotRange, SlotState};
pub use sharded_controller::{
    KeyMode, LeaderElection, Lock, LockResource, ResourceRule, RuleMode, RuleScope, ShardedController,
    ShardedControllerSpec,
};
pub use status::{ShardState, ShardStatus, ShardedControllerStatus};

/// The API group of the mesh kinds.
pub const GROUP: &str = "mesh.shoal.dev";

/// The number of slots of every ring.
pub const SLOTS: u16 = 256;
