//! Chaos: a live ring of stock kube-controller-managers under load, while everything that can go wrong does.
//!
//! ```text
//! Args ─▶ Ground (cluster, ring) ─┬─▶ Changes: what users ask for, and what that makes go away
//!                                 └─▶ Deck ─▶ Fault, one after the other, each seen to happen ─▶ Tally
//!                     heal, settle ─▶ Verdict: the judge over the audit log ─▶ the last line
//! ```
//! The same seed gives the same faults in the same order; what they meet is up to the machine.

mod args;
mod changes;
mod deck;
mod fault;
mod ground;
mod settle;
mod verdict;

use std::process::ExitCode;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::time::{Instant, sleep};

pub use args::Args;
pub use fault::Fault;

use crate::HarnessError;
use changes::Changes;
use deck::{Deck, Tally};
use ground::Ground;
use verdict::Verdict;

/// The folder under `target/` where logs are left.
const FOLDER: &str = "chaos";
/// Time for everything to come to rest once no fault is left.
const DEADLINE: Duration = Duration::from_mins(6);
/// Between two faults, milliseconds: some meet what the one before has left.
const PAUSE_MS: std::ops::Range<u64> = 300..4000;

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
enum ChaosError {
    /// Something could not be started, or did not get where it had to.
    #[error(transparent)]
    Harness(#[from] HarnessError),
    /// A fault did not happen, or what had to follow did not.
    #[error("{fault}: {source}")]
    Fault { fault: Fault, source: HarnessError },
    /// The audit log does not show what it has to.
    #[error("{0}")]
    Judge(String),
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

/// Runs it all, from the first line to the last.
pub fn main(args: &Args) -> ExitCode {
    let played = Runtime::new().map(|runtime| runtime.block_on(Box::pin(play(args))));
    let played =
        played.map_err(|error| error.to_string()).and_then(|it| it.map_err(|error| error.to_string()));
    match played {
        Ok(line) => {
            println!("chaos: ok {line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            // What and where stand before it; the last line is one line.
            let (first, more) = error.split_once('\n').unwrap_or((&error, ""));
            if !more.is_empty() {
                println!("{more}");
            }
            println!("chaos: FAILED {first}");
            ExitCode::FAILURE
        }
    }
}

async fn play(args: &Args) -> Result<String, ChaosError> {
    let began = Instant::now();
    println!(
        "chaos: seed={} minutes={} mode={:?} fence={:?}",
        args.seed, args.minutes, args.mode, args.fence
    );
    let mut ground = Ground::start(args).await?;
    println!("{} the ring is up; logs are in {}", clock(began), ground.dir().display());
    let changes = Changes::start(&ground, args.seed);
    let mut tally = Tally::new(&args.faults);
    let outcome = tokio::select! {
        outcome = disturb(args, &mut ground, &mut tally, began) => outcome,
        _ = tokio::signal::ctrl_c() => Err(ChaosError::Interrupted),
    };
    println!("{} no more faults; everything is to come to rest", clock(began));
    let healed = ground.heal().await;
    let wanted = changes.end().await?;
    let settled = match healed {
        Ok(()) => settle::wait(&ground, &wanted, DEADLINE).await,
        Err(error) => Err(error),
    };
    // A ring that did not get there has most likely done something else, which the judge can name.
    let verdict = Verdict::of(&ground, &wanted.lines())?;
    verdict.print();
    tally.print();
    outcome?;
    verdict.check()?;
    settled?;
    tally.check()?;
    Ok(verdict.line())
}

/// One fault after the other until the time is over.
async fn disturb(
    args: &Args,
    ground: &mut Ground,
    tally: &mut Tally,
    began: Instant,
) -> Result<(), ChaosError> {
    let mut deck = Deck::new(&args.faults, args.seed);
    let end = Instant::now() + Duration::from_secs(60 * args.minutes);
    while Instant::now() < end {
        let fault = deck.draw();
        println!("{} {fault}", clock(began));
        let seen = fault.inject(ground, deck.dice()).await;
        let seen = seen.map_err(|source| ChaosError::Fault { fault, source })?;
        println!("{}   {}", clock(began), seen.as_deref().unwrap_or("nothing to do it to"));
        tally.note(fault, seen.is_some());
        sleep(Duration::from_millis(deck.dice().u64(PAUSE_MS))).await;
    }
    Ok(())
}

fn clock(began: Instant) -> String {
    format!("{:6.1} s", began.elapsed().as_secs_f64())
}
