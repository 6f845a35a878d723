//! A raw client tries every form of a write on the objects of another shard: each is refused with the exact Status, in
//! the caller's encoding, and changes nothing. The same forms pass on own objects, so that refusing is no accident.
#![allow(clippy::unwrap_used, reason = "test code, helpers included")]

mod fixture;
mod forms;

use http::{Request, StatusCode, header};
use serde_json::{Value, json};
use shoal_tests::raw::{Answer, Encoding, RawClient};
use shoal_tests::ring::HUB;
use shoal_tests::shards::Shards;
use shoal_tests::{ControlPlane, Options, Proxy, RunDir, User, evidence};

use self::fixture::{Fixture, KINDS, Kind, Side, get};
use self::forms::{Expected, Form, forms};

/// What a refused request is told apart by in the audit log, where it must not be.
const REFUSED: &str = "refused-client";

/// One request of the product of all tables.
struct Attempt<'a> {
    kind: &'a Kind,
    form: Form,
    side: &'a Side,
    content: Encoding,
    accept: Encoding,
    dry_run: bool,
}

#[tokio::test]
async fn foreign_writes_are_refused_in_every_form_and_own_ones_pass() {
    let dir = RunDir::for_test("refusals").unwrap();
    let plane = ControlPlane::start(dir.path(), Options::default()).await.unwrap();
    let fixture = Fixture::create(&plane).await;
    let shards =
        Shards::start(&plane, &[plane.kubeconfig(&User::CONTROLLER_MANAGER).unwrap()]).await.unwrap();
    let (proxy, own, foreign) = (&shards.proxies[0], &fixture.own, &fixture.foreign);
    assert_eq!((shards.owner(&own.key), shards.owner(&foreign.key)), ("kcm-0", "kcm-2"));
    let client = RawClient::of_proxy(proxy, &plane, &User::ADMIN).unwrap();

    foreign_forms(&fixture, &client, proxy).await;
    nameless_creates(&fixture, &client).await;
    nothing_of_it_arrived(&plane);
    own_forms(&fixture, &client).await;
    foreign_objects_are_read_by_name(&fixture, &client).await;
    the_lane_passes(&fixture, &client).await;
    own_writes_take_effect(&fixture, &client, &plane).await;
}

#[allow(clippy::float_cmp, reason = "a count")]
async fn foreign_forms(fixture: &Fixture, client: &RawClient, proxy: &Proxy) {
    let before = fixture.snapshot(&fixture.foreign).await;
    let mut sent = 0_u32;
    for attempt in attempts(&fixture.foreign) {
        let answer = attempt.send(fixture, client).await;
        let Attempt { form, kind, side, .. } = attempt;
        let subject = form.subject(kind, side);
        assert_refused(&answer, form.expected(kind), &attempt, subject.as_deref());
        sent += 1;
    }
    assert!(sent > 500, "only {sent} attempts");
    let metrics = proxy.metrics().await.unwrap();
    assert_eq!(metrics.sum("shoal_refused_writes_total", &[]), f64::from(sent));
    assert_eq!(fixture.snapshot(&fixture.foreign).await, before);
    assert!(before.len() >= KINDS.len());
}

fn assert_refused(answer: &Answer, expected: Expected, attempt: &Attempt<'_>, subject: Option<&str>) {
    let what = attempt.describe();
    assert_eq!(answer.code, expected.code, "{what}: {answer:?}");
    assert_eq!(answer.encoding(), Some(attempt.accept), "{what}: {answer:?}");
    assert!(!answer.headers.contains_key(header::RETRY_AFTER), "{what}: {answer:?}");
    let status = answer.status().unwrap();
    assert_eq!(status.status.as_deref(), Some("Failure"), "{what}");
    assert_eq!(status.code, Some(i32::from(expected.code.as_u16())), "{what}");
    assert_eq!(status.reason.as_deref(), Some(expected.reason), "{what}");
    let details = status.details.unwrap();
    assert_eq!(details.name.as_deref(), subject, "{what}");
    assert_eq!(details.kind.as_deref(), Some(attempt.kind.resource), "{what}");
    assert_eq!(details.group.as_deref().unwrap_or_default(), attempt.kind.group, "{what}");
    assert_eq!(details.retry_after_seconds, None, "{what}");
    let causes = details.causes.unwrap();
    let reasons: Vec<_> = causes.iter().filter_map(|cause| cause.reason.as_deref()).collect();
    assert_eq!(reasons, [expected.cause], "{what}");
    // People are told whose it is.
    let named = expected.cause != "ForeignSlot" || status.message.as_deref().unwrap().contains("kcm-2");
    assert!(named, "{what}: {:?}", status.message);
}

