//! A live ring: its coordinator, and Pods of a proxy and a controller each, kept running as a kubelet keeps them.
//!
//! ```text
//!  LiveRing ─┬─ coordinator ───────────────── shoal-controller mesh ──▶ Leases, ShardMap
//!            └─ Pod ─┬─ proxy ─── shoal-proxy --ring ──▶ Relay ──▶ API server
//!                    └─ controller ──▶ proxy
//! ```
//! Who is which shard, and who owns what, is found out from the cluster alone.

pub mod clock;
pub mod container;
pub mod pod;
pub mod ring;

pub use clock::Clock;
pub use container::{Command, Container};
pub use pod::{Pod, Seat, Work};
pub use ring::LiveRing;
