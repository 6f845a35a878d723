//! Forged logs: for each reason one log that differs from a clean one in a single line, and is red for that
//! reason alone.

#![cfg(test)]

use std::{
    fs::{self, File},
    io::BufReader,
    path::{Path, PathBuf},
    time::Duration,
};

use shoal_judge::{Asked, Case, Judge, Owners, Reason, Report, Ring, Verdict};

/// A slot may be without service for so long.
const BUDGET: Duration = Duration::from_secs(5);

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn text(name: &str) -> String {
    fs::read_to_string(fixture(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Judges a log of that cluster under the ring's first map and the others named.
fn judge_under(maps: &[&str], cluster: &str, log: &str) -> Report {
    let ring = Ring::parse(&text("ring.yaml")).unwrap();
    let mut owners = Owners::default();
    for map in ["ring.yaml"].iter().chain(maps) {
        assert_eq!(owners.add(&ring, &text(map)).unwrap(), 1, "{map}");
    }
    let writers =
        ["system:kube-controller-manager", "system:serviceaccount:kube-system:*"].map(str::to_owned);
    let asked = Some(Asked::parse(&text("asked.jsonl")).unwrap());
    let writers = writers.into();
    let log = || BufReader::new(File::open(fixture(log)).unwrap());
    let mut judge =
        Judge::new(Case { ring, owners, writers, asked, orphan_budget: Some(BUDGET), adopted: false });
    judge.survey(cluster, log());
    judge.read(cluster, log());
    judge.finish()
}

fn judge(log: &str) -> Report {
    judge_under(&["map-2.yaml"], "hub", log)
}

#[test]
fn a_clean_log_is_clean_and_counted() {
    let report = judge("clean.jsonl");
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.lines, 22);
    assert_eq!((report.judged, report.lane, report.unsharded), (8, 7, 1), "{report}");
    assert_eq!((report.dry_run, report.refused), (1, 1), "{report}");
    let shards: Vec<_> = report.shards.iter().map(|(shard, it)| (shard.as_str(), it.writes)).collect();
    assert_eq!(shards, [("kcm-0", 3), ("kcm-1", 3), ("kcm-2", 2)]);
    assert_eq!(report.shards["kcm-0"].resources["pods"], 2);
    assert_eq!(report.shards["kcm-1"].resources["deployments.apps"], 1);
}

#[test]
fn each_forgery_is_red_for_its_own_reason() {
    for reason in Reason::ALL {
        let name = format!("forged/{reason}.jsonl");
        let report = judge(&name);
        let found: Vec<_> = report.reasons.iter().collect();
        assert_eq!(found, [(&reason, &1)], "{name}: {report}");
        let finding = &report.findings[0];
        let whole_log = matches!(reason, Reason::EmptyLog | Reason::NoRingWrites);
        let last = text(&name).lines().count() as u64;
        let line = match reason {
            // It takes the lines after it to see how long it lasts.
            Reason::Unowned => 4,
            _ if whole_log => 0,
            _ => last,
        };
        assert_eq!(finding.line, line, "{name}: the forged line is the last");
        let of_event = !whole_log && !matches!(reason, Reason::CutLine | Reason::Unowned);
        assert_eq!(finding.audit_id.is_empty(), !of_event, "{name}");
        assert!(finding.message.split(' ').count() > 4, "{name}: a sentence, not {:?}", finding.message);
        assert_eq!(report.total(finding.verdict), 1, "{name}");
    }
}

#[test]
fn without_the_second_map_the_new_owner_is_foreign() {
    let report = judge_under(&[], "hub", "clean.jsonl");
    assert_eq!((report.total(Verdict::Foreign), report.count(Reason::NotOwner)), (1, 1), "{report}");
}

#[test]
fn slots_depend_on_the_name_of_the_cluster() {
    let report = judge_under(&[], "member-a", "forged/NoSuffix.jsonl");
    assert_eq!((report.count(Reason::WrongSlot), report.count(Reason::NoSuffix)), (2, 1), "{report}");
}