/// Which shard owns a cluster-scoped object is in the body of its create, which therefore must be clear.
async fn nameless_creates(fixture: &Fixture, client: &RawClient) {
    let (mine, other) = (&fixture.own.other, &fixture.foreign.other);
    let namespace = |metadata: &str| format!(r#"{{"apiVersion":"v1","kind":"Namespace",{metadata}}}"#);
    let bodies = [
        ("application/json", namespace(r#""metadata":{}"#), 403, "Forbidden"),
        ("application/yaml", "{}".to_owned(), 403, "Forbidden"),
        ("application/yaml", format!("metadata: {{name: {other}}}"), 503, "ServiceUnavailable"),
        ("application/yaml", "- a".to_owned(), 415, "UnsupportedMediaType"),
        ("application/cbor", String::new(), 415, "UnsupportedMediaType"),
        ("text/plain", "x".to_owned(), 415, "UnsupportedMediaType"),
        ("application/merge-patch+json", "{}".to_owned(), 415, "UnsupportedMediaType"),
        ("application/json", "{".to_owned(), 415, "UnsupportedMediaType"),
        ("application/vnd.kubernetes.protobuf", "k8s".to_owned(), 415, "UnsupportedMediaType"),
        // Go reads the last of several names, and merges several metadata.
        (
            "application/json",
            namespace(&format!(r#""metadata":{{"name":"{mine}","name":"{other}"}}"#)),
            503,
            "ServiceUnavailable",
        ),
        (
            "application/json",
            namespace(&format!(r#""metadata":{{"name":"{other}"}},"metadata":{{}}"#)),
            415,
            "UnsupportedMediaType",
        ),
    ];
    let before = fixture.snapshot(&fixture.foreign).await;
    for (content_type, body, code, reason) in bodies {
        let request = Request::post("/api/v1/namespaces").header("user-agent", REFUSED);
        let request = request.header("content-type", content_type).body(body.clone().into_bytes());
        let answer = client.send(request.unwrap()).await.unwrap();
        assert_eq!(answer.code.as_u16(), code, "{content_type} {body}: {answer:?}");
        assert_eq!(answer.status().unwrap().reason.as_deref(), Some(reason), "{body}");
        assert!(!answer.headers.contains_key(header::RETRY_AFTER), "{body}");
    }
    assert_eq!(fixture.snapshot(&fixture.foreign).await, before);
}

/// A refusal is the proxy's own; nothing was sent, not even a trial.
fn nothing_of_it_arrived(plane: &ControlPlane) {
    let log = evidence::snapshot(&plane.audit_log()).unwrap();
    let text = String::from_utf8(log).unwrap();
    let arrived = text.lines().find(|line| line.contains(REFUSED));
    assert_eq!(arrived, None);
}

async fn own_forms(fixture: &Fixture, client: &RawClient) {
    let before = fixture.snapshot(&fixture.own).await;
    let mut passed = 0;
    for attempt in attempts(&fixture.own).filter(|attempt| attempt.is_served() && attempt.dry_run) {
        let answer = attempt.send(fixture, client).await;
        assert!(answer.code.is_success(), "{}: {answer:?}", attempt.describe());
        assert_eq!(answer.encoding(), Some(attempt.accept), "{}", attempt.describe());
        passed += 1;
    }
    assert!(passed > 200, "only {passed} forms");
    assert_eq!(fixture.snapshot(&fixture.own).await, before, "a dry run changed something");
}

/// A 404 would make garbage collectors delete what the object owns.
async fn foreign_objects_are_read_by_name(fixture: &Fixture, client: &RawClient) {
    for kind in &KINDS {
        for accept in
            Encoding::ALL.into_iter().filter(|accept| !kind.is_custom() || *accept == Encoding::Json)
        {
            let target = kind.object(&fixture.foreign);
            let (seen, real) =
                (get(client, &target, accept).await, get(&fixture.direct, &target, accept).await);
            assert_eq!((seen.code, seen.encoding()), (StatusCode::OK, Some(accept)), "{target}");
            assert_eq!(seen.body, real.body, "{target}");
        }
    }
}

/// What no shard owns, or every replica needs to live.
async fn the_lane_passes(fixture: &Fixture, client: &RawClient) {
    let key = &fixture.foreign.key;
    let attributes = json!({"verb": "get", "resource": "pods", "namespace": key});
    let review = json!({"spec": {"user": "u", "resourceAttributes": attributes}});
    let authorization = "/apis/authorization.k8s.io/v1";
    let account = json!({"metadata": {"name": "some-controller"}});
    let lease = json!({"metadata": {"name": "node-1"}, "spec": {"holderIdentity": "node-1"}});
    let node_leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    for (target, body) in [
        (format!("/api/v1/namespaces/{key}/events"), event(key, "e1")),
        (format!("/apis/events.k8s.io/v1/namespaces/{key}/events"), new_event(key)),
        ("/api/v1/namespaces/kube-system/serviceaccounts".to_owned(), account),
        (
            "/api/v1/namespaces/kube-system/serviceaccounts/some-controller/token".to_owned(),
            json!({"spec": {}}),
        ),
        ("/apis/authentication.k8s.io/v1/tokenreviews".to_owned(), json!({"spec": {"token": "t"}})),
        (format!("{authorization}/subjectaccessreviews"), review.clone()),
        (
            format!("{authorization}/selfsubjectaccessreviews"),
            json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}),
        ),
        (format!("{authorization}/namespaces/{key}/localsubjectaccessreviews"), review),
        (node_leases.to_owned(), lease),
    ] {
        let answer = post(client, &target, &body).await;
        assert_eq!(answer.code, StatusCode::CREATED, "{target}: {answer:?}");
    }
    let renewed = Request::patch(format!("{node_leases}/node-1"))
        .header("content-type", "application/merge-patch+json");
    let body = br#"{"spec":{"holderIdentity":"again"}}"#.to_vec();
    assert_eq!(client.send(renewed.body(body).unwrap()).await.unwrap().code, StatusCode::OK);
}

/// Without `dryRun`, and with the claim that says by what right.
async fn own_writes_take_effect(fixture: &Fixture, client: &RawClient, plane: &ControlPlane) {
    for kind in &KINDS {
        let target = kind.object(&fixture.own);
        let before = get(&fixture.direct, &target, Encoding::Json).await.metadata().unwrap();
        let request = Request::patch(&target).header("content-type", "application/merge-patch+json");
        let body = br#"{"metadata":{"annotations":{"own":"1"}}}"#.to_vec();
        let answer = client.send(request.body(body).unwrap()).await.unwrap();
        let after = answer.metadata().unwrap();
        assert_eq!((answer.code, &after.uid), (StatusCode::OK, &before.uid), "{target}");
        assert_ne!(after.resource_version, before.resource_version, "{target}");
        let deleted = client.send(Request::delete(&target).body(Vec::new()).unwrap()).await.unwrap();
        assert!(deleted.code.is_success(), "{target}: {deleted:?}");
    }
    let log = String::from_utf8(evidence::snapshot(&plane.audit_log()).unwrap()).unwrap();
    let claim = format!(" shoal/kcm/kcm-0@1 :{}.1\"", shoal_judge::slot_of(HUB, &fixture.own.key));
    let deletes = log.lines().filter(|line| line.contains(&claim) && line.contains(r#""verb":"delete""#));
    assert!(deletes.count() >= KINDS.len());
}

async fn post(client: &RawClient, target: &str, body: &Value) -> Answer {
    let request = Request::post(target).header("content-type", "application/json");
    client.send(request.body(body.to_string().into_bytes()).unwrap()).await.unwrap()
}

fn event(namespace: &str, name: &str) -> Value {
    let about = json!({"kind": "Pod", "namespace": namespace, "name": "web"});
    json!({"metadata": {"name": name}, "involvedObject": about, "reason": "Test", "type": "Normal"})
}

fn new_event(namespace: &str) -> Value {
    let about = json!({"kind": "Pod", "namespace": namespace, "name": "web"});
    json!({
        "regarding": about,
        "metadata": {"name": "e2"}, "eventTime": "2026-01-01T00:00:00.000000Z", "type": "Normal", "reason": "Test",
        "action": "Test", "reportingController": "test", "reportingInstance": "test-0",
    })
}

/// Kinds x forms x encodings of body and answer x dry run.
fn attempts(side: &Side) -> impl Iterator<Item = Attempt<'_>> {
    let formed = KINDS.iter().flat_map(|kind| forms(kind).into_iter().map(move |form| (kind, form)));
    formed.flat_map(move |(kind, form)| {
        form.encodings().iter().flat_map(move |&content| {
            Encoding::ALL.into_iter().flat_map(move |accept| {
                let attempt = move |dry_run| Attempt { kind, form, side, content, accept, dry_run };
                [true, false].map(attempt)
            })
        })
    })
}

// === impl Attempt ===

impl Attempt<'_> {
    async fn send(&self, fixture: &Fixture, client: &RawClient) -> Answer {
        let Self { kind, form, side, content, .. } = *self;
        let body = fixture.body(self).await;
        let request = Request::builder().method(form.method).uri(form.target(kind, side, self.dry_run));
        let request = request
            .header("content-type", form.content_type(content))
            .header("accept", self.accept.media_type())
            .header("user-agent", REFUSED);
        client.send(request.body(body).unwrap()).await.unwrap()
    }

    /// Custom resources have no protobuf.
    fn is_served(&self) -> bool {
        let encoded = self.content == Encoding::Json && self.accept == Encoding::Json;
        self.form.is_served(self.kind) && (encoded || !self.kind.is_custom())
    }

    fn describe(&self) -> String {
        let Self { kind, form, content, accept, dry_run, .. } = self;
        format!("{form:?} of {} in {content:?}, Accept {accept:?}, dry run {dry_run}", kind.resource)
    }
}
