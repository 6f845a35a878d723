//! Wires the rooms together, and does nothing else.

use std::{error::Error, pin::pin, sync::Arc, time::Duration};

use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use tokio::{
    net::TcpListener,
    runtime::{Builder, Runtime},
    signal::unix::{SignalKind, signal},
    time::timeout,
};
use tracing_subscriber::EnvFilter;

use crate::{
    args::{Args, Mesh, Role, Source},
    mesh::{self, REQUEST, election::Election},
    metrics::Metrics,
    pages::{Pages, Ready},
};

/// How long a connection to the hub may take.
const CONNECT: Duration = Duration::from_secs(2);

type Failure = Box<dyn Error + Send + Sync>;

/// Runs the role until it is told to stop.
pub fn run(args: &Args) -> Result<(), Failure> {
    let Role::Mesh(args) = &args.role;
    let log = EnvFilter::try_new(&args.log)?;
    // A log that cannot be written is no reason to end: the default would say so on stderr, and panic there.
    let lines = tracing_subscriber::fmt().log_internal_errors(false).json();
    lines.with_env_filter(log).with_writer(std::io::stderr).init();
    runtime()?.block_on(serve(args))
}

/// One thread: a coordinator waits for most of its time.
fn runtime() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

async fn serve(args: &Mesh) -> Result<(), Failure> {
    let config = config(&args.kubeconfig).await?;
    let namespace = config.default_namespace.clone();
    let client = Client::try_from(config)?;
    let (metrics, ready) = (Arc::new(Metrics::new()?), Ready::default());
    let listener = TcpListener::bind(args.metrics).await?;
    tracing::info!(metrics = %listener.local_addr()?, leader_elect = args.leader_elect, "serving");
    let pages = Pages { metrics: metrics.clone(), ready: ready.clone() };
    tokio::spawn(pages.serve(listener));
    let mesh = mesh::Mesh { client: client.clone(), namespace: args.namespace.clone(), metrics, ready };
    let election =
        args.leader_elect.then(|| Election::new(Api::<Lease>::namespaced(client, &namespace), holder()));
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let told = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    work(mesh, election, told).await
}

/// Coordinates until told to end; with an election only while it is won.
async fn work(
    mesh: mesh::Mesh,
    election: Option<Election>,
    told: impl Future<Output = ()>,
) -> Result<(), Failure> {
    let mut told = pin!(told);
    let Some(mut election) = election else {
        return tokio::select! {
            ended = mesh.run() => Ok(ended?),
            () = &mut told => Ok(()),
        };
    };
    mesh.ready.set();
    loop {
        let mut won = tokio::select! {
            won = election.win() => won,
            () = &mut told => return Ok(()),
        };
        tracing::info!("elected");
        tokio::select! {
            ended = mesh.run() => return Ok(ended?),
            () = election.hold(&mut won) => tracing::warn!("another control plane was elected"),
            () = &mut told => {
                // The coordinators have ended with their futures. If it fails, the Lease runs out by itself.
                let _ = timeout(REQUEST, election.resign(&won)).await;
                return Ok(());
            }
        }
    }
}

async fn config(source: &Source) -> Result<Config, Failure> {
    let mut config = match source {
        Source::InCluster => Config::incluster()?,
        Source::Kubeconfig(path) => {
            let file = Kubeconfig::read_from(path)?;
            Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?
        }
    };
    config.connect_timeout = Some(CONNECT);
    config.write_timeout = Some(REQUEST);
    Ok(config)
}

/// Told from another process of the same pod, or of the same machine.
fn holder() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}_{:016x}", host.trim(), fastrand::u64(..))
}
