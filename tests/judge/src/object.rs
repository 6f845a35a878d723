//! The object that a write is about, and its key.

use serde_json::Value;

use crate::event::Event;

/// What a write is about. Subresources follow their object, so they are not told apart here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// API group, empty for the core group.
    pub group: String,
    /// Plural resource name.
    pub resource: String,
    /// `metadata.namespace`; absent for a cluster-scoped object, a Namespace among them.
    pub namespace: Option<String>,
    /// `metadata.name`; absent for a collection and for a create that lets the server choose.
    pub name: Option<String>,
}

// === impl Object ===

impl Object {
    /// The object of an event; nothing if the event is not about a resource.
    pub fn of(event: &Event) -> Option<Self> {
        let reference = event.object_ref.as_ref().filter(|it| !it.resource.is_empty())?;
        let (group, resource) = (reference.api_group.clone(), reference.resource.clone());
        // In a Namespace's own path the server takes its name for a namespace too.
        let is_namespace = group.is_empty() && resource == "namespaces";
        let namespace = non_empty(&reference.namespace).filter(|_| !is_namespace);
        let name = non_empty(&reference.name).or_else(|| name_in(event.request_object.as_ref()?));
        Some(Self { group, resource, namespace, name })
    }

    /// What is hashed in key mode `namespace`: the namespace, else the object's own name; nothing if not known.
    pub fn key(&self) -> Option<&str> {
        self.namespace.as_deref().or(self.name.as_deref())
    }

    /// `pods`, or `deployments.apps`: how kubectl writes it.
    pub fn kind(&self) -> String {
        if self.group.is_empty() {
            self.resource.clone()
        } else {
            format!("{}.{}", self.resource, self.group)
        }
    }
}

impl std::fmt::Display for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ", self.kind())?;
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(self.name.as_deref().unwrap_or("(no name)"))
    }
}

fn non_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn name_in(body: &Value) -> Option<String> {
    body.pointer("/metadata/name").and_then(Value::as_str).and_then(non_empty)
}
