//! Time as the rules see it: a parameter, of a clock that never goes back.

use std::{ops::Add, time::Duration};

/// Milliseconds of a monotonic clock since some start. Moments of two processes have nothing to do with each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub u64);

// === impl Moment ===

impl Moment {
    /// How long ago `earlier` was; nothing if it is still to come.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, later: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(later.as_millis()).unwrap_or(u64::MAX)))
    }
}
