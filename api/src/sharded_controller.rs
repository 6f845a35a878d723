//! `ShardedController`: one controller whose replicas share its work as a ring of shards.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    handover::{Adoption, Fence, Handover},
    status::ShardedControllerStatus,
};

/// A controller that was written to run once and runs as a ring of shards.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq, JsonSchema)]
#[kube(
    group = "mesh.shoal.dev",
    version = "v1alpha1",
    kind = "ShardedController",
    plural = "shardedcontrollers",
    shortname = "shc",
    category = "shoal",
    doc = "One controller whose replicas share its work as a ring of shards.",
    namespaced,
    status = "ShardedControllerStatus",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Shards","type":"integer","jsonPath":".spec.shards"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Map","type":"integer","jsonPath":".status.mapVersion"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct ShardedControllerSpec {
    /// How many shards the ring has. They are named `<ring>-0` and so on.
    #[schemars(range(min = 1, max = 256))]
    pub shards: u16,

    /// Which kinds are shared out, and how. The first rule that matches an object decides;
    /// an object that none matches is `SharedRead`.
    #[schemars(length(max = 64))]
    pub resources: Vec<ResourceRule>,

    /// The leader election of the controller, so that every shard leads its own lock.
    #[serde(default, skip_serializing_if = "LeaderElection::is_empty")]
    pub leader_election: LeaderElection,

    /// How slots move between shards.
    #[serde(default, skip_serializing_if = "Handover::is_default")]
    pub handover: Handover,

    /// What makes a late write of a past owner fail.
    #[serde(default, skip_serializing_if = "Fence::is_default")]
    pub fence: Fence,

    /// How a controller that runs already comes under the ring.
    #[serde(default, skip_serializing_if = "Adoption::is_default")]
    pub adoption: Adoption,
}

/// One rule about the kinds of a ring.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceRule {
    /// API groups that the rule is about; `""` is the core group, `*` any.
    #[schemars(length(min = 1, max = 64))]
    pub groups: Vec<String>,

    /// Resources (plural, lower case, without subresource) that the rule is about; `*` is any.
    #[schemars(length(min = 1, max = 64))]
    pub resources: Vec<String>,

    /// Namespaces that the rule is about; empty is any. Objects without a namespace never match
    /// a rule that names one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub namespaces: Vec<String>,

    /// Whether the rule is about objects with a namespace, without one, or both.
    #[serde(default)]
    pub scope: RuleScope,

    /// What happens to the objects that match.
    pub mode: RuleMode,

    /// What is hashed to find the slot of an object that matches.
    #[serde(default)]
    pub key: KeyMode,
}

/// Which objects a rule is about. The scope is a fact of the object: it has a namespace or not.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum RuleScope {
    /// Objects that have `metadata.namespace`.
    Namespaced,
    /// Objects that have none.
    Cluster,
    /// Both.
    #[default]
    #[serde(rename = "*")]
    Any,
}

/// What a ring does with a kind.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
pub enum RuleMode {
    /// Only the owner of an object's slot sees it and writes it.
    Sharded,
    /// Every shard sees it; only the owner of its slot writes it.
    SharedRead,
    /// Every shard sees it and writes it.
    Unsharded,
}

/// What is hashed to find an object's slot.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum KeyMode {
    /// The object's namespace; for an object without one, and for a Namespace, its own name.
    #[default]
    Namespace,
    /// The object's own name, whatever namespace it is in. Objects of one namespace are spread, those of one name in
    /// several namespaces go together. For a create with `generateName` the proxy picks a name of the shard's own slots.
    Name,
    /// The object's uid, by the hash that the API server's `shardSelector` uses, so that it can leave out foreign objects
    /// by itself. Any shard may create an object; its owner is known afterwards. A write first asks the API server for
    /// the uid, so the controller must be allowed to get what it writes. `scope: '*'` lets lists across namespaces be
    /// left to the server too.
    Uid,
    /// Nothing of the object: all objects of a cluster that the rule is about go to one shard.
    Cluster,
}

/// How the controller elects its leader.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeaderElection {
    /// The locks that the controller takes. Each shard gets a lock of its own behind that name.
    #[serde(default)]
    #[schemars(length(max = 16))]
    pub locks: Vec<Lock>,
}

/// One leader election lock.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Lock {
    /// The kind of object that is the lock.
    pub resource: LockResource,
    /// Where the lock is.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// The lock's name as the controller knows it. A shard's own lock is `<name>-<shard>`.
    #[schemars(length(min = 1, max = 189))]
    pub name: String,
}

/// The kinds of object that can be a leader election lock.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum LockResource {
    /// `coordination.k8s.io` Lease.
    Leases,
    /// ConfigMap, with the record in its annotation `control-plane.alpha.kubernetes.io/leader`: what client-go used
    /// before it had Leases, and what some controllers still use.
    #[serde(rename = "configmaps")]
    ConfigMaps,
}

// === impl LeaderElection ===

impl LeaderElection {
    fn is_empty(&self) -> bool {
        self.locks.is_empty()
    }
}
