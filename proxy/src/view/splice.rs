//! One watch, as far as slots that come and go are concerned. Pure: events in, verdicts and events out.
//!
//! ```text
//!           capture            fill              begin, emit ..., finish
//!  Hidden ───────────▶ Taken ────────▶ Taken at R ──────────────────────▶ Shown ──freeze──▶ Frozen
//!     ▲   events are held     objects at R, changes laid over                                  │
//!     └──────────────── forget ────────────────────◀── or hidden again (Evict) ◀───────────────┘
//! ```
//!
//! The objects of a slot at version R come from a request of their own; the watch itself may be behind R, so of its events
//! of that slot those up to R are passed over. What it tells after R replaces what was fetched, so the store is always the
//! slot's state at the later of both.

use std::{
    collections::{HashMap, HashSet},
    mem::take,
};

use bytes::Bytes;
use shoal_sharding::{Slot, Slots};

use super::{away::Away, heights::Node};
use crate::filter::{
    Encoding, Verdict, View,
    event::{self, Change, Event, Key},
};

/// Where a watch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// With the objects that there are, and a bookmark behind them.
    Initial,
    /// With the objects that there are, and nothing that says where they end.
    Unmarked,
    /// Behind that version.
    At(u64),
}

/// What becomes of slots in a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Burst {
    /// They come.
    Show,
    /// They go.
    Hide,
}

/// An object that was fetched.
#[derive(Clone, Debug)]
pub(super) struct Object {
    /// Its slot.
    pub(super) slot: Slot,
    /// What the event is about.
    pub(super) event: Event,
    /// The event.
    pub(super) bytes: Bytes,
}

/// The state of one watch.
#[derive(Debug)]
pub(super) struct Splice {
    encoding: Encoding,
    start: Start,
    /// Whether the initial events are over.
    begun: bool,
    /// The highest version that the watch itself told.
    version: u64,
    /// The version that the client would resume at.
    resumes: u64,
    shown: Slots,
    frozen: Slots,
    /// Slots whose events are held, and the version of what was fetched of them.
    taken: HashMap<Slot, Option<u64>>,
    /// The newest of each object in taken slots; none of one that is gone.
    store: HashMap<Key, Latest>,
    /// The slots of the burst under way.
    bursting: Slots,
    /// Objects that the client has got in a burst, as long as the watch may be behind what was fetched.
    emitted: HashMap<Key, Slot>,
    /// Up to where events of a slot are known already.
    passed: HashMap<Slot, u64>,
    away: Away,
    /// The last event that was sent here, to make a bookmark like it.
    like: Option<Bytes>,
    /// The slot that the last verdict was about.
    asked: Slot,
    /// Something could not be read: the client has to ask for everything.
    broken: bool,
}

#[derive(Clone, Debug)]
struct Latest {
    slot: Slot,
    version: u64,
    uid: String,
    owner: Option<String>,
    bytes: Option<Bytes>,
}

/// What the next watch of the same client has to know.
#[derive(Clone, Debug, Default)]
pub(super) struct Rest {
    pub(super) away: Away,
    pub(super) passed: HashMap<Slot, u64>,
    pub(super) emitted: HashMap<Key, Slot>,
}

// === impl Splice ===

impl Splice {
    /// A watch that shows `shown`, and `frozen` as far as its initial events go.
    pub(super) fn new(encoding: Encoding, start: Start, shown: Slots, frozen: Slots, rest: Rest) -> Self {
        let version = if let Start::At(version) = start { version } else { 0 };
        Self {
            encoding,
            start,
            begun: matches!(start, Start::At(_)),
            version,
            resumes: version,
            shown,
            frozen,
            taken: HashMap::new(),
            store: HashMap::new(),
            bursting: Slots::NONE,
            emitted: rest.emitted,
            passed: rest.passed,
            away: rest.away,
            like: None,
            asked: Slot(0),
            broken: false,
        }
    }

