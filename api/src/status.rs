//! What the control plane reports about a ring.
//!
//! Nothing in it changes while the ring is at rest, so that a ring at rest costs no writes: how long ago a Lease was renewed is
//! on the Lease.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// The ring as its coordinator last saw it.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ShardedControllerStatus {
    /// The generation of the spec that this is about.
    pub observed_generation: i64,
    /// The version of the `ShardMap` that this is about; 0 before the first.
    pub map_version: i64,
    /// The shards, in order of their numbers; leaving ones too, while they own slots or are held.
    pub shards: Vec<ShardStatus>,
    /// `Ready`: every slot has an owner that is alive. `Progressing`: slots are on their way. `Degraded`: a shard is missing, or
    /// something keeps the coordinator from its work; the message says what.
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}

/// One shard.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShardStatus {
    /// Its name.
    pub name: String,
    /// Whether somebody is it.
    pub state: ShardState,
    /// Who holds its identity Lease, `<pod>_<random>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// How often its identity was claimed.
    pub term: i64,
    /// How many slots it owns, those that are about to leave included.
    pub slots: u16,
    /// How many slots are on their way to it or from it.
    pub moving: u16,
}

/// Whether somebody is a shard.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
pub enum ShardState {
    /// Its holder renews.
    Alive,
    /// Its holder was told to end, and the next one is awaited.
    Restarting,
    /// Its holder was not heard of for a whole Lease.
    Silent,
    /// Nobody is it.
    Vacant,
}

/// The schema of `[]metav1.Condition`, merged by type.
fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "lastTransitionTime": { "type": "string", "format": "date-time" },
                "message": { "type": "string", "maxLength": 32768 },
                "observedGeneration": { "type": "integer", "format": "int64", "minimum": 0 },
                "reason": { "type": "string", "minLength": 1, "maxLength": 1024 },
                "status": { "type": "string", "enum": ["True", "False", "Unknown"] },
                "type": { "type": "string", "maxLength": 316 },
            },
        },
    })
}
