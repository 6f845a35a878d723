//! One etcd and one kube-apiserver with an authority, users and an audit log of their own.
//!
//! Any number of them run side by side. How the flags were found: `kube-apiserver --help` of the version in
//! `tests/control-plane/go.mod`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use crate::health::{Probe, READY_DEADLINE};
use crate::kubectl::kubectl;
use crate::pki::Pki;
use crate::ports::Port;
use crate::programs::Programs;
use crate::user::Tokens;
use crate::{HarnessError, Process, User, kubeconfig};

mod etcd;
mod flags;

/// The default audit policy: level Request for creates of workload kinds and namespaces, Metadata for the rest.
pub const AUDIT_POLICY: &str = include_str!("control_plane/audit-policy.yaml");

/// How a control plane is to be.
#[derive(Debug, Clone)]
pub struct Options {
    /// Its folder's name in the run's folder; unique there.
    pub name: String,
    /// More flags of kube-apiserver; a flag given twice counts as given last.
    pub flags: Vec<String>,
    /// kube-apiserver's `--authorization-mode`, which can't be given twice.
    pub authorization: &'static str,
    /// Feature gates, as in `ShardedListAndWatch=true`.
    pub feature_gates: Vec<String>,
    /// The audit policy, YAML.
    pub audit_policy: String,
    /// Users beside the stock ones.
    pub users: Vec<User>,
    /// Time to become ready.
    pub ready_deadline: Duration,
}

/// A running control plane. Dropping it ends its programs and deletes etcd's data; logs stay in the run's folder.
#[derive(Debug)]
pub struct ControlPlane {
    apiserver: Option<Process>,
    etcd: Option<Process>,
    dir: PathBuf,
    url: String,
    pki: Pki,
    tokens: Tokens,
    programs: Programs,
    ports: Ports,
    options: Options,
}

/// Reserved for the life of the control plane, so that a program can be started again at the same address.
#[derive(Debug)]
struct Ports {
    apiserver: Port,
    etcd: Port,
    etcd_peer: Port,
}

// === impl Options ===

impl Default for Options {
    fn default() -> Self {
        Self {
            name: "hub".to_owned(),
            flags: Vec::new(),
            authorization: "RBAC",
            feature_gates: Vec::new(),
            audit_policy: AUDIT_POLICY.to_owned(),
            users: Vec::new(),
            ready_deadline: READY_DEADLINE,
        }
    }
}

// === impl ControlPlane ===

impl ControlPlane {
    /// Starts both programs in `run_dir/<name>/` and returns when the API server is ready.
    pub async fn start(run_dir: &Path, options: Options) -> Result<Self, HarnessError> {
        let mut plane = Self::prepare(run_dir, options)?;
        plane.start_etcd()?;
        plane.start_apiserver().await?;
        Ok(plane)
    }

    fn prepare(run_dir: &Path, options: Options) -> Result<Self, HarnessError> {
        let dir = run_dir.join(&options.name);
        let pki = Pki::create(&dir.join("pki"))?;
        let policy = dir.join("audit-policy.yaml");
        fs::write(&policy, &options.audit_policy).map_err(HarnessError::io("write", &policy))?;
        let users: Vec<User> = User::STOCK.iter().chain(&options.users).copied().collect();
        let tokens = Tokens::create(&users, &dir.join("tokens.csv"))?;
        let ports =
            Ports { apiserver: Port::reserve()?, etcd: Port::reserve()?, etcd_peer: Port::reserve()? };
        let url = format!("https://127.0.0.1:{}", ports.apiserver.number());
        let programs = Programs::find()?;
        let plane = Self { apiserver: None, etcd: None, dir, url, pki, tokens, programs, ports, options };
        users.iter().try_for_each(|user| plane.kubeconfig(user).map(drop))?;
        Ok(plane)
    }

    /// Starts etcd, with what it held before; nothing happens if it runs.
    pub fn start_etcd(&mut self) -> Result<(), HarnessError> {
        if self.etcd.is_none() {
            let args = flags::etcd(&self.dir, &self.ports);
            self.etcd = Some(self.spawn("etcd", "etcd", &args)?);
        }
        Ok(())
    }

