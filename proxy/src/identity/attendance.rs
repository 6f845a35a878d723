//! Whether the controller is there: it holds connections to the proxy as long as it lives, since its watches are some.
//!
//! A process that ends loses all its connections at once, however it ends, and needs no rights of the proxy to be seen
//! so. One that is paused keeps them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

/// How long there must be no connection for the controller to count as gone: a client that reconnects takes less.
const GONE: Duration = Duration::from_millis(500);

/// The connections of the controller.
#[derive(Clone, Debug, Default)]
pub struct Attendance(Arc<Counted>);

#[derive(Debug, Default)]
struct Counted {
    open: AtomicUsize,
    changed: Notify,
}

/// One connection, as long as it lives.
#[derive(Debug)]
pub struct Attending(Arc<Counted>);

// === impl Attendance ===

impl Attendance {
    /// A connection was made.
    pub fn one(&self) -> Attending {
        if self.0.open.fetch_add(1, Ordering::Relaxed) == 0 {
            self.0.changed.notify_one();
        }
        Attending(self.0.clone())
    }

    /// Waits until the controller, which was there or not, is so no longer; returns whether it is there now. For one
    /// caller at a time.
    pub(super) async fn changed(&self, was_there: bool) -> bool {
        let mut empty_since = None;
        loop {
            let is_there = self.0.open.load(Ordering::Relaxed) > 0;
            if is_there && !was_there {
                return true;
            }
            empty_since = if is_there { None } else { empty_since.or_else(|| Some(Instant::now())) };
            match empty_since.filter(|_| was_there) {
                None => self.0.changed.notified().await,
                Some(since) => tokio::select! {
                    () = self.0.changed.notified() => {}
                    () = sleep_until(since + GONE) => return false,
                },
            }
        }
    }
}

// === impl Attending ===

impl Drop for Attending {
    fn drop(&mut self) {
        if self.0.open.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.changed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_has_no_connection_for_a_while_is_gone() {
        let attendance = Attendance::default();
        let first = attendance.one();
        assert!(attendance.changed(false).await);
        let begun = Instant::now();
        let reconnects = async {
            drop(first);
            sleep(GONE / 2).await;
            let second = attendance.one();
            sleep(GONE * 3).await;
            drop(second);
        };
        let (is_there, ()) = tokio::join!(attendance.changed(true), reconnects);
        assert!(!is_there);
        assert_eq!(begun.elapsed(), GONE / 2 + GONE * 4, "a reconnect starts the count anew");
    }
}
