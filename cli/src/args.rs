//! The command line; the only reader of flags and environment.

use std::{path::PathBuf, str::FromStr, time::Duration};

use clap::{Parser, Subcommand, ValueEnum};
use shoal_sharding::wishes;

/// Looks at rings and asks for moves.
#[derive(Debug, Parser)]
#[command(name = "shoal", version, max_term_width = 100)]
pub struct Args {
    /// What about.
    #[command(subcommand)]
    pub command: Command,
}

/// What a command is about.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// The shards of a ring and their slots.
    ///
    /// Exit codes: 0 done; 1 it could not be done; 2 the command line is wrong; 3 the answer is no (verify found something
    /// wrong, --wait waited in vain).
    Shard(Shard),
}

/// `shoal shard`.
#[derive(Debug, clap::Args)]
pub struct Shard {
    /// Where and how.
    #[command(flatten)]
    pub common: Common,
    /// What is to be done.
    #[command(subcommand)]
    pub action: Action,
}

/// Flags of each action, as kubectl has them.
#[derive(Debug, clap::Args)]
pub struct Common {
    /// The kubeconfig; else that of $KUBECONFIG or ~/.kube/config, else the pod's service account.
    #[arg(long, value_name = "PATH", global = true)]
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig.
    #[arg(long, value_name = "NAME", global = true)]
    pub context: Option<String>,
    /// The namespace of the object that is asked about.
    #[arg(short, long, value_name = "NS", global = true)]
    pub namespace: Option<String>,
    /// The ring; may be left out if there is only one.
    #[arg(long, value_name = "NS/NAME", global = true)]
    pub ring: Option<RingName>,
    /// The form of the answer.
    #[arg(short, long, value_enum, global = true)]
    pub output: Option<Output>,
}

/// `shoal shard ACTION`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Shows each shard, who is it, and how many slots it owns.
    List,
    /// Tells which shard owns an object, and why.
    Of {
        /// The object, for example deployment/web or deployments.apps/web.
        #[arg(value_name = "KIND/NAME")]
        object: ObjectName,
        /// The cluster's name in the ring.
        #[arg(long, value_name = "NAME", default_value = "hub")]
        cluster: String,
    },
    /// Asks for slots to go to a shard.
    Move {
        /// The slots.
        #[arg(value_name = "SLOT[-SLOT]", required = true)]
        slots: Vec<SlotRange>,
        /// The shard.
        #[arg(long, value_name = "SHARD")]
        to: String,
        /// Whether to wait.
        #[command(flatten)]
        wait: Wait,
    },
    /// Asks for a shard to own nothing, until undrain.
    Drain {
        /// The shard.
        shard: String,
        /// Whether to wait.
        #[command(flatten)]
        wait: Wait,
    },
    /// Takes a drain back.
    Undrain {
        /// The shard.
        shard: String,
    },
    /// Checks the map, the Leases and the locks against each other.
    Verify {
        /// Also checks the writes in an audit log of the API server against the map.
        #[arg(long, value_name = "FILE")]
        audit: Option<PathBuf>,
        /// Tells how to find out whether a controller survives handover.mode Evict.
        #[arg(long)]
        evict: bool,
    },
    /// Shows which slots would move to balance the ring.
    Rebalance {
        /// Only show; the coordinator balances by itself.
        #[arg(long, required = true)]
        plan: bool,
    },
}

/// Flags of what takes time.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Wait {
    /// Wait until it is done.
    #[arg(long)]
    pub wait: bool,
    /// How long to wait, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = seconds)]
    pub timeout: Duration,
}

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// JSON.
    Json,
    /// A table with more columns.
    Wide,
}

/// `NS/NAME` of a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// `KIND/NAME` of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectName {
    /// A kind, plural or singular, lower case or not, with its group after a dot or not.
    pub kind: String,
    /// The object's name.
    pub name: String,
}

/// `SLOT` or `SLOT-SLOT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotRange {
    /// The first.
    pub first: u8,
    /// The last, inclusive.
    pub last: u8,
}

// === impl RingName ===

impl FromStr for RingName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (namespace, name) = pair(text).ok_or("expected NAMESPACE/NAME")?;
        Ok(Self { namespace, name })
    }
}

// === impl ObjectName ===

impl FromStr for ObjectName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (kind, name) = pair(text).ok_or("expected KIND/NAME, for example deployment/web")?;
        Ok(Self { kind, name })
    }
}

// === impl SlotRange ===

impl FromStr for SlotRange {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (first, last) = wishes::slots(text).ok_or("expected SLOT or SLOT-SLOT, each 0 to 255")?;
        Ok(Self { first, last })
    }
}

fn pair(text: &str) -> Option<(String, String)> {
    let (one, other) = text.split_once('/')?;
    let whole = !one.is_empty() && !other.is_empty() && !other.contains('/');
    whole.then(|| (one.to_owned(), other.to_owned()))
}

fn seconds(text: &str) -> Result<Duration, std::num::ParseIntError> {
    text.parse().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(line: &str) -> Result<Args, clap::Error> {
        Args::try_parse_from(line.split_whitespace())
    }

    #[test]
    fn flags_may_stand_before_and_after_the_action() {
        Args::command().debug_assert();
        for line in ["shoal shard --ring a/b list -o json", "shoal shard list --ring a/b -o json"] {
            let Command::Shard(shard) = parse(line).unwrap().command;
            assert_eq!(shard.common.ring, Some("a/b".parse().unwrap()), "{line}");
            assert_eq!(shard.common.output, Some(Output::Json), "{line}");
        }
    }

    #[test]
    fn what_is_no_slot_ring_or_object_is_refused() {
        for line in [
            "shoal shard move 256 --to a-0",
            "shoal shard move 5-4 --to a-0",
            "shoal shard move 5",
            "shoal shard move --to a-0",
            "shoal shard of deployment",
            "shoal shard of deployment/a/b",
            "shoal shard list --ring kcm",
            "shoal shard rebalance",
        ] {
            assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
        }
        assert!(parse("shoal shard move 0-15 40 --to a-0 --wait").is_ok());
    }
}
