//! One open watch, as the view and its body share it.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Arc, atomic::Ordering},
};

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use parking_lot::{Mutex, MutexGuard};
use shoal_sharding::Slots;
use tokio::sync::watch;

use super::{
    fetch::{self, Ask},
    heights::Node,
    past::{Client, Seen},
    splice::{Burst, Splice},
};
use crate::{
    filter::{Encoding, Lens, Verdict, View as Object, event},
    metrics::Metrics,
    ownership::lens::{Deciding, ShardLens},
};

/// What ends a watch that cannot be told of a change.
const EXPIRED: &str =
    "too old resource version: the objects that are shown here have changed; list them again";

/// An open watch.
pub(super) struct Watching {
    /// Whose it is.
    pub(super) client: Client,
    /// The cluster's name.
    pub(super) cluster: Arc<str>,
    lens: ShardLens,
    encoding: Encoding,
    /// Whether the client can be told by events at all.
    takes_bursts: bool,
    seen: Seen,
    ask: Ask,
    metrics: Arc<Metrics>,
    splice: Mutex<Splice>,
    /// Held while events of the watch are looked at, so that nothing changes between a verdict and what follows from it.
    turn: Mutex<()>,
    outbox: Mutex<Outbox>,
    waker: AtomicWaker,
    /// Changes when something was handed over, or the initial events ended.
    steps: watch::Sender<()>,
    /// One fetch at a time.
    fetching: tokio::sync::Mutex<()>,
}

/// What waits to be sent.
#[derive(Debug, Default)]
struct Outbox {
    events: VecDeque<Bytes>,
    /// The watch ends behind them.
    ends: bool,
    /// A burst is under way.
    bursts: bool,
    /// The client has got a part of a change, or does not know of it.
    owed: bool,
}

/// What a body sends next.
pub(super) enum Next {
    /// An event that was made here.
    Event(Bytes),
    /// What the watch itself tells.
    Watch,
    /// Nothing more.
    End,
}

/// What a watch is made of.
pub(super) struct Parts {
    pub(super) client: Client,
    pub(super) cluster: Arc<str>,
    pub(super) lens: ShardLens,
    pub(super) encoding: Encoding,
    pub(super) takes_bursts: bool,
    pub(super) ask: Ask,
}

// === impl Watching ===

impl Watching {
    pub(super) fn new(parts: Parts, splice: Splice, seen: Seen, metrics: Arc<Metrics>) -> Self {
        let Parts { client, cluster, lens, encoding, takes_bursts, ask } = parts;
        Self {
            client,
            cluster,
            lens,
            encoding,
            takes_bursts,
            seen,
            ask,
            metrics,
            splice: Mutex::new(splice),
            turn: Mutex::default(),
            outbox: Mutex::default(),
            waker: AtomicWaker::new(),
            steps: watch::Sender::new(()),
            fetching: tokio::sync::Mutex::default(),
        }
    }

