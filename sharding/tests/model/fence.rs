//! Which rules keep a past owner's write out: one slot that goes from A to B, by A's own leave or over its silence, while A
//! may be paused anywhere and its writes wait at the server. All combinations of five rules are tried.

use stateright::{Checker, HasDiscoveries, Model, Property};

/// The longest trace that a failing combination may need.
const LONGEST: usize = 12;

/// A combination of rules.
#[allow(clippy::struct_excessive_bools, reason = "each is a rule that is there or not")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    /// A's leave waits for its writes in flight.
    g: bool,
    /// A looks at its deadline when it decides to write.
    l: bool,
    /// A looks again when the bytes leave, in one step with that.
    w: bool,
    /// B is let in only when the server has given up on what was sent before A was deposed.
    q: bool,
    /// Every write names the version of its object.
    r: bool,
    /// B writes each object before it begins, so that no version that A knew holds. Goes with `r`.
    bump: bool,
    /// What is promised.
    promise: Promise,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Promise {
    /// No write of A once B may act.
    Slot,
    /// No write of A to an object that B has written.
    Object,
}

#[allow(clippy::struct_excessive_bools, reason = "each has happened or not, in any order")]
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    paused: bool,
    /// A's Lease was taken away; its deadline has passed.
    deposed: bool,
    /// A let go.
    released: bool,
    granted: bool,
    /// B has written since.
    written: bool,
    version: u8,
    decisions: u8,
    writes: Vec<Write>,
    late: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Write {
    /// The version that it names.
    version: u8,
    /// Whether it is at the server.
    sent: bool,
    /// Whether it was sent while A was not deposed.
    early: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    Pause,
    Resume,
    Decide,
    Send(usize),
    /// A's own leave.
    Release,
    /// A is deposed: only when it is too silent to renew.
    Timeout,
    Grant,
    Commit(usize),
    /// The server gives up on a write.
    GiveUp(usize),
    /// B writes.
    Write,
}

// === impl Rules ===

impl Model for Rules {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::default()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let writes = || 0..state.writes.len();
        if state.paused {
            actions.push(Action::Resume);
            actions.extend((!state.deposed && !state.released).then_some(Action::Timeout));
        } else {
            actions.push(Action::Pause);
            let may_decide = !(state.released || (self.l && state.deposed)) && state.decisions < 2;
            actions.extend(may_decide.then_some(Action::Decide));
            let may_send = !(self.w && (state.deposed || state.released));
            let unsent = writes().filter(|write| may_send && !state.writes[*write].sent);
            actions.extend(unsent.map(Action::Send));
            let may_release = !(state.deposed || state.released) && (!self.g || state.writes.is_empty());
            actions.extend(may_release.then_some(Action::Release));
        }
        let waits = self.q && state.writes.iter().any(|write| write.early);
        let may_grant = !state.granted && (state.released || (state.deposed && !waits));
        actions.extend(may_grant.then_some(Action::Grant));
        actions.extend((state.granted && !state.written).then_some(Action::Write));
        let sent = || writes().filter(|write| state.writes[*write].sent);
        actions.extend(sent().map(Action::Commit));
        actions.extend(sent().map(Action::GiveUp));
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Pause => state.paused = true,
            Action::Resume => state.paused = false,
            Action::Decide => {
                state.decisions += 1;
                state.writes.push(Write { version: state.version, sent: false, early: false });
            }
            Action::Send(write) => {
                state.writes[write].sent = true;
                state.writes[write].early = !state.deposed;
            }
            Action::Release => state.released = true,
            Action::Timeout => state.deposed = true,
            Action::Grant => {
                state.granted = true;
                state.version += u8::from(self.r && self.bump);
                state.written |= self.r && self.bump;
            }
            Action::Commit(write) => self.commit(&mut state, write),
            Action::GiveUp(write) => drop(state.writes.remove(write)),
            Action::Write => {
                state.version += 1;
                state.written = true;
            }
        }
        state.writes.sort();
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("no late write", |_, state: &State| !state.late)]
    }
}

impl Rules {
    fn all(bump: bool, promise: Promise) -> impl Iterator<Item = Self> {
        (0..32_u8).map(move |bits| {
            let has = |bit: u8| bits & bit != 0;
            Self { g: has(1), l: has(2), w: has(4), q: has(8), r: has(16), bump, promise }
        })
    }

    fn commit(self, state: &mut State, write: usize) {
        let write = state.writes.remove(write);
        if self.r && write.version != state.version {
            return;
        }
        state.version += 1;
        state.late |= match self.promise {
            Promise::Slot => state.granted,
            Promise::Object => state.written,
        };
    }

    /// The sets that are enough, by the model of sharding with fences: {r,l}, {r,w} and {g,q,w}.
    fn is_safe(self) -> bool {
        let by_version = self.r && (self.l || self.w) && (self.bump || self.promise == Promise::Object);
        by_version || (self.g && self.q && self.w)
    }

    fn name(self) -> String {
        let rules = [(self.g, 'g'), (self.l, 'l'), (self.w, 'w'), (self.q, 'q'), (self.r, 'r')];
        let name: String = rules.iter().filter(|(on, _)| *on).map(|(_, name)| *name).collect();
        if name.is_empty() { "none".to_owned() } else { name }
    }
}

/// What came of the combinations.
#[derive(Debug, Default)]
pub(crate) struct Matrix {
    pub(crate) states: usize,
    pub(crate) safe: usize,
    pub(crate) failed: usize,
}

/// Tries all combinations, with and without B's first write, and fails unless exactly the sets that should be are safe.
pub(crate) fn matrix(print: bool) -> Matrix {
    let mut matrix = tried(true, Promise::Slot, print);
    assert_eq!((matrix.safe, matrix.failed), (14, 18));
    // Without that write, the promise for a slot is kept by waiting only, and that for an object by the same sets as before.
    let slots = tried(false, Promise::Slot, false);
    assert_eq!((slots.safe, slots.failed), (4, 28));
    let objects = tried(false, Promise::Object, false);
    assert_eq!((objects.safe, objects.failed), (14, 18));
    matrix.states += slots.states + objects.states;
    matrix
}

fn tried(bump: bool, promise: Promise, print: bool) -> Matrix {
    let mut matrix = Matrix::default();
    for rules in Rules::all(bump, promise) {
        let checker = rules.checker().finish_when(HasDiscoveries::All).spawn_bfs().join();
        let trace = checker.discovery("no late write").map(stateright::Path::into_actions);
        let verdict = trace.as_ref().map_or("safe".to_owned(), |trace| told(trace));
        if print {
            println!("fence: {:5} {:4} states  {verdict}", rules.name(), checker.unique_state_count());
        }
        assert_eq!(trace.is_none(), rules.is_safe(), "{rules:?}: {verdict}");
        assert!(trace.is_none_or(|trace| trace.len() <= LONGEST));
        matrix.states += checker.unique_state_count();
        matrix.safe += usize::from(rules.is_safe());
        matrix.failed += usize::from(!rules.is_safe());
    }
    matrix
}

fn told(trace: &[Action]) -> String {
    let word = |action: &Action| {
        let word = format!("{action:?}").to_lowercase();
        word.split('(').next().unwrap_or_default().to_owned()
    };
    trace.iter().map(word).collect::<Vec<_>>().join(" > ")
}
