//! A Pod of a live ring: a proxy and a controller, each started again when it ends.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::StatusCode;
use rustix::process::Signal;
use serde::Deserialize;

use super::{Clock, Command, Container};
use crate::controllers::{Election, QPS_FLAGS};
use crate::ports::Port;
use crate::proxy::{self, Metrics};
use crate::relay::Relay;
use crate::ring::HUB;
use crate::{ControlPlane, HarnessError, User, kubeconfig, programs, wait_for};

/// A loaded machine needs most of it.
const DEADLINE: Duration = Duration::from_mins(2);

/// What runs behind the proxies.
#[derive(Debug, Clone)]
pub enum Work {
    /// Stock kube-controller-managers with these controllers.
    ControllerManager(Vec<String>),
    /// The test controller over Websites.
    Websites,
}

/// A Pod. Dropping it kills what is in it.
#[derive(Debug)]
pub struct Pod {
    name: String,
    /// In front of the API server.
    pub proxy: Container,
    /// Behind the proxy.
    pub controller: Container,
    /// What all that the proxy says to the API server passes through.
    pub relay: Relay,
    /// The proxy's wall clock, where one can be made.
    pub clock: Option<Clock>,
    kubeconfig: PathBuf,
    ca: PathBuf,
    ports: Ports,
}

/// Reserved for the life of the Pod: its network namespace, so to say.
#[derive(Debug)]
struct Ports {
    listen: Port,
    admin: Port,
    metrics: Port,
    controller: Port,
}

/// What a proxy says that it is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Seat {
    /// `holder`, `standby` or `nobody`.
    pub role: String,
    /// The shard whose identity, or standby Lease, it holds.
    pub shard: String,
    /// How often the identity was claimed.
    pub term: u64,
    /// How many slots it owns.
    pub owned_slots: usize,
}

// === impl Work ===

impl Work {
    /// Whom the controllers, and the proxies themselves, log in as.
    pub fn user(&self) -> User {
        match self {
            Self::ControllerManager(_) => User::CONTROLLER_MANAGER,
            Self::Websites => User::WEBSITES,
        }
    }

    /// The command of one replica; `name` is that of its log.
    pub(crate) fn command(
        &self,
        plane: &ControlPlane,
        name: &str,
        kubeconfig: &Path,
        port: u16,
    ) -> Result<Command, HarnessError> {
        let (program, args) = match self {
            Self::ControllerManager(controllers) => {
                ("kube-controller-manager", manager_args(plane, controllers, kubeconfig, port))
            }
            Self::Websites => {
                ("manager", vec!["--websites".to_owned(), format!("--kubeconfig={}", kubeconfig.display())])
            }
        };
        let (name, program) = (name.to_owned(), plane.programs().path(program)?);
        Ok(Command { name, program, args, env: Vec::new(), log_dir: plane.dir().to_owned() })
    }
}

fn manager_args(plane: &ControlPlane, controllers: &[String], kubeconfig: &Path, port: u16) -> Vec<String> {
    let mut args = vec![
        format!("--controllers={}", controllers.join(",")),
        "--use-service-account-credentials=true".to_owned(),
        format!("--root-ca-file={}", plane.pki().ca.display()),
        format!("--kubeconfig={}", kubeconfig.display()),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        format!("--tls-cert-file={}", plane.pki().cert.display()),
        format!("--tls-private-key-file={}", plane.pki().key.display()),
    ];
    args.extend(Election::flags(Some(Election::default())));
    args.extend(QPS_FLAGS.map(str::to_owned));
    args
}

// === impl Pod ===

