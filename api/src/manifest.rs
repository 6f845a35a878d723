//! A ring as files: one `ShardedController` and its `ShardMap` as YAML documents.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{GROUP, ShardMap, ShardedController};

/// One ring as it is written down.
#[derive(Clone, Debug, PartialEq)]
pub struct Ring {
    /// What to shard.
    pub controller: ShardedController,
    /// Who owns what.
    pub map: ShardMap,
}

/// Why a ring cannot be read. The file is at fault.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// Not YAML.
    #[error("not YAML: {0}")]
    Yaml(String),
    /// A document that is not the object it claims to be.
    #[error("{kind} is not valid: {reason}")]
    Invalid {
        /// The document's kind.
        kind: String,
        /// What the decoder expected.
        reason: String,
    },
    /// A field that no version of the kind has, most likely a slip of the pen.
    #[error("{kind} has no field `{path}`; remove it or correct its name")]
    UnknownField {
        /// The document's kind.
        kind: String,
        /// The field, from the root of the document.
        path: String,
    },
    /// A document of another kind.
    #[error("expected only {GROUP}/v1alpha1 ShardedController and ShardMap, found {0}")]
    Unexpected(String),
    /// Not exactly one of a kind.
    #[error("expected exactly one {kind}, found {found}")]
    Count {
        /// The kind.
        kind: &'static str,
        /// How many there are.
        found: usize,
    },
    /// An object that the API server would not take, or would put where nobody expects it.
    #[error(
        "ShardedController needs metadata.name and metadata.namespace: the namespace is the controller's own"
    )]
    Nameless,
    /// The map belongs to another ring.
    #[error("the ShardMap must have the name and namespace of its ring: expected {expected}, found {found}")]
    OtherRing {
        /// `namespace/name` of the ring.
        expected: String,
        /// `namespace/name` of the map.
        found: String,
    },
}

// === impl Ring ===

impl Ring {
    /// Reads a ring from the YAML documents of one or several files, in any order.
    pub fn parse<'a>(files: impl IntoIterator<Item = &'a str>) -> Result<Self, ManifestError> {
        let (mut controllers, mut maps) = (Vec::new(), Vec::new());
        for document in documents(files)? {
            match kind_of(&document).as_str() {
                "mesh.shoal.dev/v1alpha1 ShardedController" => {
                    controllers.push(decode(document, "ShardedController")?);
                }
                "mesh.shoal.dev/v1alpha1 ShardMap" => maps.push(decode(document, "ShardMap")?),
                other => return Err(ManifestError::Unexpected(other.to_owned())),
            }
        }
        Self::join(only(controllers, "ShardedController")?, only(maps, "ShardMap")?)
    }

    fn join(controller: ShardedController, map: ShardMap) -> Result<Self, ManifestError> {
        let metadata = &controller.metadata;
        if metadata.name.is_none() || metadata.namespace.is_none() {
            return Err(ManifestError::Nameless);
        }
        let (expected, found) = (full_name(metadata), full_name(&map.metadata));
        if expected != found {
            return Err(ManifestError::OtherRing { expected, found });
        }
        Ok(Self { controller, map })
    }
}

fn documents<'a>(files: impl IntoIterator<Item = &'a str>) -> Result<Vec<Value>, ManifestError> {
    let mut all = Vec::new();
    for file in files {
        let parsed = serde_saphyr::from_multiple(file).map_err(|e| ManifestError::Yaml(e.to_string()))?;
        all.extend(parsed.into_iter().filter(|document: &Value| !document.is_null()));
    }
    Ok(all)
}

fn kind_of(document: &Value) -> String {
    let text = |key| document.get(key).and_then(Value::as_str).unwrap_or("?");
    format!("{} {}", text("apiVersion"), text("kind"))
}

/// Decodes strictly, as `kubectl --validate=strict` does: an unknown field is an error.
fn decode<T: DeserializeOwned>(document: Value, kind: &str) -> Result<T, ManifestError> {
    let mut unknown = None;
    let mut note = |path: serde_ignored::Path<'_>| match path.to_string().as_str() {
        "apiVersion" | "kind" => (),
        path => unknown = Some(path.to_owned()),
    };
    let decoded = serde_ignored::deserialize(document, &mut note)
        .map_err(|e| ManifestError::Invalid { kind: kind.to_owned(), reason: e.to_string() })?;
    match unknown {
        Some(path) => Err(ManifestError::UnknownField { kind: kind.to_owned(), path }),
        None => Ok(decoded),
    }
}

fn only<T>(mut found: Vec<T>, kind: &'static str) -> Result<T, ManifestError> {
    match (found.pop(), found.len()) {
        (Some(one), 0) => Ok(one),
        (one, more) => Err(ManifestError::Count { kind, found: more + usize::from(one.is_some()) }),
    }
}

fn full_name(metadata: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta) -> String {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    format!("{}/{}", text(&metadata.namespace), text(&metadata.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTROLLER: &str = "
apiVersion: mesh.shoal.dev/v1alpha1
kind: ShardedController
metadata: {name: kcm, namespace: kube-system}
spec:
  shards: 1
  resources: [{groups: ['*'], resources: ['*'], scope: Namespaced, mode: Sharded}]
";
    const MAP: &str = "
apiVersion: mesh.shoal.dev/v1alpha1
kind: ShardMap
metadata: {name: kcm, namespace: kube-system}
spec:
  version: 1
  keying: {algorithm: XXH3-64, slots: 256}
  slots: [{first: 0, last: 255, owner: kcm-0, epoch: 1, state: Owned}]
";

    fn error(files: &[&str]) -> String {
        Ring::parse(files.iter().copied()).unwrap_err().to_string()
    }

    #[test]
    fn reads_both_documents_from_one_file_or_two() {
        let apart = Ring::parse([MAP, CONTROLLER]).unwrap();
        let together = Ring::parse([format!("---\n{CONTROLLER}\n---\n{MAP}").as_str()]).unwrap();
        assert_eq!(apart, together);
        assert_eq!(apart.map.spec.slots[0].owner.as_deref(), Some("kcm-0"));
    }

    #[test]
    fn refuses_what_is_missing_double_or_foreign() {
        assert!(error(&[CONTROLLER]).contains("exactly one ShardMap, found 0"));
        assert!(error(&[CONTROLLER, MAP, MAP]).contains("exactly one ShardMap, found 2"));
        assert!(error(&[CONTROLLER, &MAP.replace("name: kcm", "name: other")]).contains("kube-system/other"));
        assert!(error(&["apiVersion: v1\nkind: Pod"]).contains("found v1 Pod"));
        assert!(error(&["{"]).contains("not YAML"));
        assert!(
            error(&[&CONTROLLER.replace(", namespace: kube-system", ""), MAP]).contains("metadata.namespace")
        );
    }

    #[test]
    fn refuses_unknown_fields_and_values_by_name() {
        assert!(error(&[&CONTROLLER.replace("shards:", "shrads:"), MAP]).contains("shards"));
        assert!(
            error(&[&CONTROLLER.replace("mode:", "modus: x, mode:"), MAP]).contains("spec.resources.0.modus")
        );
        assert!(error(&[CONTROLLER, &MAP.replace("Owned", "Mine")]).contains("Mine"));
    }
}
