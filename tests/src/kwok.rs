//! kwok, which plays the nodes: it makes Nodes ready, renews their Leases, and runs and ends Pods on paper.

use std::fs;
use std::path::{Path, PathBuf};

use crate::health::Probe;
use crate::ports::Port;
use crate::{ControlPlane, HarnessError, Process, User};

/// The stages that kwok itself takes when it is given none (its `pkg/kwok/cmd/root.go`).
const STOCK_STAGES: [&str; 3] = ["node/fast", "node/heartbeat-with-lease", "pod/fast"];

/// Pod IPs; kwok's own default holds 254.
const POD_CIDR: &str = "10.128.0.1/12";

/// A running kwok. Dropping it ends it.
#[derive(Debug)]
pub struct Kwok {
    process: Process,
    _port: Port,
}

// === impl Kwok ===

impl Kwok {
    /// Starts it for all nodes with its stock stages and `stages`, YAML documents of our own.
    ///
    /// A config with any Stage replaces all built-in ones, so the file that it is given holds both.
    pub async fn start(plane: &ControlPlane, stages: &[&str]) -> Result<Self, HarnessError> {
        let config = plane.dir().join("kwok.yaml");
        let text = documents(&plane.programs().kwok_stages(), stages)?;
        fs::write(&config, text).map_err(HarnessError::io("write", &config))?;
        let port = Port::reserve()?;
        let address = format!("127.0.0.1:{}", port.number());
        let process = plane.spawn("kwok", "kwok", &args(plane, &config, &address)?)?;
        let url = format!("http://{address}");
        Probe { ca: None, ..plane.probe(&url, "/healthz") }.ready(&process).await?;
        Ok(Self { process, _port: port })
    }

    /// Its process.
    pub fn process(&self) -> &Process {
        &self.process
    }
}

fn args(plane: &ControlPlane, config: &Path, address: &str) -> Result<Vec<String>, HarnessError> {
    Ok(vec![
        format!("--kubeconfig={}", plane.kubeconfig(&User::KWOK)?.display()),
        format!("--config={}", config.display()),
        format!("--server-address={address}"),
        format!("--cidr={POD_CIDR}"),
        "--manage-all-nodes=true".to_owned(),
    ])
}

fn documents(stock: &Path, ours: &[&str]) -> Result<String, HarnessError> {
    let mut documents: Vec<String> = ours.iter().map(|&stage| stage.to_owned()).collect();
    for folder in STOCK_STAGES {
        for file in files(&stock.join(folder))? {
            documents.push(fs::read_to_string(&file).map_err(HarnessError::io("read", &file))?);
        }
    }
    Ok(documents.join("\n---\n"))
}

/// The YAML files of a folder, without kustomize's own.
fn files(folder: &Path) -> Result<Vec<PathBuf>, HarnessError> {
    let entries = fs::read_dir(folder).map_err(HarnessError::io("list", folder))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_stage = |path: &PathBuf| {
        path.extension().is_some_and(|end| end == "yaml") && !path.ends_with("kustomization.yaml")
    };
    let mut stages: Vec<PathBuf> = paths.filter(is_stage).collect();
    stages.sort();
    Ok(stages)
}
