//! port-forward: several connections in one, many bytes both ways, and a port where nobody listens.

use crate::PROTOCOLS;
use crate::ground::{Ground, Way};
use crate::live::Live;

const CONNECTIONS: usize = 4;
const BYTES: usize = 25 << 20;

#[tokio::test]
#[ignore = "needs a real node: make test-node"]
async fn port_forward_carries_connections_side_by_side() {
    let ground = Ground::get().await;
    for (name, setting) in PROTOCOLS {
        for way in Way::ALL {
            let (forward, port) = forward(ground, way, setting, 7000).await;
            for _ in 0..2 {
                let dial = format!("podtools dial 127.0.0.1:{port} {CONNECTIONS} {BYTES}");
                let seen = ground.shell(way, &dial).await;
                assert_eq!(seen.code, Some(0), "{name}, {way:?}: {seen:?}");
            }
            forward.vanish().await;
        }
    }
}

#[tokio::test]
#[ignore = "needs a real node: make test-node"]
async fn port_forward_outlives_a_port_where_nobody_listens() {
    let ground = Ground::get().await;
    for (name, setting) in PROTOCOLS {
        let mut seen = Vec::new();
        for way in Way::ALL {
            let (forward, port) = forward(ground, way, setting, 7001).await;
            let dial = format!("podtools dial 127.0.0.1:{port} 1 10");
            let refused = ground.shell(way, &dial).await;
            assert_eq!(refused.code, Some(1), "{name}, {way:?}: {refused:?}");
            seen.push(forward.ended_by_itself().await);
        }
        assert_eq!(seen[0], seen[1], "{name}");
    }
}

/// Starts a forward from a port that it picks.
async fn forward(ground: &Ground, way: Way, setting: &str, to: u16) -> (Live, u16) {
    let lines = format!("{setting}exec kubectl -n $NS port-forward pod/tools :{to}");
    let mut forward = Live::start(ground.bash(way, &lines));
    // Forwarding from 127.0.0.1:40123 -> 7000
    let line = forward.until("Forwarding from 127.0.0.1:").await;
    let port = line.split([':', ' ']).nth(3).and_then(|port| port.parse().ok());
    (forward, port.unwrap_or_else(|| panic!("no port in {line}")))
}
