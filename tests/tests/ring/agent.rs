//! A client that brings the proxy's mark along: it does not arrive.

use http::{Request, header};
use serde_json::{Value, json};
use shoal_tests::evidence::snapshot;
use shoal_tests::{ControlPlane, Load, Ring, User};

use super::{forge, owned};

/// What another shard's proxy would write.
const FORGED: &str = "forger/1 shoal/kcm/kcm-2@9 :1.1";

/// A read and a write of a ring's user through the first proxy, both with a forged mark, are marked as the first's.
pub(crate) async fn a_client_cannot_bring_a_suffix(plane: &ControlPlane, ring: &Ring, load: &Load) {
    let proxy = &ring.shards[0].proxy;
    let client = proxy.client(plane, &User::CONTROLLER_MANAGER).await.unwrap();
    let namespace = owned(load)[proxy.shard()].last().unwrap().clone();
    let path = format!("/api/v1/namespaces/{namespace}/secrets");
    let secret = json!({"metadata": {"name": "forger"}}).to_string().into_bytes();
    let get = format!("{path}/forger");
    for (request, body) in [(Request::post(&path), secret), (Request::get(&get), Vec::new())] {
        let request =
            request.header(header::USER_AGENT, FORGED).header(header::CONTENT_TYPE, "application/json");
        client.request::<Value>(request.body(body).unwrap()).await.unwrap();
    }

    let log = String::from_utf8(snapshot(&plane.audit_log()).unwrap()).unwrap();
    let agents: Vec<_> = log.lines().filter(|line| line.contains("forger/1")).map(forge::agent).collect();
    let slot = shoal_judge::slot_of("hub", &namespace);
    let write = format!("forger/1 :1.1 shoal/kcm/kcm-0@1 :{slot}.1");
    assert_eq!(agents, [write.as_str(), "forger/1 :1.1 shoal/kcm/kcm-0@1"]);
}
