//! The command line; the only reader of flags and environment.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    str::FromStr,
};

use clap::Parser;

use crate::upstream::endpoint::{ForwardIdentity, Source};

/// Where the hub is reached by default: the port of a `kube-apiserver`.
const HUB_LISTEN: Listen =
    Listen { tls: true, address: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 6443) };

/// Stands between a controller and its API servers, and lets it work on its own shard only.
#[derive(Debug, Parser)]
// A flag given twice counts as given last, as with kubectl; the upstreams add up.
#[command(name = "shoal-proxy", version, max_term_width = 100, args_override_self = true)]
pub struct Args {
    /// The ring's ShardedController on the hub. The proxy claims the identity of one of its shards, and slots come and go.
    #[arg(
        long,
        env = "SHOAL_RING",
        value_name = "NAMESPACE/NAME",
        conflicts_with = "config",
        required_unless_present = "config"
    )]
    pub ring: Option<RingArg>,

    /// The name that this proxy claims its shard by, followed by a random part; the Pod's name. A number at its end, as a
    /// StatefulSet's Pods have it, says which shard it goes for first.
    #[arg(long, env = "SHOAL_HOLDER", value_name = "POD", default_value = "shoal-proxy", requires = "ring")]
    pub holder: String,

    /// Instead of --ring: a file, or a folder of *.yaml files, with one ShardedController and its ShardMap, which never
    /// change.
    #[arg(long, env = "SHOAL_CONFIG", value_name = "PATH", requires = "shard")]
    pub config: Option<PathBuf>,

    /// The shard that this proxy is with --config, for example kcm-0.
    #[arg(long, env = "SHOAL_SHARD", value_name = "ID", requires = "config")]
    pub shard: Option<String>,

    /// Where the controller connects: https://IP:PORT, or http:// on a loopback address; with a member's name in
    /// front, where that cluster is reached alone. Port 0 takes a free one; the log and /configz tell which.
    /// The hub is at port 6443 of 127.0.0.1 unless it is given.
    #[arg(long, env = "SHOAL_LISTEN", value_name = "[NAME=]URL", value_delimiter = ',')]
    pub listen: Vec<ListenArg>,

    /// Where the listener's certificate authority is kept; the controller trusts its ca.crt.
    #[arg(long, env = "SHOAL_TLS_DIR", value_name = "DIR")]
    pub tls_dir: PathBuf,

    /// Where /livez, /readyz and /configz are served, and /drain if it is a loopback address.
    #[arg(long, env = "SHOAL_ADMIN", value_name = "ADDR", default_value = "127.0.0.1:15020")]
    pub admin: SocketAddr,

    /// Where /metrics is served, in the Prometheus text format.
    #[arg(long, env = "SHOAL_METRICS", value_name = "ADDR", default_value = "127.0.0.1:15021")]
    pub metrics: SocketAddr,

    /// An API server: the cluster's name in the ring, and a kubeconfig or `in-cluster`. The first is the hub; the
    /// others are reached under `/clusters/NAME`. The files are read again when they change.
    #[arg(long = "upstream", value_name = "NAME=KUBECONFIG|in-cluster", required = true)]
    pub upstreams: Vec<UpstreamArg>,

    /// Whose credential goes upstream: the client's own, or the one in the upstream's kubeconfig.
    #[arg(long, env = "SHOAL_FORWARD_IDENTITY", value_enum, default_value_t = ForwardIdentity::Client)]
    pub forward_identity: ForwardIdentity,

    /// The file with the token that clients must present with --forward-identity=own.
    #[arg(
        long,
        env = "SHOAL_LISTEN_TOKEN_FILE",
        value_name = "FILE",
        required_if_eq("forward_identity", "own")
    )]
    pub listen_token_file: Option<PathBuf>,

    /// Connections from the controller at once, for each listener. One that has asked nothing yields to a new one; if
    /// all are in use, a new one is answered 503.
    #[arg(long, env = "SHOAL_MAX_CONNECTIONS", value_name = "N", default_value_t = 1000,
          value_parser = clap::value_parser!(u16).range(1..))]
    pub max_connections: u16,

    /// What is logged, for example `info,shoal_proxy=debug`.
    #[arg(long, env = "SHOAL_LOG", value_name = "FILTER", default_value = "info")]
    pub log: String,
}

