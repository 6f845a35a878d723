//! A small API server, proxies and coordinators in one thread, in steps of half a second.

use std::collections::BTreeMap;

use super::super::*;
use crate::{
    Acks,
    shard::{Outcome, Shard},
};

/// How far one tick goes.
pub(super) const TICK: Duration = Duration::from_millis(500);

pub(super) struct World {
    pub(super) now: Moment,
    revision: u64,
    pub(super) ring: Ring,
    pub(super) wishes: Wishes,
    pub(super) pins: BTreeMap<Slot, String>,
    pub(super) locks_held: bool,
    pub(super) finished: bool,
    pub(super) leases: BTreeMap<String, Observed>,
    pub(super) standbys: BTreeMap<String, Observed>,
    /// Every version of the map, oldest first.
    pub(super) maps: Vec<ShardMapSpec>,
    map_revision: u64,
    pub(super) secrets_deleted: Vec<(String, i64)>,
    pub(super) proxies: BTreeMap<String, Proxy>,
    pub(super) coordinators: Vec<Coordinator>,
    /// Shards deposed, each with the moment.
    pub(super) deposed: Vec<(String, Moment)>,
}

pub(super) struct Proxy {
    pub(super) shard: Shard,
    /// Version and term of the Lease that it holds.
    held: Option<(String, i64)>,
    pub(super) renewed: Moment,
    acks: Acks,
    pub(super) is_stopped: bool,
    /// Whether it gets ready what is to come.
    pub(super) prepares: bool,
}

// === impl World ===

impl World {
    pub(super) fn new(shards: u16) -> Self {
        let mut world = Self {
            now: Moment(1_000_000),
            revision: 1,
            ring: Ring {
                shards: Vec::new(),
                max_moving: 64,
                restart_grace: Duration::from_secs(30),
                fence: FenceMode::Preconditions,
                deleting: false,
            },
            wishes: Wishes::default(),
            pins: BTreeMap::new(),
            locks_held: true,
            finished: false,
            leases: BTreeMap::new(),
            standbys: BTreeMap::new(),
            maps: Vec::new(),
            map_revision: 0,
            secrets_deleted: Vec::new(),
            proxies: BTreeMap::new(),
            coordinators: vec![Coordinator::default()],
            deposed: Vec::new(),
        };
        world.scale(shards);
        world
    }

    /// A ring of that many shards, all of which live and own their share.
    pub(super) fn running(shards: u16) -> Self {
        let mut world = Self::new(shards);
        (0..shards).for_each(|number| world.start(&format!("pod-{number}")));
        world.run(20);
        assert_eq!(world.owned().values().sum::<usize>(), 256);
        world
    }

    pub(super) fn scale(&mut self, shards: u16) {
        let shard = |number| RingShard { name: format!("r-{number}"), weight: 1, version: None };
        self.ring.shards = (0..shards).map(shard).collect();
    }

    pub(super) fn start(&mut self, pod: &str) {
        let proxy = Proxy {
            shard: Shard::new(""),
            held: None,
            renewed: Moment(0),
            acks: Acks::default(),
            is_stopped: false,
            prepares: true,
        };
        self.proxies.insert(pod.to_owned(), proxy);
    }

    /// The pod whose proxy is that shard.
    pub(super) fn pod_of(&self, shard: &str) -> String {
        self.leases[shard].holder.clone().unwrap()
    }

    /// The proxy lets go of its writes and of its Lease.
    pub(super) fn leave(&mut self, shard: &str, left: Left) {
        let pod = self.pod_of(shard);
        self.proxies.remove(&pod);
        let version = self.bump();
        let lease = self.leases.get_mut(shard).unwrap();
        *lease = Observed { version, holder: None, left: Some(left), ..lease.clone() };
    }

    /// The proxy is gone without a word.
    pub(super) fn kill(&mut self, shard: &str) {
        let pod = self.pod_of(shard);
        self.proxies.remove(&pod);
    }

    pub(super) fn run(&mut self, seconds: u64) {
        for _ in 0..seconds * 2 {
            self.tick();
        }
    }

