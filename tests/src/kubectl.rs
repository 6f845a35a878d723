//! kubectl, for short commands; a long one (`get --watch`) is a [`crate::Process`].

use std::path::Path;
use std::process::{Output, Stdio};

use tokio::process::Command;

use crate::HarnessError;
use crate::programs::Programs;

/// Runs kubectl with `kubeconfig` and returns what it printed and its status.
pub async fn kubectl(kubeconfig: &Path, args: &[&str]) -> Result<Output, HarnessError> {
    let program = Programs::find()?.path("kubectl")?;
    let cache = kubeconfig.with_extension("kubectl-cache");
    Command::new(&program)
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .arg("--cache-dir")
        .arg(cache)
        .args(args)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .map_err(HarnessError::io("run", &program))
}
