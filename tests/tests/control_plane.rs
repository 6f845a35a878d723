//! The ground of all black-box tests: real control planes, side by side, that leave nothing behind.
#![allow(clippy::unwrap_used, reason = "test code, helpers included")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};
use shoal_tests::controllers::{ControllerManager, Election, RING};
use shoal_tests::{Cluster, ControlPlane, HarnessError, Options, Process, RunDir, User, programs, wait_for};

const DEADLINE: Duration = Duration::from_mins(2);

fn named(name: &str) -> Options {
    Options { name: name.to_owned(), ..Options::default() }
}

fn is_running(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[tokio::test]
async fn two_control_planes_run_side_by_side() {
    let dir = RunDir::for_test("two_control_planes").unwrap();
    let start = |name| ControlPlane::start(dir.path(), named(name));
    let (east, west) = tokio::try_join!(start("east"), start("west")).unwrap();
    let api: Api<Namespace> = Api::all(east.client(&User::ADMIN).await.unwrap());
    let namespace = serde_json::from_value(json!({"metadata": {"name": "only-east"}})).unwrap();
    api.create(&PostParams::default(), &namespace).await.unwrap();

    let get = ["get", "namespace", "only-east"];
    assert!(east.kubectl(&get).await.unwrap().status.success());
    let absent = west.kubectl(&get).await.unwrap();
    assert!(String::from_utf8_lossy(&absent.stderr).contains("NotFound"));
    assert_ne!(east.token(&User::ADMIN).unwrap(), west.token(&User::ADMIN).unwrap());
}

#[tokio::test]
async fn version_and_feature_gates_are_those_asked_for() {
    let dir = RunDir::for_test("version_and_gates").unwrap();
    let options =
        Options { feature_gates: vec!["ShardedListAndWatch=true".to_owned()], ..Options::default() };
    let plane = ControlPlane::start(dir.path(), options).await.unwrap();
    let version: Value = serde_json::from_str(&raw(&plane, "/version").await).unwrap();
    assert_eq!(version["gitVersion"], "v1.36.3");
    let metrics = raw(&plane, "/metrics").await;
    let gate = "kubernetes_feature_enabled{name=\"ShardedListAndWatch\"";
    let line = metrics.lines().find(|line| line.starts_with(gate)).unwrap();
    assert!(line.ends_with(" 1"), "{line}");
}

async fn raw(plane: &ControlPlane, path: &str) -> String {
    String::from_utf8(plane.kubectl(&["get", "--raw", path]).await.unwrap().stdout).unwrap()
}

#[tokio::test]
async fn users_have_the_rights_that_rbac_gives_them() {
    let dir = RunDir::for_test("users_and_rbac").unwrap();
    let tester = User::plain("tester");
    let options = Options { users: vec![tester], ..Options::default() };
    let plane = ControlPlane::start(dir.path(), options).await.unwrap();
    let api: Api<ConfigMap> = Api::default_namespaced(plane.client(&tester).await.unwrap());
    let refused = api.get("any").await.unwrap_err();
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 403));
    assert!(matches!(plane.token(&User::plain("nobody")), Err(HarnessError::UnknownUser(_))));

    // Written before the answer, so it is there: who, what, and nothing but the last stage.
    let audit = std::fs::read_to_string(plane.audit_log()).unwrap();
    let events: Vec<Value> = audit.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(
        events
            .iter()
            .any(|event| event["user"]["username"] == "tester" && event["responseStatus"]["code"] == 403)
    );
    assert!(events.iter().all(|event| event["stage"] == "ResponseComplete"));
}

#[tokio::test]
async fn data_outlives_a_restart_of_the_programs() {
    let dir = RunDir::for_test("restart_of_programs").unwrap();
    let mut plane = ControlPlane::start(dir.path(), Options::default()).await.unwrap();
    let create = ["create", "namespace", "stays"];
    assert!(plane.kubectl(&create).await.unwrap().status.success());
    plane.stop_apiserver();
    plane.stop_etcd();
    plane.start_etcd().unwrap();
    plane.start_apiserver().await.unwrap();
    assert!(plane.kubectl(&["get", "namespace", "stays"]).await.unwrap().status.success());
}

