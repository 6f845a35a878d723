//! A whole ring: the coordinators' and the shards' own code over a small API server, in every order of events up to bounds.
//!
//! Some of the proxies and coordinators are free: they do each thing at any time or never, so that they are paused, cut off or
//! dead anywhere. The others do at once what there is to do, after each event. A tick is two seconds, on one clock.

mod api;
mod brain;
mod proxy;

use shoal_sharding::{Left, Moment, Observed, shard::Outcome};
use stateright::{Model, Property};

use self::{
    api::{Api, Kept, Right, SLOTS},
    brain::Brain,
    proxy::Proxy,
};

/// A tick: so short that a write sent at the end of a Lease is under way when its sender is deposed.
const TICK: u64 = 2000;

/// What is tried, and how far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ring {
    pub(crate) name: &'static str,
    pub(crate) shards: usize,
    pub(crate) proxies: usize,
    pub(crate) coordinators: usize,
    /// The free ones.
    pub(crate) free: Vec<Actor>,
    /// Whether time may pass between a write's last check and its bytes. Then only versions keep it out, and the promise is
    /// for an object; else only waiting does, and the promise is for a slot.
    pub(crate) gap: bool,
    /// Whether somebody wants all slots at the second shard.
    pub(crate) wish: bool,
    /// For how many ticks the first proxy was silent already.
    pub(crate) silent: u8,
    /// Whether the ring begins: a replica without a proxy leads by the original lock.
    pub(crate) begins: bool,
    pub(crate) bounds: Bounds,
}

/// Who may be free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Actor {
    Proxy(usize),
    Coordinator(usize),
}

/// How often things may happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Bounds {
    pub(crate) ticks: u8,
    pub(crate) writes: u8,
    /// Proxies that leave, by either reason.
    pub(crate) leaves: u8,
    /// Proxies or coordinators that start anew.
    pub(crate) restarts: u8,
    pub(crate) deleted_leases: u8,
    pub(crate) lost_answers: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    tick: u8,
    api: Api,
    lock: Lock,
    proxies: Vec<Proxy>,
    brains: Vec<Brain>,
    left: Bounds,
    processes: u8,
    seen: Seen,
}

/// What has happened, for the properties.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Seen {
    /// The latest right by which each slot was opened.
    opened: [Right; 2],
    /// The latest epoch at which each slot was released.
    released: [i64; 2],
    broken: Option<&'static str>,
    refused: bool,
}

/// Who has the controller's original lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Lock {
    Replica,
    Free,
    Ring,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    Tick,
    Seek(usize, usize),
    Claim(usize),
    Renew(usize),
    Follow(usize),
    Enter(usize, usize),
    Check(usize),
    Send(usize),
    Leave(usize, Left),
    Restart(usize),
    Commit(usize),
    LoseAnswer(usize),
    DeleteLease(usize),
    Look(usize),
    Execute(usize),
    RestartCoordinator(usize),
    ReplicaEnds,
    ReplicaWrites,
    TakeLock,
}

// === impl Ring ===

impl Model for Ring {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let mut state = State {
            tick: 0,
            api: Api::new(self.shards),
            lock: if self.begins { Lock::Replica } else { Lock::Ring },
            proxies: (0_u8..).take(self.proxies).map(Proxy::new).collect(),
            brains: vec![Brain::default(); self.coordinators],
            left: Bounds { ticks: 6, ..Bounds::default() },
            processes: u8::try_from(self.proxies).unwrap_or(u8::MAX),
            seen: Seen::default(),
        };
        if !self.begins {
            self.warm_up(&mut state);
        }
        state.left = self.bounds;
        vec![state]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.seen.broken.is_some() {
            return;
        }
        actions.extend((state.left.ticks > 0).then_some(Action::Tick));
        for proxy in 0..self.proxies {
            self.of_proxy(state, proxy, actions);
        }
        for write in 0..state.api.under_way.len() {
            actions.push(Action::Commit(write));
            let may_lose = state.left.lost_answers > 0 && state.api.under_way[write].awaited;
            actions.extend(may_lose.then_some(Action::LoseAnswer(write)));
        }
        for brain in 0..self.coordinators {
            if self.free.contains(&Actor::Coordinator(brain)) {
                let is_busy = state.brains[brain].has_plans();
                actions.push(if is_busy { Action::Execute(brain) } else { Action::Look(brain) });
            }
            actions.extend((state.left.restarts > 0).then_some(Action::RestartCoordinator(brain)));
        }
        if state.left.deleted_leases > 0 {
            actions.extend((0..self.shards).map(Action::DeleteLease));
        }
        match state.lock {
            Lock::Replica => actions.extend([Action::ReplicaEnds, Action::ReplicaWrites]),
            Lock::Free => actions.push(Action::TakeLock),
            Lock::Ring => {}
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        self.act(&mut state, action);
        self.prompt(&mut state, 0);
        state.api.under_way.sort();
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always("one writer (I1, I2, I4)", |_, state: &State| state.seen.broken != Some("I1")),
            Property::always("one open gate (I1, I5)", |_, state: &State| state.seen.broken != Some("I5")),
            Property::always("a release is final (I3)", |_, state: &State| state.seen.broken != Some("I3")),
            Property::always("one chain of maps (I2, I6)", |_, state: &State| {
                state.seen.broken != Some("I6")
            }),
            Property::always("no gate beside a replica", |_, state: &State| {
                state.seen.broken != Some("lock")
            }),
            Property::sometimes("a slot changes hands", |ring: &Self, state: &State| {
                // Of a ring that begins, that its first gates open.
                state.seen.opened.iter().any(|right| right.epoch > if ring.begins { 1 } else { 2 })
            }),
        ];
        if self.gap {
            properties
                .push(Property::sometimes("a late write is refused", |_, state: &State| state.seen.refused));
        }
        properties
    }
}

