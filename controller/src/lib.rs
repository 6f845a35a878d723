//! The control plane.
//!
//! ```text
//! ShardedController ──▶ mesh: one coordinator for each ring ──▶ ShardMap, status
//!                          ▲  observe      │ depose
//!                          └── Leases ◀────┘
//! ```
//!
//! It reads rings, maps and Leases only, so that its memory does not grow with what the rings work on.

pub mod app;
pub mod args;
pub mod mesh;
pub mod metrics;
pub mod pages;
