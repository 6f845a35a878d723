//! What only a correct API server answers, Shoal answers too: `meshload check` (tests/control-plane/cmd/meshload) passes
//! straight at a real API server and through a proxy that owns half of the namespaces.
#![allow(clippy::unwrap_used, reason = "test code, helpers included")]

use std::path::{Path, PathBuf};
use std::process::Output;

use shoal_tests::bench::halves;
use shoal_tests::health::READY_DEADLINE;
use shoal_tests::programs::Programs;
use shoal_tests::ring::HUB;
use shoal_tests::{ControlPlane, Options, Proxy, ProxyArgs, RunDir, User, wait_for};
use tokio::process::Command;

/// 50 in each namespace: more than 128 KiB, from where the API server compresses.
const OBJECTS: usize = 2000;
/// The API server's own, in kube-system: which token files and which authorities it trusts.
const OF_THE_SERVER: usize = 2;
const CUSTOM: &str = "/apis/ctrlmesh.kruise.io/v1alpha1/managerstates";

/// How meshload reaches a target: the prefix of its flags, the URL, the authority and the token.
struct Target<'a>(&'a str, &'a str, &'a Path, &'a Path);

#[tokio::test]
async fn every_probe_passes_straight_and_through_a_shard() {
    let dir = RunDir::for_test("meshload").unwrap();
    let mut plane = ControlPlane::start(dir.path(), Options::default()).await.unwrap();
    let (token, url, ca) = (token(&plane), plane.url().to_owned(), plane.pki().ca.clone());
    let direct = |prefix| Target(prefix, &url, &ca, &token);
    succeeds("seed", &run("seed", &[direct("")], &format!("--count={OBJECTS}")).await);
    make_past(&mut plane).await;
    let proxy = proxy(&plane).await;

    let all = format!("--items={}", OBJECTS + OF_THE_SERVER);
    succeeds("direct", &run("check", &[direct(""), direct("direct-")], &all).await);
    let owned = halves::owned_of(OBJECTS);
    println!("the shard is to show {owned} of {OBJECTS} objects");
    let shard = Target("", proxy.url(), proxy.ca(), &token);
    let foreign = format!("--foreign={}", halves::namespace(halves::foreign()));
    let name = format!("--foreign-name=cm-{:05}", halves::foreign());
    let flags = format!("--items={owned} {foreign} {name}");
    succeeds("through the shard", &run("check", &[shard, direct("direct-")], &flags).await);
}

/// From here on the first version of anything is too old, in etcd and in the API server's caches.
async fn make_past(plane: &mut ControlPlane) {
    plane.compact_etcd().await.unwrap();
    plane.stop_apiserver();
    plane.start_apiserver().await.unwrap();
    // A custom resource is served a little later than the rest.
    let client = plane.client(&User::ADMIN).await.unwrap();
    let list = || client.request_text(http::Request::get(CUSTOM).body(Vec::new()).unwrap());
    wait_for("the API server to serve the custom resource", READY_DEADLINE, list).await.unwrap();
}

async fn proxy(plane: &ControlPlane) -> Proxy {
    let upstreams = [(HUB, plane.kubeconfig(&User::ADMIN).unwrap())];
    let config = halves::write(plane.dir()).unwrap();
    let args = ProxyArgs { shard: halves::SHARD, config: &config, upstreams: &upstreams, dir: plane.dir() };
    Proxy::start(args).await.unwrap()
}

fn token(plane: &ControlPlane) -> PathBuf {
    let path = plane.dir().join("meshload-token");
    std::fs::write(&path, plane.token(&User::ADMIN).unwrap()).unwrap();
    path
}

async fn run(command: &str, targets: &[Target<'_>], flags: &str) -> Output {
    let mut meshload = Command::new(Programs::find().unwrap().path("meshload").unwrap());
    meshload.arg(command);
    for Target(prefix, url, ca, token) in targets {
        meshload.arg(format!("--{prefix}url={url}"));
        meshload.arg(format!("--{prefix}ca={}", ca.display()));
        meshload.arg(format!("--{prefix}token-file={}", token.display()));
    }
    meshload.args(flags.split_whitespace()).kill_on_drop(true).output().await.unwrap()
}

fn succeeds(what: &str, output: &Output) {
    let said = [&output.stdout[..], &output.stderr[..]].concat();
    let said = String::from_utf8_lossy(&said);
    println!("{what}:\n{said}");
    assert!(output.status.success(), "{what}: {}, its output is above", output.status);
}