    /// What becomes of an event of the watch.
    pub(super) fn verdict(&mut self, slot: Slot, view: View<'_>) -> Verdict<'static> {
        let version = self.saw(view.version);
        self.asked = slot;
        let verdict = self.judge(slot, &view, version);
        if verdict == Verdict::Keep {
            self.told(version);
        }
        verdict
    }

    fn judge(&self, slot: Slot, view: &View<'_>, version: u64) -> Verdict<'static> {
        if let Some(at) = self.taken.get(&slot) {
            return match self.bursting.contains(slot) && self.is_emitted(view) {
                true if at.is_some_and(|at| version <= at) => Verdict::Drop,
                true => Verdict::Keep,
                false => Verdict::Hold,
            };
        }
        if self.frozen.contains(slot) {
            return if self.begun { Verdict::Hold } else { Verdict::Keep };
        }
        match self.is_known(slot, version) {
            // What was fetched lacks it, so the client may have it from before.
            true if view.deleted && !self.is_emitted(view) => Verdict::Keep,
            false if self.shown.contains(slot) => Verdict::Keep,
            _ => Verdict::Drop,
        }
    }

    /// An event of that version of no slot.
    pub(super) fn settled(&mut self, version: &str, shows: bool) {
        let version = self.saw(version);
        if shows {
            self.told(version);
        }
    }

    /// Takes the event that the last verdict held.
    pub(super) fn hold(&mut self, bytes: &[u8]) {
        let Ok(event) = event::read(bytes, self.encoding) else {
            self.broken = true;
            return;
        };
        let (slot, bytes) = (self.asked, Bytes::copy_from_slice(bytes));
        let is_told = self.is_known(slot, event.version)
            && (event.change != Change::Deleted || self.emitted.contains_key(&event.key));
        if self.frozen.contains(slot) && !is_told {
            self.away.note(slot, &event, &bytes);
        }
        let is_new = |at: &Option<u64>| at.is_none_or(|at| event.version > at);
        if self.taken.get(&slot).is_some_and(is_new) {
            self.keep(Object { slot, event, bytes });
        }
    }

    /// A bookmark is about to pass.
    pub(super) fn bookmark(&mut self, version: &str, ends_initial: bool) {
        if ends_initial {
            // Before this the versions are those of single objects.
            self.begun = true;
            self.version = 0;
        }
        let version = self.saw(version);
        self.told(version);
    }

    /// The version that the client would resume at, once it has got everything.
    pub(super) fn resumes(&self) -> u64 {
        self.resumes
    }

    /// Whether the initial events are over.
    pub(super) fn has_begun(&self) -> bool {
        self.begun
    }

    /// Whether slots can be spliced in at all.
    pub(super) fn is_broken(&self) -> bool {
        self.broken || self.start == Start::Unmarked
    }

    /// The slots of these that are neither shown nor fetched.
    pub(super) fn missing(&self, slots: &Slots) -> Slots {
        let there = |slot: &Slot| self.shown.contains(*slot) || matches!(self.taken.get(slot), Some(Some(_)));
        slots.iter().filter(|slot| !there(slot)).collect()
    }

    /// From now on holds the events of these slots.
    pub(super) fn capture(&mut self, slots: &Slots) {
        for slot in slots.iter() {
            self.taken.entry(slot).or_insert(None);
        }
    }

    /// These objects were all of these slots at version `at`, which was asked for after the capture.
    pub(super) fn fill(&mut self, slots: &Slots, at: u64, objects: Vec<Object>) {
        self.store.retain(|_, latest| !slots.contains(latest.slot) || latest.version > at);
        for slot in slots.iter() {
            if let Some(taken) = self.taken.get_mut(&slot) {
                *taken = Some(at);
            }
        }
        for object in objects {
            if self.taken.contains_key(&object.slot) && !self.store.contains_key(&object.event.key) {
                self.keep(object);
            }
        }
    }

    /// Holds these slots no longer.
    pub(super) fn forget(&mut self, slots: &Slots) {
        self.taken.retain(|slot, _| !slots.contains(*slot));
        self.store.retain(|_, latest| !slots.contains(latest.slot));
        self.emitted.retain(|_, slot| !slots.contains(*slot) || self.passed.contains_key(slot));
    }

    /// Tells no more of these slots.
    pub(super) fn freeze(&mut self, slots: &Slots) {
        let newly: Slots = slots.iter().filter(|slot| self.shown.contains(*slot)).collect();
        self.forget(&newly);
        self.shown = self.shown.minus(&newly);
        self.frozen = self.frozen.union(&newly);
    }

    /// Whether a burst of these slots can begin.
    pub(super) fn is_ready(&self, slots: &Slots) -> bool {
        let returns = slots.iter().any(|slot| self.frozen.contains(slot));
        !self.is_broken()
            && self.begun
            && self.missing(slots).is_empty()
            && !(returns && self.away.is_unknown())
    }

    /// Begins a burst: the deletions that the client was not told, and what there is to order.
    pub(super) fn begin(&mut self, slots: &Slots) -> (Vec<Bytes>, Vec<Node>) {
        self.bursting = *slots;
        self.emitted.retain(|_, slot| !slots.contains(*slot));
        let gone = self.gone(slots);
        let there =
            self.store.iter().filter(|(_, latest)| slots.contains(latest.slot) && latest.bytes.is_some());
        let nodes = there.map(|(key, latest)| Node {
            uid: latest.uid.clone(),
            owner: latest.owner.clone(),
            holds: key.namespace.is_empty(),
        });
        (gone, nodes.collect())
    }

    /// The events for the objects with these uids.
    pub(super) fn emit(&mut self, slots: &Slots, uids: &HashSet<String>, burst: Burst) -> Vec<Bytes> {
        self.take(slots, burst, |latest| uids.contains(&latest.uid))
    }

    /// The events that are left, and a bookmark if the client got any. The slots are shown, or hidden.
    pub(super) fn finish(&mut self, slots: &Slots, burst: Burst) -> Vec<Bytes> {
        let mut events = self.gone(slots);
        events.extend(self.take(slots, burst, |_| true));
        for slot in slots.iter() {
            if let Some(at) = self.taken.remove(&slot).flatten() {
                self.passed.insert(slot, at);
            }
        }
        self.bursting = Slots::NONE;
        self.store.retain(|_, latest| !slots.contains(latest.slot));
        if let Some(like) = self.like.take() {
            match event::bookmark(&like, self.encoding, self.version) {
                Ok(bookmark) => events.push(bookmark),
                Err(_) => self.broken = true,
            }
            self.told(self.version);
        }
        self.frozen = self.frozen.minus(slots);
        match burst {
            Burst::Show => self.shown = self.shown.union(slots),
            Burst::Hide => self.shown = self.shown.minus(slots),
        }
        events
    }

    /// What the next watch has to know.
    pub(super) fn rest(&mut self) -> Rest {
        Rest { away: take(&mut self.away), passed: take(&mut self.passed), emitted: take(&mut self.emitted) }
    }

    fn take(&mut self, slots: &Slots, burst: Burst, wanted: impl Fn(&Latest) -> bool) -> Vec<Bytes> {
        let is_due =
            |latest: &Latest| slots.contains(latest.slot) && latest.bytes.is_some() && wanted(latest);
        let due: Vec<(Key, Latest)> = self.store.extract_if(|_, latest| is_due(latest)).collect();
        let mut events = Vec::with_capacity(due.len());
        for (key, latest) in due {
            let Some(bytes) = latest.bytes else { continue };
            match burst {
                Burst::Show => {
                    self.emitted.insert(key, latest.slot);
                    match event::retyped(&bytes, self.encoding, Change::Added) {
                        Ok(event) => events.push(event),
                        Err(_) => self.broken = true,
                    }
                }
                Burst::Hide => events.extend(self.as_deleted(&bytes)),
            }
        }
        self.like = events.last().cloned().or(self.like.take());
        events
    }

    fn as_deleted(&mut self, event: &Bytes) -> Option<Bytes> {
        let deleted = event::deleted(event, self.encoding, self.version).ok();
        self.broken |= deleted.is_none();
        self.like = deleted.clone().or(self.like.take());
        deleted
    }

    fn keep(&mut self, Object { slot, event, bytes }: Object) {
        let Event { change, key, uid, version, owner } = event;
        let bytes = Some(bytes).filter(|_| change != Change::Deleted);
        self.store.insert(key, Latest { slot, version, uid, owner, bytes });
    }

    /// A version that the watch told.
    fn saw(&mut self, version: &str) -> u64 {
        let Ok(version) = version.parse::<u64>() else {
            self.broken = true;
            return u64::MAX;
        };
        self.version = self.version.max(version);
        version
    }

    /// The client has got that version, and resumes there.
    fn told(&mut self, version: u64) {
        self.resumes = version;
        if !self.passed.is_empty() {
            self.passed.retain(|_, passed| *passed >= version);
            self.emitted.retain(|_, slot| self.taken.contains_key(slot) || self.passed.contains_key(slot));
        }
    }

    /// Whether what was fetched of a slot is as new.
    fn is_known(&self, slot: Slot, version: u64) -> bool {
        self.passed.get(&slot).is_some_and(|passed| version <= *passed)
    }

    fn is_emitted(&self, view: &View<'_>) -> bool {
        let key = || Key { namespace: view.namespace.to_owned(), name: view.name.to_owned() };
        !self.emitted.is_empty() && self.emitted.contains_key(&key())
    }

    /// The deletions that the client has not been told of.
    fn gone(&mut self, slots: &Slots) -> Vec<Bytes> {
        let gone = self.away.take(slots);
        let untold = gone.into_iter().filter(|(key, _)| !self.emitted.contains_key(key));
        let untold: Vec<Bytes> = untold.map(|(_, event)| event).collect();
        untold.into_iter().filter_map(|event| self.as_deleted(&event)).collect()
    }
}

// === impl Burst ===

impl Burst {
    /// The type of the events that tell it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Show => Change::Added.name(),
            Self::Hide => Change::Deleted.name(),
        }
    }
}

// === impl Rest ===

impl Rest {
    /// Nothing is known.
    pub(super) fn unknown() -> Self {
        Self { away: Away::unknown(), ..Self::default() }
    }
}

#[cfg(test)]
mod tests;
