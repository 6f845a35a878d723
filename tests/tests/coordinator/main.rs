//! What the control plane promises of a ring, on a real API server. The shards are played: each holds its Leases and follows
//! the map by the same functions as a proxy, and has no controller behind it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code, helpers included")]

mod cli;
mod faults;
mod ground;
mod history;
mod holder;
mod life;
