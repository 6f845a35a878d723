//! What is measured: the API server itself, the floor in front of it, and Shoal in front of it.

use std::fmt::{self, Display, Formatter};

use super::connection::{Address, Connector};
use super::halves;
use super::measure::{Measure, megabytes};
use super::meter::Meter;
use super::table::Table;
use crate::health::{Probe, READY_DEADLINE};
use crate::ports::Port;
use crate::ring::HUB;
use crate::{ControlPlane, HarnessError, Process, Proxy, ProxyArgs, User, programs};

/// A target's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Name {
    Direct,
    Floor,
    Shoal,
}

/// One target.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) name: Name,
    pub(super) address: Address,
    /// Of the proxy; the API server is not measured.
    pub(super) meter: Option<Meter>,
}

/// All targets and the programs behind them.
#[derive(Debug)]
pub(super) struct Targets {
    all: [Target; 3],
    _floor: Floor,
    _shoal: Proxy,
}

/// The running floor.
#[derive(Debug)]
struct Floor {
    process: Process,
    url: String,
    _port: Port,
}

// === impl Name ===

impl Name {
    pub(super) const ALL: [Self; 3] = [Self::Direct, Self::Floor, Self::Shoal];
}

impl Display for Name {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Direct => "direct",
            Self::Floor => "floor",
            Self::Shoal => "shoal",
        })
    }
}

// === impl Targets ===

impl Targets {
    /// Starts both proxies.
    pub(super) async fn start(plane: &ControlPlane) -> Result<Self, HarnessError> {
        let upstreams = [(HUB, plane.kubeconfig(&User::ADMIN)?)];
        let config = halves::write(plane.dir())?;
        let args = ProxyArgs { shard: halves::SHARD, config: &config, upstreams: &upstreams, dir: plane.dir() };
        let (floor, shoal) = (Floor::start(plane).await?, Proxy::start(args).await?);
        let token = format!("Bearer {}", plane.token(&User::ADMIN)?);
        let address = |url: &str, ca| -> Result<_, HarnessError> {
            Ok(Address { url: url.to_owned(), token: token.clone(), connector: Connector::new(ca)? })
        };
        let all = [
            Target { name: Name::Direct, address: address(plane.url(), &plane.pki().ca)?, meter: None },
            Target {
                name: Name::Floor,
                address: address(&floor.url, &plane.pki().ca)?,
                meter: Some(Meter::new(floor.process.pid())),
            },
            Target {
                name: Name::Shoal,
                address: address(shoal.url(), shoal.ca())?,
                meter: Some(Meter::new(shoal.process().pid())),
            },
        ];
        Ok(Self { all, _floor: floor, _shoal: shoal })
    }

    /// What the proxies hold before the first request.
    pub(super) fn idle(&self, table: &mut Table) -> Result<(), HarnessError> {
        for target in &self.all {
            if let Some(meter) = &target.meter {
                table.add("idle RSS MB", target.name, megabytes(meter.resident()?));
            }
        }
        Ok(())
    }

    /// Takes one measure at each target in turn.
    pub(super) async fn take(&self, measure: Measure, table: &mut Table) -> Result<(), HarnessError> {
        for target in &self.all {
            measure.take(target, table).await?;
        }
        Ok(())
    }
}

// === impl Floor ===

impl Floor {
    async fn start(plane: &ControlPlane) -> Result<Self, HarnessError> {
        let (port, pki) = (Port::reserve()?, plane.pki());
        let listen = format!("127.0.0.1:{}", port.number());
        let upstream = plane.url().trim_start_matches("https://").to_owned();
        let [cert, key, ca] = [&pki.cert, &pki.key, &pki.ca].map(|path| path.display().to_string());
        let args = [listen.clone(), cert, key, upstream, ca];
        let process = Process::spawn("floor", &programs::own("shoal-floor")?, &args, &[], plane.dir())?;
        let url = format!("https://{listen}");
        let probe = Probe { url: &url, ca: Some(&pki.ca), path: "/readyz", deadline: READY_DEADLINE };
        probe.ready(&process).await?;
        Ok(Self { process, url, _port: port })
    }
}