#[tokio::test]
async fn a_deployment_becomes_ready_and_drop_leaves_nothing() {
    let dir = RunDir::for_test("deployment_becomes_ready").unwrap();
    let cluster = Cluster::start(dir.path(), Options::default(), 3, &[]).await.unwrap();
    let plane = &cluster.control_plane;
    let kubeconfig = plane.kubeconfig(&User::CONTROLLER_MANAGER).unwrap();
    let manager = ControllerManager {
        name: "kube-controller-manager",
        controllers: &RING,
        kubeconfig: &kubeconfig,
        election: Some(Election::default()),
        flags: &[],
    };
    let stock = manager.start(plane).await.unwrap();
    create_and_await_deployment(plane).await;

    let pids: Vec<u32> = cluster.processes().chain([stock.process()]).map(Process::pid).collect();
    assert!(pids.len() == 6 && pids.iter().all(|&pid| is_running(pid)));
    drop(stock);
    drop(cluster);
    assert!(!pids.iter().any(|&pid| is_running(pid)));
}

async fn create_and_await_deployment(plane: &ControlPlane) {
    let api: Api<Deployment> = Api::default_namespaced(plane.client(&User::ADMIN).await.unwrap());
    api.create(&PostParams::default(), &deployment()).await.unwrap();
    wait_for("the deployment's three replicas", DEADLINE, || async {
        let status = api.get_status("web").await.map_err(|error| error.to_string())?.status;
        let ready = status.and_then(|status| status.ready_replicas).unwrap_or(0);
        if ready == 3 { Ok(()) } else { Err(format!("{ready} ready")) }
    })
    .await
    .unwrap();
}

fn deployment() -> Deployment {
    let labels = json!({"app": "web"});
    let containers = json!([{"name": "web", "image": "web:1"}]);
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": containers}});
    let spec = json!({"replicas": 3, "selector": {"matchLabels": labels}, "template": template});
    serde_json::from_value(json!({"metadata": {"name": "web"}, "spec": spec})).unwrap()
}

#[tokio::test]
async fn a_hard_kill_of_the_harness_leaves_nothing() {
    let _dir = RunDir::for_test("hard_kill").unwrap();
    let mut harness = Command::new(programs::own("shoal-cluster").unwrap());
    let mut harness =
        harness.arg("test-logs/hard_kill").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let pids = pids_of(&mut harness);
    assert!(pids.len() == 5 && pids.iter().all(|&pid| is_running(pid)));
    harness.kill().unwrap();
    harness.wait().unwrap();
    wait_for("the programs to be gone", DEADLINE, || async {
        let left: Vec<_> = pids.iter().filter(|&&pid| is_running(pid)).collect();
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?} run")) }
    })
    .await
    .unwrap();
}

/// Its line comes when the cluster is ready.
fn pids_of(harness: &mut Child) -> Vec<u32> {
    let mut line = String::new();
    BufReader::new(harness.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ready: Value = serde_json::from_str(&line).unwrap();
    serde_json::from_value(ready["pids"].clone()).unwrap()
}

#[tokio::test]
async fn a_program_that_ends_too_early_is_named_with_its_log() {
    let dir = RunDir::for_test("ends_too_early").unwrap();
    let options = Options { flags: vec!["--no-such-flag".to_owned()], ..Options::default() };
    let error = ControlPlane::start(dir.path(), options).await.unwrap_err();
    assert!(matches!(&error, HarnessError::Exited { program, .. } if program == "kube-apiserver"));
    let text = error.to_string();
    assert!(
        text.contains("hub/kube-apiserver.log") && text.contains("unknown flag: --no-such-flag"),
        "{text}"
    );
}

#[tokio::test]
async fn a_program_that_is_not_ready_in_time_is_named_with_its_log() {
    let dir = RunDir::for_test("not_ready_in_time").unwrap();
    let options = Options { ready_deadline: Duration::ZERO, ..Options::default() };
    let error = ControlPlane::start(dir.path(), options).await.unwrap_err();
    assert!(matches!(&error, HarnessError::NotReady { program, .. } if program == "kube-apiserver"));
    let text = error.to_string();
    assert!(text.contains("hub/kube-apiserver.log") && text.contains("/readyz answered 200"), "{text}");
}
