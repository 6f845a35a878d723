//! The fence of a live ring, in front of a real API server: what is demanded of an object, and by whose right it is written.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code, helpers included")]

use std::time::Duration;

use http::{Request, StatusCode};
use serde_json::{Value, json};
use shoal_api::{Fence, FenceMode, ShardedController};
use shoal_tests::live::{LiveRing, Work};
use shoal_tests::raw::{Answer, RawClient};
use shoal_tests::{ControlPlane, Options, RunDir, User, ring, wait_for};

/// A loaded machine needs most of it.
const DEADLINE: Duration = Duration::from_mins(3);
/// May list, patch and delete `ConfigMap` objects and no more, as the stock controller of `ReplicaSet` may with Pods.
const LISTER: User = User::plain("lister");
/// May look and not write.
const READER: User = User::plain("reader");
/// In whose name a ring of mode `Credential` writes.
const WRITER: &str = "kcm-writer";
const PATH: &str = "/api/v1/namespaces/default/configmaps";
/// With bodies, which show what was demanded.
const AUDIT_POLICY: &str =
    "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Request}]\n";

/// A ring of one shard.
struct Fixture {
    plane: ControlPlane,
    ring: LiveRing,
    _dir: RunDir,
}

// === impl Fixture ===

impl Fixture {
    async fn start(name: &str, fence: Fence) -> Self {
        let dir = RunDir::for_test(name).unwrap();
        let options = Options {
            users: vec![LISTER, READER],
            audit_policy: AUDIT_POLICY.to_owned(),
            ..Options::default()
        };
        let plane = ControlPlane::start(dir.path(), options).await.unwrap();
        for (user, verbs) in [(LISTER, "list,patch,delete"), (READER, "get")] {
            let (user, verbs) = (format!("--user={}", user.name), format!("--verb={verbs}"));
            kubectl(&plane, &["create", "role", &user[7..], &verbs, "--resource=configmaps"]).await;
            kubectl(&plane, &["create", "rolebinding", &user[7..], &format!("--role={}", &user[7..]), &user])
                .await;
        }
        let account = format!("--serviceaccount=kube-system:{WRITER}");
        kubectl(&plane, &["create", "serviceaccount", WRITER, "-n", "kube-system"]).await;
        kubectl(&plane, &["create", "clusterrolebinding", WRITER, "--clusterrole=cluster-admin", &account])
            .await;
        let mut controller: ShardedController = ring::read(&ring::example().join("ring.yaml")).unwrap();
        (controller.spec.shards, controller.spec.fence) = (1, fence);
        let work = Work::ControllerManager(vec!["serviceaccount-controller".to_owned()]);
        let ring = LiveRing::start(&plane, &controller, work, DEADLINE).await.unwrap();
        Self { plane, ring, _dir: dir }
    }

    /// Through the proxy.
    fn client(&self, user: &User) -> RawClient {
        RawClient::of_pod(&self.ring.pods[0], &self.plane, user).unwrap()
    }

    async fn create(&self, name: &str) {
        let direct = RawClient::direct(&self.plane, &User::ADMIN).unwrap();
        let object = json!({"metadata": {"name": name}});
        let created = send(&direct, "POST", PATH, "application/json", &object).await;
        assert_eq!(created.code, StatusCode::CREATED, "{created:?}");
    }

    /// The audit events of writes of a ConfigMap that the ring made.
    fn written(&self, name: &str) -> Vec<Value> {
        let log = std::fs::read_to_string(self.plane.audit_log()).unwrap();
        let events = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let claimed = |event: &Value| event["userAgent"].as_str().is_some_and(|agent| agent.contains(" :"));
        events.filter(|event| event["objectRef"]["name"] == name && claimed(event)).collect()
    }
}

async fn kubectl(plane: &ControlPlane, args: &[&str]) {
    let output = plane.kubectl(args).await.unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
}

async fn send(client: &RawClient, method: &str, path: &str, content_type: &str, body: &Value) -> Answer {
    let request = Request::builder().method(method).uri(path).header("content-type", content_type);
    client.send(request.body(body.to_string().into_bytes()).unwrap()).await.unwrap()
}