    /// Keeps the watch's own events out until it is dropped.
    pub(super) fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock()
    }

    /// The state, between two events.
    pub(super) fn splice(&self) -> MutexGuard<'_, Splice> {
        self.splice.lock()
    }

    /// Gets the objects of these slots, as far as they are not at hand.
    pub(super) async fn prepare(&self, slots: Slots) {
        let _one = self.fetching.lock().await;
        let missing = self.change(|splice| {
            let missing = splice.missing(&slots);
            if self.takes_bursts && !splice.is_broken() {
                splice.capture(&missing);
                missing
            } else {
                Slots::NONE
            }
        });
        if missing.is_empty() {
            return;
        }
        match fetch::objects(&self.ask, &self.lens, self.encoding, missing).await {
            Ok(fetched) => {
                self.seen.fetch_max(fetched.version, Ordering::Relaxed);
                self.metrics.view.prefetched_bytes.inc_by(fetched.bytes);
                self.change(|splice| splice.fill(&missing, fetched.version, fetched.objects));
            }
            Err(error) => {
                tracing::warn!(%error, client = self.client, "objects of slots on their way cannot be fetched");
                self.change(|splice| splice.forget(&missing));
            }
        }
    }

    /// Waits until a burst of these slots can begin.
    pub(super) async fn begun(&self) {
        let mut steps = self.steps.subscribe();
        while !self.splice().has_begun() && steps.changed().await.is_ok() {}
    }

    /// Whether a burst of these slots can begin.
    pub(super) fn is_ready(&self, slots: &Slots) -> bool {
        self.takes_bursts && self.splice().is_ready(slots)
    }

    /// Tells what is gone; returns what there is to order.
    pub(super) fn begin(&self, slots: &Slots) -> Vec<Node> {
        self.outbox.lock().bursts = true;
        let (gone, nodes) = self.change(|splice| splice.begin(slots));
        self.send(gone, "DELETED");
        nodes
    }

    /// Tells of the objects with these uids.
    pub(super) fn emit(&self, slots: &Slots, uids: &HashSet<String>, burst: Burst) {
        let events = self.change(|splice| splice.emit(slots, uids, burst));
        self.send(events, burst.name());
    }

    /// Tells the rest. The slots are shown, or hidden, as soon as it is sent.
    pub(super) fn finish(&self, slots: &Slots, burst: Burst) {
        let events = self.change(|splice| splice.finish(slots, burst));
        {
            let mut outbox = self.outbox.lock();
            (outbox.bursts, outbox.owed) = (false, true);
        }
        self.send(events, burst.name());
    }

    /// Ends the watch in such a way that its client asks for everything.
    pub(super) fn expire(&self) {
        let mut outbox = self.outbox.lock();
        if outbox.ends {
            return;
        }
        outbox.events.clear();
        outbox.events.push_back(event::expired(self.encoding, EXPIRED));
        (outbox.ends, outbox.owed) = (true, true);
        drop(outbox);
        self.metrics.view.forced_relists.inc();
        self.waker.wake();
    }

    /// Waits until everything is sent.
    pub(super) async fn flushed(&self) {
        let mut steps = self.steps.subscribe();
        while !self.outbox.lock().events.is_empty() && steps.changed().await.is_ok() {}
    }

    /// Whether something waits to be sent.
    pub(super) fn is_waiting(&self) -> bool {
        !self.outbox.lock().events.is_empty()
    }

    /// Changes the state between two events.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Splice) -> T) -> T {
        let _turn = self.turn();
        change(&mut self.splice())
    }

    /// What the body sends next; `waker` is woken when that changes.
    pub(super) fn next(&self, waker: &std::task::Waker) -> Next {
        self.waker.register(waker);
        let mut outbox = self.outbox.lock();
        match outbox.events.pop_front() {
            Some(event) => Next::Event(event),
            None if outbox.ends => Next::End,
            None => Next::Watch,
        }
    }

    /// Whether all that was owed is sent, and has not been told so before: then the version that the client is at.
    pub(super) fn paid(&self) -> Option<u64> {
        let mut outbox = self.outbox.lock();
        if !outbox.events.is_empty() {
            return None;
        }
        if self.steps.receiver_count() > 0 {
            self.steps.send_replace(());
        }
        if outbox.ends || outbox.bursts {
            return None;
        }
        std::mem::take(&mut outbox.owed).then(|| self.splice().resumes())
    }

    /// Whether the client does not know of the last change.
    pub(super) fn is_owed(&self) -> bool {
        let outbox = self.outbox.lock();
        outbox.owed && !outbox.ends
    }

    fn send(&self, events: Vec<Bytes>, kind: &str) {
        if !events.is_empty() {
            self.metrics.view.synthetic_events.with_label_values(&[kind]).inc_by(events.len() as u64);
            let mut outbox = self.outbox.lock();
            outbox.owed = true;
            outbox.events.extend(events);
        }
        // Also with nothing to send: then nothing may be owed any more.
        self.waker.wake();
    }
}

impl Lens for Watching {
    const FOLLOWS: bool = true;

    fn verdict(&self, view: Object<'_>) -> Verdict<'_> {
        self.seen.fetch_max(view.version.parse().unwrap_or_default(), Ordering::Relaxed);
        match self.lens.deciding(view) {
            Deciding::Settled(verdict) => {
                self.splice().settled(view.version, verdict.shows());
                verdict
            }
            Deciding::Slot(slot) => self.splice().verdict(slot, view),
        }
    }

    fn hold(&self, event: &[u8]) {
        self.splice().hold(event);
    }

    fn bookmark(&self, version: &str, ends_initial: bool) {
        self.seen.fetch_max(version.parse().unwrap_or_default(), Ordering::Relaxed);
        self.splice().bookmark(version, ends_initial);
        if ends_initial {
            self.steps.send_replace(());
        }
    }
}
