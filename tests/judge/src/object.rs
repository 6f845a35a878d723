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
    /// `metadata.uid`, where the server vouches for it: in its answer, or as something that the write demanded of the
    /// object and got. Absent for a new object, which had none when it was written.
    pub uid: Option<String>,
}

// === impl Object ===

impl Object {
    /// The object of an event; nothing if the event is not about a resource.
    pub fn of(event: &Event) -> Option<Self> {
        let reference = event.object_ref.as_ref().filter(|it| !it.resource.is_empty())?;
        let resource = if reference.is_binding() { "pods".to_owned() } else { reference.resource.clone() };
        let group = reference.api_group.clone();
        // In a Namespace's own path the server takes its name for a namespace too.
        let is_namespace = group.is_empty() && resource == "namespaces";
        let namespace = non_empty(&reference.namespace).filter(|_| !is_namespace);
        let name = non_empty(&reference.name).or_else(|| name_in(event.request_object.as_ref()?));
        Some(Self { group, resource, namespace, name, uid: uid_of(event) })
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

fn uid_of(event: &Event) -> Option<String> {
    if event.is_creation() {
        return None;
    }
    let text = |body: &Option<Value>, pointer| {
        body.as_ref().and_then(|body| body.pointer(pointer)).and_then(Value::as_str).and_then(non_empty)
    };
    let answered = ["/metadata/uid", "/details/uid"];
    let answered = answered.into_iter().find_map(|pointer| text(&event.response_object, pointer));
    answered
        .or_else(|| non_empty(&event.object_ref.as_ref()?.uid))
        .or_else(|| text(&event.request_object, "/preconditions/uid").filter(|_| event.verb == "delete"))
}

fn name_in(body: &Value) -> Option<String> {
    body.pointer("/metadata/name").and_then(Value::as_str).and_then(non_empty)
}
