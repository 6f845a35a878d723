use std::collections::BTreeMap;

use fastrand::Rng;
use serde_json::Value;

use super::*;

const SLOTS: u8 = 3;
const NAMES: u8 = 3;

/// What a server has done, and what there is.
#[derive(Default)]
struct Server {
    /// Slot, event and version of each change; the version is the index and one.
    history: Vec<(Slot, Event, Bytes)>,
    objects: BTreeMap<Key, Object>,
}

/// What a client has made of the events that it got.
#[derive(Default)]
struct Client {
    objects: BTreeMap<Key, (Slot, String, u64)>,
    version: u64,
    /// Synthetic events since the last bookmark.
    unmarked: bool,
}

/// One run: a server, a watch of it, and its client.
struct Run {
    server: Server,
    client: Client,
    splice: Splice,
    /// How much of the history the watch has told.
    told: usize,
    shown: Slots,
    frozen: Slots,
    moving: Slots,
    stage: Stage,
}

enum Stage {
    Idle,
    Captured,
    Fetched(u64, Vec<Object>),
    Filled,
    Bursting(Vec<String>),
}

fn json(change: Change, key: &Key, uid: &str, version: u64) -> Bytes {
    Bytes::from(format!(
        "{{\"type\":\"{}\",\"object\":{{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{{\"namespace\":\"{}\",\
         \"name\":\"{}\",\"uid\":\"{uid}\",\"resourceVersion\":\"{version}\"}}}}}}\n",
        change.name(),
        key.namespace,
        key.name
    ))
}

fn one(slot: Slot) -> Slots {
    [slot].into_iter().collect()
}

impl Server {
    fn version(&self) -> u64 {
        self.history.len() as u64
    }

    fn write(&mut self, rng: &mut Rng) {
        let (slot, name) = (Slot(rng.u8(..SLOTS)), rng.u8(..NAMES));
        let key = Key { namespace: format!("n{slot}"), name: format!("x{name}") };
        let version = self.version() + 1;
        let (change, uid) = match self.objects.get(&key) {
            None => (Change::Added, format!("u{version}")),
            Some(object) if rng.bool() => (Change::Modified, object.event.uid.clone()),
            Some(object) => (Change::Deleted, object.event.uid.clone()),
        };
        let bytes = json(change, &key, &uid, version);
        let event = event::read(&bytes, Encoding::Json).unwrap();
        if change == Change::Deleted {
            self.objects.remove(&key);
        } else {
            // A list, and so the initial events, has every object as added.
            let added = json(Change::Added, &key, &uid, version);
            let event = event::read(&added, Encoding::Json).unwrap();
            self.objects.insert(key, Object { slot, event, bytes: added });
        }
        self.history.push((slot, event, bytes));
    }
}

impl Client {
    /// Takes an event; `made` is whether it does not come from the server.
    fn take(&mut self, bytes: &Bytes, made: bool) {
        let whole: Value = serde_json::from_slice(bytes).unwrap();
        if whole["type"] == "BOOKMARK" {
            assert_eq!(
                (&whole["object"]["kind"], &whole["object"]["apiVersion"]),
                (&"Pod".into(), &"v1".into())
            );
            self.version = whole["object"]["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
            self.unmarked = false;
            return;
        }
        let event = event::read(bytes, Encoding::Json).unwrap();
        let slot = Slot(event.key.namespace[1..].parse().unwrap());
        let before = self.objects.get(&event.key);
        if event.change == Change::Deleted {
            // It goes by the name: of one that was used again it may tell an earlier use, if a later one is gone too.
            self.objects.remove(&event.key);
        } else {
            assert!(before.is_none_or(|(_, _, version)| *version <= event.version), "back: {event:?}");
            self.objects.insert(event.key, (slot, event.uid, event.version));
        }
        self.unmarked |= made;
        if !made {
            assert!(event.version > self.version, "{} after {}", event.version, self.version);
            self.version = event.version;
        }
    }

    fn of(&self, slots: &Slots) -> BTreeMap<Key, (Slot, String, u64)> {
        self.objects.clone().into_iter().filter(|(_, (slot, ..))| slots.contains(*slot)).collect()
    }
}

impl Run {
    fn new(rng: &mut Rng) -> Self {
        let mut server = Server::default();
        (0..rng.usize(1..20)).for_each(|_| server.write(rng));
        let (shown, version) = (one(Slot(0)), server.version());
        let mut client = Client { version, ..Client::default() };
        for (key, object) in &server.objects {
            if object.slot == Slot(0) {
                client
                    .objects
                    .insert(key.clone(), (object.slot, object.event.uid.clone(), object.event.version));
            }
        }
        let splice = Splice::new(Encoding::Json, Start::At(version), shown, Slots::NONE, Rest::default());
        let told = server.history.len();
        Self {
            server,
            client,
            splice,
            told,
            shown,
            frozen: Slots::NONE,
            moving: Slots::NONE,
            stage: Stage::Idle,
        }
    }

