//! Random changes of Gadgets, and what they should come to.

use std::collections::BTreeMap;

use fastrand::Rng;

use crate::gadgets::{self, GROUPS, State};

/// Run again with this variable set to what a failed run printed.
const SEED: &str = "SHOAL_TEST_SEED";
const NAMESPACES: usize = 6;
/// Gadgets alive in a namespace, at the most.
const ALIVE: usize = 8;
const COLORS: [&str; 5] = ["red", "green", "blue", "white", "black"];

/// One change. Worlds differ in when it meets their controllers, not in what it is.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) group: &'static str,
    pub(crate) namespace: String,
    pub(crate) gadget: String,
    pub(crate) what: What,
}

#[derive(Debug, Clone)]
pub(crate) enum What {
    Create(Spec),
    /// A new spec.
    Want(Spec),
    /// A label, which changes nothing.
    Label(u32),
    /// Somebody paints a part.
    Paint(u64, &'static str),
    /// Somebody takes a part away.
    Take(u64),
    Delete,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Spec {
    pub(crate) size: u64,
    pub(crate) color: &'static str,
}

/// A source of changes.
pub(crate) struct Changes {
    random: Rng,
    alive: BTreeMap<(usize, String, String), Spec>,
    made: usize,
}

// === impl Changes ===

impl Changes {
    pub(crate) fn new() -> Self {
        let seed = std::env::var(SEED).map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
        println!("{SEED}={seed}");
        Self { random: Rng::with_seed(seed), alive: BTreeMap::new(), made: 0 }
    }

    /// So many changes more, in order, and the state that they come to.
    pub(crate) fn next(&mut self, count: usize) -> (Vec<Change>, [State; 2]) {
        let changes = (0..count).map(|_| self.one()).collect::<Vec<_>>();
        (changes, [0, 1].map(|group| self.wanted(group)))
    }

    fn one(&mut self) -> Change {
        let group = self.random.usize(..GROUPS.len());
        let namespace = namespace(group, self.random.usize(..NAMESPACES));
        let here = (group, namespace.clone(), String::new());
        let alive = self.alive.range(here..).take_while(|((g, n, _), _)| *g == group && *n == namespace);
        let alive: Vec<_> = alive.map(|((.., name), spec)| (name.clone(), *spec)).collect();
        let may_create = alive.len() < ALIVE;
        let (gadget, what) = match self.random.choice(&alive) {
            Some((gadget, spec)) if !may_create || self.random.u8(..100) < 88 => {
                (gadget.clone(), self.change(*spec))
            }
            _ => self.create(),
        };
        let place = (group, namespace.clone(), gadget.clone());
        match what {
            What::Create(spec) | What::Want(spec) => drop(self.alive.insert(place, spec)),
            What::Delete => drop(self.alive.remove(&place)),
            What::Label(_) | What::Paint(..) | What::Take(_) => {}
        }
        Change { group: GROUPS[group], namespace, gadget, what }
    }

    /// A name is never used again: the one before may still be on its way out.
    fn create(&mut self) -> (String, What) {
        self.made += 1;
        (format!("gadget-{}", self.made), What::Create(self.spec()))
    }

    fn change(&mut self, spec: Spec) -> What {
        let part = self.random.u64(..spec.size.max(1));
        match self.random.u8(..100) {
            0..40 => What::Want(self.spec()),
            40..55 => What::Label(self.random.u32(..)),
            55..75 => What::Paint(part, "pink"),
            75..90 => What::Take(part),
            _ => What::Delete,
        }
    }

    fn spec(&mut self) -> Spec {
        Spec { size: self.random.u64(..4), color: COLORS[self.random.usize(..COLORS.len())] }
    }

    fn wanted(&self, group: usize) -> State {
        let alive = self.alive.iter().filter(|((of, ..), _)| *of == group);
        alive.flat_map(|((_, namespace, gadget), spec)| lines(namespace, gadget, *spec)).collect()
    }
}

/// The namespaces of a group.
pub(crate) fn namespaces() -> impl Iterator<Item = String> {
    (0..GROUPS.len()).flat_map(|group| (0..NAMESPACES).map(move |number| namespace(group, number)))
}

fn namespace(group: usize, number: usize) -> String {
    format!("{}-{number}", gadgets::prefix(GROUPS[group]))
}

fn lines(namespace: &str, gadget: &str, spec: Spec) -> Vec<(String, String)> {
    let own = (format!("{namespace}/{gadget}"), gadgets::done(spec.size, spec.color));
    let part = |index| (format!("{namespace}/{gadget}-{index}"), gadgets::part(gadget, spec.color));
    std::iter::once(own).chain((0..spec.size).map(part)).collect()
}