/// `NAMESPACE/NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingArg {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// `https://IP:PORT`, or `http://` on a loopback address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listen {
    /// Whether connections are protected by TLS.
    pub tls: bool,
    /// Where.
    pub address: SocketAddr,
}

/// `URL` or `NAME=URL`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenArg {
    /// The cluster's name; none for the hub.
    pub cluster: Option<String>,
    /// Where it is reached.
    pub listen: Listen,
}

/// `NAME=KUBECONFIG` or `NAME=in-cluster`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamArg {
    /// The cluster's name.
    pub name: String,
    /// Where its endpoint is written down.
    pub source: Source,
}

// === impl Args ===

impl Args {
    /// The listeners by cluster, the hub's first; one that is given twice counts as given last.
    pub fn listeners(&self) -> Vec<(&str, Listen)> {
        let hub = self.upstreams.first().map_or("", |hub| hub.name.as_str());
        let mut listeners = vec![(hub, HUB_LISTEN)];
        for ListenArg { cluster, listen } in &self.listen {
            let cluster = cluster.as_deref().unwrap_or(hub);
            match listeners.iter_mut().find(|(name, _)| *name == cluster) {
                Some((_, given)) => *given = *listen,
                None => listeners.push((cluster, *listen)),
            }
        }
        listeners
    }
}

// === impl RingArg ===

impl FromStr for RingArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('/') {
            Some((namespace, name)) if is_label(namespace) && is_label(name) => {
                Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() })
            }
            _ => Err("expected NAMESPACE/NAME, for example kube-system/kcm".to_owned()),
        }
    }
}

// === impl ListenArg ===

impl FromStr for ListenArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            None => Ok(Self { cluster: None, listen: text.parse()? }),
            Some((name, url)) if is_label(name) => {
                Ok(Self { cluster: Some(name.to_owned()), listen: url.parse()? })
            }
            Some(_) => Err("expected URL or NAME=URL with a DNS label as NAME".to_owned()),
        }
    }
}

// === impl Listen ===

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected https://IP:PORT or http://LOOPBACK:PORT";
        let (scheme, address) = text.split_once("://").ok_or(expected)?;
        let address: SocketAddr =
            address.trim_end_matches('/').parse().map_err(|error| format!("{expected}: {error}"))?;
        match scheme {
            "https" => Ok(Self { tls: true, address }),
            "http" if address.ip().is_loopback() => Ok(Self { tls: false, address }),
            "http" => Err(format!("{expected}: without TLS only this machine itself may connect")),
            _ => Err(expected.to_owned()),
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.tls { "https" } else { "http" }, self.address)
    }
}

// === impl UpstreamArg ===

impl FromStr for UpstreamArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, "in-cluster")) if is_label(name) => {
                Ok(Self { name: name.to_owned(), source: in_cluster()? })
            }
            Some((name, path)) if is_label(name) && !path.is_empty() => {
                Ok(Self { name: name.to_owned(), source: Source::Kubeconfig(path.into()) })
            }
            _ => Err("expected NAME=KUBECONFIG or NAME=in-cluster with a DNS label as NAME".to_owned()),
        }
    }
}

/// The variables that every pod has (kubernetes `rest.InClusterConfig`).
fn in_cluster() -> Result<Source, String> {
    let read = |name: &str| std::env::var(name).map_err(|_| format!("in-cluster: {name} is not set"));
    let (host, port) = (read("KUBERNETES_SERVICE_HOST")?, read("KUBERNETES_SERVICE_PORT")?);
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let authority = format!("{host}:{port}").parse();
    authority.map(Source::InCluster).map_err(|_| format!("in-cluster: {host}:{port} is not an address"))
}

