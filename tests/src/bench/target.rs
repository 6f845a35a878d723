//! What is measured: the API server itself, and three proxies in front of it.

use std::fmt::{self, Display, Formatter};
use std::path::Path;

use super::connection::Address;
use super::halves;
use crate::health::{Probe, READY_DEADLINE};
use crate::meter::Meter;
use crate::ports::Port;
use crate::ring::HUB;
use crate::{ControlPlane, HarnessError, Process, Proxy, ProxyArgs, User, programs};

/// A target's name, in the order of the turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Name {
    Direct,
    Go,
    Floor,
    Shoal,
}

/// One target. A proxy is a process of its own, new for each measurement, and is killed when this is dropped.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) name: Name,
    pub(super) address: Address,
    /// Of the proxy; the API server is not measured.
    pub(super) meter: Option<Meter>,
    running: Running,
}

#[derive(Debug)]
enum Running {
    Nothing,
    Peer { process: Process, _port: Port },
    Shoal(Proxy),
}

// === impl Name ===

impl Name {
    pub(super) const ALL: [Self; 4] = [Self::Direct, Self::Go, Self::Floor, Self::Shoal];
}

impl Display for Name {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Direct => "direct",
            Self::Go => "Go",
            Self::Floor => "floor",
            Self::Shoal => "Shoal",
        })
    }
}

// === impl Target ===

impl Target {
    /// Starts the proxy, if it is one.
    pub(super) async fn start(plane: &ControlPlane, name: Name) -> Result<Self, HarnessError> {
        let trusted = plane.pki().ca.as_path();
        match name {
            Name::Direct => Self::of(plane, name, plane.url(), trusted, Running::Nothing),
            Name::Go | Name::Floor => {
                let (process, port) = peer(plane, name).await?;
                let url = format!("https://127.0.0.1:{}", port.number());
                Self::of(plane, name, &url, trusted, Running::Peer { process, _port: port })
            }
            Name::Shoal => {
                let proxy = shoal(plane).await?;
                let (url, ca) = (proxy.url().to_owned(), proxy.ca().to_owned());
                Self::of(plane, name, &url, &ca, Running::Shoal(proxy))
            }
        }
    }

    fn of(
        plane: &ControlPlane,
        name: Name,
        url: &str,
        ca: &Path,
        running: Running,
    ) -> Result<Self, HarnessError> {
        let token = format!("Bearer {}", plane.token(&User::ADMIN)?);
        let address = Address { url: url.to_owned(), ca: ca.to_owned(), token };
        let meter = running.process().map(|process| Meter::new(process.pid()));
        Ok(Self { name, address, meter, running })
    }
}

// What is resident of the API server is not measured, and reads as zero.
impl Target {
    /// Bytes that are resident now.
    pub(super) fn resident(&self) -> Result<u64, HarnessError> {
        self.meter.as_ref().map_or(Ok(0), Meter::resident)
    }

    /// Lets the peak start anew and returns what is resident now.
    pub(super) fn reset_peak(&self) -> Result<u64, HarnessError> {
        self.meter.as_ref().map_or(Ok(()), Meter::reset_peak)?;
        self.resident()
    }

    /// The most that was resident since.
    pub(super) fn peak(&self) -> Result<u64, HarnessError> {
        self.meter.as_ref().map_or(Ok(0), Meter::peak)
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // The next one is to start now, and a proxy on TERM waits for its clients.
        if let Some(process) = self.running.process() {
            process.kill();
        }
    }
}

// === impl Running ===

impl Running {
    fn process(&self) -> Option<&Process> {
        match self {
            Self::Nothing => None,
            Self::Peer { process, .. } => Some(process),
            Self::Shoal(proxy) => Some(proxy.process()),
        }
    }
}

async fn shoal(plane: &ControlPlane) -> Result<Proxy, HarnessError> {
    let upstreams = [(HUB, plane.kubeconfig(&User::ADMIN)?)];
    let config = halves::write(plane.dir())?;
    let args = ProxyArgs { shard: halves::SHARD, config: &config, upstreams: &upstreams, dir: plane.dir() };
    Proxy::start(args).await
}

async fn peer(plane: &ControlPlane, name: Name) -> Result<(Process, Port), HarnessError> {
    let port = Port::reserve()?;
    let listen = format!("127.0.0.1:{}", port.number());
    let process = if name == Name::Go {
        plane.spawn("go", "meshload", &go_args(plane, &listen))?
    } else {
        let floor = programs::own("shoal-floor")?;
        Process::spawn("floor", &floor, &floor_args(plane, &listen), &[], plane.dir())?
    };
    let url = format!("https://{listen}");
    let probe = Probe { url: &url, ca: Some(&plane.pki().ca), path: "/readyz", deadline: READY_DEADLINE };
    probe.ready(&process).await?;
    Ok((process, port))
}

fn go_args(plane: &ControlPlane, listen: &str) -> Vec<String> {
    let pki = plane.pki();
    vec![
        "revproxy".to_owned(),
        format!("--listen={listen}"),
        format!("--serve-cert={}", pki.cert.display()),
        format!("--serve-key={}", pki.key.display()),
        format!("--url={}", plane.url()),
        format!("--ca={}", pki.ca.display()),
    ]
}

fn floor_args(plane: &ControlPlane, listen: &str) -> Vec<String> {
    let pki = plane.pki();
    let [cert, key, ca] = [&pki.cert, &pki.key, &pki.ca].map(|path| path.display().to_string());
    vec![listen.to_owned(), cert, key, plane.url().trim_start_matches("https://").to_owned(), ca]
}
