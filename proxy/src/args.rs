//! The command line; the only reader of flags and environment.

use std::{net::SocketAddr, path::PathBuf, str::FromStr};

use clap::Parser;

/// Stands between a controller and its API servers, and lets it work on its own shard only.
#[derive(Debug, Parser)]
#[command(name = "shoal-proxy", version, max_term_width = 100)]
pub struct Args {
    /// A file, or a folder of *.yaml files, with one ShardedController and its ShardMap.
    #[arg(long, env = "SHOAL_CONFIG", value_name = "PATH")]
    pub config: PathBuf,

    /// The shard that this proxy is, for example kcm-0.
    #[arg(long, env = "SHOAL_SHARD", value_name = "ID")]
    pub shard: String,

    /// Where the controller connects, https://IP:PORT. Port 0 takes a free one; the log and /configz tell which.
    #[arg(long, env = "SHOAL_LISTEN", value_name = "https://ADDR", default_value = "https://127.0.0.1:6443")]
    pub listen: Https,

    /// Where the listener's certificate authority is kept; the controller trusts its ca.crt.
    #[arg(long, env = "SHOAL_TLS_DIR", value_name = "DIR")]
    pub tls_dir: PathBuf,

    /// Where /livez, /readyz and /configz are served. Keep it on loopback.
    #[arg(long, env = "SHOAL_ADMIN", value_name = "ADDR", default_value = "127.0.0.1:15020")]
    pub admin: SocketAddr,

    /// Where /metrics is served, in the Prometheus text format.
    #[arg(long, env = "SHOAL_METRICS", value_name = "ADDR", default_value = "127.0.0.1:15021")]
    pub metrics: SocketAddr,

    /// An API server: the cluster's name in the ring and a kubeconfig, of which only the cluster is used. The first
    /// is the hub; the others are reached under `/clusters/NAME`.
    #[arg(long = "upstream", value_name = "NAME=KUBECONFIG", required = true)]
    pub upstreams: Vec<UpstreamArg>,

    /// What is logged, for example `info,shoal_proxy=debug`.
    #[arg(long, env = "SHOAL_LOG", value_name = "FILTER", default_value = "info")]
    pub log: String,
}

/// `https://IP:PORT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Https(pub SocketAddr);

/// `NAME=KUBECONFIG`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamArg {
    /// The cluster's name.
    pub name: String,
    /// Its kubeconfig.
    pub kubeconfig: PathBuf,
}

// === impl Https ===

impl FromStr for Https {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let address = text.strip_prefix("https://").ok_or("expected https://IP:PORT")?;
        address
            .trim_end_matches('/')
            .parse()
            .map(Self)
            .map_err(|error| format!("expected https://IP:PORT: {error}"))
    }
}

// === impl UpstreamArg ===

impl FromStr for UpstreamArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, path)) if is_label(name) && !path.is_empty() => {
                Ok(Self { name: name.to_owned(), kubeconfig: path.into() })
            }
            _ => Err("expected NAME=KUBECONFIG with a DNS label as NAME".to_owned()),
        }
    }
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
    fn the_listener_is_https_and_an_address() {
        assert_eq!("https://127.0.0.1:0".parse::<Https>().unwrap().0.port(), 0);
        assert_eq!("https://[::1]:6443/".parse::<Https>().unwrap().0.port(), 6443);
        for bad in ["127.0.0.1:1", "http://127.0.0.1:1", "https://localhost"] {
            assert!(bad.parse::<Https>().is_err(), "{bad}");
        }
    }

    #[test]
    fn an_upstream_is_a_name_and_a_file() {
        let parsed: UpstreamArg = "hub=/etc/a=b".parse().unwrap();
        assert_eq!((parsed.name.as_str(), parsed.kubeconfig.to_str()), ("hub", Some("/etc/a=b")));
        for bad in ["hub", "=x", "hub=", "Hub=x", "a/b=x", "-a=x"] {
            assert!(bad.parse::<UpstreamArg>().is_err(), "{bad}");
        }
    }
}
