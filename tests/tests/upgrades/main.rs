//! Requests that leave HTTP: what passes, what is refused, and that nothing is left behind.
//!
//! No control plane is needed here.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code, helpers included")]

mod answers;
mod ends;
mod fixture;
mod heads;
mod refused;
