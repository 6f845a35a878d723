//! What the judge says at the end.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::finding::{Finding, Reason, Verdict};

/// How many findings are kept whole; the rest is only counted.
pub const MAX_FINDINGS: usize = 100;

/// Counts and findings over all logs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Lines read, events of all stages and users.
    pub lines: u64,
    /// Writes of the ring's writers for which a slot was asked, clean or not.
    pub judged: u64,
    /// Writes to objects keyed by a uid that the log does not show: held to their claim only, or new objects, which
    /// belong to nobody yet. The former are among the judged.
    pub unproved: u64,
    /// Clean writes in the lane, locks among them.
    pub lane: u64,
    /// Clean writes to unsharded kinds.
    pub unsharded: u64,
    /// Trials (`dryRun`) of the ring's writers; not judged.
    pub dry_run: u64,
    /// Writes of the ring's writers that were refused; not judged.
    pub refused: u64,
    /// Writes of proxies in their own name, to identities and the like; not judged.
    pub own: u64,
    /// Writes of replicas that ran without the ring, while no shard owned a slot.
    pub unmarked: u64,
    /// How long slots were without service, where the log shows the versions of the map.
    pub figures: Option<Figures>,
    /// Clean judged writes by shard.
    pub shards: BTreeMap<String, ShardWrites>,
    /// How often each reason was found.
    pub reasons: BTreeMap<Reason, u64>,
    /// The first findings, at most [`MAX_FINDINGS`].
    pub findings: Vec<Finding>,
}

/// How long slots were without service, each slot each time it moved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// How often a slot moved as planned.
    pub moves: usize,
    /// From when the old owner was told to let go until the new one may write, 99th percentile.
    pub handover_ms_p99: u64,
    /// How often a slot lost its owner otherwise.
    pub orphaned: usize,
    /// From when the owner was lost until there is one that may write, 99th percentile.
    pub orphan_ms_p99: u64,
}

/// What one shard wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShardWrites {
    /// All its clean judged writes.
    pub writes: u64,
    /// The same by resource, as kubectl writes it: `pods`, `deployments.apps`.
    pub resources: BTreeMap<String, u64>,
}

// === impl Report ===

impl Report {
    /// Whether nothing at all was found.
    pub fn is_clean(&self) -> bool {
        self.reasons.is_empty()
    }

    /// How many findings there were for a reason.
    pub fn count(&self, reason: Reason) -> u64 {
        self.reasons.get(&reason).copied().unwrap_or(0)
    }

    /// How many findings say that of the run.
    pub fn total(&self, verdict: Verdict) -> u64 {
        self.reasons.iter().filter(|(reason, _)| reason.verdict() == verdict).map(|(_, count)| count).sum()
    }

    pub(crate) fn add(&mut self, finding: Finding) {
        *self.reasons.entry(finding.reason).or_default() += 1;
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(finding);
        }
    }

    pub(crate) fn count_write(&mut self, shard: &str, kind: String) {
        let writes = self.shards.entry(shard.to_owned()).or_default();
        writes.writes += 1;
        *writes.resources.entry(kind).or_default() += 1;
    }
}

/// For a terminal: findings, then who wrote what, then one closing line.
impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for finding in &self.findings {
            writeln!(f, "{finding}")?;
        }
        let found: u64 = self.reasons.values().sum();
        let left_out = found.saturating_sub(self.findings.len() as u64);
        if left_out > 0 {
            writeln!(f, "and {left_out} more")?;
        }
        for (shard, writes) in &self.shards {
            let resources: Vec<_> =
                writes.resources.iter().map(|(kind, count)| format!("{kind}={count}")).collect();
            writeln!(f, "{shard}: writes={} {}", writes.writes, resources.join(" "))?;
        }
        let word = if self.is_clean() { "clean" } else { "against" };
        write!(f, "judge: {word} lines={} writes={} ", self.lines, self.judged)?;
        if self.unproved > 0 {
            write!(f, "unproved={} ", self.unproved)?;
        }
        write!(f, "lane={} ", self.lane)?;
        write!(f, "unsharded={} dry_run={} refused={} ", self.unsharded, self.dry_run, self.refused)?;
        write!(f, "foreign={} late={} ", self.total(Verdict::Foreign), self.total(Verdict::Late))?;
        write!(f, "unasked={} evidence={}", self.total(Verdict::Unasked), self.total(Verdict::Evidence))?;
        let Some(Figures { moves, handover_ms_p99, orphaned, orphan_ms_p99 }) = self.figures else {
            return Ok(());
        };
        write!(
            f,
            " unowned={} orphaned={orphaned} orphan_ms_p99={orphan_ms_p99} ",
            self.total(Verdict::Unowned)
        )?;
        write!(f, "moves={moves} handover_ms_p99={handover_ms_p99}")
    }
}
