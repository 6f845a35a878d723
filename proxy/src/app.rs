//! Wires the rooms together, and does nothing else.

use std::{error::Error, net::SocketAddr, path::Path, sync::Arc, thread, time::Duration};

use tokio::{
    net::TcpListener,
    runtime::{Builder, Runtime},
    signal::unix::{SignalKind, signal},
    time::sleep,
};
use tracing_subscriber::EnvFilter;

use crate::{
    admin::{Admin, Config, Readiness},
    args::{Args, UpstreamArg},
    config, listen,
    listen::tls,
    metrics::Metrics,
    ownership::Ring,
    stack::Stack,
    upstream::{Upstream, kubeconfig::Endpoint},
};

/// A shard's identity is claimed once for the life of a static map.
const TERM: u64 = 1;
/// How often an unreachable hub is tried before the proxy is ready.
const CONNECT_PAUSE: Duration = Duration::from_millis(500);

type Failure = Box<dyn Error + Send + Sync>;

/// Runs the proxy until it is told to stop.
pub fn run(args: &Args) -> Result<(), Failure> {
    tracing_subscriber::fmt()
        .json()
        .with_env_filter(EnvFilter::try_new(&args.log)?)
        .with_writer(std::io::stderr)
        .init();
    let metrics = Arc::new(Metrics::new()?);
    let ring = Arc::new(Ring::compile(&config::read(&args.config)?, &args.shard, TERM)?);
    let mut upstreams = upstreams(&args.upstreams, &metrics)?.into_iter();
    let hub = upstreams.next().ok_or("at least one --upstream is needed")?;
    metrics.owned_slots.set(i64::try_from(ring.slots.len())?);
    let stack = Arc::new(Stack::new(ring, hub, upstreams.collect(), metrics));
    runtime()?.block_on(serve(args, stack))
}

/// One thread: a controller's traffic fits one core, and work never waits for another core to wake.
fn runtime() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

async fn serve(args: &Args, stack: Arc<Stack>) -> Result<(), Failure> {
    let acceptor = tls::acceptor(&args.tls_dir)?;
    let listener = bind(args.listen.0).await?;
    let readiness = Readiness::default();
    start_admin(args, &stack, listener.local_addr()?, readiness.clone()).await?;
    tokio::spawn(become_ready(stack.clusters.hub().clone(), readiness));
    let open = stack.metrics.connections.clone();
    tokio::select! {
        never = listen::serve(listener, acceptor, open, stack) => match never {},
        told = stop_signal() => Ok(told?),
    }
}

async fn start_admin(
    args: &Args,
    stack: &Stack,
    listen: SocketAddr,
    readiness: Readiness,
) -> Result<(), Failure> {
    let (admin, metrics) = (bind(args.admin).await?, bind(args.metrics).await?);
    let config = describe(stack, listen, metrics.local_addr()?);
    tracing::info!(admin = %admin.local_addr()?, config = serde_json::to_string(&config)?, "serving");
    let state = Admin { config: Arc::new(config), readiness, metrics: stack.metrics.clone() };
    let (admin, metrics) = (admin.into_std()?, metrics.into_std()?);
    thread::Builder::new().name("admin".to_owned()).spawn(move || {
        let served = runtime().and_then(|runtime| {
            runtime.block_on(async {
                state.serve(TcpListener::from_std(admin)?, TcpListener::from_std(metrics)?).await
            })
        });
        if let Err(error) = served {
            tracing::error!(%error, "admin stopped");
        }
    })?;
    Ok(())
}

async fn bind(address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| format!("cannot listen on {address}: {error}").into())
}

async fn become_ready(hub: Arc<Upstream>, readiness: Readiness) {
    while let Err(error) = hub.connect().await {
        tracing::warn!(upstream = hub.url(), %error, "not ready");
        sleep(CONNECT_PAUSE).await;
    }
    tracing::info!("ready");
    readiness.set();
}

async fn stop_signal() -> std::io::Result<()> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("stopping");
    Ok(())
}

fn upstreams(args: &[UpstreamArg], metrics: &Metrics) -> Result<Vec<Arc<Upstream>>, Failure> {
    let one = |arg: &UpstreamArg| {
        let endpoint = Endpoint::from_kubeconfig(&arg.name, Path::new(&arg.kubeconfig))
            .map_err(|error| format!("--upstream {}={}: {error}", arg.name, arg.kubeconfig.display()))?;
        Ok(Arc::new(Upstream::new(endpoint, metrics)))
    };
    args.iter().map(one).collect()
}

fn describe(stack: &Stack, listen: SocketAddr, metrics: SocketAddr) -> Config {
    let ring = &stack.ring;
    Config {
        ring: format!("{}/{}", ring.namespace, ring.name),
        shard: ring.shard.clone(),
        term: ring.term,
        map_version: ring.map.version(),
        owned_slots: ring.slots.len(),
        listen: format!("https://{listen}"),
        metrics,
        upstreams: stack
            .clusters
            .iter()
            .map(|cluster| (cluster.name.to_string(), cluster.upstream.url()))
            .collect(),
        version: env!("CARGO_PKG_VERSION"),
    }
}
