//! What came of it, by the API server's audit log.

use std::io::Cursor;
use std::time::Duration;

use shoal_judge::{Asked, Case, Figures, Judge, Owners, Report, Ring, Verdict as Says};

use super::ChaosError;
use super::ground::Ground;
use crate::ring::HUB;
use crate::{HarnessError, evidence};

/// Findings that are shown.
const FINDINGS: usize = 30;

/// The judge's report.
pub(super) struct Verdict {
    report: Report,
}

// === impl Verdict ===

impl Verdict {
    /// Judges the log as it is. `asked` lists the deletions that were asked for, in the judge's form.
    pub(super) fn of(ground: &Ground, asked: &str) -> Result<Self, HarnessError> {
        let ring = serde_json::to_string(&ground.controller).unwrap_or_default();
        let orphan_budget = Some(Duration::from_secs(ground.args.orphan_budget));
        let case = Case {
            ring: Ring::parse(&ring)?,
            owners: Owners::default(),
            writers: Ground::writers(),
            asked: Some(Asked::parse(asked)?),
            orphan_budget,
            adopted: false,
        };
        let mut judge = Judge::new(case);
        let log = evidence::snapshot(&ground.cluster.control_plane.audit_log())?;
        judge.survey(HUB, Cursor::new(&log));
        judge.read(HUB, Cursor::new(&log));
        Ok(Self { report: judge.finish() })
    }

    pub(super) fn print(&self) {
        for finding in self.report.findings.iter().take(FINDINGS) {
            println!("{finding}");
        }
        for (reason, count) in &self.report.reasons {
            println!("{reason}: {count}");
        }
        let Some(Figures { moves, orphaned, .. }) = self.report.figures else { return };
        println!("slots moved as planned: {moves}, lost their owner otherwise: {orphaned}");
    }

    /// Fails unless the judge found nothing, in a log that proves something.
    pub(super) fn check(&self) -> Result<(), ChaosError> {
        if self.report.is_clean() && self.report.figures.is_some() {
            return Ok(());
        }
        let unowned = self.report.total(Says::Unowned);
        let evidence = self.report.total(Says::Evidence);
        let first =
            self.report.findings.first().map_or_else(|| "no map in the log".to_owned(), ToString::to_string);
        Err(ChaosError::Judge(format!("{} unowned={unowned} evidence={evidence}; {first}", self.line())))
    }

    /// The figures of the last line.
    pub(super) fn line(&self) -> String {
        let Figures { orphan_ms_p99, handover_ms_p99, .. } = self.report.figures.unwrap_or_default();
        let total = |says| self.report.total(says);
        format!(
            "writes={} foreign={} late={} unasked={} orphan_ms_p99={orphan_ms_p99} handover_ms_p99={handover_ms_p99}",
            self.report.judged,
            total(Says::Foreign),
            total(Says::Late),
            total(Says::Unasked),
        )
    }
}
