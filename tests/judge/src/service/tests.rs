//! Logs of moves, written by hand, and the times that are read out of them.

use serde_json::{Value, json};

use super::*;
use crate::{Finding, Judge, Owners, Reason, Report, Ring, judge::Case};

const RING: &str = include_str!("../../tests/fixtures/ring.yaml");

/// A log in the making: times are milliseconds from its begin.
#[derive(Default)]
struct Log(Vec<String>);

impl Log {
    fn event(mut self, millis: u64, fields: &Value) -> Self {
        let at = format!(
            "2026-05-04T09:{:02}:{:02}.{:03}000Z",
            millis / 60_000,
            millis / 1000 % 60,
            millis % 1000
        );
        let mut event = json!({
            "level": "Request", "auditID": "a", "stage": "ResponseComplete", "requestURI": "/x", "verb": "update",
            "user": {"username": "system:node:n"}, "responseStatus": {"code": 200},
            "requestReceivedTimestamp": at, "stageTimestamp": at,
        });
        for (name, value) in fields.as_object().unwrap() {
            event[name] = value.clone();
        }
        self.0.push(event.to_string());
        self
    }

    /// Slot 20 as given, all others kcm-2's.
    fn map(self, millis: u64, version: i64, slot: &Value) -> Self {
        let mut slot = slot.clone();
        (slot["first"], slot["last"]) = (json!(20), json!(20));
        let rest = |first, last| json!({"first": first, "last": last, "owner": "kcm-2", "epoch": 1, "state": "Owned"});
        let slots = json!([rest(0, 19), slot, rest(21, 255)]);
        let spec =
            json!({"version": version, "keying": {"algorithm": "XXH3-64", "slots": 256}, "slots": slots});
        let name = json!({"apiGroup": "mesh.shoal.dev", "resource": "shardmaps", "namespace": "kube-system", "name": "kcm"});
        self.event(millis, &json!({"objectRef": name, "requestObject": {"spec": spec}}))
    }

    fn lease(self, millis: u64, shard: &str, holder: &str, notes: &Value) -> Self {
        let name = json!({"apiGroup": "coordination.k8s.io", "resource": "leases", "namespace": "kube-system",
            "name": format!("shoal-{shard}")});
        let lease = json!({"metadata": {"annotations": notes}, "spec": {"holderIdentity": holder}});
        self.event(millis, &json!({"objectRef": name, "requestObject": lease}))
    }

    /// A renewal of a holder that has opened that version of the map.
    fn opened(self, millis: u64, shard: &str, version: i64) -> Self {
        self.lease(
            millis,
            shard,
            &format!("{shard}-pod"),
            &json!({"mesh.shoal.dev/acks": format!("map={version}")}),
        )
    }

    /// Two shards that have claimed their identities, and slot 20 open at the first.
    fn begun() -> Self {
        let log = Self::default().opened(0, "kcm-0", 0).opened(0, "kcm-1", 0).opened(0, "kcm-2", 0);
        let log = log.map(100, 1, &owned("kcm-0", 1)).opened(200, "kcm-0", 1).opened(200, "kcm-1", 1);
        log.opened(200, "kcm-2", 1)
    }

    fn report(&self, budget: Option<u64>) -> Report {
        let ring = Ring::parse(RING).unwrap();
        let (owners, orphan_budget) = (Owners::default(), budget.map(std::time::Duration::from_millis));
        let mut judge =
            Judge::new(Case { ring, owners, writers: vec![], asked: None, orphan_budget, adopted: false });
        judge.survey("hub", self.0.join("\n").as_bytes());
        judge.finish()
    }

    /// Moves and their p99, losses and theirs.
    fn figures(&self) -> (usize, u64, usize, u64) {
        let it = self.report(None).figures.unwrap();
        (it.moves, it.handover_ms_p99, it.orphaned, it.orphan_ms_p99)
    }
}

fn owned(owner: &str, epoch: u64) -> Value {
    json!({"owner": owner, "epoch": epoch, "state": "Owned"})
}

fn draining(owner: &str, epoch: u64) -> Value {
    json!({"owner": owner, "epoch": epoch, "state": "Draining", "to": "kcm-1"})
}

