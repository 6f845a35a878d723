//! The floor check: what a request and a large list cost through Shoal, beside a direct connection and the floor.
//!
//! ```text
//! shoal-bench ─┬─────────────────▶ kube-apiserver      direct
//!              ├── shoal-floor ──▶                     the least that a proxy can be
//!              └── shoal-proxy ──▶                     the filter on, half of the namespaces owned
//! ```
//! The targets take turns within each measure, and the median of the rounds counts, because a shared machine is never
//! quiet. Only the proxies' own CPU is counted. Compare ratios of one run; figures of two machines say nothing.

use std::path::Path;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject};

use crate::{ControlPlane, HarnessError, Options, RunDir};

mod connection;
mod data;
pub mod halves;
mod measure;
mod meter;
mod table;
mod target;

use measure::Measure;
use table::Table;
use target::Targets;

/// The folder under `target/` for the figures and the programs' logs.
const FOLDER: &str = "bench";
/// Every figure of every round, in that folder.
const FIGURES: &str = "floor.csv";
/// Odd, for the median.
const ROUNDS: usize = 3;
/// An audit log would cost the API server more than the requests do.
const NO_AUDIT: &str = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None}]\n";

/// Starts everything, measures, prints the table and writes `target/bench/floor.csv`.
pub async fn run() -> Result<(), HarnessError> {
    let dir = RunDir::kept(FOLDER)?;
    let options = Options { audit_policy: NO_AUDIT.to_owned(), ..Options::default() };
    let plane = ControlPlane::start(dir.path(), options).await?;
    println!("bench: creating {} ConfigMaps", data::OBJECTS);
    data::create(&plane).await?;
    let targets = Targets::start(&plane).await?;
    let mut table = Table::default();
    targets.idle(&mut table)?;
    for round in 1..=ROUNDS {
        println!("bench: round {round} of {ROUNDS}");
        for measure in Measure::ALL {
            targets.take(measure, &mut table).await?;
        }
    }
    let figures = dir.path().join(FIGURES);
    std::fs::write(&figures, table.csv()).map_err(HarnessError::io("write", &figures))?;
    println!("\n{table}\nbench: every figure is in {}", figures.display());
    Ok(())
}

/// TLS that trusts the authority in a PEM file only.
pub fn trust(ca: &Path) -> Result<rustls::ClientConfig, rustls::Error> {
    let general = |error: pem::Error| rustls::Error::General(format!("{}: {error}", ca.display()));
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(ca).map_err(general)?)?;
    Ok(rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
}
