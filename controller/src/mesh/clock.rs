//! The monotonic clock of this process, as the pure rules see it.

use shoal_sharding::Moment;
use tokio::time::Instant;

/// A clock that begins when it is made.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

// === impl Clock ===

impl Clock {
    /// Begins now.
    pub fn new() -> Self {
        Self(Instant::now())
    }

    /// Now.
    pub fn now(&self) -> Moment {
        Moment(u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    /// When that moment is.
    pub fn instant(&self, moment: Moment) -> Instant {
        // A moment that is too far away to be told is as good as one in a day.
        const FAR: std::time::Duration = std::time::Duration::from_hours(24);
        let offset = std::time::Duration::from_millis(moment.0);
        self.0.checked_add(offset).unwrap_or_else(|| Instant::now() + FAR)
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}