    fn tell(&mut self) {
        let Some((slot, event, bytes)) = self.server.history.get(self.told).cloned() else { return };
        self.told += 1;
        let version = event.version.to_string();
        let Key { namespace, name } = &event.key;
        let deleted = event.change == Change::Deleted;
        let moving = if matches!(self.stage, Stage::Bursting(_)) { self.moving } else { Slots::NONE };
        let frozen = self.frozen.minus(&moving);
        let before = self.client.of(&frozen);
        let view = View { namespace, name, uid: &event.uid, version: &version, deleted };
        match self.splice.verdict(slot, view) {
            Verdict::Keep => {
                assert!(self.shown.contains(slot) || moving.contains(slot) || deleted, "{event:?} is hidden");
                self.client.take(&bytes, false);
            }
            Verdict::Hold => self.splice.hold(&bytes),
            _ => {}
        }
        assert_eq!(self.client.of(&frozen), before, "frozen slots are told");
    }

    fn take(&mut self, events: &[Bytes]) {
        for event in events {
            self.client.take(event, true);
        }
    }

    /// The next step of a move.
    fn advance(&mut self, rng: &mut Rng) {
        self.stage = match std::mem::replace(&mut self.stage, Stage::Idle) {
            Stage::Idle => {
                let hidden = (0..SLOTS).map(Slot).filter(|slot| !self.shown.contains(*slot));
                self.moving = hidden.filter(|_| rng.bool()).collect();
                self.splice.capture(&self.splice.missing(&self.moving));
                Stage::Captured
            }
            Stage::Captured => {
                let objects = self.server.objects.values().filter(|object| self.moving.contains(object.slot));
                Stage::Fetched(self.server.version(), objects.cloned().collect())
            }
            Stage::Fetched(version, objects) => {
                self.splice.fill(&self.moving, version, objects);
                Stage::Filled
            }
            Stage::Filled => {
                assert!(self.splice.is_ready(&self.moving));
                let (gone, nodes) = self.splice.begin(&self.moving);
                self.take(&gone);
                Stage::Bursting(nodes.into_iter().map(|node| node.uid).collect())
            }
            Stage::Bursting(mut uids) if !uids.is_empty() && rng.bool() => {
                let level = uids.split_off(rng.usize(..uids.len())).into_iter().collect();
                let events = self.splice.emit(&self.moving, &level, Burst::Show);
                self.take(&events);
                Stage::Bursting(uids)
            }
            Stage::Bursting(_) => {
                let events = self.splice.finish(&self.moving, Burst::Show);
                self.take(&events);
                assert!(!self.client.unmarked, "a burst ends with a bookmark");
                self.shown = self.shown.union(&self.moving);
                self.frozen = self.frozen.minus(&self.moving);
                Stage::Idle
            }
        };
    }

    fn forget(&mut self) {
        if !matches!(self.stage, Stage::Bursting(_) | Stage::Idle) {
            self.splice.forget(&self.moving);
            self.stage = Stage::Idle;
        }
    }

    fn freeze(&mut self, slot: Slot) {
        if self.shown.contains(slot) {
            self.splice.freeze(&one(slot));
            self.shown = self.shown.minus(&one(slot));
            self.frozen = self.frozen.union(&one(slot));
        }
    }

    /// The watch ends, and its client resumes.
    fn resume(&mut self) {
        self.forget();
        if matches!(self.stage, Stage::Idle) {
            let start = Start::At(self.client.version);
            let rest = self.splice.rest();
            self.splice = Splice::new(Encoding::Json, start, self.shown, self.frozen, rest);
            self.told = usize::try_from(self.client.version).unwrap();
        }
    }

    fn step(&mut self, rng: &mut Rng) {
        match rng.u8(..20) {
            0..6 => self.server.write(rng),
            6..11 => self.tell(),
            11..16 => self.advance(rng),
            16 => self.forget(),
            17 => self.resume(),
            _ => self.freeze(Slot(rng.u8(..SLOTS))),
        }
    }

