//! What changed in slots of which a client is told nothing: what it has and is gone, and what it never had.

use std::collections::BTreeMap;

use bytes::Bytes;
use shoal_sharding::{Slot, Slots};

use crate::filter::event::{Change, Event, Key};

/// The most that is kept of one watch, in bytes. Beyond, its client has to ask for everything when the slots come back.
const LIMIT: usize = 1 << 20;
/// What a name costs beside its bytes.
const OVERHEAD: usize = 64;

/// What a client does not know of objects in frozen slots.
#[derive(Clone, Debug, Default)]
pub(super) struct Away {
    objects: BTreeMap<Key, (Slot, Fate)>,
    size: usize,
    /// Whether there was more than is kept.
    overflown: bool,
}

#[derive(Clone, Debug)]
enum Fate {
    /// The client never had it.
    Born,
    /// The client has it, or had the one of that name before, and it is gone. The event that said so.
    Gone(Bytes),
}

// === impl Away ===

impl Away {
    /// One of which nothing is known: the client has to ask.
    pub(super) fn unknown() -> Self {
        Self { overflown: true, ..Self::default() }
    }

    /// Whether nothing can be told from it.
    pub(super) fn is_unknown(&self) -> bool {
        self.overflown
    }

    /// Takes note of an event that the client is not told.
    pub(super) fn note(&mut self, slot: Slot, event: &Event, bytes: &Bytes) {
        match (event.change, self.objects.get(&event.key)) {
            (Change::Added, None) => self.put(slot, event, Fate::Born),
            (Change::Deleted, None) => self.put(slot, event, Fate::Gone(bytes.clone())),
            (Change::Deleted, Some((_, Fate::Born))) => {
                self.objects.remove(&event.key);
                self.size = self.size.saturating_sub(cost(&event.key, &Fate::Born));
            }
            _ => {}
        }
    }

    /// The deletions that the client was not told of these slots; nothing is kept of them afterwards.
    pub(super) fn take(&mut self, slots: &Slots) -> Vec<(Key, Bytes)> {
        let mut gone = Vec::new();
        let size = &mut self.size;
        self.objects.retain(|key, (slot, fate)| {
            let stays = !slots.contains(*slot);
            if !stays {
                *size = size.saturating_sub(cost(key, fate));
                if let Fate::Gone(event) = fate {
                    gone.push((key.clone(), event.clone()));
                }
            }
            stays
        });
        gone
    }

    fn put(&mut self, slot: Slot, event: &Event, fate: Fate) {
        self.size += cost(&event.key, &fate);
        if self.size > LIMIT {
            *self = Self::unknown();
        }
        if !self.overflown {
            self.objects.insert(event.key.clone(), (slot, fate));
        }
    }
}

fn cost(key: &Key, fate: &Fate) -> usize {
    let event = if let Fate::Gone(event) = fate { event.len() } else { 0 };
    OVERHEAD + key.namespace.len() + key.name.len() + event
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(changes: &[Change]) -> usize {
        let mut away = Away::default();
        for change in changes {
            away.note(Slot(1), &event("a", *change), &Bytes::from_static(b"event"));
        }
        assert_eq!(away.take(&Slots::NONE).len(), 0);
        let told = away.take(&Slots::ALL).len();
        assert_eq!((away.size, away.objects.len()), (0, 0));
        told
    }

    fn event(name: &str, change: Change) -> Event {
        let key = Key { namespace: String::new(), name: name.to_owned() };
        Event { change, key, uid: String::new(), version: 1, owner: None }
    }

    #[test]
    fn only_what_the_client_has_is_told_as_gone() {
        use Change::{Added, Deleted, Modified};
        for (changes, wanted) in [
            (&[Deleted][..], 1),
            (&[Modified, Deleted], 1),
            (&[Added, Modified, Deleted], 0),
            (&[Deleted, Added, Deleted], 1),
            (&[Deleted, Added], 1),
            (&[Added], 0),
            (&[Added, Deleted, Added, Deleted], 0),
        ] {
            assert_eq!(told(changes), wanted, "{changes:?}");
        }
    }

    #[test]
    fn what_is_kept_has_a_limit() {
        let mut away = Away::default();
        let large = Bytes::from(vec![0; LIMIT / 2]);
        for name in ["a", "b"] {
            assert!(!away.is_unknown());
            away.note(Slot(1), &event(name, Change::Deleted), &large);
        }
        assert!(away.is_unknown() && away.objects.is_empty());
    }
}
