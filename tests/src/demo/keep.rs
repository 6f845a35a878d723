//! What there is to try while the demo stays up.

use std::path::Path;

use super::Screen;
use super::stand::Stand;
use crate::{HarnessError, User, programs};

/// Prints how to reach everything.
pub(super) fn explain(stand: &Stand, screen: &Screen) -> Result<(), HarnessError> {
    let plane = &stand.cluster.control_plane;
    screen.step("Everything stays up until Ctrl-C. In another terminal:");
    let kubectl = short(&programs::target_dir()?.join("control-plane/bin/kubectl"));
    screen.line(&format!("alias k='{kubectl} --kubeconfig'"));
    screen.line(&format!("ALL={}", short(&plane.kubeconfig(&User::ADMIN)?)));
    for (index, shard) in stand.ring.shards.iter().enumerate() {
        let kubeconfig = shard.proxy.kubeconfig(plane, &User::ADMIN)?;
        screen.shard_line(index, &format!("SHARD{index}={}", short(&kubeconfig)));
    }
    for (command, what) in [
        ("k $ALL get deployments -A", "everything"),
        ("k $SHARD0 get deployments -A", "what kcm-0 is shown"),
        ("k $SHARD0 get lease -n kube-system", "its lock, under the name that it knows"),
        ("k $ALL get lease -n kube-system", "all three locks"),
        ("k $SHARD0 delete namespace kube-system", "refused: another shard owns it"),
    ] {
        screen.line(&format!("{command:<46}# {what}"));
    }
    for shard in &stand.ring.shards {
        let name = shard.proxy.shard();
        let command = format!("curl -s {}/metrics", shard.proxy.metrics_url());
        screen.line(&format!("{command:<46}# {name}; its settings: {}/configz", shard.proxy.admin_url()));
    }
    Ok(())
}

/// As seen from the working folder, if it lies below.
pub(super) fn short(path: &Path) -> String {
    let here = std::env::current_dir().ok();
    let below = here.as_ref().and_then(|here| path.strip_prefix(here).ok());
    below.unwrap_or(path).display().to_string()
}