fn orphan(epoch: u64) -> Value {
    json!({"epoch": epoch, "state": "Orphan", "to": "kcm-1"})
}

fn unowned(report: &Report) -> Vec<&Finding> {
    report.findings.iter().filter(|finding| finding.reason == Reason::Unowned).collect()
}

#[test]
fn the_first_grant_is_no_move() {
    assert_eq!(Log::begun().figures(), (0, 0, 0, 0));
}

#[test]
fn a_planned_move_lasts_from_the_drain_until_the_new_owner_has_opened() {
    let log = Log::begun().map(1000, 2, &draining("kcm-0", 1)).map(1100, 3, &owned("kcm-1", 2));
    assert_eq!(log.figures(), (0, 0, 0, 0), "not open yet");
    let log = log.opened(1140, "kcm-1", 2);
    assert_eq!(Log(log.0.clone()).figures(), (0, 0, 0, 0), "an older map's word");
    assert_eq!(log.opened(1150, "kcm-1", 3).figures(), (1, 150, 0, 0));
}

#[test]
fn where_leases_are_not_shown_the_grant_counts() {
    let log = Log::default().map(0, 1, &owned("kcm-0", 1)).map(1000, 2, &draining("kcm-0", 1));
    assert_eq!(log.map(1100, 3, &owned("kcm-1", 2)).figures(), (1, 100, 0, 0));
}

#[test]
fn a_move_that_loses_its_old_owner_is_a_loss_from_its_begin() {
    let log = Log::begun().map(1000, 2, &draining("kcm-0", 1)).map(1500, 3, &orphan(1));
    let log = log.map(2000, 4, &owned("kcm-1", 2)).opened(2100, "kcm-1", 4);
    assert_eq!(log.figures(), (0, 0, 1, 1100));
}

#[test]
fn a_deposed_owner_is_lost_from_its_last_renewal() {
    let left = json!({"mesh.shoal.dev/left": "Deposed", "mesh.shoal.dev/acks": "map=1"});
    let mut log = Log::begun().opened(2000, "kcm-0", 1);
    for second in 3..13 {
        log = log.opened(second * 1000, "kcm-1", 1);
    }
    let log = log.lease(13_000, "kcm-0", "", &left).map(13_010, 2, &orphan(1));
    let log = log.opened(15_000, "kcm-1", 1).map(18_000, 3, &owned("kcm-1", 2)).opened(18_050, "kcm-1", 3);
    assert_eq!(log.figures(), (0, 0, 1, 16_050));
}

#[test]
fn a_holder_that_left_is_lost_then_and_its_slots_are_back_when_the_next_one_says_so() {
    let left = json!({"mesh.shoal.dev/left": "Graceful", "mesh.shoal.dev/acks": "map=1"});
    let log = Log::begun().lease(1000, "kcm-0", "", &left);
    let claimed = log.lease(1300, "kcm-0", "other-pod", &json!({"mesh.shoal.dev/acks": "map=1"}));
    assert_eq!(claimed.figures(), (0, 0, 0, 0), "those were its predecessor's words");
    let opened = claimed.lease(1400, "kcm-0", "other-pod", &json!({"mesh.shoal.dev/acks": "map=1"}));
    assert_eq!(opened.figures(), (0, 0, 1, 400));
}

#[test]
fn a_deleted_lease_is_a_loss_until_its_holder_made_it_again() {
    let name = json!({"apiGroup": "coordination.k8s.io", "resource": "leases", "namespace": "kube-system",
        "name": "shoal-kcm-0"});
    let deleted = Log::begun().event(1000, &json!({"verb": "delete", "objectRef": name}));
    let lease = json!({"metadata": {"annotations": {"mesh.shoal.dev/acks": "map=1"}},
        "spec": {"holderIdentity": "kcm-0-pod"}});
    let made =
        json!({"verb": "create", "objectRef": name, "requestObject": lease, "responseStatus": {"code": 201}});
    assert_eq!(deleted.event(1070, &made).figures(), (0, 0, 1, 70));
}

