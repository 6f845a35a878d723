//! What a request, a list, an event, a watch and a controller's work cost through Shoal, beside what a user would pick.
//!
//! ```text
//! shoal-bench ─┬─────────────────────▶ kube-apiserver      direct
//!              ├── meshload revproxy ▶                     Go's httputil.ReverseProxy
//!              ├── shoal-floor ──────▶                     the least that a proxy can be
//!              └── shoal-proxy ──────▶                     the filter on, half of the namespaces owned
//! ```
//! The targets take turns within each part of a round, each as a process of its own, and the median of the rounds
//! counts, because a shared machine is never quiet. Only the proxies' own CPU and memory are counted. Compare ratios
//! of one run; figures of two machines say nothing.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject};
use tokio::task::JoinSet;

use crate::{ControlPlane, HarnessError, Options, RunDir};

mod bar;
mod connection;
mod data;
mod events;
pub mod halves;
mod handover;
mod part;
mod table;
mod target;

pub use part::Measure;
use part::{Extent, Part};
use table::Table;
use target::{Name, Target};

/// The folder under `target/` for the figures and the programs' logs.
const FOLDER: &str = "bench";
/// Every figure of every round, in that folder.
const FIGURES: &str = "figures.csv";
/// An audit log would cost the API server more than the requests do.
const NO_AUDIT: &str = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None}]\n";

/// Measures planned hand-overs, which are no matter of proxies beside each other, and prints what they took.
pub async fn hand_over() -> Result<(), HarnessError> {
    let handover::Outcome { figures, fetched, writes } = handover::run().await?;
    println!("slots moved: {}", figures.moves);
    println!("hand-over p99: {} ms (bar: 250)", figures.handover_ms_p99);
    println!("fetched for all moves: {:.1} MB", fetched / 1e6);
    println!("writes to objects meanwhile: {writes}");
    Ok(())
}

/// What to measure.
#[derive(Debug, Clone)]
pub struct Asked {
    /// In this order.
    pub measures: Vec<Measure>,
    /// One short round, to see that everything runs.
    pub quick: bool,
}

// === impl Asked ===

impl Asked {
    /// Reads `[quick] [MEASURE]...`; without a measure it is all of them. Fails with what can be said instead.
    pub fn parse(words: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let (mut asked, mut unknown) = (Self { measures: Vec::new(), quick: false }, Vec::new());
        for word in words {
            match Measure::ALL.into_iter().find(|measure| measure.name() == word) {
                Some(measure) => asked.measures.push(measure),
                None if word == "quick" => asked.quick = true,
                None => unknown.push(word),
            }
        }
        if asked.measures.is_empty() {
            asked.measures = Measure::ALL.to_vec();
        }
        let names = Measure::ALL.map(Measure::name).join("|");
        if unknown.is_empty() { Ok(asked) } else { Err(format!("usage: shoal-bench [quick] [{names}]...")) }
    }

    fn extent(&self) -> Extent {
        if self.quick { Extent::QUICK } else { Extent::FULL }
    }

    fn parts(&self) -> Vec<Part> {
        self.measures.iter().flat_map(|measure| measure.parts()).collect()
    }
}

/// Starts everything, measures, prints the table and writes `target/bench/figures.csv`.
pub async fn run(asked: &Asked) -> Result<(), HarnessError> {
    let (dir, extent) = (RunDir::kept(FOLDER)?, asked.extent());
    let options = Options { audit_policy: NO_AUDIT.to_owned(), ..Options::default() };
    let plane = ControlPlane::start(dir.path(), options).await?;
    println!("bench: {}; creating {} ConfigMaps", machine(), extent.objects);
    data::create(&plane, extent.objects).await?;
    let mut table = Table::default();
    for round in 1..=extent.rounds {
        for part in asked.parts() {
            println!("bench: round {round} of {}: {part}", extent.rounds);
            take(part, &plane, extent, &mut table).await?;
        }
    }
    let figures = dir.path().join(FIGURES);
    std::fs::write(&figures, table.csv()).map_err(HarnessError::io("write", &figures))?;
    println!("\n{table}\nbench: {}; every figure is in {}", machine(), figures.display());
    Ok(())
}

/// Takes one part at each target in turn.
async fn take(
    part: Part,
    plane: &ControlPlane,
    extent: Extent,
    table: &mut Table,
) -> Result<(), HarnessError> {
    for name in Name::ALL {
        let target = Target::start(plane, name).await?;
        part.take(plane, extent, &target, table).await?;
    }
    Ok(())
}

/// How many cores there are and how busy they were in the last minute.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    format!("{cores} cores, load {}", load.split(' ').next().unwrap_or_default())
}

/// A number that was not there before in this run.
fn nonce() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// What tasks return, or the first failure.
async fn joined<T: 'static>(mut tasks: JoinSet<Result<T, HarnessError>>) -> Result<Vec<T>, HarnessError> {
    let mut all = Vec::new();
    while let Some(done) = tasks.join_next().await {
        let lost = |error: tokio::task::JoinError| HarnessError::Answer {
            url: "the load".to_owned(),
            reason: error.to_string(),
        };
        all.push(done.map_err(lost)??);
    }
    Ok(all)
}

/// TLS that trusts the authority in a PEM file only.
pub fn trust(ca: &Path) -> Result<rustls::ClientConfig, rustls::Error> {
    let general = |error: pem::Error| rustls::Error::General(format!("{}: {error}", ca.display()));
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(ca).map_err(general)?)?;
    Ok(rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<Asked, String> {
        Asked::parse(words.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn what_is_asked_for_is_measured_and_nothing_unknown() {
        assert_eq!(parse("").unwrap().measures, Measure::ALL);
        let asked = parse("quick watch idle").unwrap();
        assert!(asked.quick && asked.measures == [Measure::Watch, Measure::Idle]);
        assert!(parse("lists").unwrap_err().contains("get|patch|list"));
    }
}
