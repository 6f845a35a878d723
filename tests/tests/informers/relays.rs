//! Three shards with a relay on each side of each proxy.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use shoal_tests::relay::{Cut, Relay, Seen};
use shoal_tests::{ControlPlane, Shards, User, wait_for};

use crate::caches::DEADLINE;

const SHARDS: usize = 3;

/// The shards, with a relay on each side of each proxy.
pub(crate) struct Relays {
    /// Between the clients and the proxies.
    pub(crate) clients: Vec<Relay>,
    /// Between the proxies and the API server; they see what it says.
    pub(crate) upstreams: Vec<Relay>,
    pub(crate) shards: Shards,
}

// === impl Relays ===

impl Relays {
    pub(crate) async fn start(plane: &ControlPlane) -> Self {
        let (mut upstreams, mut kubeconfigs) = (Vec::new(), Vec::new());
        for index in 0..SHARDS {
            let relay = Relay::tapping(address(plane.url()), plane.pki()).await.unwrap();
            kubeconfigs.push(via(plane, &format!("upstream-{index}"), &relay, &plane.pki().ca, &User::ADMIN));
            upstreams.push(relay);
        }
        let shards = Shards::start(plane, &kubeconfigs).await.unwrap();
        let mut clients = Vec::new();
        for proxy in &shards.proxies {
            clients.push(Relay::start(address(proxy.url())).await.unwrap());
        }
        Self { clients, upstreams, shards }
    }

    /// Cuts what a relay holds, and waits for something to cut before: both sides of each shard in turn, both ways to
    /// end a connection on each. Returns how many connections it cut.
    pub(crate) async fn cut(&self, nth: usize) -> usize {
        let all: Vec<&Relay> = self.clients.iter().chain(&self.upstreams).collect();
        let how = if (nth / all.len()).is_multiple_of(2) { Cut::Reset } else { Cut::Close };
        let relay = all[nth % all.len()];
        let held = || async { if relay.held() > 0 { Ok(()) } else { Err("nobody is connected") } };
        wait_for("a connection to cut", DEADLINE, held).await.unwrap();
        relay.cut(how)
    }

    /// What the API server has said to each proxy.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.upstreams.iter().map(Relay::seen).collect()
    }

    /// How often the API server has asked a proxy to go to another connection.
    pub(crate) fn goaways(&self) -> u64 {
        self.seen().iter().map(|seen| seen.goaways).sum()
    }
}

fn address(url: &str) -> SocketAddr {
    url.strip_prefix("https://").unwrap().parse().unwrap()
}

pub(crate) fn via(plane: &ControlPlane, name: &str, relay: &Relay, ca: &Path, user: &User) -> PathBuf {
    plane.kubeconfig_via(name, user, &format!("https://{}", relay.address()), ca).unwrap()
}
