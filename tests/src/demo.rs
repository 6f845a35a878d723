//! The demo: a stock kube-controller-manager as shards that come and go on a real control plane, told as it happens.
//!
//! ```text
//! Stand (cluster, live ring) ─▶ story: elect ─▶ fill ─▶ 2 to 4 ─▶ change ─▶ 4 to 3 ─▶ kill ─▶ verdict ─▶ Outcome
//!                                 │                                                             │
//!                               screen                                          judge (audit log), objects, metrics
//! ```

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

use crate::{HarnessError, programs};

mod changes;
mod keep;
mod objects;
mod screen;
mod stand;
mod story;
mod verdict;

pub use screen::Screen;
use stand::Stand;

/// What a run that went well ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Outcome {
    shards: usize,
    objects: usize,
    writes: u64,
    foreign: u64,
}

/// Why the demo failed.
#[derive(Debug, thiserror::Error)]
enum DemoError {
    /// Something could not be started, or did not get where it had to.
    #[error(transparent)]
    Harness(#[from] HarnessError),
    /// The example cannot be read.
    #[error("the ring in {} cannot be used: {reason}", path.display())]
    Ring { path: PathBuf, reason: String },
    /// A program that had to go on did not.
    #[error("{program} exited with code {code}; its log is {}", log.display())]
    Exited { program: String, code: i32, log: PathBuf },
    /// The audit log does not show what it has to.
    #[error(
        "the judge is against: foreign={foreign} late={late} unasked={unasked} evidence={evidence}; {first}"
    )]
    Judge { foreign: u64, late: u64, unasked: u64, evidence: u64, first: String },
    /// A shard without work proves nothing.
    #[error("{shard} {what}: its controller or its proxy did not do its part")]
    Idle { shard: String, what: &'static str },
    /// Ctrl-C, or TERM.
    #[error("interrupted")]
    Interrupted,
    /// A bug of the demo; the panic's own message is above.
    #[error("panicked")]
    Panicked,
}

// === impl Outcome ===

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { shards, objects, writes, foreign } = self;
        write!(f, "shards={shards} objects={objects} writes={writes} foreign={foreign}")
    }
}

/// Runs the demo, from the first line to the last; with `keep` it stays up until Ctrl-C. Leaves no process behind.
pub fn main(screen: &Screen, keep: bool) -> ExitCode {
    let ended = catch_unwind(AssertUnwindSafe(|| run(screen, keep))).unwrap_or(Err(DemoError::Panicked));
    match ended {
        Ok(outcome) => screen.succeed(&outcome.to_string()),
        Err(error) => {
            show_logs(screen);
            screen.fail(&error.to_string())
        }
    }
}

/// A run that failed before it had a folder shows none.
fn show_logs(screen: &Screen) {
    if let Some(logs) =
        programs::target_dir().ok().map(|dir| dir.join(stand::FOLDER)).filter(|dir| dir.exists())
    {
        screen.line(&format!("logs are in {}", keep::short(&logs)));
    }
}

fn run(screen: &Screen, keep: bool) -> Result<Outcome, DemoError> {
    let runtime = Runtime::new().map_err(HarnessError::io("start", Path::new("the async runtime")))?;
    runtime.block_on(Box::pin(play(screen, keep)))
}

async fn play(screen: &Screen, keep: bool) -> Result<Outcome, DemoError> {
    screen.title("Shoal: a kube-controller-manager that was written to run once, as shards that come and go");
    let mut stand = tokio::select! {
        stand = Stand::start(screen) => stand?,
        error = interrupted() => return Err(error),
    };
    let outcome = tokio::select! {
        outcome = story::tell(&stand.cluster, &mut stand.scene, screen) => outcome?,
        error = stand::first_exit(&stand.cluster) => return Err(error),
        error = interrupted() => return Err(error),
    };
    if keep {
        keep::explain(&stand, screen).await?;
        tokio::select! {
            error = stand::first_exit(&stand.cluster) => return Err(error),
            _ = interrupted() => {}
        }
    }
    screen.step("Ending everything");
    drop(stand);
    Ok(outcome)
}

/// Returns when the user, or whoever runs the demo, wants it to end.
async fn interrupted() -> DemoError {
    let Ok(mut term) = signal(SignalKind::terminate()) else { return DemoError::Interrupted };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = term.recv() => {}
    }
    DemoError::Interrupted
}
