//! What there is to try while the demo stays up.

use std::path::Path;

use super::Screen;
use super::stand::Stand;
use crate::{HarnessError, User, programs};

/// Prints how to reach everything.
pub(super) async fn explain(stand: &Stand, screen: &Screen) -> Result<(), HarnessError> {
    let plane = &stand.cluster.control_plane;
    screen.step("Everything stays up until Ctrl-C. In another terminal:");
    let kubectl = short(&programs::target_dir()?.join("control-plane/bin/kubectl"));
    let admin = short(&plane.kubeconfig(&User::ADMIN)?);
    screen.line(&format!("export KUBECONFIG={admin}; alias k={kubectl}"));
    screen.line(&format!("alias shoal={}", short(&programs::own("shoal")?)));
    for (command, what) in [
        ("shoal shard list", "the shards, their holders and slots"),
        ("shoal shard of deployment/web -n load-45", "who owns it, and why"),
        ("shoal shard drain kcm-1", "its slots go to the others; undrain brings them back"),
        ("k get shardmaps,shardedcontrollers -A", "the same as objects"),
        ("k get lease -n kube-system", "identities, standbys, and each shard's own lock"),
    ] {
        screen.line(&format!("{command:<46}# {what}"));
    }
    for (index, shard) in stand.scene.shards().iter().enumerate() {
        let pod = stand.scene.ring.pod_of(shard).await.and_then(|index| stand.scene.ring.pods.get(index));
        let Some(pod) = pod else { continue };
        let command = format!("kubectl --kubeconfig {}", short(pod.kubeconfig()));
        screen.shard_line(
            index,
            &format!("{shard}: {command} get deployments -A   # what its controller is shown"),
        );
    }
    Ok(())
}

/// As seen from the working folder, if it lies below.
pub(super) fn short(path: &Path) -> String {
    let here = std::env::current_dir().ok();
    let below = here.as_ref().and_then(|here| path.strip_prefix(here).ok());
    below.unwrap_or(path).display().to_string()
}