#[test]
fn time_without_any_answer_counts_for_nobody() {
    let log = Log::begun().map(1000, 2, &orphan(1)).opened(2000, "kcm-1", 2);
    let log = log.opened(62_000, "kcm-1", 2).map(62_100, 3, &owned("kcm-1", 2)).opened(62_200, "kcm-1", 3);
    assert_eq!(log.figures(), (0, 0, 1, 1200));
}

#[test]
fn only_what_is_over_the_budget_is_found() {
    let log = Log::begun().map(1000, 2, &orphan(1)).map(3000, 3, &owned("kcm-1", 2)).opened(3500, "kcm-1", 3);
    assert_eq!(unowned(&log.report(Some(2500))), Vec::<&Finding>::new());
    let report = log.report(Some(2499));
    let [finding] = unowned(&report)[..] else { panic!("{report}") };
    assert_eq!(finding.line, 8, "where it began");
    assert!(finding.message.contains("2500 ms") && finding.message.contains("[20]"), "{finding}");
}

#[test]
fn what_nobody_serves_at_the_end_is_found_too() {
    let log = Log::begun().map(1000, 2, &draining("kcm-0", 1)).opened(4000, "kcm-1", 1);
    assert_eq!(unowned(&log.report(Some(3000))), Vec::<&Finding>::new());
    assert_eq!(unowned(&log.report(Some(2999))).len(), 1);
    let name = json!({"apiGroup": "mesh.shoal.dev", "resource": "shardmaps", "namespace": "kube-system", "name": "kcm"});
    let gone = log.event(4001, &json!({"verb": "delete", "objectRef": name}));
    assert_eq!(unowned(&gone.report(Some(2999))), Vec::<&Finding>::new(), "the ring is gone");
}

#[test]
fn writes_that_changed_nothing_are_passed_over() {
    let log = Log::begun();
    let refused = |log: Log| {
        let mut event: Value = serde_json::from_str(&log.0[log.0.len() - 1]).unwrap();
        event["responseStatus"]["code"] = json!(409);
        let mut lines = log.0;
        lines.pop();
        lines.push(event.to_string());
        Log(lines)
    };
    let log = refused(log.map(1000, 2, &orphan(1))).opened(3000, "kcm-0", 1);
    assert_eq!(log.figures(), (0, 0, 0, 0));
}

#[test]
fn the_99th_percentile_is_one_of_the_values() {
    assert_eq!((p99(&[]), p99(&[7]), p99(&[3, 1, 2])), (0, 7, 3));
    let hundred: Vec<u64> = (1..=100).collect();
    assert_eq!(p99(&hundred), 99);
}

#[test]
fn a_replica_without_a_proxy_may_write_before_the_ring_only() {
    let whole = |log: Log, millis, version: i64, state: Value| {
        let mut range = state;
        (range["first"], range["last"]) = (json!(0), json!(255));
        let spec =
            json!({"version": version, "keying": {"algorithm": "XXH3-64", "slots": 256}, "slots": [range]});
        let name = json!({"apiGroup": "mesh.shoal.dev", "resource": "shardmaps", "namespace": "kube-system", "name": "kcm"});
        log.event(millis, &json!({"objectRef": name, "requestObject": {"spec": spec}}))
    };
    let log = whole(Log::default(), 1000, 1, orphan(1));
    let log = whole(whole(log, 2000, 2, owned("kcm-1", 2)), 5000, 3, orphan(2));
    let write = |log: Log, millis| {
        let pod = json!({"resource": "pods", "namespace": "demo-5", "name": "web-1"});
        log.event(millis, &json!({"user": {"username": "kcm"}, "objectRef": pod}))
    };
    let log = [500, 1500, 3000, 6000].into_iter().fold(log, write);
    let ring = Ring::parse(RING).unwrap();
    let found = |adopted| {
        let (ring, owners, writers) = (ring.clone(), Owners::default(), vec!["kcm".to_owned()]);
        let mut judge = Judge::new(Case { ring, owners, writers, asked: None, orphan_budget: None, adopted });
        let text = log.0.join("\n");
        judge.survey("hub", text.as_bytes());
        judge.read("hub", text.as_bytes());
        let report = judge.finish();
        (report.count(Reason::NoSuffix), report.unmarked)
    };
    assert_eq!((found(false), found(true)), ((4, 0), (1, 3)));
}
