//! Several API servers behind one proxy, each played by the test: each has a way in, and none stands in another's.
//!
//! No control plane is needed here.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code, helpers included")]

mod hole;
mod listeners;

use shoal_tests::ring::{HUB, example};
use shoal_tests::scripted::{Exchange, STREAMS, Scripted};
use shoal_tests::{Proxy, ProxyArgs, RunDir};

/// The member's name.
const EAST: &str = "east";

/// A proxy before a hub and a member.
struct Stand {
    proxy: Proxy,
    hub: Scripted,
    east: Scripted,
    // Dropped last.
    _dir: RunDir,
}

// === impl Stand ===

impl Stand {
    /// The hub answers `live` by name; what the member does, `east` says.
    async fn start<F>(test: &str, line: &str, east: impl Fn(Exchange) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let dir = RunDir::for_test(test).unwrap();
        let folder = |name: &str| {
            let folder = dir.path().join(name);
            std::fs::create_dir_all(&folder).unwrap();
            folder
        };
        let hub = Scripted::start(&folder(HUB), STREAMS, |exchange| named(exchange, HUB)).await.unwrap();
        let east = Scripted::start(&folder(EAST), STREAMS, east).await.unwrap();
        let upstreams = [(HUB, hub.kubeconfig().to_owned()), (EAST, east.kubeconfig().to_owned())];
        let config = example();
        let args = ProxyArgs { shard: "kcm-0", config: &config, upstreams: &upstreams, dir: dir.path() };
        let proxy = Proxy::start_by(line, args).await.unwrap();
        Self { proxy, hub, east, _dir: dir }
    }
}

/// Answers by the name of the cluster; a watch goes on after that.
async fn named(mut exchange: Exchange, name: &'static str) {
    let _ = exchange.read().await;
    let body = format!("{{\"kind\":\"ConfigMap\",\"metadata\":{{\"name\":\"{name}\"}}}}");
    if exchange.target().contains("watch=") {
        let event = format!("{{\"type\":\"BOOKMARK\",\"object\":{body}}}\n");
        let Ok(mut sending) = exchange.begin("application/json") else { return };
        let _ = sending.send(event).await;
        let _ = sending.gone().await;
    } else {
        let _ = exchange.answer(200, "application/json", body).await;
    }
}
