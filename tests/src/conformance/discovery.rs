//! What the API server serves, by its aggregated discovery: nothing here knows the name of a kind.

use serde::Deserialize;

use super::form::Form;
use super::pair::Ask;
use crate::HarnessError;
use crate::raw::Kept;

/// The form of aggregated discovery (apiserver `endpoints/discovery/aggregated`).
pub(super) const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

/// One resource of one version.
#[derive(Debug, Clone)]
pub(super) struct Resource {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) plural: String,
    pub(super) kind: String,
    pub(super) namespaced: bool,
    pub(super) verbs: Vec<String>,
    pub(super) subresources: Vec<Subresource>,
}

/// One subresource of it.
#[derive(Debug, Clone)]
pub(super) struct Subresource {
    pub(super) name: String,
    pub(super) verbs: Vec<String>,
}

#[derive(Deserialize)]
struct Groups {
    items: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    #[serde(default)]
    metadata: Metadata,
    versions: Vec<Version>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
}

#[derive(Deserialize)]
struct Version {
    version: String,
    #[serde(default)]
    resources: Vec<Listed>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    resource: String,
    scope: String,
    response_kind: Option<Kind>,
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    subresources: Vec<Sub>,
}

#[derive(Deserialize)]
struct Kind {
    kind: String,
}

#[derive(Deserialize)]
struct Sub {
    subresource: String,
    #[serde(default)]
    verbs: Vec<String>,
}

/// Everything that is served.
pub(super) async fn resources(direct: &Kept) -> Result<Vec<Resource>, HarnessError> {
    let mut all = Vec::new();
    for path in ["/api", "/apis"] {
        let ask = Ask::new("GET", path, Form::None).with("accept", AGGREGATED);
        let answer = direct.send(ask.request()?).await?;
        let groups: Groups = serde_json::from_slice(&answer.body)
            .map_err(|error| HarnessError::Answer { url: path.to_owned(), reason: error.to_string() })?;
        all.extend(groups.items.into_iter().flat_map(Group::resources));
    }
    Ok(all)
}

// === impl Group ===

impl Group {
    fn resources(self) -> Vec<Resource> {
        let group = self.metadata.name;
        let of_version = |version: Version| {
            let (group, name) = (group.clone(), version.version);
            version.resources.into_iter().map(move |listed| listed.resource(&group, &name))
        };
        self.versions.into_iter().flat_map(of_version).collect()
    }
}

// === impl Listed ===

impl Listed {
    fn resource(self, group: &str, version: &str) -> Resource {
        let sub = |sub: Sub| Subresource { name: sub.subresource, verbs: sub.verbs };
        Resource {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: self.resource,
            kind: self.response_kind.map(|kind| kind.kind).unwrap_or_default(),
            namespaced: self.scope == "Namespaced",
            verbs: self.verbs,
            subresources: self.subresources.into_iter().map(sub).collect(),
        }
    }
}

// === impl Resource ===

impl Resource {
    pub(super) fn has(&self, verb: &str) -> bool {
        self.verbs.iter().any(|one| one == verb)
    }

    pub(super) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The path of its version.
    pub(super) fn root(&self) -> String {
        let root = if self.group.is_empty() { "/api" } else { "/apis" };
        format!("{root}/{}", self.api_version())
    }

    /// The path of a collection; across namespaces if there is none.
    pub(super) fn collection(&self, namespace: &str) -> String {
        let (root, plural) = (self.root(), &self.plural);
        if namespace.is_empty() || !self.namespaced {
            format!("{root}/{plural}")
        } else {
            format!("{root}/namespaces/{namespace}/{plural}")
        }
    }
}

// === impl Subresource ===

impl Subresource {
    pub(super) fn has(&self, verb: &str) -> bool {
        self.verbs.iter().any(|one| one == verb)
    }
}
