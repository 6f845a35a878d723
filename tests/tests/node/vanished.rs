//! A client that is gone leaves nothing in the container and nothing in the proxy.

use std::time::Duration;

use shoal_tests::wait_for;

use crate::PROTOCOLS;
use crate::ground::{Ground, Way};
use crate::live::Live;

const DEADLINE: Duration = Duration::from_mins(2);

#[tokio::test]
#[ignore = "needs a real node: make test-node"]
async fn a_client_that_vanishes_ends_its_process_and_its_tunnel() {
    let ground = Ground::get().await;
    for (name, setting) in PROTOCOLS {
        let mark = format!("/tmp/{name}");
        let lines = format!(
            "{setting}exec kubectl -n $NS exec -i tools -c main -- sh -c 'echo here; cat >{mark}.in; echo >{mark}'"
        );
        let mut client = Live::start(ground.bash(Way::Proxied, &lines));
        client.until("here").await;
        assert!(tunnels(ground).await > 0.0, "{name}: the proxy counts its tunnel");
        client.vanish().await;
        // cat saw the end of its stdin.
        let gone = format!("kubectl exec tools -c main -- sh -c 'test -e {mark}'");
        let ended = || async {
            let seen = ground.shell(Way::Direct, &gone).await;
            if seen.code == Some(0) { Ok(()) } else { Err(format!("{seen:?}")) }
        };
        wait_for("the process to see the end of stdin", DEADLINE, ended).await.unwrap();
        nothing_is_left(ground).await;
    }
}

/// No tunnel, no connection on either side of it.
async fn nothing_is_left(ground: &Ground) {
    wait_for("the proxy to let go", DEADLINE, || async {
        let metrics = ground.proxy().metrics().await.map_err(|error| error.to_string())?;
        let left = [
            metrics.sum("shoal_streams", &["verb=\"connect\""]),
            metrics.sum("shoal_upstream_connections", &["traffic=\"tunnel\""]),
            metrics.sum("shoal_connections", &[]),
        ];
        if left.iter().sum::<f64>() < 0.5 { Ok(()) } else { Err(format!("tunnels, up, down: {left:?}")) }
    })
    .await
    .unwrap();
}

async fn tunnels(ground: &Ground) -> f64 {
    ground.proxy().metrics().await.unwrap().sum("shoal_streams", &["verb=\"connect\""])
}
