//! The deletions that the load asked for. What ring writers delete beyond it, nobody wanted.

use std::collections::HashMap;

use serde::Deserialize;

use crate::{input::InputError, object::Object};

/// Any resource, or any namespace.
const ANY: &str = "*";

/// What may be deleted, by resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked(HashMap<String, Vec<Entry>>);

/// One line: objects of a resource in a namespace whose names begin so. A field that is misspelt must not widen
/// it, so unknown ones are refused.
///
/// A namespace that is deleted takes everything in it along, so there `*` stands for any resource. Such an entry
/// names its namespace: it reaches no other one, and nothing that is cluster-scoped.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Entry {
    /// `*` for any.
    resource: String,
    /// `*` for any; absent for cluster-scoped objects.
    #[serde(default)]
    namespace: String,
    /// Absent for all of them; only such an entry covers a deletecollection.
    #[serde(default)]
    name_prefix: String,
}

// === impl Asked ===

impl Asked {
    /// Reads JSON lines such as `{"resource":"pods","namespace":"x","namePrefix":"web-"}`; blank ones are passed over.
    pub fn parse(text: &str) -> Result<Self, InputError> {
        let mut all = Self::default();
        for (line, entry) in (1..).zip(text.lines()).filter(|(_, text)| !text.trim().is_empty()) {
            let entry: Entry = serde_json::from_str(entry)
                .map_err(|error| InputError::Asked { line, why: error.to_string() })?;
            if entry.resource == ANY && matches!(entry.namespace.as_str(), "" | ANY) {
                let why = "an entry for any resource must name its namespace".to_owned();
                return Err(InputError::Asked { line, why });
            }
            all.0.entry(entry.resource.clone()).or_default().push(entry);
        }
        Ok(all)
    }

    /// Whether the deletion of that object, or of all in its collection if it has no name, was asked for.
    pub fn covers(&self, object: &Object) -> bool {
        let entries = [object.resource.as_str(), ANY].into_iter().filter_map(|resource| self.0.get(resource));
        entries.flatten().any(|entry| entry.covers(object))
    }
}

// === impl Entry ===

impl Entry {
    fn covers(&self, object: &Object) -> bool {
        let namespace = object.namespace.as_deref().unwrap_or_default();
        let name = object.name.as_deref().unwrap_or_default();
        (self.namespace == ANY || self.namespace == namespace) && name.starts_with(&self.name_prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(namespace: &str, name: Option<&str>) -> Object {
        Object {
            group: String::new(),
            resource: "pods".to_owned(),
            namespace: Some(namespace.to_owned()),
            name: name.map(str::to_owned),
            uid: None,
        }
    }

    #[test]
    fn covers_by_resource_namespace_and_prefix() {
        let asked =
            Asked::parse("{\"resource\":\"pods\",\"namespace\":\"x\",\"namePrefix\":\"web-\"}\n\n").unwrap();
        assert!(asked.covers(&pod("x", Some("web-1"))));
        assert!(!asked.covers(&pod("x", Some("db-1"))));
        assert!(!asked.covers(&pod("y", Some("web-1"))));
        assert!(!asked.covers(&pod("x", None)), "a collection is more than the prefix");
        let service = Object { resource: "services".to_owned(), ..pod("x", Some("web-1")) };
        assert!(!asked.covers(&service));
    }

    #[test]
    fn a_star_covers_namespaced_and_collections() {
        let asked = Asked::parse(r#"{"resource":"pods","namespace":"*"}"#).unwrap();
        assert!(asked.covers(&pod("x", Some("web-1"))));
        assert!(asked.covers(&pod("y", None)));
    }

    #[test]
    fn cluster_scoped_entries_have_no_namespace() {
        let asked = Asked::parse(r#"{"resource":"namespaces","namePrefix":"load-"}"#).unwrap();
        let namespace =
            Object { resource: "namespaces".to_owned(), namespace: None, ..pod("", Some("load-1")) };
        assert!(asked.covers(&namespace));
    }

    #[test]
    fn any_resource_of_one_namespace_only() {
        let asked = Asked::parse(r#"{"resource":"*","namespace":"x"}"#).unwrap();
        assert!(asked.covers(&pod("x", Some("web-1"))) && asked.covers(&pod("x", None)));
        assert!(!asked.covers(&pod("y", Some("web-1"))));
        let node = Object { resource: "nodes".to_owned(), namespace: None, ..pod("", Some("node-1")) };
        assert!(!asked.covers(&node));
        for wider in [r#"{"resource":"*"}"#, r#"{"resource":"*","namespace":"*"}"#] {
            assert!(matches!(Asked::parse(wider), Err(InputError::Asked { line: 1, .. })), "{wider}");
        }
    }

    #[test]
    fn a_misspelt_field_is_refused_by_line() {
        let text = "{\"resource\":\"pods\"}\n{\"resource\":\"pods\",\"nameprefix\":\"web-\"}";
        assert!(matches!(Asked::parse(text), Err(InputError::Asked { line: 2, .. })));
    }
}
