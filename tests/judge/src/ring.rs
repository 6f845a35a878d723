//! The ring under judgement: of its `ShardedController` the fields that decide who may write what
//! (DESIGN.md, "Exact formats", Rules, Lane and Election). Unknown fields are passed over.

use serde::Deserialize;

use crate::{input::InputError, object::Object};

/// The API group of the ring's own kinds.
const GROUP: &str = "mesh.shoal.dev";

/// A ring, as its `ShardedController` describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ring {
    /// Name of the `ShardedController`; its shards are `<name>-<ordinal>`.
    pub name: String,
    /// Namespace of the `ShardedController`.
    pub namespace: String,
    spec: Spec,
}

/// What makes a late write fail at the API server, and so where one must not be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum FenceMode {
    /// Holds per object.
    #[default]
    Preconditions,
    /// Holds per slot, creates included.
    Credential,
}

/// Who may write an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writers<'a> {
    /// The owner of the slot of this key.
    Owner(Key<'a>),
    /// Every shard: the kind is unsharded.
    AnyUnsharded,
    /// Every shard: the object is in the lane.
    AnyLane,
    /// The one shard whose lock or identity it is; counted with the lane.
    Shard(&'a str),
    /// No shard: the lock under its original name, which the coordinator holds.
    Nobody,
}

/// What leads to an object's slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key<'a> {
    /// Hashed together with the cluster's name; empty where all objects of a cluster go together.
    Text(&'a str),
    /// A uid, hashed by itself; absent when the log does not show it.
    Uid(Option<&'a str>),
    /// Not in the log, although it could be.
    Hidden,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    shards: u32,
    #[serde(default)]
    resources: Vec<Rule>,
    #[serde(default)]
    leader_election: LeaderElection,
    #[serde(default)]
    fence: Fence,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Rule {
    groups: Vec<String>,
    resources: Vec<String>,
    namespaces: Option<Vec<String>>,
    #[serde(default)]
    scope: Scope,
    mode: Mode,
    #[serde(default)]
    key: KeyMode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
enum Scope {
    Namespaced,
    Cluster,
    #[default]
    #[serde(rename = "*")]
    Any,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
enum Mode {
    Sharded,
    SharedRead,
    Unsharded,
}

/// The key modes that the judge can compute; a ring with another one is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
enum KeyMode {
    #[default]
    Namespace,
    Name,
    Uid,
    Cluster,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
struct LeaderElection {
    locks: Vec<Lock>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Lock {
    resource: LockResource,
    namespace: String,
    name: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum LockResource {
    Leases,
    Configmaps,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Fence {
    mode: FenceMode,
    service_account: Option<String>,
}

// === impl Ring ===

impl Ring {
    /// The one `ShardedController` of a YAML file; documents of other kinds may stand beside it.
    pub fn parse(yaml: &str) -> Result<Self, InputError> {
        let mut found = crate::input::documents(yaml, "ShardedController")?;
        let (Some(document), true) = (found.pop(), found.is_empty()) else {
            return Err(InputError::NotOneRing);
        };
        let spec = document.spec("ShardedController")?;
        Ok(Self { name: document.metadata.name, namespace: document.metadata.namespace, spec })
    }

    /// Whether the shard is one of `<ring>-0` to `<ring>-<shards - 1>`.
    pub fn has_shard(&self, shard: &str) -> bool {
        self.ordinal(shard).is_some_and(|ordinal| ordinal < self.spec.shards)
    }

    /// Where late writes are looked for.
    pub fn fence(&self) -> FenceMode {
        self.spec.fence.mode
    }

    /// The user as whom the proxies write in mode `Credential`.
    pub(crate) fn fenced_writer(&self) -> Option<String> {
        let account = self.spec.fence.service_account.as_ref()?;
        Some(format!("system:serviceaccount:{}:{account}", self.namespace))
    }

    /// Whether the object is the ring's own map.
    pub(crate) fn is_map(&self, object: &Object) -> bool {
        object.group == GROUP && object.resource == "shardmaps" && self.is_here(object, &self.name)
    }

    /// The shard whose identity Lease the object is.
    pub(crate) fn identity_of<'a>(&self, object: &'a Object) -> Option<&'a str> {
        let here = is_lease(object) && object.namespace.as_ref() == Some(&self.namespace);
        here.then(|| self.shard_after("shoal-", object.name.as_deref()?)).flatten()
    }

    /// Whether the proxies write the object in their own name: identities, standbys, the Secrets that their tokens hang on,
    /// and the locks of shards, which they free for the next controller.
    pub(crate) fn is_own(&self, object: &Object) -> bool {
        if matches!(self.lock_writers(object), Some(Writers::Shard(_))) {
            return true;
        }
        let secret = object.group.is_empty() && object.resource == "secrets";
        let name = object.name.as_deref().and_then(|name| name.strip_prefix("shoal-"));
        let Some(name) = name.filter(|_| object.namespace.as_ref() == Some(&self.namespace)) else {
            return false;
        };
        let shard = if secret {
            name.rsplit_once('-').filter(|(_, term)| term.parse::<u64>().is_ok()).map(|(shard, _)| shard)
        } else {
            Some(name.strip_suffix("-standby").unwrap_or(name)).filter(|_| is_lease(object))
        };
        shard.is_some_and(|shard| self.ordinal(shard).is_some())
    }

    fn is_here(&self, object: &Object, name: &str) -> bool {
        object.namespace.as_ref() == Some(&self.namespace) && object.name.as_deref() == Some(name)
    }

    /// Who may write the object. Locks and lane come before the rules, of which the first that matches decides;
    /// an object that none matches is read by all and written by the owner of its key.
    pub fn writers<'a>(&self, object: &'a Object) -> Writers<'a> {
        if let Some(writers) = self.lock_writers(object) {
            return writers;
        }
        if self.in_lane(object) {
            return Writers::AnyLane;
        }
        let rule = self.spec.resources.iter().find(|rule| rule.matches(object));
        match rule.map_or((Mode::SharedRead, KeyMode::default()), |rule| (rule.mode, rule.key)) {
            (Mode::Unsharded, _) => Writers::AnyUnsharded,
            (Mode::Sharded | Mode::SharedRead, key) => Writers::Owner(key.of(object)),
        }
    }

    fn lock_writers<'a>(&self, object: &'a Object) -> Option<Writers<'a>> {
        let name = object.name.as_deref()?;
        let locks = self.spec.leader_election.locks.iter().filter(|lock| lock.is_beside(object));
        for lock in locks {
            if name == lock.name {
                return Some(Writers::Nobody);
            }
            if let Some(shard) = self.shard_after(&format!("{}-", lock.name), name) {
                return Some(Writers::Shard(shard));
            }
        }
        self.identity_of(object).map(Writers::Shard)
    }

    fn shard_after<'a>(&self, prefix: &str, name: &'a str) -> Option<&'a str> {
        // The ring may have had more shards than it has now, so the form of the name decides.
        name.strip_prefix(prefix).filter(|shard| self.ordinal(shard).is_some())
    }

    /// The n of `<ring>-<n>`.
    fn ordinal(&self, shard: &str) -> Option<u32> {
        let text = shard.strip_prefix(self.name.as_str())?.strip_prefix('-')?;
        text.parse().ok().filter(|ordinal: &u32| ordinal.to_string() == text)
    }

    fn in_lane(&self, object: &Object) -> bool {
        match (object.group.as_str(), object.resource.as_str()) {
            ("" | "events.k8s.io", "events") => true,
            ("", "serviceaccounts") => object.namespace.as_ref() == Some(&self.namespace),
            // Questions; the API server stores none of them.
            ("authentication.k8s.io" | "authorization.k8s.io", resource) => resource.ends_with("reviews"),
            _ => false,
        }
    }
}

// === impl KeyMode ===

impl KeyMode {
    fn of(self, object: &Object) -> Key<'_> {
        let (namespace, name) = (object.namespace.as_deref(), object.name.as_deref());
        match self {
            Self::Namespace => namespace.or(name).map_or(Key::Hidden, Key::Text),
            Self::Name => name.map_or(Key::Hidden, Key::Text),
            Self::Uid => Key::Uid(object.uid.as_deref()),
            Self::Cluster => Key::Text(""),
        }
    }
}

