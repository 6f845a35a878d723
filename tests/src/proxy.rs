//! A proxy under test, as its own program.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::net::TcpStream;

use crate::health::{Probe, READY_DEADLINE};
use crate::ports::Port;
use crate::{ControlPlane, HarnessError, Process, User, kubeconfig, programs};

/// The line of shell that starts a proxy as it is.
pub const DIRECTLY: &str = r#"exec "$@""#;

/// What to start.
#[derive(Debug, Clone)]
pub struct ProxyArgs<'a> {
    /// The shard; the log and the TLS folder are named after it.
    pub shard: &'a str,
    /// The file or folder with the ring and its map.
    pub config: &'a Path,
    /// Cluster names and kubeconfigs, the hub first.
    pub upstreams: &'a [(&'a str, PathBuf)],
    /// Where its log and its certificates go.
    pub dir: &'a Path,
}

/// A running proxy. Dropping it ends it.
#[derive(Debug)]
pub struct Proxy {
    process: Process,
    shard: String,
    ca: PathBuf,
    config: Config,
    admin: Port,
}

/// What `/configz` tells and the harness needs.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Config {
    listen: String,
    metrics: SocketAddr,
}

/// One scrape of a proxy: series, with their labels, and values.
#[derive(Debug, Clone, Default)]
pub struct Metrics(BTreeMap<String, f64>);

// === impl Proxy ===

impl Proxy {
    /// Starts a proxy on free ports and returns when it is ready.
    pub async fn start(args: ProxyArgs<'_>) -> Result<Self, HarnessError> {
        Self::start_by(DIRECTLY, args).await
    }

    /// The same from a line of shell in which `"$@"` is the program with its flags, for what it inherits or gets in
    /// addition: `ulimit -n 64; exec "$@" --max-connections=8`. The line ends with an `exec`, so that signals arrive.
    pub async fn start_by(line: &str, args: ProxyArgs<'_>) -> Result<Self, HarnessError> {
        let (admin, tls) = (Port::reserve()?, args.dir.join(format!("{}-tls", args.shard)));
        let process = spawn(line, &args, &admin, &tls)?;
        let url = format!("http://127.0.0.1:{}", admin.number());
        let probe = Probe { url: &url, ca: None, path: "/readyz", deadline: READY_DEADLINE };
        probe.ready(&process).await?;
        let config = get(&url, "/configz").await?;
        let config = serde_json::from_str(&config).map_err(|error| HarnessError::Answer {
            url: format!("{url}/configz"),
            reason: error.to_string(),
        })?;
        Ok(Self { process, shard: args.shard.to_owned(), ca: tls.join("ca.crt"), config, admin })
    }

    /// Its process.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// The shard that it is.
    pub fn shard(&self) -> &str {
        &self.shard
    }

    /// Where controllers connect.
    pub fn url(&self) -> &str {
        &self.config.listen
    }

    /// What controllers verify it with.
    pub fn ca(&self) -> &Path {
        &self.ca
    }

    /// The base URL of its admin pages.
    pub fn admin_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.admin.number())
    }

    /// The base URL of its metrics.
    pub fn metrics_url(&self) -> String {
        format!("http://{}", self.config.metrics)
    }

    /// A kubeconfig of a user for this proxy.
    pub fn kubeconfig(&self, plane: &ControlPlane, user: &User) -> Result<PathBuf, HarnessError> {
        plane.kubeconfig_via(&self.shard, user, self.url(), &self.ca)
    }

    /// A client with a user's token, through this proxy.
    pub async fn client(&self, plane: &ControlPlane, user: &User) -> Result<kube::Client, HarnessError> {
        kubeconfig::client(&self.kubeconfig(plane, user)?).await
    }

    /// What one of its admin pages says.
    pub async fn page(&self, path: &str) -> Result<(StatusCode, String), HarnessError> {
        ask(&self.admin_url(), Request::get(path)).await
    }

    /// Tells it to drain, as TERM does.
    pub async fn drain(&self) -> Result<(StatusCode, String), HarnessError> {
        ask(&self.admin_url(), Request::post("/drain")).await
    }

    /// A scrape of its metrics.
    pub async fn metrics(&self) -> Result<Metrics, HarnessError> {
        Ok(Metrics::parse(&get(&self.metrics_url(), "/metrics").await?))
    }
}

impl Drop for Proxy {
    /// At once: whoever is connected still would only make it wait.
    fn drop(&mut self) {
        self.process.kill();
    }
}

// === impl Metrics ===

impl Metrics {
    /// Reads the Prometheus text format.
    pub fn parse(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let series = |line: &str| {
            let (name, value) = line.rsplit_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        Self(lines.filter_map(series).collect())
    }

    /// The sum over a metric's series whose labels contain all of `labels`, each as `key="value"`; 0 if there is none.
    pub fn sum(&self, name: &str, labels: &[&str]) -> f64 {
        let wanted = |series: &&String| {
            let (metric, rest) = series.split_once('{').unwrap_or((series, ""));
            metric == name && labels.iter().all(|label| rest.contains(label))
        };
        self.0.iter().filter(|(series, _)| wanted(series)).map(|(_, value)| value).sum()
    }
}

fn spawn(line: &str, args: &ProxyArgs<'_>, admin: &Port, tls: &Path) -> Result<Process, HarnessError> {
    let program = programs::own("shoal-proxy")?.display().to_string();
    let mut flags = vec![
        "-c".to_owned(),
        line.to_owned(),
        "sh".to_owned(),
        program,
        format!("--config={}", args.config.display()),
        format!("--shard={}", args.shard),
        "--listen=https://127.0.0.1:0".to_owned(),
        format!("--tls-dir={}", tls.display()),
        format!("--admin=127.0.0.1:{}", admin.number()),
        "--metrics=127.0.0.1:0".to_owned(),
    ];
    flags.extend(args.upstreams.iter().map(|(name, path)| format!("--upstream={name}={}", path.display())));
    let name = format!("proxy-{}", args.shard);
    Process::spawn(&name, Path::new("/bin/sh"), &flags, &[], args.dir)
}

/// What a page says, if it is a success.
async fn get(base: &str, path: &str) -> Result<String, HarnessError> {
    match ask(base, Request::get(path)).await? {
        (status, text) if status.is_success() => Ok(text),
        (status, text) => {
            Err(HarnessError::Answer { url: format!("{base}{path}"), reason: format!("{status}: {text}") })
        }
    }
}

/// One request and its whole answer, as it is: kube's client would try again after a 503.
pub(crate) async fn ask(
    base: &str,
    request: http::request::Builder,
) -> Result<(StatusCode, String), HarnessError> {
    let failed = |reason: String| HarnessError::Answer { url: base.to_owned(), reason };
    let address = base.trim_start_matches("http://");
    let tcp = TcpStream::connect(address).await.map_err(|error| failed(error.to_string()))?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(tcp)).await.map_err(|error| failed(error.to_string()))?;
    tokio::spawn(connection);
    let request = request.header(header::HOST, address).body(Empty::<Bytes>::new());
    let request = request.map_err(|error| failed(error.to_string()))?;
    let response = sender.send_request(request).await.map_err(|error| failed(error.to_string()))?;
    let status = response.status();
    #[allow(clippy::disallowed_methods, reason = "a page of our own")]
    let body = response.into_body().collect().await.map_err(|error| failed(error.to_string()))?;
    Ok((status, String::from_utf8_lossy(&body.to_bytes()).into_owned()))
}
