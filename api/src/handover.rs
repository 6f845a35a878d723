//! How slots change hands: the parts of a `ShardedController` that say so.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How slots move between shards.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Handover {
    /// What the controller that loses slots is shown.
    pub mode: HandoverMode,
    /// How long slots wait for the next holder of a shard whose last one was told to end, in seconds.
    #[schemars(range(min = 0, max = 3600))]
    pub restart_grace_seconds: u32,
    /// How many slots may be on their way at once.
    #[schemars(range(min = 1, max = 256))]
    pub max_moving: u16,
    /// Above this share of slots whose objects are still shown though lost, in percent, the proxy asks for a restart of the
    /// controller by letting its leader election lock lapse. 100 never asks.
    #[schemars(range(min = 1, max = 100))]
    pub max_frozen_percent: u8,
}

/// What the controller that loses slots is shown.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum HandoverMode {
    /// Nothing: it gets no more events of those slots, and lists show them as they are. Its writes to them are refused.
    #[default]
    Freeze,
    /// Its leader election lock lapses, so that it ends, and comes back with the new view.
    Restart,
    /// Its objects are shown as deleted. Only for controllers that are known to survive losing and regaining objects, and never
    /// for a garbage collector.
    Evict,
}

/// What makes a late write of a past owner fail.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Fence {
    /// How.
    pub mode: FenceMode,
    /// In mode `Credential`: the service account, in the ring's namespace, whose tokens the proxies write with. The
    /// controller's own must have no right to write the fenced kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub service_account: Option<String>,
}

/// What makes a late write of a past owner fail.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum FenceMode {
    /// Every write demands the uid and the version of its object. Holds for each object: no write of a past owner after the
    /// new owner's first on that object. A create carries no such demand.
    #[default]
    Preconditions,
    /// Besides, writes carry a token that ends with the shard's term. Holds for a slot, creates included; a take-over from a
    /// silent shard waits for the API server's token cache too.
    Credential,
}

/// How a controller that runs already comes under the ring.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum Adoption {
    /// Replica by replica: no gate opens before the control plane holds the controller's own leader election lock.
    #[default]
    Rolling,
    /// The controller has no leader election: all its replicas must have ended before the ring begins.
    Recreate,
}

// === impl Handover ===

impl Handover {
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for Handover {
    fn default() -> Self {
        Self {
            mode: HandoverMode::default(),
            restart_grace_seconds: 30,
            max_moving: 64,
            max_frozen_percent: 100,
        }
    }
}

// === impl Fence ===

impl Fence {
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

// === impl Adoption ===

impl Adoption {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
