//! `shoal-cluster [NAME]`: a cluster to try things on. Prints one line of JSON when it is ready, runs until its stdin
//! ends or Ctrl-C, and leaves no process behind. Its logs are in `target/NAME/`, `target/cluster/` by default.

use std::io::Read;

use serde_json::json;
use shoal_tests::{Cluster, HarnessError, Options, RunDir, User};

/// Nodes of the cluster.
const NODES: usize = 2;

#[tokio::main]
async fn main() -> Result<(), HarnessError> {
    let dir = RunDir::kept(&std::env::args().nth(1).unwrap_or("cluster".to_owned()))?;
    let cluster = Cluster::start(dir.path(), Options::default(), NODES, &[]).await?;
    let plane = &cluster.control_plane;
    let pids: Vec<u32> = cluster.processes().map(shoal_tests::Process::pid).collect();
    println!("{}", json!({"url": plane.url(), "kubeconfig": plane.kubeconfig(&User::ADMIN)?, "pids": pids}));
    tokio::select! {
        _ = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())) => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    drop(cluster);
    // A read of stdin that was begun cannot be taken back.
    std::process::exit(0)
}
