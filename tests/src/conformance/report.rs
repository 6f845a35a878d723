//! What is printed: a line a failed pair with both answers, the summary, the documented differences that were met.

use std::collections::BTreeMap;
use std::io::{IsTerminal, stderr};

use super::difference::Difference;
use super::form::Form;
use super::run::Outcome;

/// Failures that are shown of one cell of the summary; those behind them are seldom of another kind.
const SHOWN_OF_A_CELL: usize = 5;

/// The sum so far.
#[derive(Debug, Default)]
pub struct Report {
    /// Pairs of one request and one proxy whose answers are as they should be.
    pub passed: usize,
    /// All others.
    pub failed: usize,
    cells: BTreeMap<&'static str, BTreeMap<Form, (usize, usize)>>,
    met: BTreeMap<Difference, usize>,
}

// === impl Report ===

impl Report {
    pub(super) fn add(&mut self, outcome: &Outcome) {
        for (title, result) in &outcome.results {
            let cell = self.cells.entry(outcome.pair.verb).or_default().entry(outcome.pair.form).or_default();
            match result {
                Ok(met) => {
                    self.passed += 1;
                    cell.0 += 1;
                    for difference in met {
                        *self.met.entry(*difference).or_default() += 1;
                    }
                }
                Err(mismatch) => {
                    self.failed += 1;
                    cell.1 += 1;
                    if cell.1 <= SHOWN_OF_A_CELL {
                        println!("FAILED {title}: {}: {mismatch}", outcome.pair.describe());
                    }
                }
            }
        }
        self.progress();
    }

    /// A check that is no pair of the summary.
    pub(super) fn check(&mut self, difference: Difference, wrong: &[String]) {
        *self.met.entry(difference).or_default() += 1;
        match wrong.first() {
            None => self.passed += 1,
            Some(first) => {
                self.failed += 1;
                println!("FAILED {}: {} wrong, the first: {first}", difference.row().0, wrong.len());
            }
        }
    }

    fn progress(&self) {
        if stderr().is_terminal() && (self.passed + self.failed).is_multiple_of(50) {
            eprint!("\r{} pairs, {} failed ", self.passed + self.failed, self.failed);
        }
    }

    /// How often a difference was met.
    #[must_use]
    pub(super) fn met(&self, difference: Difference) -> usize {
        self.met.get(&difference).copied().unwrap_or_default()
    }

    /// The tables and, last, the sum.
    pub fn print(&self) {
        println!("\npairs passed, and failed after a slash\n");
        print!("{:22}", "");
        for form in Form::ALL {
            print!("{:>11}", form.title());
        }
        println!();
        for (verb, cells) in &self.cells {
            print!("{verb:22}");
            for form in Form::ALL {
                print!("{:>11}", cell(cells.get(&form)));
            }
            println!();
        }
        println!("\ndocumented differences, and how often their exact form was found\n");
        for difference in Difference::ALL {
            let (what, form) = difference.row();
            println!("{:>6}  {what}: {form}", self.met(difference));
        }
        println!("\n{} passed, {} failed", self.passed, self.failed);
    }
}

fn cell(counts: Option<&(usize, usize)>) -> String {
    match counts {
        None => "-".to_owned(),
        Some((passed, 0)) => passed.to_string(),
        Some((passed, failed)) => format!("{passed}/{failed}"),
    }
}