/// A cluster's name is part of a path and of the hashed key.
fn is_label(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty()
        && name.len() <= 63
        && name.bytes().all(inner)
        && !name.starts_with('-')
        && !name.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_without_tls_is_for_this_machine_only() {
        let parsed = |text: &str| text.parse::<Listen>();
        assert_eq!(parsed("https://0.0.0.0:0").unwrap().to_string(), "https://0.0.0.0:0");
        assert_eq!(parsed("https://[::1]:6443/").unwrap().address.port(), 6443);
        assert!(!parsed("http://127.0.0.1:1").unwrap().tls);
        assert!(parsed("http://10.0.0.1:1").unwrap_err().contains("without TLS"));
        for bad in ["127.0.0.1:1", "tcp://127.0.0.1:1", "https://localhost"] {
            assert!(parsed(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_upstream_is_a_name_and_a_file() {
        let parsed: UpstreamArg = "hub=/etc/a=b".parse().unwrap();
        assert_eq!((parsed.name.as_str(), parsed.source), ("hub", Source::Kubeconfig("/etc/a=b".into())));
        for bad in ["hub", "=x", "hub=", "Hub=x", "a/b=x", "-a=x"] {
            assert!(bad.parse::<UpstreamArg>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_flag_given_twice_counts_as_given_last_and_upstreams_add_up() {
        let given = [
            "p",
            "--config=c",
            "--shard=s",
            "--tls-dir=t",
            "--upstream=hub=k",
            "--upstream=east=e",
            "--shard=z",
        ];
        let args = Args::try_parse_from(given).unwrap();
        assert_eq!((args.shard.as_deref(), args.upstreams.len()), (Some("z"), 2));
    }

    #[test]
    fn each_cluster_may_have_a_listener_and_the_hub_has_one() {
        let listeners = |more: &[&'static str]| {
            let base =
                ["p", "--config=c", "--shard=s", "--tls-dir=t", "--upstream=hub=k", "--upstream=east=e"];
            let args = Args::try_parse_from(base.iter().chain(more)).unwrap();
            let text = |(name, listen): &(&str, Listen)| format!("{name} {listen}");
            args.listeners().iter().map(text).collect::<Vec<_>>()
        };
        assert_eq!(listeners(&[]), ["hub https://127.0.0.1:6443"]);
        assert_eq!(
            listeners(&["--listen=east=http://127.0.0.1:2", "--listen=https://127.0.0.1:1"]),
            ["hub https://127.0.0.1:1", "east http://127.0.0.1:2"]
        );
        let twice =
            ["--listen=https://127.0.0.1:1", "--listen=hub=https://127.0.0.1:2,east=https://127.0.0.1:3"];
        assert_eq!(listeners(&twice), ["hub https://127.0.0.1:2", "east https://127.0.0.1:3"]);
        for bad in ["East=https://127.0.0.1:1", "=https://127.0.0.1:1", "east=", "east=127.0.0.1:1"] {
            assert!(bad.parse::<ListenArg>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_ring_is_live_or_in_files() {
        let with = |more: &[&'static str]| {
            Args::try_parse_from(["p", "--tls-dir=t", "--upstream=hub=k"].iter().chain(more))
        };
        let live = with(&["--ring=kube-system/kcm", "--holder=kcm-1"]).unwrap();
        let ring = RingArg { namespace: "kube-system".into(), name: "kcm".into() };
        assert_eq!((live.ring, live.holder.as_str()), (Some(ring), "kcm-1"));
        assert!(with(&["--config=c", "--shard=s"]).is_ok());
        for bad in [&[][..], &["--config=c"], &["--shard=s"], &["--ring=a/b", "--config=c", "--shard=s"]] {
            assert!(with(bad).is_err(), "{bad:?}");
        }
        for bad in ["kcm", "/kcm", "a/", "a/b/c", "A/b"] {
            assert!(bad.parse::<RingArg>().is_err(), "{bad}");
        }
    }

    #[test]
    fn an_own_identity_needs_a_token() {
        let base = ["shoal-proxy", "--config=c", "--shard=s", "--tls-dir=t", "--upstream=hub=k"];
        let with = |more: &[&'static str]| Args::try_parse_from(base.iter().chain(more));
        assert!(with(&[]).is_ok());
        assert!(with(&["--forward-identity=own"]).is_err());
        assert!(with(&["--forward-identity=own", "--listen-token-file=f"]).is_ok());
        assert!(with(&["--max-connections=0"]).is_err());
    }
}
