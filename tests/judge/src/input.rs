//! What can be wrong with what the judge is given, and the reading of YAML documents.

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

/// An input that cannot be used: no verdict is given.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// A file that cannot be opened or read.
    #[error("cannot read {path}: {source}")]
    File {
        /// The path as given.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// Not YAML, or not documents with a kind.
    #[error("not readable as YAML documents of Kubernetes objects: {0}")]
    Yaml(String),
    /// A document of a known kind whose fields do not fit.
    #[error("{kind} {name}: {why}")]
    Document {
        /// Kind of the document.
        kind: &'static str,
        /// Its `metadata.name`.
        name: String,
        /// The first field that does not fit.
        why: String,
    },
    /// No or several rings where one is expected.
    #[error("the ring's file must hold exactly one ShardedController: give the file of the ring to judge")]
    NotOneRing,
    /// Not one map of the ring.
    #[error(
        "no ShardMap has the ring's name and namespace: give every version that was in force, with --map, or a log that \
         shows their writing"
    )]
    NoMap,
    /// A map that breaks its own rules, or contradicts another version.
    #[error("ShardMap version {version}: {why}")]
    Map {
        /// `spec.version`.
        version: i64,
        /// The rule that is broken.
        why: String,
    },
    /// A line of the list of asked deletions.
    #[error("line {line} of the asked deletions: {why}")]
    Asked {
        /// Number of the line, from 1.
        line: usize,
        /// What the parser met.
        why: String,
    },
}

/// One YAML document, its spec not looked at yet.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Document {
    #[serde(default)]
    api_version: String,
    kind: String,
    #[serde(default)]
    pub(crate) metadata: Metadata,
    #[serde(default)]
    spec: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Metadata {
    pub(crate) name: String,
    pub(crate) namespace: String,
}

/// The documents of a file that are of that kind of `mesh.shoal.dev`.
pub(crate) fn documents(yaml: &str, kind: &str) -> Result<Vec<Document>, InputError> {
    let all: Vec<Document> =
        serde_saphyr::from_multiple(yaml).map_err(|error| InputError::Yaml(error.to_string()))?;
    let wanted = |it: &Document| it.kind == kind && it.api_version.starts_with("mesh.shoal.dev/");
    Ok(all.into_iter().filter(wanted).collect())
}

// === impl Document ===

impl Document {
    /// The spec as the kind's own type.
    pub(crate) fn spec<T: DeserializeOwned>(&self, kind: &'static str) -> Result<T, InputError> {
        T::deserialize(&self.spec).map_err(|error| InputError::Document {
            kind,
            name: self.metadata.name.clone(),
            why: error.to_string(),
        })
    }
}
