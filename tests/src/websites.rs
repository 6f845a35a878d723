//! Websites: parents with four parts each, and what their users see while shards move.
//!
//! The kinds are those of the load that kubernetes-controller-sharding was measured with (`webhosting.timebertt.dev`), so
//! that the same load can drive this ring. The controller is `manager --websites`.

mod kinds;
mod seen;
mod users;

pub use kinds::{GROUP, install, ring, website};
pub use seen::{Seen, Watching};
pub use users::{Users, Work};