async fn patch(client: &RawClient, name: &str) -> Answer {
    let (path, change) = (format!("{PATH}/{name}"), json!({"metadata": {"labels": {"a": "b"}}}));
    send(client, "PATCH", &path, "application/merge-patch+json", &change).await
}

#[tokio::test]
async fn every_write_of_a_live_ring_demands_its_object_as_it_was() {
    let fixture = Fixture::start("live_writes_demand", Fence::default()).await;
    let (lister, admin) = (fixture.client(&LISTER), fixture.client(&User::ADMIN));
    // Who may not get may list.
    fixture.create("patched").await;
    assert_eq!(patch(&lister, "patched").await.code, StatusCode::OK);
    fixture.create("deleted").await;
    let path = format!("{PATH}/deleted");
    let deleted = send(&lister, "DELETE", &path, "application/json", &json!({"gracePeriodSeconds": 0})).await;
    assert_eq!(deleted.code, StatusCode::OK, "{deleted:?}");
    for name in ["patched", "deleted"] {
        let events = fixture.written(name);
        assert_eq!(events.len(), 1, "{events:?}");
        let body = &events[0]["requestObject"];
        let demanded = if name == "deleted" { &body["preconditions"] } else { &body["metadata"] };
        assert!(demanded["resourceVersion"].is_string() && demanded["uid"].is_string(), "{body}");
        assert!(events[0]["requestURI"].as_str().unwrap().contains("timeout=5s"), "{events:?}");
    }
    // What is not there is not written.
    let absent = patch(&lister, "absent").await;
    assert_eq!(
        (absent.code, absent.status().unwrap().reason.as_deref()),
        (StatusCode::NOT_FOUND, Some("NotFound"))
    );
    assert_eq!(fixture.written("absent"), Vec::<Value>::new());
    // An apply creates it, and then changes it.
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}});
    let path = format!("{PATH}/applied?fieldManager=it");
    for code in [StatusCode::CREATED, StatusCode::OK] {
        let applied = send(&admin, "PATCH", &path, "application/apply-patch+yaml", &object).await;
        assert_eq!(applied.code, code, "{applied:?}");
    }
    // A version of the client's own that is past stays one.
    let past = json!({"metadata": {"resourceVersion": "1"}});
    let path = format!("{PATH}/patched");
    let conflict = send(&admin, "PATCH", &path, "application/merge-patch+json", &past).await;
    assert_eq!(conflict.code, StatusCode::CONFLICT);
}

#[tokio::test]
async fn a_term_writes_with_a_token_that_ends_with_its_secret() {
    let fence = Fence { mode: FenceMode::Credential, service_account: Some(WRITER.to_owned()) };
    let fixture = Fixture::start("term_tokens", fence).await;
    let reader = fixture.client(&READER);
    fixture.create("it").await;
    let direct = RawClient::direct(&fixture.plane, &READER).unwrap();
    assert_eq!(patch(&direct, "it").await.code, StatusCode::FORBIDDEN);
    // The token comes shortly after the term has begun.
    let written = wait_for("a write by the term's token", DEADLINE, || async {
        let answer = patch(&reader, "it").await;
        if answer.code.is_success() { Ok(()) } else { Err(format!("{answer:?}")) }
    });
    written.await.unwrap();
    let written = fixture.written("it");
    let account = format!("system:serviceaccount:kube-system:{WRITER}");
    assert_eq!(written.last().unwrap()["user"]["username"], account.as_str(), "{written:?}");
    let created =
        send(&reader, "POST", PATH, "application/json", &json!({"metadata": {"name": "made"}})).await;
    assert_eq!(created.code, StatusCode::CREATED, "{created:?}");
    kubectl(&fixture.plane, &["delete", "secret", "shoal-kcm-0-1", "-n", "kube-system"]).await;
    let refused = wait_for("the token to be forgotten", DEADLINE, || async {
        let answer = patch(&reader, "it").await;
        if answer.code == StatusCode::UNAUTHORIZED { Ok(()) } else { Err(format!("{answer:?}")) }
    });
    refused.await.unwrap();
}