    pub(super) fn tick(&mut self) {
        self.now = self.now + TICK;
        let pods: Vec<String> = self.proxies.keys().cloned().collect();
        for pod in &pods {
            self.act(pod);
        }
        for index in 0..self.coordinators.len() {
            let mut coordinator = std::mem::take(&mut self.coordinators[index]);
            self.coordinate(&mut coordinator);
            self.coordinators[index] = coordinator;
        }
        self.check();
    }

    /// Steps until there is nothing to do.
    fn coordinate(&mut self, coordinator: &mut Coordinator) {
        for _ in 0..8 {
            if self.finished {
                return;
            }
            let commands = coordinator.step(self.now, &self.seen()).commands;
            if !self.execute(&commands) {
                return;
            }
        }
        panic!("a coordinator finds no end");
    }

    pub(super) fn seen(&self) -> Seen {
        Seen {
            looked: self.now,
            ring: self.ring.clone(),
            map: self.maps.last().map(|map| (map.clone(), self.map_revision.to_string())),
            leases: self.leases.values().cloned().collect(),
            standbys: self.standbys.values().cloned().collect(),
            locks_held: self.locks_held,
            wishes: self.wishes.clone(),
            pins: self.pins.clone(),
            weights: None,
        }
    }

    /// Does what it can; tells whether there was anything to do but report.
    pub(super) fn execute(&mut self, commands: &[Command]) -> bool {
        let done = commands.iter().take_while(|command| self.execute_one(command)).count();
        done > 0 && commands.iter().any(|command| !matches!(command, Command::Report(_)))
    }

    fn execute_one(&mut self, command: &Command) -> bool {
        match command {
            Command::PutMap { spec, over } => {
                let is = (!self.maps.is_empty()).then(|| self.map_revision.to_string());
                if *over != is {
                    return false;
                }
                SlotMap::try_from(spec).unwrap();
                self.maps.push(spec.clone());
                self.map_revision = self.bump().parse().unwrap();
            }
            Command::CreateLease { shard, seat, left, term } => {
                let version = self.bump();
                let lease = Observed {
                    shard: shard.clone(),
                    version,
                    term: *term,
                    left: *left,
                    ..Observed::default()
                };
                let leases = if *seat == Seat::Identity { &mut self.leases } else { &mut self.standbys };
                leases.entry(shard.clone()).or_insert(lease);
            }
            Command::Depose { shard, version, left } => {
                let new = self.bump();
                let Some(lease) = self.leases.get_mut(shard).filter(|lease| lease.version == *version) else {
                    return false;
                };
                *lease = Observed { version: new, holder: None, left: Some(*left), ..lease.clone() };
                if *left == Left::Deposed {
                    self.deposed.push((shard.clone(), self.now));
                }
            }
            Command::DeleteSecret { shard, term } => self.secrets_deleted.push((shard.clone(), *term)),
            Command::DeleteLease { shard, seat, .. } => {
                let leases = if *seat == Seat::Identity { &mut self.leases } else { &mut self.standbys };
                leases.remove(shard);
            }
            Command::ReleaseLocks => self.locks_held = false,
            Command::Finish => self.finished = true,
            Command::Report(_) => {}
        }
        true
    }

    fn bump(&mut self) -> String {
        self.revision += 1;
        self.revision.to_string()
    }

    fn map(&self) -> Option<SlotMap> {
        self.maps.last().map(|map| SlotMap::try_from(map).unwrap())
    }

    fn act(&mut self, pod: &str) {
        let map = self.map();
        let mut proxy = self.proxies.remove(pod).unwrap();
        if !proxy.is_stopped {
            self.act_running(pod, &mut proxy, map.as_ref());
        }
        self.proxies.insert(pod.to_owned(), proxy);
    }

