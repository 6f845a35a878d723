//! What can go wrong, and what to do about it.

use std::path::PathBuf;

use shoal_sharding::{MapError, kube::Fault, wishes::WishesError};

/// Why a command could not be done.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The kubeconfig is wrong.
    #[error("cannot use the kubeconfig: {0}")]
    Config(String),
    /// The runtime did not start.
    #[error("cannot start: {0}")]
    Start(#[from] std::io::Error),
    /// A file of the user's.
    #[error("cannot read {path}: {error}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A request to the hub failed.
    #[error("{0}")]
    Hub(#[from] Fault),
    /// There is no ring.
    #[error("there is no ShardedController that this user can see; name one by --ring NAMESPACE/NAME")]
    NoRing,
    /// There are several.
    #[error("there are several rings; choose one by --ring: {}", .0.join(", "))]
    ManyRings(Vec<String>),
    /// The ring has no map yet.
    #[error("ring {0} has no ShardMap yet: is its coordinator running?")]
    NoMap(String),
    /// The map is not sound.
    #[error("the ShardMap of {ring} is refused: {error}")]
    Map {
        /// The ring.
        ring: String,
        /// Why.
        error: MapError,
    },
    /// The ring has no such shard.
    #[error("ring {ring} has no shard {shard}; it has {ring_shards}")]
    NoShard {
        /// The ring.
        ring: String,
        /// What was asked for.
        shard: String,
        /// The shards that there are.
        ring_shards: String,
    },
    /// No kind of that name.
    #[error("the API server has no kind {0}; `kubectl api-resources` lists what there is")]
    NoKind(String),
    /// Several kinds of that name.
    #[error("{kind} is ambiguous; choose one of {}", .found.join(", "))]
    ManyKinds {
        /// What was asked for.
        kind: String,
        /// What there is.
        found: Vec<String>,
    },
    /// Somebody wrote something else into the annotation.
    #[error("annotation mesh.shoal.dev/wishes of the ShardedController: {0}; correct or remove it")]
    Wishes(#[from] WishesError),
    /// A line of an audit log.
    #[error("line {line} of the audit log is no event: {reason}")]
    Audit {
        /// Its number, from 1.
        line: usize,
        /// What the parser met.
        reason: String,
    },
    /// An answer could not be written as JSON.
    #[error("cannot write the answer: {0}")]
    Json(#[from] serde_json::Error),
}
