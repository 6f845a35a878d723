//! The sidecar between a controller and its API servers.

pub mod filter;
pub mod request;
