//! `shoal-conformance [--only SUBSTRING]`: what a client sees through a proxy beside what it sees directly; see
//! [`shoal_tests::conformance`]. Its logs are in `target/conformance/`.

use std::process::ExitCode;

use shoal_tests::{HarnessError, RunDir, conformance};

#[tokio::main]
async fn main() -> Result<ExitCode, HarnessError> {
    let mut args = std::env::args().skip(1);
    let only = match (args.next().as_deref(), args.next()) {
        (None, _) => None,
        (Some("--only"), Some(only)) => Some(only),
        _ => {
            eprintln!("usage: shoal-conformance [--only SUBSTRING]");
            return Ok(ExitCode::from(2));
        }
    };
    let dir = RunDir::kept("conformance")?;
    let report = Box::pin(conformance::run(dir.path(), only.as_deref())).await?;
    report.print();
    Ok(if report.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
