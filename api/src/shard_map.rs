//! `ShardMap`: which shard owns which slot of a ring, and since which epoch.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who owns each of a ring's slots. It has the name and namespace of its ring, is written by the
/// control plane by compare-and-swap only, and its ranges cover 0..=255 in order without a gap.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, PartialEq, JsonSchema)]
#[kube(
    group = "mesh.shoal.dev",
    version = "v1alpha1",
    kind = "ShardMap",
    plural = "shardmaps",
    category = "shoal",
    doc = "Which shard owns which slot of a ring, and since which epoch.",
    namespaced,
    derive = "PartialEq",
    printcolumn = r#"{"name":"Version","type":"integer","jsonPath":".spec.version"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct ShardMapSpec {
    /// Rises with each change. A proxy refuses a version lower than one that it has seen.
    #[schemars(range(min = 1))]
    pub version: i64,
    /// How an object becomes a slot.
    pub keying: Keying,
    /// The ranges of slots, sorted and gapless over 0..=255.
    #[schemars(length(min = 1, max = 256))]
    pub slots: Vec<SlotRange>,
}

/// How an object's key becomes a slot.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Keying {
    /// The hash.
    pub algorithm: HashAlgorithm,
    /// How many slots there are; always 256.
    #[schemars(range(min = 256, max = 256))]
    pub slots: u16,
}

/// The hash that makes a slot of a key.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
pub enum HashAlgorithm {
    /// xxh3, 64 bits, seed 0, over length-prefixed fields; the slot is its top 8 bits.
    #[serde(rename = "XXH3-64")]
    Xxh3_64,
}

/// Neighbouring slots that share an owner, an epoch and a state.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SlotRange {
    /// The first slot.
    pub first: u8,
    /// The last slot, inclusive.
    pub last: u8,
    /// The shard that owns the slots; absent only when `Orphan`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Rises by one each time a slot changes owner.
    #[schemars(range(min = 1))]
    pub epoch: i64,
    /// Whether the owner may write.
    pub state: SlotState,
    /// The shard that the slots go to next. It shows nothing of them and writes nothing yet, but gets their objects ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The controller version that the slots are pinned to by a rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<String>,
}

/// The state of a slot. Only `Owned` lets writes pass.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
pub enum SlotState {
    /// Its owner sees and writes its objects.
    Owned,
    /// Its owner lets go: writes that are under way end, none begins.
    Draining,
    /// No living shard owns it.
    Orphan,
}
