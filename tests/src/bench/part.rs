//! The parts of a round: each is taken at every target in turn.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use super::connection::Protocol;
use super::table::Table;
use super::target::Target;
use crate::meter::Meter;
use crate::{ControlPlane, HarnessError};

mod burst;
mod idle;
mod list;
mod requests;
mod watch;

use list::Form;
use requests::Verb;
use watch::Whose;

/// What can be asked for by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Small reads.
    Get,
    /// Small writes.
    Patch,
    /// Lists of all objects.
    List,
    /// Events of one watch.
    Watch,
    /// Watches without events, and the process before its first request.
    Idle,
    /// A kube-controller-manager that makes 600 Pods.
    Burst,
}

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    /// Of which the median counts; odd.
    pub(super) rounds: usize,
    /// How long small requests are sent.
    pub(super) requests: Duration,
    /// `ConfigMaps`.
    pub(super) objects: usize,
}

/// One thing that is measured at one target.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    Requests { verb: Verb, connections: usize },
    List(Form),
    Watch { rate: u32, whose: Whose },
    Idle(Protocol),
    Burst,
}

// === impl Measure ===

impl Measure {
    /// All of them, in the order of a round.
    pub const ALL: [Self; 6] = [Self::Get, Self::Patch, Self::List, Self::Watch, Self::Idle, Self::Burst];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Patch => "patch",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Idle => "idle",
            Self::Burst => "burst",
        }
    }

    pub(super) fn parts(self) -> Vec<Part> {
        match self {
            Self::Get => [1, 32].map(|connections| Part::Requests { verb: Verb::Get, connections }).into(),
            Self::Patch => {
                [1, 32].map(|connections| Part::Requests { verb: Verb::Patch, connections }).into()
            }
            Self::List => vec![Part::List(Form::Json), Part::List(Form::Protobuf)],
            Self::Watch => vec![
                Part::Watch { rate: 200, whose: Whose::Owned },
                Part::Watch { rate: 200, whose: Whose::Foreign },
                Part::Watch { rate: 5, whose: Whose::Owned },
            ],
            Self::Idle => vec![Part::Idle(Protocol::Two), Part::Idle(Protocol::One)],
            Self::Burst => vec![Part::Burst],
        }
    }
}

// === impl Extent ===

impl Extent {
    pub(super) const FULL: Self = Self { rounds: 3, requests: Duration::from_secs(2), objects: 20_000 };
    /// Shows that everything runs; its figures say little.
    pub(super) const QUICK: Self = Self { rounds: 1, requests: Duration::from_secs(1), objects: 4_000 };
}

// === impl Part ===

impl Part {
    /// Measures one target, which has answered nothing yet but that it is ready.
    pub(super) async fn take(
        self,
        plane: &ControlPlane,
        extent: Extent,
        target: &Target,
        table: &mut Table,
    ) -> Result<(), HarnessError> {
        match self {
            Self::Requests { verb, connections } => {
                Box::pin(requests::take(verb, connections, extent, target, table)).await
            }
            Self::List(form) => list::take(form, extent, target, table).await,
            Self::Watch { rate, whose } => Box::pin(watch::take(plane, rate, whose, target, table)).await,
            Self::Idle(protocol) => Box::pin(idle::take(protocol, target, table)).await,
            Self::Burst => Box::pin(burst::take(plane, target, table)).await,
        }
    }
}

impl Display for Part {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requests { verb, connections } => write!(f, "{verb}, {connections} connections"),
            Self::List(form) => write!(f, "LIST {form}"),
            Self::Watch { rate, whose } => write!(f, "watch, {rate} {whose} events a second"),
            Self::Idle(Protocol::One) => f.write_str("idle watches over h1"),
            Self::Idle(Protocol::Two) => f.write_str("idle watches over h2"),
            Self::Burst => f.write_str("burst"),
        }
    }
}

/// CPU time of the target's process so far; zero for the API server, which has no row of it.
fn cpu(target: &Target) -> Result<Duration, HarnessError> {
    target.meter.as_ref().map_or(Ok(Duration::ZERO), Meter::cpu)
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn as_f64(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// Of bytes; negative when it shrank.
fn mebibytes(before: u64, after: u64) -> f64 {
    let of = |bytes: u64| f64::from(u32::try_from(bytes / 1024).unwrap_or(u32::MAX)) / 1024.0;
    of(after) - of(before)
}

fn median(mut of: Vec<Duration>) -> Duration {
    of.sort_unstable();
    of.get(of.len() / 2).copied().unwrap_or_default()
}
