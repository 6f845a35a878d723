//! The same requests straight and through a proxy, and their answers compared: status, headers and every byte.
//!
//! ```text
//! discovery ─▶ generate ─▶ pair ─┬─▶ API server ──────────────▶ answer ─▶ what each shard has to answer
//!                                ├─▶ ring of one ─▶ API server ─▶ answer ─▶ is it that?
//!                                └─▶ a shard of three ────┘
//! ```
//! What may differ is said in `docs/conformance.md`, and each of these differences is checked for its exact form.

mod compare;
mod difference;
mod discovery;
mod evidence;
mod filtered;
mod form;
mod generate;
mod ground;
mod mask;
mod owner;
mod pair;
mod report;
mod run;
mod seeds;
mod twins;

use std::path::Path;
use std::sync::Arc;

pub use self::report::Report;
use crate::HarnessError;
use crate::conformance::difference::Difference;
use crate::conformance::ground::Ground;

/// Runs all pairs, or those whose description holds `only`; files go to `dir`. Failures are printed as they are found.
pub async fn run(dir: &Path, only: Option<&str>) -> Result<Report, HarnessError> {
    let ground = Arc::new(Ground::start(dir).await?);
    let mut pairs = generate::pairs(&ground).await?;
    pairs.retain(|pair| only.is_none_or(|only| pair.describe().contains(only)));
    let mut report = Report::default();
    run::all(&ground, pairs, &mut report).await?;
    if only.is_none() {
        twins::all(&ground, &mut report).await?;
        let wrong = evidence::wrong_agents(&ground)?;
        report.check(Difference::Agent, &wrong);
    }
    Ok(report)
}
