//! Objects that the API server takes, one a kind.

use serde_json::{Value, json};

use super::discovery::Resource;
use crate::HarnessError;

/// One object a kind.
#[derive(Debug)]
pub(super) struct Seeds {
    objects: Vec<Value>,
    pub(super) crds: Vec<Value>,
}

// === impl Seeds ===

impl Seeds {
    pub(super) fn read() -> Result<Self, HarnessError> {
        let parse = |name: &str, text: &str| {
            serde_saphyr::from_str(text)
                .map_err(|error| HarnessError::Answer { url: name.to_owned(), reason: error.to_string() })
        };
        Ok(Self {
            objects: parse("seeds.yaml", include_str!("seeds.yaml"))?,
            crds: parse("crds.yaml", include_str!("crds.yaml"))?,
        })
    }

    /// The example of a kind.
    pub(super) fn of(&self, resource: &Resource) -> Option<&Value> {
        let (version, kind) = (resource.api_version(), resource.kind.as_str());
        self.objects.iter().find(|seed| seed["apiVersion"] == version.as_str() && seed["kind"] == kind)
    }

    /// The example of a kind, or what every kind has.
    pub(super) fn of_any(&self, resource: &Resource) -> Value {
        let bare = || json!({"apiVersion": resource.api_version(), "kind": resource.kind});
        self.of(resource).cloned().unwrap_or_else(bare)
    }

    /// The object of that name and namespace.
    pub(super) fn object(seed: &Value, namespace: &str, name: &str) -> Value {
        let text = seed.to_string().replace("@namespace", namespace);
        let mut object: Value = serde_json::from_str(&text).unwrap_or_default();
        let mut metadata = json!({"name": name, "labels": {"app": "x", "tenant": "one"}});
        if !namespace.is_empty() {
            metadata["namespace"] = namespace.into();
        }
        object["metadata"] = metadata;
        object
    }
}
