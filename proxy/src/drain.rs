//! How the proxy ends without hurting the controller beside it.
//!
//! ```text
//! TERM --> unready, still serving --> closing: no new connections,   --> forced: what is left is cut --> exit 0
//!          (the controller may yet     watches end one by one,
//!           release its lock)          calls finish
//!          until it has gone or 15 s   until done or 25 s in all          a second TERM comes here at once
//! ```

use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// The controller has this long to go first. It releases its lock on TERM, which takes a write.
pub const APP_GRACE: Duration = Duration::from_secs(15);
/// Watches end within this, so that not all of their clients come back at once.
pub const SPREAD: Duration = Duration::from_secs(5);
/// The whole drain; less than the 30 s that Kubernetes gives by default.
pub const TOTAL: Duration = Duration::from_secs(25);
/// In how many steps watches end.
const STEPS: u32 = 32;

/// The state of a drain, shared by everything that has to end.
#[derive(Clone, Debug, Default)]
pub struct Drain {
    begun: CancellationToken,
    closing: CancellationToken,
    forced: CancellationToken,
}

/// When the phases of a drain end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// From here on no connection is accepted.
    pub close: Instant,
    /// From here on what is left is cut.
    pub force: Instant,
}

// === impl Schedule ===

impl Schedule {
    /// The phases of a drain that begins at `told`.
    pub fn from(told: Instant) -> Self {
        Self { close: told + APP_GRACE, force: told + TOTAL }
    }
}

// === impl Drain ===

impl Drain {
    /// The proxy is to end: it is no longer ready and serves on.
    pub fn begin(&self) {
        self.begun.cancel();
    }

    /// Waits until the proxy is told to end.
    pub async fn begun(&self) {
        self.begun.cancelled().await;
    }

    /// Whether the proxy is told to end.
    pub fn has_begun(&self) -> bool {
        self.begun.is_cancelled()
    }

    /// No new connections; watches end, calls finish.
    pub fn close(&self) {
        self.closing.cancel();
    }

    /// What is left is cut.
    pub fn force(&self) {
        self.closing.cancel();
        self.forced.cancel();
    }

    /// Walks the phases once the drain has begun; returns when every connection in `tracker` has ended or was cut.
    pub async fn run(&self, tracker: &TaskTracker) {
        self.begun().await;
        let schedule = Schedule::from(Instant::now());
        // Closed, the tracker tells when there is no connection, and still takes new ones.
        tracker.close();
        self.until_ended(tracker, schedule.close).await;
        self.close();
        self.until_ended(tracker, schedule.force).await;
        self.force();
        tracker.wait().await;
    }

    /// Waits until every connection has ended, but no longer than to the end of the phase.
    async fn until_ended(&self, tracker: &TaskTracker, phase: Instant) {
        tokio::select! {
            () = tracker.wait() => {}
            () = sleep_until(phase) => {}
            () = self.forced() => {}
        }
    }

    /// Waits until the proxy takes no new connections.
    pub async fn closing(&self) {
        self.closing.cancelled().await;
    }

    /// Waits until the rest is cut.
    pub async fn forced(&self) {
        self.forced.cancelled().await;
    }

    /// Waits until the `number`th watch is to end.
    pub async fn watch_ends(self, number: u32) {
        self.closing.cancelled().await;
        sleep(stagger(number)).await;
    }
}

/// How long after the others the `number`th watch ends; neighbours are far apart.
fn stagger(number: u32) -> Duration {
    SPREAD * (number.wrapping_mul(7) % STEPS) / STEPS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn watches_end_one_by_one_within_the_spread() {
        let drain = Drain::default();
        let begun = Instant::now();
        drain.close();
        let mut ends = Vec::new();
        for number in 0..STEPS {
            let begun = Instant::now();
            drain.clone().watch_ends(number).await;
            ends.push(begun.elapsed());
        }
        ends.sort();
        ends.dedup();
        assert_eq!(ends.len(), STEPS as usize);
        assert!(ends.iter().all(|end| *end < SPREAD), "{ends:?}");
        assert!(begun.elapsed() > SPREAD);
    }

    #[tokio::test(start_paused = true)]
    async fn forcing_closes_too() {
        let drain = Drain::default();
        drain.force();
        drain.closing().await;
        drain.forced().await;
    }

    /// Walks a drain while `held` ends as it does, and tells after how many seconds the phases came.
    async fn phases(held: impl Future<Output = ()> + Send + 'static) -> (u64, u64) {
        let (drain, tracker, told) = (Drain::default(), TaskTracker::new(), Instant::now());
        tracker.spawn(held);
        drain.begin();
        let closed = async {
            drain.closing().await;
            told.elapsed().as_secs()
        };
        let ended = async {
            drain.run(&tracker).await;
            told.elapsed().as_secs()
        };
        tokio::join!(closed, ended)
    }

    #[tokio::test(start_paused = true)]
    async fn a_drain_ends_when_nobody_is_connected_any_more() {
        assert_eq!(phases(async {}).await, (0, 0));
        assert_eq!(phases(sleep(Duration::from_secs(7))).await, (7, 7));
        assert_eq!(phases(sleep(Duration::from_secs(20))).await, (15, 20));
    }

    #[tokio::test(start_paused = true)]
    async fn who_stays_is_cut_in_time() {
        let (drain, tracker, told) = (Drain::default(), TaskTracker::new(), Instant::now());
        let stubborn = drain.clone();
        tracker.spawn(async move { stubborn.forced().await });
        drain.begin();
        drain.run(&tracker).await;
        assert_eq!(told.elapsed(), TOTAL);
    }

    #[tokio::test(start_paused = true)]
    async fn forcing_ends_a_drain_at_once() {
        let (drain, tracker, told) = (Drain::default(), TaskTracker::new(), Instant::now());
        let stubborn = drain.clone();
        tracker.spawn(async move { stubborn.forced().await });
        drain.begin();
        let impatient = async {
            sleep(Duration::from_secs(2)).await;
            drain.force();
        };
        tokio::join!(drain.run(&tracker), impatient);
        assert_eq!(told.elapsed().as_secs(), 2);
    }

    #[test]
    fn a_drain_fits_the_grace_period() {
        let told = Instant::now();
        let schedule = Schedule::from(told);
        assert!(schedule.close + SPREAD < schedule.force);
        assert!(schedule.force < told + Duration::from_secs(30));
    }
}
