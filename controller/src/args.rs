//! The command line; the only reader of flags and environment.

use std::{net::SocketAddr, path::PathBuf, str::FromStr};

use clap::{ArgAction, Parser, Subcommand};

/// Decides which shard of a ring owns what.
#[derive(Debug, Parser)]
// A flag given twice counts as given last, as with kubectl.
#[command(name = "shoal-controller", version, max_term_width = 100, args_override_self = true)]
pub struct Args {
    /// What this process does.
    #[command(subcommand)]
    pub role: Role,
}

/// What the process does.
#[derive(Debug, Subcommand)]
pub enum Role {
    /// Coordinates the shards of each `ShardedController`.
    Mesh(Mesh),
}

/// The flags of the role `mesh`.
#[derive(Clone, Debug, clap::Args)]
pub struct Mesh {
    /// The hub: a kubeconfig, or in-cluster.
    #[arg(long, env = "SHOAL_KUBECONFIG", value_name = "PATH|in-cluster", default_value = "in-cluster")]
    pub kubeconfig: Source,

    /// Only rings in this namespace; without it, all.
    #[arg(long, env = "SHOAL_NAMESPACE", value_name = "NS")]
    pub namespace: Option<String>,

    /// Work only while holding the Lease shoal-controller-mesh, in the namespace of the kubeconfig or the pod. Several
    /// that work at once do no harm, and no good.
    #[arg(long, env = "SHOAL_LEADER_ELECT", default_value_t = true, action = ArgAction::Set, value_name = "BOOL")]
    pub leader_elect: bool,

    /// Where /metrics, /livez and /readyz are served.
    #[arg(long, env = "SHOAL_METRICS", value_name = "ADDR", default_value = "127.0.0.1:15031")]
    pub metrics: SocketAddr,

    /// What is logged, for example `info,shoal_controller=debug`.
    #[arg(long, env = "SHOAL_LOG", value_name = "FILTER", default_value = "info")]
    pub log: String,
}

/// Where the hub's address and the credential for it are written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// In the pod's service account.
    InCluster,
    /// In a kubeconfig.
    Kubeconfig(PathBuf),
}

// === impl Source ===

impl FromStr for Source {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(if text == "in-cluster" { Self::InCluster } else { Self::Kubeconfig(text.into()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mesh(flags: &[&str]) -> Mesh {
        let Role::Mesh(mesh) =
            Args::try_parse_from(["shoal-controller", "mesh"].iter().chain(flags)).unwrap().role;
        mesh
    }

    #[test]
    fn leader_election_is_on_unless_switched_off() {
        assert!(mesh(&[]).leader_elect && mesh(&["--leader-elect=true"]).leader_elect);
        assert!(!mesh(&["--leader-elect=false"]).leader_elect);
    }

    #[test]
    fn the_hub_is_the_pods_own_unless_a_kubeconfig_is_given() {
        assert_eq!(mesh(&[]).kubeconfig, Source::InCluster);
        assert_eq!(mesh(&["--kubeconfig=/k"]).kubeconfig, Source::Kubeconfig("/k".into()));
    }
}
