//! A map slot by slot, to be changed and put together again.

use shoal_api::{HashAlgorithm, Keying, ShardMapSpec, SlotRange, SlotState};

use crate::{map::SlotMap, slot::Slot};

/// One entry for each slot; `first` and `last` are the slot.
pub(super) struct Draft(pub(super) Vec<SlotRange>);

// === impl Draft ===

impl Draft {
    /// Every slot an orphan at that epoch.
    pub(super) fn orphans(epoch: i64) -> Self {
        let orphan = |slot| SlotRange {
            first: slot,
            last: slot,
            owner: None,
            epoch,
            state: SlotState::Orphan,
            to: None,
            pin: None,
        };
        Self((0..=u8::MAX).map(orphan).collect())
    }

    pub(super) fn of(map: &SlotMap) -> Self {
        let single = |slot| SlotRange { first: slot, last: slot, ..map.entry(Slot(slot)).clone() };
        Self((0..=u8::MAX).map(single).collect())
    }

    /// The map of that version, in the fewest ranges.
    pub(super) fn into_spec(self, version: i64) -> ShardMapSpec {
        let mut slots: Vec<SlotRange> = Vec::new();
        for entry in self.0 {
            match slots.last_mut() {
                Some(before) if is_alike(before, &entry) => before.last = entry.last,
                _ => slots.push(entry),
            }
        }
        let keying = Keying { algorithm: HashAlgorithm::Xxh3_64, slots: shoal_api::SLOTS };
        ShardMapSpec { version, keying, slots }
    }
}

fn is_alike(a: &SlotRange, b: &SlotRange) -> bool {
    (&a.owner, a.epoch, a.state, &a.to, &a.pin) == (&b.owner, b.epoch, b.state, &b.to, &b.pin)
}

/// Lets the owner go. The epoch stays: the next grant raises it.
pub(super) fn orphan(entry: &mut SlotRange) {
    entry.owner = None;
    entry.state = SlotState::Orphan;
}

/// Makes `to` the owner, at the next epoch.
pub(super) fn grant(entry: &mut SlotRange, to: String) {
    entry.owner = Some(to);
    entry.epoch += 1;
    entry.state = SlotState::Owned;
    entry.to = None;
}
