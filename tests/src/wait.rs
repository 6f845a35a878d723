//! Waiting for the outside world: a real cluster reaches a state when it does.

use std::fmt::Display;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use crate::HarnessError;

/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(100);
/// Ends a test that hangs; long, so that it measures nothing on a machine that is busy.
const HANGS: Duration = Duration::from_mins(2);

/// What a test waits for that needs no second look.
///
/// # Panics
///
/// If it has not come after two minutes, naming `what`.
#[allow(clippy::panic, reason = "it ends a test, like an assertion")]
pub async fn soon<T>(what: &str, awaited: impl Future<Output = T>) -> T {
    timeout(HANGS, awaited).await.unwrap_or_else(|_| panic!("waited too long for {what}"))
}

/// Looks until `look` finds what is awaited, and returns that. Its error says what it saw instead.
///
/// Fails after `deadline`, naming `what` and the last thing seen.
pub async fn wait_for<T, E, Fut>(
    what: &str,
    deadline: Duration,
    mut look: impl FnMut() -> Fut,
) -> Result<T, HarnessError>
where
    E: Display,
    Fut: Future<Output = Result<T, E>>,
{
    let end = Instant::now() + deadline;
    loop {
        let last = match look().await {
            Ok(found) => return Ok(found),
            Err(seen) => seen.to_string(),
        };
        if Instant::now() >= end {
            return Err(HarnessError::Timeout { what: what.to_owned(), waited: deadline, last });
        }
        sleep(PAUSE).await;
    }
}