    fn act_running(&mut self, pod: &str, proxy: &mut Proxy, map: Option<&SlotMap>) {
        if proxy.held.is_none() {
            self.claim(pod, proxy, map);
        }
        let Some((version, term)) = proxy.held.clone() else { return };
        if let Some(map) = map {
            let asked = proxy.shard.follow(map).unwrap();
            if proxy.prepares {
                proxy.shard.prepared(&asked.prepare);
            }
            proxy.shard.shown(&asked.show);
            let idle = proxy.shard.idle(self.now);
            proxy.shard.released(&idle);
        }
        let acks = proxy.shard.acks();
        if acks == proxy.acks && self.now.since(proxy.renewed) < times::RENEW {
            return;
        }
        let name = proxy.shard.name().to_owned();
        let current = self.leases.get(&name).map(|lease| lease.version.clone());
        let new = self.bump();
        if current.as_ref().is_some_and(|current| *current != version) {
            proxy.held = None;
            proxy.shard.lapse();
            return;
        }
        // A Lease that is gone is created again.
        let term = term + i64::from(current.is_none());
        let holder = Some(pod.to_owned());
        let lease = Observed {
            shard: name.clone(),
            version: new.clone(),
            holder,
            term,
            left: None,
            acks: acks.clone(),
        };
        self.leases.insert(name, lease);
        proxy.shard.renewed(self.now);
        *proxy = Proxy { held: Some((new, term)), renewed: self.now, acks, ..std::mem::take(proxy) };
    }

    /// A Lease that was not left gracefully is claimed only once the map shows nothing of the shard.
    fn claim(&mut self, pod: &str, proxy: &mut Proxy, map: Option<&SlotMap>) {
        let owns = |shard: &str| map.is_some_and(|map| map.owners().contains_key(shard));
        let free = |lease: &&Observed| {
            lease.holder.is_none() && (lease.left == Some(Left::Graceful) || !owns(&lease.shard))
        };
        let Some(lease) = self.leases.values().find(free).cloned() else { return };
        let version = self.bump();
        let term = lease.term + 1;
        let claimed = Observed {
            version: version.clone(),
            holder: Some(pod.to_owned()),
            term,
            left: None,
            ..lease.clone()
        };
        self.leases.insert(lease.shard.clone(), Observed { acks: Acks::default(), ..claimed });
        proxy.shard.become_shard(lease.shard);
        proxy.shard.renewed(self.now);
        proxy.held = Some((version, term));
        proxy.renewed = self.now;
        proxy.acks = Acks::default();
    }

    /// At no time two proxies may write a slot, and map versions make one chain.
    fn check(&mut self) {
        for slot in (0..=u8::MAX).map(Slot) {
            let now = self.now;
            let may_write = |proxy: &mut Proxy| {
                let ticket = proxy.shard.enter(slot, now);
                ticket.map(|ticket| proxy.shard.leave(ticket, Outcome::Known, now)).is_ok()
            };
            let writers: Vec<bool> = self.proxies.values_mut().map(may_write).collect();
            assert!(writers.iter().filter(|may| **may).count() <= 1, "{slot} has two writers");
        }
        let versions = self.maps.iter().map(|map| map.version);
        assert!(versions.is_sorted_by(|a, b| a + 1 == *b), "map versions make a chain");
    }

    /// How many slots each shard owns.
    pub(super) fn owned(&self) -> BTreeMap<String, usize> {
        let map = self.map().unwrap();
        map.owners().into_iter().map(|(shard, slots)| (shard.to_owned(), slots)).collect()
    }

    /// Owner and epoch of each slot.
    pub(super) fn slots(&self) -> Vec<(Option<String>, i64)> {
        let map = self.map().unwrap();
        (0..=u8::MAX)
            .map(|slot| map.entry(Slot(slot)))
            .map(|entry| (entry.owner.clone(), entry.epoch))
            .collect()
    }

    pub(super) fn owner(&self, slot: Slot) -> Option<String> {
        self.map().unwrap().entry(slot).owner.clone()
    }

    pub(super) fn report(&self) -> &Report {
        self.coordinators[0].reported.as_ref().unwrap()
    }

    /// Whether each living shard owns its share of all slots, to one slot.
    pub(super) fn is_balanced(&self) -> bool {
        let owned = self.owned();
        let (most, least) = (owned.values().max().unwrap(), owned.values().min().unwrap());
        owned.values().sum::<usize>() == 256 && owned.len() == self.ring.shards.len() && most - least <= 1
    }
}

impl Default for Proxy {
    fn default() -> Self {
        Self {
            shard: Shard::new(""),
            held: None,
            renewed: Moment(0),
            acks: Acks::default(),
            is_stopped: false,
            prepares: true,
        }
    }
}
