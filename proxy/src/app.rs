//! Wires the rooms together, and does nothing else.

use std::{error::Error, net::SocketAddr, sync::Arc, thread, time::Duration};

use parking_lot::Mutex;
use shoal_api::ShardedController;
use tokio::{
    net::TcpListener,
    runtime::{Builder, Runtime},
    signal::unix::{SignalKind, signal},
    time::{sleep, timeout},
};
use tokio_util::task::TaskTracker;
use tracing_subscriber::EnvFilter;

use crate::{
    admin::{Admin, Config, Readiness},
    args::{Args, Listen, RingArg, UpstreamArg},
    config,
    drain::Drain,
    identity::{Attendance, Hub, Identity, Life, Parts},
    listen::{Listener, Places, Security, files, tls, token::ListenToken},
    metrics::Metrics,
    ownership::{Live, Ring, Role},
    reload,
    stack::{Clusters, Credentials, Door, Home, Stack},
    upstream::{Upstream, endpoint::ForwardIdentity},
};

/// A shard's identity is claimed once for the life of a static map.
const TERM: u64 = 1;
/// How long the proxy tries to give its identity back when it ends.
const LAST_WORDS: Duration = Duration::from_secs(4);
/// How often an unreachable hub is tried before the proxy is ready.
const CONNECT_PAUSE: Duration = Duration::from_millis(500);

type Failure = Box<dyn Error + Send + Sync>;

/// Runs the proxy until it is told to stop.
pub fn run(args: &Args) -> Result<(), Failure> {
    let log = EnvFilter::try_new(&args.log)?;
    // A log that cannot be written is no reason to end: the default would say so on stderr, and panic there.
    let lines = tracing_subscriber::fmt().log_internal_errors(false).json();
    lines.with_env_filter(log).with_writer(std::io::stderr).init();
    let metrics = Arc::new(Metrics::new()?);
    let credentials = credentials(args)?;
    let clusters = clusters(&args.upstreams, args.forward_identity, &metrics)?;
    let stack = |ring| Stack::new(Arc::new(ring), clusters, credentials, Drain::default(), metrics.clone());
    match (&args.ring, &args.config, &args.shard) {
        (Some(ring), ..) => runtime()?.block_on(serve_live(args, ring, stack)),
        (None, Some(config), Some(shard)) => {
            let ring = Ring::compile(&config::read(config)?, shard, TERM)?;
            metrics.owned_slots.set(i64::try_from(ring.slots.len())?);
            runtime()?.block_on(serve(args, Arc::new(stack(ring)), Attendance::default()))
        }
        _ => Err("--ring, or --config and --shard, are needed".into()),
    }
}

/// One thread: a controller's traffic fits one core, and work never waits for another core to wake.
fn runtime() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// The same in a ring that lives on the hub: the proxy claims one of its shards, and gives it back at the end.
async fn serve_live(args: &Args, ring: &RingArg, stack: impl FnOnce(Ring) -> Stack) -> Result<(), Failure> {
    let source =
        args.upstreams.first().map(|hub| hub.source.clone()).ok_or("at least one --upstream is needed")?;
    let hub = Hub::new(&source, ring.namespace.clone(), ring.name.clone()).await?;
    let controller = read_ring(&hub).await;
    std::fs::create_dir_all(&args.tls_dir)?;
    let life = Arc::new(Mutex::new(Life::begin(&args.tls_dir)?));
    let (gate, attendance) = (Arc::new(Live::new()), Attendance::default());
    let ring = Ring::live(&controller, Role::Nobody, ("", 0), None, false);
    let stack = Arc::new(stack(ring).with_gate(gate.clone(), life.clone()));
    let holder = format!("{}_{:016x}", args.holder, fastrand::u64(..));
    let parts = Parts {
        hub,
        holder,
        stack: stack.clone(),
        live: gate,
        attendance: attendance.clone(),
        life,
        controller,
    };
    let identity = Identity::start(parts);
    let served = serve(args, stack, attendance).await;
    if timeout(LAST_WORDS, identity.end()).await.is_err() {
        tracing::warn!("the identity could not be given back in time: its Lease runs out by itself");
    }
    served
}

/// The ring, as soon as the hub tells it: without it nothing is known that could be served.
async fn read_ring(hub: &Hub) -> ShardedController {
    loop {
        match hub.controller().await {
            Ok(controller) => return controller,
            Err(error) => tracing::warn!(%error, "the ring cannot be read; it is tried again"),
        }
        sleep(CONNECT_PAUSE).await;
    }
}