// === impl Rule ===

impl Rule {
    fn matches(&self, object: &Object) -> bool {
        let in_scope = match self.scope {
            Scope::Namespaced => object.namespace.is_some(),
            Scope::Cluster => object.namespace.is_none(),
            Scope::Any => true,
        };
        let in_namespaces = self
            .namespaces
            .as_ref()
            .is_none_or(|all| object.namespace.as_ref().is_some_and(|namespace| all.contains(namespace)));
        in_scope
            && in_namespaces
            && lists(&self.groups, &object.group)
            && lists(&self.resources, &object.resource)
    }
}

fn lists(all: &[String], one: &str) -> bool {
    all.iter().any(|it| it == "*" || it == one)
}

// === impl Lock ===

impl Lock {
    /// Whether the object is of the lock's kind and in its namespace.
    fn is_beside(&self, object: &Object) -> bool {
        let same_kind = match self.resource {
            LockResource::Leases => is_lease(object),
            LockResource::Configmaps => object.group.is_empty() && object.resource == "configmaps",
        };
        same_kind && object.namespace.as_ref() == Some(&self.namespace)
    }
}

fn is_lease(object: &Object) -> bool {
    object.group == "coordination.k8s.io" && object.resource == "leases"
}

#[cfg(test)]
mod tests;
