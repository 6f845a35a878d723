//! `shoal`: what people do with rings. It reads and writes the same objects as the control plane, and decides nothing by itself:
//! moves and drains are wishes on the `ShardedController`, which the coordinator takes up.

pub mod app;
pub mod args;
pub mod error;
pub mod hub;
pub mod shard;
pub mod table;