async fn serve(args: &Args, stack: Arc<Stack>, attendance: Attendance) -> Result<(), Failure> {
    let (mut listeners, mut listening) = (Vec::new(), Vec::new());
    let wanted = args.listeners();
    // None takes the places of another's clients.
    let places = files::connections(args.max_connections, wanted.len(), stack.clusters.iter().count());
    for (cluster, listen) in wanted {
        let home = stack
            .clusters
            .home(cluster)
            .ok_or_else(|| format!("--listen {cluster}=: no --upstream of that name"))?;
        let listener = listener(args, &stack, home, listen, (places, &attendance)).await?;
        listening.push((cluster.to_owned(), Listen { address: listener.socket.local_addr()?, ..listen }));
        listeners.push(listener);
    }
    let readiness = Readiness::default();
    start_admin(args, &stack, listening, readiness.clone()).await?;
    tokio::spawn(become_ready(stack.clusters.hub().clone(), readiness));
    reload::spawn(&stack);
    tokio::spawn(begin_on_signal(stack.drain.clone())?);
    let tracker = TaskTracker::new();
    for listener in listeners {
        tokio::spawn(listener.serve(tracker.clone()));
    }
    stack.drain.run(&tracker).await;
    tracing::info!("drained");
    Ok(())
}

async fn listener(
    args: &Args,
    stack: &Arc<Stack>,
    home: Home,
    listen: Listen,
    (places, attendance): (usize, &Attendance),
) -> Result<Listener<TcpListener, Door>, Failure> {
    let security = if listen.tls { Security::Tls(tls::acceptor(&args.tls_dir)?) } else { Security::Plain };
    Ok(Listener {
        socket: bind(listen.address).await?,
        security,
        places: Places::new(places),
        open: stack.metrics.connections.clone(),
        attendance: attendance.clone(),
        drain: stack.drain.clone(),
        handler: Arc::new(Door { stack: stack.clone(), home }),
    })
}

async fn start_admin(
    args: &Args,
    stack: &Arc<Stack>,
    listening: Vec<(String, Listen)>,
    readiness: Readiness,
) -> Result<(), Failure> {
    let (admin, metrics) = (bind(args.admin).await?, bind(args.metrics).await?);
    let (described, address) = (stack.clone(), metrics.local_addr()?);
    let config = Arc::new(move || describe(&described, &listening, address));
    tracing::info!(admin = %admin.local_addr()?, config = serde_json::to_string(&config())?, "serving");
    let (drain, measured) = (stack.drain.clone(), stack.metrics.clone());
    let state = Admin { config, readiness, drain, metrics: measured };
    let (admin, metrics) = (admin.into_std()?, metrics.into_std()?);
    thread::Builder::new().name("admin".to_owned()).spawn(move || {
        let served = runtime().and_then(|runtime| runtime.block_on(state.serve(admin, metrics)));
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

/// The first TERM or INT begins the drain, a second one ends it.
fn begin_on_signal(drain: Drain) -> std::io::Result<impl Future<Output = ()>> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        // A drain that was asked for at the admin address counts for none: TERM follows a preStop hook at once.
        let mut told = false;
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if told {
                drain.force();
            }
            tracing::info!("draining");
            drain.begin();
            told = true;
        }
    })
}

fn credentials(args: &Args) -> Result<Credentials, Failure> {
    match (args.forward_identity, &args.listen_token_file) {
        (ForwardIdentity::Own, Some(path)) => {
            Ok(Credentials::Own(Arc::new(ListenToken::read(path.clone())?)))
        }
        (ForwardIdentity::Own, None) => Err("--forward-identity=own needs --listen-token-file".into()),
        (ForwardIdentity::Client, _) => Ok(Credentials::Client),
    }
}

fn clusters(args: &[UpstreamArg], identity: ForwardIdentity, metrics: &Metrics) -> Result<Clusters, Failure> {
    let mut upstreams = Vec::new();
    for UpstreamArg { name, source } in args {
        if upstreams.iter().any(|upstream: &Arc<Upstream>| upstream.name() == name) {
            return Err(format!("--upstream {name}={source}: there is another upstream of that name").into());
        }
        let upstream = Upstream::new(name, source.clone(), identity, metrics);
        upstreams.push(Arc::new(upstream.map_err(|error| format!("--upstream {name}={source}: {error}"))?));
    }
    let mut upstreams = upstreams.into_iter();
    let hub = upstreams.next().ok_or("at least one --upstream is needed")?;
    Ok(Clusters::new(hub, upstreams.collect()))
}

fn describe(stack: &Stack, listening: &[(String, Listen)], metrics: SocketAddr) -> Config {
    let ring = stack.ring.load();
    Config {
        ring: format!("{}/{}", ring.namespace, ring.name),
        role: ring.role.name(),
        shard: ring.shard.clone(),
        term: ring.term,
        map_version: ring.map.version(),
        owned_slots: ring.slots.len(),
        listen: listening.first().map(|(_, listen)| listen.to_string()).unwrap_or_default(),
        listeners: listening.iter().map(|(cluster, listen)| (cluster.clone(), listen.to_string())).collect(),
        metrics,
        upstreams: stack
            .clusters
            .iter()
            .map(|cluster| (cluster.name.to_string(), cluster.upstream.url()))
            .collect(),
        version: env!("CARGO_PKG_VERSION"),
    }
}