impl Ring {
    fn of_proxy(&self, state: &State, number: usize, actions: &mut Vec<Action>) {
        let (proxy, now) = (&state.proxies[number], state.now());
        actions.extend((state.left.restarts > 0).then_some(Action::Restart(number)));
        if let Some(write) = proxy.write {
            actions.push(if self.gap && !write.checked {
                Action::Check(number)
            } else {
                Action::Send(number)
            });
        }
        if self.free.contains(&Actor::Proxy(number)) {
            self.moves_of(state, number, actions);
        }
        if state.left.writes > 0 && proxy.write.is_none() {
            let open = (0..SLOTS.len()).filter(|object| proxy.opened(*object, now).is_some());
            actions.extend(open.map(|object| Action::Enter(number, object)));
        }
        if state.left.leaves > 0 && proxy.held.is_some() && !proxy.own.is_busy {
            actions.extend([Left::Graceful, Left::ControllerExit].map(|left| Action::Leave(number, left)));
        }
    }

    /// What a proxy does for its identity and its slots.
    fn moves_of(&self, state: &State, number: usize, actions: &mut Vec<Action>) {
        let proxy = &state.proxies[number];
        if proxy.is_gone {
            return;
        }
        let Some(held) = &proxy.held else {
            match proxy.goal {
                Some(_) => actions.push(Action::Claim(number)),
                None => actions.extend((0..self.shards).map(|shard| Action::Seek(number, shard))),
            }
            return;
        };
        if held.renewed < state.now().0 || proxy.has_news() {
            actions.push(Action::Renew(number));
        }
        if state.api.map.as_ref().is_some_and(|map| map.slots().version() > proxy.map) {
            actions.push(Action::Follow(number));
        }
    }

    /// Those who are not free do what there is to do, until there is nothing.
    fn prompt(&self, state: &mut State, silent: usize) {
        loop {
            let before = state.clone();
            let proxies = (silent..self.proxies).filter(|number| !self.free.contains(&Actor::Proxy(*number)));
            for number in proxies {
                let mut actions = Vec::new();
                self.moves_of(state, number, &mut actions);
                for action in actions {
                    self.act(state, action);
                }
            }
            for brain in
                (0..self.coordinators).filter(|brain| !self.free.contains(&Actor::Coordinator(*brain)))
            {
                self.act(state, Action::Look(brain));
                while state.brains[brain].has_plans() {
                    self.act(state, Action::Execute(brain));
                }
            }
            if *state == before {
                return;
            }
        }
    }

