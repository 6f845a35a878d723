//! Waiting for the outside world: a real cluster reaches a state when it does.

use std::fmt::Display;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::HarnessError;

/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(100);

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
