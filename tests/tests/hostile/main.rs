//! Clients that mean harm: each is refused or contained, costs little memory, and harms nobody else.
//!
//! The upstream is played by the test, the clients speak through raw sockets. Deadlines end a test that hangs; none
//! measures anything. No control plane is needed here.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code, helpers included")]

mod files;
mod fixture;
mod floods;
mod http1;
mod http2;
mod killed;
mod silence;
mod slow_watch;
