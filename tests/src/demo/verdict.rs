//! What came of it: what the judge reads in the audit log, and what the proxies measured.

use std::collections::BTreeMap;
use std::io::Cursor;

use shoal_judge::{Asked, Case, Figures, Finding, Judge, Owners, Report, Ring, Verdict as Says};

use super::DemoError;
use super::stand::Scene;
use crate::controllers::RING_WRITERS;
use crate::proxy::Metrics;
use crate::ring::HUB;
use crate::{Cluster, HarnessError, evidence};

/// Resources that get a row of their own; the rest is one row.
const TOP: usize = 7;
/// Findings that are shown.
const FINDINGS: usize = 5;

/// Both witnesses at one time.
pub(super) struct Verdict {
    report: Report,
    /// The shards, and what their proxies measured since they began.
    shards: Vec<(String, Metrics)>,
}

// === impl Verdict ===

impl Verdict {
    /// Asks both. `asked` lists the deletions that were asked for so far, in the judge's form.
    pub(super) async fn of(cluster: &Cluster, scene: &Scene, asked: &str) -> Result<Self, HarnessError> {
        let ring = serde_json::to_string(&scene.controller).unwrap_or_default();
        let case = Case {
            ring: Ring::parse(&ring)?,
            owners: Owners::default(),
            writers: RING_WRITERS.map(str::to_owned).into(),
            asked: Some(Asked::parse(asked)?),
            orphan_budget: None,
            adopted: false,
        };
        let mut judge = Judge::new(case);
        let log = evidence::snapshot(&cluster.control_plane.audit_log())?;
        judge.survey(HUB, Cursor::new(&log));
        judge.read(HUB, Cursor::new(&log));
        let mut shards = Vec::new();
        for shard in scene.shards() {
            let pod = scene.ring.pod_of(&shard).await.and_then(|index| scene.ring.pods.get(index));
            let metrics = match pod {
                Some(pod) => pod.metrics().await?,
                None => Metrics::default(),
            };
            shards.push((shard, metrics));
        }
        Ok(Self { report: judge.finish(), shards })
    }

    /// Writes of the ring that were judged.
    pub(super) fn writes(&self) -> u64 {
        self.report.judged
    }

    /// Writes of what was not the writer's.
    pub(super) fn foreign(&self) -> u64 {
        self.report.total(Says::Foreign)
    }

    /// A table: a column for each shard.
    pub(super) fn rows(&self) -> Vec<Vec<String>> {
        let mut rows = vec![self.row("", str::to_owned)];
        for (what, metric) in [
            ("objects shown", "shoal_shown_objects_total"),
            ("objects hidden", "shoal_hidden_objects_total"),
            ("writes refused", "shoal_refused_writes_total"),
        ] {
            rows.push(self.row(what, |shard| self.metric(shard, metric).to_string()));
        }
        rows.push(self.row("clean writes, by the judge", |shard| self.written(shard, None).to_string()));
        let (top, rest) = self.resources();
        for resource in &top {
            rows.push(
                self.row(&format!("  {resource}"), |shard| self.written(shard, Some(resource)).to_string()),
            );
        }
        let others =
            |shard: &str| rest.iter().map(|resource| self.written(shard, Some(resource))).sum::<u64>();
        rows.push(self.row("  others", |shard| others(shard).to_string()));
        rows
    }

    fn row(&self, what: &str, cell: impl Fn(&str) -> String) -> Vec<String> {
        let cells = self.shards.iter().map(|(shard, _)| cell(shard));
        std::iter::once(what.to_owned()).chain(cells).collect()
    }

    fn metric(&self, shard: &str, metric: &str) -> u64 {
        let scrape = self.shards.iter().find(|(name, _)| name == shard);
        // Counters are whole numbers far below 2^53.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        scrape.map_or(0, |(_, metrics)| metrics.sum(metric, &[]) as u64)
    }

    fn written(&self, shard: &str, resource: Option<&str>) -> u64 {
        let Some(writes) = self.report.shards.get(shard) else { return 0 };
        resource.map_or(writes.writes, |resource| writes.resources.get(resource).copied().unwrap_or(0))
    }

    /// The resources that were written, the most written first: those with a row, and the others.
    fn resources(&self) -> (Vec<&str>, Vec<&str>) {
        let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
        for (resource, count) in self.report.shards.values().flat_map(|writes| &writes.resources) {
            *sums.entry(resource).or_default() += count;
        }
        let mut order: Vec<&str> = sums.keys().copied().collect();
        order.sort_by_key(|resource| std::cmp::Reverse(sums.get(resource)));
        let rest = order.split_off(order.len().min(TOP));
        (order, rest)
    }

    /// The first things that the judge found.
    pub(super) fn findings(&self) -> Vec<String> {
        self.report.findings.iter().take(FINDINGS).map(sentence).collect()
    }

    /// A line for a verdict without findings.
    pub(super) fn closing(&self) -> String {
        let Report { judged, lines, .. } = &self.report;
        let totals =
            [Says::Foreign, Says::Late, Says::Unasked, Says::Evidence].map(|says| self.report.total(says));
        let [foreign, late, unasked, evidence] = totals;
        format!(
            "judge: {judged} writes in {lines} audit lines, \
             foreign={foreign} late={late} unasked={unasked} evidence={evidence}{}",
            self.moves()
        )
    }

    /// What the log says of the moves.
    fn moves(&self) -> String {
        let Some(Figures { moves, handover_ms_p99, .. }) = self.report.figures else { return String::new() };
        format!("; {moves} slots moved by plan, hand-over p99 {handover_ms_p99} ms")
    }

    /// Fails unless the judge is clean and every shard took part.
    pub(super) fn check(&self) -> Result<(), DemoError> {
        self.check_report()?;
        for (shard, _) in &self.shards {
            if self.written(shard, None) == 0 {
                return Err(DemoError::Idle { shard: shard.clone(), what: "wrote nothing" });
            }
        }
        Ok(())
    }

    fn check_report(&self) -> Result<(), DemoError> {
        let Some(first) = self.report.findings.first() else { return Ok(()) };
        let total = |says| self.report.total(says);
        Err(DemoError::Judge {
            foreign: total(Says::Foreign),
            late: total(Says::Late),
            unasked: total(Says::Unasked),
            evidence: total(Says::Evidence),
            first: sentence(first),
        })
    }
}

fn sentence(finding: &Finding) -> String {
    format!("{}: {}", finding.reason, finding.message)
}
