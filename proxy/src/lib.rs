//! The sidecar between a controller and its API servers.
//!
//! ```text
//!            listen -> request -> ownership -> election -> upstream -> API server
//! controller                (stack.rs puts them together)                  │
//!            respond <------------------- filter <------------------------ ┘
//! ```
//!
//! Each room is a module, in the order in which a request walks them.

pub mod election;
pub mod file;
pub mod filter;
pub mod identity;
pub mod listen;
pub mod ownership;
pub mod reload;
pub mod request;
pub mod respond;
pub mod upstream;
pub mod view;

pub mod admin;
pub mod app;
pub mod args;
pub mod body;
pub mod config;
pub mod drain;
pub mod metrics;
pub mod socket;
pub mod stack;
pub mod tunnel;