    /// Ends etcd; its data stays.
    pub fn stop_etcd(&mut self) {
        self.etcd = None;
    }

    /// Starts the API server at the address it had and waits until it is ready.
    pub async fn start_apiserver(&mut self) -> Result<(), HarnessError> {
        if self.apiserver.is_none() {
            let args = flags::apiserver(&self.dir, &self.ports, &self.pki, &self.options);
            self.apiserver = Some(self.spawn("kube-apiserver", "kube-apiserver", &args)?);
        }
        self.wait_until_ready().await
    }

    /// Ends the API server.
    pub fn stop_apiserver(&mut self) {
        self.apiserver = None;
    }

    async fn wait_until_ready(&self) -> Result<(), HarnessError> {
        let Some(apiserver) = &self.apiserver else { return Ok(()) };
        self.probe(&self.url, "/readyz").ready(apiserver).await
    }

    /// The API server's process, unless it is stopped.
    pub fn apiserver(&self) -> Option<&Process> {
        self.apiserver.as_ref()
    }

    /// etcd's process, unless it is stopped.
    pub fn etcd(&self) -> Option<&Process> {
        self.etcd.as_ref()
    }

    /// The API server's base URL, `https://127.0.0.1:<port>`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The folder of its files and logs.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Its certificates and keys.
    pub fn pki(&self) -> &Pki {
        &self.pki
    }

    /// The certificate of its authority, PEM.
    pub fn ca_pem(&self) -> Result<String, HarnessError> {
        fs::read_to_string(&self.pki.ca).map_err(HarnessError::io("read", &self.pki.ca))
    }

    /// The API server's audit log, one event a line, written before the answer is sent.
    pub fn audit_log(&self) -> PathBuf {
        self.dir.join(flags::AUDIT_LOG)
    }

    /// The token of a user.
    pub fn token(&self, user: &User) -> Result<&str, HarnessError> {
        self.tokens.of(user)
    }

    /// A kubeconfig of a user for the API server itself.
    pub fn kubeconfig(&self, user: &User) -> Result<PathBuf, HarnessError> {
        self.kubeconfig_via("direct", user, &self.url, &self.pki.ca)
    }

    /// A kubeconfig of a user for another address, a proxy's for example, verified against its PEM file `ca`.
    ///
    /// `via` names the address; one file for each pair of address and user.
    pub fn kubeconfig_via(
        &self,
        via: &str,
        user: &User,
        url: &str,
        ca: &Path,
    ) -> Result<PathBuf, HarnessError> {
        // A colon separates files in $KUBECONFIG.
        let name = format!("{via}-{}.kubeconfig", user.name.replace(':', "-"));
        kubeconfig::write(&self.dir.join(name), url, ca, self.token(user)?)
    }

    /// A client with a user's token, straight to the API server.
    pub async fn client(&self, user: &User) -> Result<kube::Client, HarnessError> {
        kubeconfig::client(&self.kubeconfig(user)?).await
    }

    /// Runs kubectl as [`User::ADMIN`], straight at the API server.
    pub async fn kubectl(&self, args: &[&str]) -> Result<Output, HarnessError> {
        kubectl(&self.kubeconfig(&User::ADMIN)?, args).await
    }

    /// Starts a real program whose log lies beside the others'.
    pub(crate) fn spawn(&self, name: &str, program: &str, args: &[String]) -> Result<Process, HarnessError> {
        Process::spawn(name, &self.programs.path(program)?, args, &[], &self.dir)
    }

    pub(crate) fn programs(&self) -> &Programs {
        &self.programs
    }

    /// A probe of a program that serves with this control plane's certificate.
    pub(crate) fn probe<'a>(&'a self, url: &'a str, path: &'a str) -> Probe<'a> {
        Probe { url, ca: Some(&self.pki.ca), path, deadline: self.options.ready_deadline }
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        // One after the other: an API server whose store is gone does not end on TERM.
        self.apiserver = None;
        self.etcd = None;
        let _ = fs::remove_dir_all(self.dir.join(flags::ETCD_DATA));
    }
}