impl Pod {
    /// Starts both; returns when the proxy answers, which says nothing about what it holds.
    pub async fn start(
        plane: &ControlPlane,
        ring: &str,
        name: &str,
        work: &Work,
    ) -> Result<Self, HarnessError> {
        let dir = plane.dir().join(name);
        let ports = Ports {
            listen: Port::reserve()?,
            admin: Port::reserve()?,
            metrics: Port::reserve()?,
            controller: Port::reserve()?,
        };
        let relay = Relay::start(address(plane.url())?).await?;
        let clock = Clock::new(&dir.join("clock")).await?;
        let proxy =
            Container::start(proxy_command(plane, ring, name, work, &ports, &relay, clock.as_ref())?)?;
        let ca = dir.join("tls/ca.crt");
        let admin = format!("http://127.0.0.1:{}", ports.admin.number());
        wait_for(&format!("the proxy of {name}"), DEADLINE, || answers(&admin, &ca)).await?;
        let url = listen_url(&ports);
        let kubeconfig = plane.kubeconfig_via(name, &work.user(), &url, &ca)?;
        let command = work.command(plane, name, &kubeconfig, ports.controller.number())?;
        let controller = Container::start(command)?;
        Ok(Self { name: name.to_owned(), proxy, controller, relay, clock, kubeconfig, ca, ports })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kubeconfig of its controller.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Where its proxy listens.
    pub fn url(&self) -> String {
        listen_url(&self.ports)
    }

    /// The authority of its proxy.
    pub fn ca(&self) -> &Path {
        &self.ca
    }

    /// Ends it as a kubelet ends a Pod with a native sidecar: the proxy's preStop hook, the controller, then the proxy.
    pub async fn end(&self) {
        // A proxy that does not answer is ended all the same.
        let _ = proxy::ask(&self.admin_url(), http::Request::post("/drain")).await;
        self.controller.end().await;
        self.proxy.end().await;
    }

    /// Loses its node: both are gone at once, and stay so.
    pub fn kill(&self) {
        self.controller.kill();
        self.proxy.kill();
    }

    /// Whether it was ended for good.
    pub fn has_ended(&self) -> bool {
        self.proxy.has_ended()
    }

    /// Stops both, or lets them go on.
    pub fn signal(&self, signal: Signal) {
        self.controller.signal(signal);
        self.proxy.signal(signal);
    }

    /// What its proxy says that it is.
    pub async fn seat(&self) -> Result<Seat, HarnessError> {
        let url = self.admin_url();
        match proxy::ask(&url, http::Request::get("/configz")).await? {
            (StatusCode::OK, text) => serde_json::from_str(&text)
                .map_err(|error| HarnessError::Answer { url, reason: error.to_string() }),
            (status, text) => Err(HarnessError::Answer { url, reason: format!("{status}: {text}") }),
        }
    }

    /// A scrape of its proxy.
    pub async fn metrics(&self) -> Result<Metrics, HarnessError> {
        let url = format!("http://127.0.0.1:{}", self.ports.metrics.number());
        proxy::ask(&url, http::Request::get("/metrics")).await.map(|(_, text)| Metrics::parse(&text))
    }

    fn admin_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports.admin.number())
    }
}

fn listen_url(ports: &Ports) -> String {
    format!("https://127.0.0.1:{}", ports.listen.number())
}

async fn answers(admin: &str, ca: &Path) -> Result<(), String> {
    match proxy::ask(admin, http::Request::get("/livez")).await {
        Ok((StatusCode::OK, _)) if ca.exists() => Ok(()),
        Ok((status, _)) => Err(format!("{status}, {}", ca.display())),
        Err(error) => Err(error.to_string()),
    }
}

fn proxy_command(
    plane: &ControlPlane,
    ring: &str,
    name: &str,
    work: &Work,
    ports: &Ports,
    relay: &Relay,
    clock: Option<&Clock>,
) -> Result<Command, HarnessError> {
    let url = format!("https://{}", relay.address());
    let upstream = plane.dir().join(name).join("upstream.kubeconfig");
    kubeconfig::write(&upstream, &url, &plane.pki().ca, plane.token(&work.user())?)?;
    let args = vec![
        format!("--ring={ring}"),
        format!("--holder={name}"),
        format!("--upstream={HUB}={}", upstream.display()),
        format!("--listen={}", listen_url(ports)),
        format!("--tls-dir={}", plane.dir().join(name).join("tls").display()),
        format!("--admin=127.0.0.1:{}", ports.admin.number()),
        format!("--metrics=127.0.0.1:{}", ports.metrics.number()),
    ];
    Ok(Command {
        name: format!("proxy-{name}"),
        program: programs::own("shoal-proxy")?,
        args,
        env: clock.map(Clock::env).unwrap_or_default(),
        log_dir: plane.dir().to_owned(),
    })
}

fn address(url: &str) -> Result<SocketAddr, HarnessError> {
    let address = url.trim_start_matches("https://").trim_end_matches('/');
    address.parse().map_err(|_| HarnessError::Answer { url: url.to_owned(), reason: "no address".to_owned() })
}