    fn act(&self, state: &mut State, action: Action) {
        let now = state.now();
        match action {
            Action::Tick => state.tick(),
            Action::Seek(proxy, shard) => drop(state.proxies[proxy].seek(&state.api, shard)),
            Action::Claim(proxy) => state.proxies[proxy].claim(&mut state.api, now),
            Action::Renew(proxy) => state.proxies[proxy].renew(&mut state.api, now),
            Action::Follow(proxy) => state.proxies[proxy].follow(&state.api, now),
            Action::Enter(proxy, object) => {
                state.left.writes -= 1;
                state.proxies[proxy].enter(&state.api, object, now);
            }
            Action::Check(proxy) => state.proxies[proxy].check(now),
            Action::Send(proxy) => {
                if !self.gap {
                    state.proxies[proxy].check(now);
                }
                state.proxies[proxy].send(proxy, &mut state.api, now);
            }
            Action::Leave(proxy, left) => {
                state.left.leaves -= 1;
                state.proxies[proxy].release(&mut state.api, left, now);
            }
            Action::Restart(proxy) => {
                state.left.restarts -= 1;
                state.proxies[proxy] = Proxy::new(state.processes);
                state.processes += 1;
            }
            Action::Commit(write) => self.commit(state, write),
            Action::LoseAnswer(write) => {
                state.left.lost_answers -= 1;
                state.api.under_way[write].awaited = false;
                let write = state.api.under_way[write].clone();
                state.answer(&write, Outcome::Unknown);
            }
            Action::DeleteLease(shard) => {
                state.left.deleted_leases -= 1;
                state.api.leases[shard] = None;
            }
            Action::Look(brain) => state.brains[brain].look(self, &state.api, state.lock == Lock::Ring, now),
            Action::Execute(brain) => {
                let broken = state.brains[brain].execute(&mut state.api);
                state.seen.broken = state.seen.broken.or(broken);
            }
            Action::RestartCoordinator(brain) => {
                state.left.restarts -= 1;
                state.brains[brain] = Brain::default();
            }
            Action::ReplicaEnds => state.lock = Lock::Free,
            Action::TakeLock => state.lock = Lock::Ring,
            Action::ReplicaWrites => {
                let any = state
                    .proxies
                    .iter()
                    .any(|proxy| (0..2).any(|object| proxy.opened(object, now).is_some()));
                state.seen.broken = any.then_some("lock");
            }
        }
        state.watch();
    }

    fn commit(&self, state: &mut State, write: usize) {
        let write = state.api.under_way.remove(write);
        if write.awaited {
            state.answer(&write, Outcome::Known);
        }
        let object = &mut state.api.objects[write.object];
        if self.gap && object.version != write.version {
            state.seen.refused |= write.right < object.last;
            return;
        }
        let before = if self.gap { object.last } else { state.seen.opened[write.object] };
        // The same process may finish what it began at an earlier right.
        if write.right < before && write.right.process != before.process {
            state.seen.broken = Some("I1");
        }
        if write.right.epoch <= state.seen.released[write.object] {
            state.seen.broken = Some("I3");
        }
        object.version += 1;
        object.last = object.last.max(write.right);
    }

    /// Everybody does its part until the ring is at rest and its coordinators have watched for long.
    fn warm_up(&self, state: &mut State) {
        let all = Self { free: Vec::new(), ..self.clone() };
        let begun = Self { proxies: self.shards, ..all.clone() };
        while state.left.ticks > 0 {
            let silent = usize::from(state.left.ticks <= self.silent);
            if state.tick == 0 {
                begun.prompt(state, 0);
            } else {
                all.prompt(state, silent);
            }
            self.act(state, Action::Tick);
        }
        let owned =
            |proxy: &Proxy| (0..2).filter(|object| proxy.opened(*object, state.now()).is_some()).count();
        assert_eq!(state.proxies.iter().map(owned).sum::<usize>(), 2, "the ring has begun");
    }
}

// === impl State ===

impl State {
    fn now(&self) -> Moment {
        Moment(u64::from(self.tick) * TICK)
    }

    fn tick(&mut self) {
        self.tick += 1;
        self.left.ticks -= 1;
        let now = self.now();
        for write in self.api.give_up(now) {
            if write.awaited {
                self.answer(&write, Outcome::Unknown);
            }
        }
        for proxy in &mut self.proxies {
            proxy.settle(now);
        }
    }

    fn answer(&mut self, write: &api::Write, outcome: Outcome) {
        let now = self.now();
        let proxy = &mut self.proxies[write.proxy];
        if proxy.process == write.right.process {
            proxy.leave(api::ticket_of(write), outcome, now);
        }
    }

    /// Notes which gates are open and what was released.
    fn watch(&mut self) {
        let now = self.now();
        for (object, of) in SLOTS.iter().enumerate() {
            let open: Vec<Right> =
                self.proxies.iter().filter_map(|proxy| proxy.opened(object, now)).collect();
            if open.len() > 1 {
                self.seen.broken = Some("I5");
            }
            if let Some(right) = open.first() {
                self.seen.opened[object] = self.seen.opened[object].max(*right);
            }
            let acked = |lease: &Kept<Observed>| {
                lease.acks.released.iter().filter(|(slot, _)| slot == of).map(|(_, epoch)| *epoch).max()
            };
            let released = self.api.leases.iter().flatten().filter_map(acked).max().unwrap_or(0);
            self.seen.released[object] = self.seen.released[object].max(released);
        }
    }
}
