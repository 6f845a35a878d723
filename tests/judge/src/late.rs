//! Late writes: those at an epoch below one that was already seen, in the order of the log. The server writes a line
//! when its answer is out, so two writes that overlap may stand in either order. A hand-over keeps them apart (the
//! old owner has its answers before the new one starts); where a crash did not, an overlap counts as late.

use std::collections::HashMap;

use crate::{event::Event, object::Object, ring::FenceMode};

/// The highest epoch seen, per object or per slot as the fence holds. Nothing else in the judge grows with the log.
#[derive(Debug)]
pub(crate) struct Seen {
    fence: FenceMode,
    epochs: HashMap<String, u64>,
}

/// A write as far as lateness goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Write<'a> {
    pub(crate) cluster: &'a str,
    pub(crate) event: &'a Event,
    pub(crate) object: &'a Object,
    pub(crate) slot: u8,
    pub(crate) epoch: u64,
}

// === impl Seen ===

impl Seen {
    pub(crate) fn new(fence: FenceMode) -> Self {
        Self { fence, epochs: HashMap::new() }
    }

    /// Notes a write by a rightful owner; returns the higher epoch seen before it, if it is late.
    pub(crate) fn note(&mut self, write: Write<'_>) -> Option<u64> {
        let key = match self.fence {
            FenceMode::Credential => format!("{} {}", write.cluster, write.slot),
            FenceMode::Preconditions => object_key(&write)?,
        };
        let highest = self.epochs.entry(key).or_insert(write.epoch);
        // What is created anew is another object; preconditions cannot fence a create.
        if self.fence == FenceMode::Preconditions && write.event.is_creation() {
            *highest = write.epoch;
        }
        let late = (write.epoch < *highest).then_some(*highest);
        *highest = (*highest).max(write.epoch);
        late
    }
}

fn object_key(write: &Write<'_>) -> Option<String> {
    write.object.name.as_ref().map(|_| format!("{} {}", write.cluster, write.object))
}
