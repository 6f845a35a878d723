//! The times that the safety of a hand-over rests on.

use std::time::Duration;

/// How long an identity Lease holds after it was renewed.
pub const LEASE: Duration = Duration::from_secs(10);
/// How often it is renewed.
pub const RENEW: Duration = Duration::from_secs(2);
/// What two clocks may differ by over a Lease: holders count less, observers more.
const SKEW_PERCENT: u32 = 10;
/// No write begins with less than this left of the Lease.
pub const MARGIN: Duration = Duration::from_millis(500);
/// D: the longest that the API server works on a write of a ring, by its `timeout` parameter.
pub const WRITE: Duration = Duration::from_secs(5);
/// E: how much longer etcd may take over what the API server gave up (its own limit of a request).
pub const STORE: Duration = Duration::from_secs(7);
/// How long the API server believes a token whose Secret is gone (its cache of good tokens; measured 9.97 s).
pub const TOKEN_CACHE: Duration = Duration::from_secs(10);
/// How long a slot stays where it came, and how long a shard that fell has to hold before slots are moved to it, unless
/// they must.
pub const HOLD: Duration = Duration::from_mins(1);
/// How long a shard may take to get the objects of slots ready before the move is withdrawn.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// How long an observer waits after the last renewal that it saw.
pub fn observed_lease() -> Duration {
    LEASE * (100 + SKEW_PERCENT) / 100
}

/// How long a holder counts on a renewal that it sent.
pub fn held_lease() -> Duration {
    LEASE * (100 - SKEW_PERCENT) / 100
}

/// How old the last answer of the API may be for an observer to count itself as seeing.
pub fn sight() -> Duration {
    RENEW * 2
}
