//! The command line.

use std::time::Duration;

use clap::{Parser, ValueEnum};
use shoal_api::{FenceMode, HandoverMode};

use super::Fault;
use crate::controllers::RING;

/// Runs a live ring of stock kube-controller-managers under load and lets everything that can go wrong do so. The last line
/// is the verdict.
#[derive(Debug, Clone, Parser)]
#[command(name = "shoal-chaos")]
pub struct Args {
    /// How long faults go on.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    pub minutes: u64,
    /// What a controller that loses slots is shown.
    #[arg(long, value_enum, default_value_t = Mode::Freeze)]
    pub mode: Mode,
    /// What makes late writes fail.
    #[arg(long, value_enum, default_value_t = Fence::Preconditions)]
    pub fence: Fence,
    /// What the faults and the load are drawn by.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Which faults; all of them by default.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Fault::ALL)]
    pub faults: Vec<Fault>,
    /// Which controllers run.
    #[arg(long, value_delimiter = ',', default_values_t = RING.map(str::to_owned))]
    pub controllers: Vec<String>,
    /// Shards at the begin.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(2..=4))]
    pub shards: u16,
    /// Seconds that a slot may be without service; time in which the API server answers nobody does not count.
    #[arg(long, default_value_t = 90)]
    pub orphan_budget: u64,
}

/// See [`HandoverMode`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum Mode {
    /// Nothing.
    Freeze,
    /// Everything anew, by a restart.
    Restart,
    /// Deletions; not for a garbage collector.
    Evict,
}

/// See [`FenceMode`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum Fence {
    /// Versions.
    Preconditions,
    /// Tokens that end with a term.
    Credential,
}

// === impl Args ===

impl Args {
    /// How long a whole outage of the API server lasts: a minute, unless that is all there is.
    pub(super) fn outage(&self) -> Duration {
        Duration::from_secs(if self.minutes > 3 { 60 } else { 20 })
    }
}

// === impl Mode ===

impl From<Mode> for HandoverMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Freeze => Self::Freeze,
            Mode::Restart => Self::Restart,
            Mode::Evict => Self::Evict,
        }
    }
}

// === impl Fence ===

impl From<Fence> for FenceMode {
    fn from(fence: Fence) -> Self {
        match fence {
            Fence::Preconditions => Self::Preconditions,
            Fence::Credential => Self::Credential,
        }
    }
}