    /// Everything comes back and is told.
    fn settle(&mut self, rng: &mut Rng) {
        let all = |shown: &Slots| (0..SLOTS).all(|slot| shown.contains(Slot(slot)));
        while !matches!(self.stage, Stage::Idle) || !all(&self.shown) {
            self.advance(rng);
        }
        while self.told < self.server.history.len() {
            self.tell();
        }
    }
}

#[test]
fn whatever_the_order_a_client_has_what_the_server_has() {
    for seed in 0..4_000 {
        let mut rng = Rng::with_seed(seed);
        let mut run = Run::new(&mut rng);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            (0..rng.usize(..120)).for_each(|_| run.step(&mut rng));
            run.settle(&mut rng);
            assert!(!run.splice.is_broken());
            let has: Vec<_> =
                run.client.objects.into_iter().map(|(key, (_, uid, version))| (key, uid, version)).collect();
            let there = run.server.objects.into_iter();
            let there: Vec<_> =
                there.map(|(key, object)| (key, object.event.uid, object.event.version)).collect();
            assert_eq!(has, there);
        }));
        assert!(outcome.is_ok(), "seed {seed}");
    }
}

#[test]
fn slots_that_go_are_told_as_deleted_at_the_version_of_the_watch() {
    for seed in 0..1_000 {
        let mut rng = Rng::with_seed(seed);
        let mut run = Run::new(&mut rng);
        run.settle(&mut rng);
        let gone = one(Slot(rng.u8(..SLOTS)));
        run.freeze(gone.iter().next().unwrap());
        (0..5).for_each(|_| run.server.write(&mut rng));
        (0..rng.usize(..5)).for_each(|_| run.tell());
        run.moving = gone;
        run.splice.capture(&gone);
        run.stage = Stage::Captured;
        run.advance(&mut rng);
        run.advance(&mut rng);
        (0..rng.usize(..5)).for_each(|_| run.tell());
        let (deleted, _) = run.splice.begin(&gone);
        run.take(&deleted);
        let events = run.splice.finish(&gone, Burst::Hide);
        for event in &events {
            if let Ok(event) = event::read(event, Encoding::Json) {
                assert_eq!((event.change, event.version), (Change::Deleted, run.splice.version));
            }
        }
        run.take(&events);
        run.frozen = Slots::NONE;
        assert!(!run.client.unmarked, "seed {seed}");
        while run.told < run.server.history.len() {
            run.tell();
        }
        assert_eq!(run.client.of(&gone), BTreeMap::new(), "seed {seed}: {:?}", run.server.history);
    }
}

fn verdict(splice: &mut Splice, slot: u8, version: &str) -> Verdict<'static> {
    splice.verdict(Slot(slot), View { namespace: "n", name: "x", uid: "u", version, deleted: false })
}

#[test]
fn the_initial_events_show_frozen_slots_and_later_ones_do_not() {
    let mut splice = Splice::new(Encoding::Json, Start::Initial, one(Slot(0)), one(Slot(1)), Rest::default());
    let seen = |splice: &mut Splice| [0, 1, 2].map(|slot| verdict(splice, slot, "9"));
    assert_eq!(seen(&mut splice), [Verdict::Keep, Verdict::Keep, Verdict::Drop]);
    assert!(!splice.has_begun());
    splice.bookmark("7", true);
    assert_eq!((splice.has_begun(), splice.version), (true, 7));
    assert_eq!(seen(&mut splice), [Verdict::Keep, Verdict::Hold, Verdict::Drop]);
}

#[test]
fn what_cannot_be_spliced_in_is_never_ready() {
    let slots = one(Slot(1));
    let splice = |start| Splice::new(Encoding::Json, start, Slots::NONE, Slots::NONE, Rest::default());
    let filled = |mut splice: Splice| {
        splice.capture(&slots);
        splice.fill(&slots, 9, Vec::new());
        splice.is_ready(&slots)
    };
    assert!(filled(splice(Start::At(5))));
    assert!(!splice(Start::At(5)).is_ready(&slots), "not fetched");
    assert!(!filled(splice(Start::Initial)), "not begun");
    assert!(!filled(splice(Start::Unmarked)));
    let mut broken = splice(Start::At(5));
    verdict(&mut broken, 1, "not a number");
    assert!(!filled(broken));
    let unknown = Splice::new(Encoding::Json, Start::At(5), Slots::NONE, slots, Rest::unknown());
    assert!(!filled(unknown), "nobody knows what the client has of it");
}
