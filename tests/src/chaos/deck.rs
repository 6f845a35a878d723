//! Which fault comes next, and how often each came.

use std::collections::BTreeMap;

use super::{ChaosError, Fault};

/// Faults in random order: each comes once before one comes again.
pub(super) struct Deck {
    faults: Vec<Fault>,
    left: Vec<Fault>,
    dice: fastrand::Rng,
}

/// How often each fault was tried, and seen to happen.
pub(super) struct Tally(BTreeMap<Fault, (u32, u32)>);

// === impl Deck ===

impl Deck {
    pub(super) fn new(faults: &[Fault], seed: u64) -> Self {
        Self { faults: faults.to_vec(), left: Vec::new(), dice: fastrand::Rng::with_seed(seed) }
    }

    pub(super) fn draw(&mut self) -> Fault {
        loop {
            if let Some(fault) = self.left.pop() {
                return fault;
            }
            self.left.clone_from(&self.faults);
            self.dice.shuffle(&mut self.left);
        }
    }

    /// For what else is up to chance.
    pub(super) fn dice(&mut self) -> &mut fastrand::Rng {
        &mut self.dice
    }
}

// === impl Tally ===

impl Tally {
    pub(super) fn new(faults: &[Fault]) -> Self {
        Self(faults.iter().map(|fault| (*fault, (0, 0))).collect())
    }

    pub(super) fn note(&mut self, fault: Fault, seen: bool) {
        let (tried, was_seen) = self.0.entry(fault).or_default();
        *tried += 1;
        *was_seen += u32::from(seen);
    }

    pub(super) fn print(&self) {
        println!("{:<20} {:>6} {:>6}", "fault", "tried", "seen");
        for (fault, (tried, seen)) in &self.0 {
            println!("{:<20} {tried:>6} {seen:>6}", fault.to_string());
        }
    }

    /// A fault that was tried must have been seen. One whose turn did not come is no failure of a short run.
    pub(super) fn check(&self) -> Result<(), ChaosError> {
        let unseen = self.0.iter().find(|(_, (tried, seen))| *tried > 0 && *seen == 0);
        match unseen {
            Some((fault, _)) => Err(ChaosError::Judge(format!("{fault} was tried and never seen to happen"))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_comes_before_one_comes_again_and_the_seed_decides_the_order() {
        let drawn = |seed| {
            let mut deck = Deck::new(&Fault::ALL, seed);
            (0..2 * Fault::ALL.len()).map(|_| deck.draw()).collect::<Vec<_>>()
        };
        let mut first = drawn(7)[..Fault::ALL.len()].to_vec();
        first.sort_unstable();
        let mut all = Fault::ALL.to_vec();
        all.sort_unstable();
        assert_eq!(first, all);
        assert_eq!(drawn(7), drawn(7));
        assert_ne!(drawn(7), drawn(8));
    }

    #[test]
    fn a_fault_that_was_never_seen_fails_the_run() {
        let mut tally = Tally::new(&[Fault::Scale, Fault::Clock]);
        tally.note(Fault::Scale, true);
        tally.note(Fault::Scale, false);
        assert!(tally.check().is_ok(), "the clock's turn did not come");
        tally.note(Fault::Clock, false);
        assert!(tally.check().is_err());
    }
}
