//! Kubeconfigs that carry a token, for the API server or for a proxy in front of it.

use std::fs;
use std::path::{Path, PathBuf};

use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

use crate::HarnessError;

/// Writes a kubeconfig (JSON is YAML) for `server`, an URL, verified against the PEM file `ca`.
///
/// Clients send a token to an `https://` server only.
pub fn write(path: &Path, server: &str, ca: &Path, token: &str) -> Result<PathBuf, HarnessError> {
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir).map_err(HarnessError::io("make", dir))?;
    }
    let text = format!("{:#}\n", document(server, Some(ca), Some(token)));
    // A program may be reading it.
    if fs::read(path).is_ok_and(|old| old == text.as_bytes()) {
        return Ok(path.to_owned());
    }
    fs::write(path, text).map_err(HarnessError::io("write", path))?;
    Ok(path.to_owned())
}

/// A client of what `path` describes.
pub async fn client(path: &Path) -> Result<kube::Client, HarnessError> {
    let file = Kubeconfig::read_from(path).map_err(|error| unusable(path, &error))?;
    connect(path, file).await
}

/// A client without an identity; an `https://` server is verified against the PEM file `ca`.
pub(crate) async fn anonymous(server: &str, ca: Option<&Path>) -> Result<kube::Client, HarnessError> {
    let shown = Path::new(server);
    let config =
        serde_json::from_value(document(server, ca, None)).map_err(|error| unusable(shown, &error))?;
    connect(shown, config).await
}

fn document(server: &str, ca: Option<&Path>, token: Option<&str>) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority": ca}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "default", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "default",
    })
}

async fn connect(shown: &Path, file: Kubeconfig) -> Result<kube::Client, HarnessError> {
    let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
    Ok(kube::Client::try_from(config.map_err(|error| unusable(shown, &error))?)?)
}

fn unusable(path: &Path, error: &dyn std::error::Error) -> HarnessError {
    HarnessError::Kubeconfig { path: path.to_owned(), reason: error.to_string() }
}
