//! Forged copies of a real log: each differs from it in one thing, and is red for that reason alone.

use serde_json::Value;
use shoal_judge::{Claim, Mark, Reason, read_mark};
use shoal_tests::controllers::RING_WRITERS;
use shoal_tests::{evidence, ring};

/// A line of the log that holds a judged write, and its place.
struct Write<'a> {
    log: &'a str,
    start: usize,
    line: &'a str,
    mark: Mark<'a>,
    claim: Claim,
}

/// `log` is a real one that is clean under `asked`, which lets nothing in `namespace` be deleted.
pub(crate) fn each_forgery_is_red_for_its_own_reason(log: &[u8], asked: &str, namespace: &str) {
    let log = str::from_utf8(log).unwrap();
    let write = Write::find(log, namespace);
    for (reason, forged) in write.forgeries() {
        assert_red(reason, &forged, asked);
    }
    assert_red(Reason::CutLine, &log[..log.len() - 20], asked);
    assert_red(Reason::EmptyLog, "", asked);
    assert_red(Reason::NoRingWrites, &without_ring_writes(log), asked);
    assert_red(Reason::Unasked, &write.as_deletion(), asked);
}

fn assert_red(reason: Reason, log: &str, asked: &str) {
    let report = evidence::judge(log.as_bytes(), &ring::example(), asked).unwrap();
    let found: Vec<_> = report.reasons.iter().collect();
    assert_eq!(found, [(&reason, &1)], "a log forged to be {reason}: {report}");
}

/// Lines of users other than the ring's, and what the ring only read.
fn without_ring_writes(log: &str) -> String {
    let kept = log.lines().filter(|line| {
        let event: Value = serde_json::from_str(line).unwrap();
        let ring = RING_WRITERS.iter().any(|writer| event["user"]["username"] == *writer);
        !ring || matches!(event["verb"].as_str(), Some("get" | "list" | "watch"))
    });
    kept.flat_map(|line| [line, "\n"]).collect()
}

/// The User-Agent of a line.
pub(crate) fn agent(line: &str) -> &str {
    let (_, rest) = line.split_once("\"userAgent\":\"").unwrap();
    rest.split_once('"').unwrap().0
}

// === impl Write ===

impl<'a> Write<'a> {
    /// A Pod that the replicaset-controller of the first shard created in a namespace of its own.
    fn find(log: &'a str, namespace: &str) -> Self {
        let pods = format!("\"objectRef\":{{\"resource\":\"pods\",\"namespace\":\"{namespace}\"");
        let is_pod = |line: &&str| {
            line.contains("\"verb\":\"create\"")
                && line.contains(&pods)
                && line.contains(":replicaset-controller\"")
                && line.contains("\"code\":201")
                && agent(line).contains(" shoal/kcm/kcm-0@1 :")
        };
        let line = log.lines().find(is_pod).unwrap();
        let mark = read_mark(agent(line)).unwrap();
        // Each line has an id of its own.
        let start = log.find(line).unwrap();
        Self { log, start, line, mark, claim: mark.claim.unwrap() }
    }

    /// One for each way to lie about that write.
    fn forgeries(&self) -> [(Reason, String); 7] {
        let Claim { slot, epoch } = self.claim;
        let who = format!(" shoal/kcm/{}@{}", self.mark.shard, self.mark.term);
        let real = format!("{who} :{slot}.{epoch}");
        let with = |mark: &str| self.replace(&real, mark);
        [
            // Both slots are the first shard's.
            (Reason::WrongSlot, with(&format!("{who} :{}.{epoch}", (slot + 1) % 80))),
            (Reason::NotOwner, with(&format!(" shoal/kcm/kcm-1@1 :{slot}.{epoch}"))),
            (Reason::WrongEpoch, with(&format!("{who} :{slot}.{}", epoch + 1))),
            (Reason::UnknownShard, with(&format!(" shoal/kcm/kcm-3@1 :{slot}.{epoch}"))),
            (Reason::NoSuffix, with("")),
            (Reason::MalformedSuffix, with(&who)),
            (Reason::ClientMadeSuffix, with(&format!(" shoal/kcm/kcm-1@1{real}"))),
        ]
    }

    /// The same write as a deletion that nobody asked for.
    fn as_deletion(&self) -> String {
        self.replace("\"verb\":\"create\"", "\"verb\":\"deletecollection\"")
    }

    /// The log with one change in this line.
    fn replace(&self, real: &str, forged: &str) -> String {
        assert!(self.line.contains(real), "{real} in {}", self.line);
        let (before, after) = (&self.log[..self.start], &self.log[self.start + self.line.len()..]);
        [before, &self.line.replace(real, forged), after].concat()
    }
}
