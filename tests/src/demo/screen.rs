//! What the demo prints: steps with the time they began at, tables, and lines that are replaced while something works.

use std::cell::RefCell;
use std::io::{self, IsTerminal, Stdout, Write};
use std::process::ExitCode;
use std::time::Duration;

use tokio::time::Instant;

/// Between two lines of progress where they cannot be replaced in place.
const PROGRESS_EVERY: Duration = Duration::from_secs(3);
/// What stands under a step is indented so.
const INDENT: &str = "         ";
/// One a shard, in order: cyan, magenta, yellow.
const SHARD_COLOURS: [&str; 3] = ["36", "35", "33"];

/// Standard output. What cannot be written is dropped: the demo goes on without a reader.
#[derive(Debug)]
pub struct Screen {
    out: Stdout,
    terminal: bool,
    colour: bool,
    began: Instant,
}

/// A line that is replaced until it is right.
#[derive(Debug)]
pub(super) struct Live<'a> {
    screen: &'a Screen,
    last: RefCell<(Option<Instant>, String)>,
}

// === impl Screen ===

impl Screen {
    /// Colours are for terminals, and only where `colour` allows them (<https://no-color.org>). The clock starts here.
    pub fn stdout(colour: bool) -> Self {
        let out = io::stdout();
        let terminal = out.is_terminal();
        Self { out, terminal, colour: colour && terminal, began: Instant::now() }
    }

    pub(super) fn title(&self, text: &str) {
        self.print(&format!("{}\n", self.paint("1", text)));
    }

    /// Something begins.
    pub(super) fn step(&self, text: &str) {
        let seconds = format!("{:5.1} s", self.began.elapsed().as_secs_f64());
        self.print(&format!("{}  {}\n", self.paint("2", &seconds), self.paint("1", text)));
    }

    /// A line that belongs to the step.
    pub(super) fn line(&self, text: &str) {
        self.print(&format!("{}\n", format!("{INDENT}{text}").trim_end()));
    }

    /// A line in the colour of a shard.
    pub(super) fn shard_line(&self, shard: usize, text: &str) {
        let colour = SHARD_COLOURS.get(shard % SHARD_COLOURS.len()).unwrap_or(&"0");
        self.line(&self.paint(colour, text));
    }

    /// Good news.
    pub(super) fn good(&self, text: &str) {
        self.line(&self.paint("32", text));
    }

    /// Bad news.
    pub(super) fn bad(&self, text: &str) {
        self.line(&self.paint("31", text));
    }

    pub(super) fn live(&self) -> Live<'_> {
        Live { screen: self, last: RefCell::default() }
    }

    /// The last line of a run that went well.
    pub(super) fn succeed(&self, outcome: &str) -> ExitCode {
        let seconds = self.began.elapsed().as_secs();
        self.print(&format!("\n{}\n", self.paint("1;32", &format!("demo: ok {outcome} seconds={seconds}"))));
        ExitCode::SUCCESS
    }

    /// The last line of a run that did not; an error of several lines is shown whole before it.
    pub(super) fn fail(&self, error: &str) -> ExitCode {
        let (first, more) = error.split_once('\n').unwrap_or((error, ""));
        if !more.is_empty() {
            self.print(&format!("\n{error}\n"));
        }
        self.print(&format!("\n{}\n", self.paint("1;31", &format!("demo: failed {first}"))));
        ExitCode::FAILURE
    }

    fn print(&self, text: &str) {
        let mut out = self.out.lock();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }

    fn paint(&self, colour: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{colour}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

// === impl Live ===

impl Live<'_> {
    /// Shows the newest; without a terminal only now and then, and only what is new.
    pub(super) fn show(&self, text: &str) {
        let mut last = self.last.borrow_mut();
        let due = last.0.is_none_or(|at| at.elapsed() >= PROGRESS_EVERY);
        if text == last.1 || !(self.screen.terminal || due) {
            return;
        }
        *last = (Some(Instant::now()), text.to_owned());
        if self.screen.terminal {
            self.screen.print(&format!("\r\x1b[K{INDENT}{text}"));
        } else {
            self.screen.line(text);
        }
    }

    /// Leaves `text` as the last word.
    pub(super) fn end(self, text: &str) {
        let shown = self.last.into_inner().1;
        if self.screen.terminal {
            self.screen.print("\r\x1b[K");
            self.screen.line(text);
        } else if shown != text {
            self.screen.line(text);
        }
    }
}

/// Rows as lines, each column as wide as its widest cell; the first column is flush left, the others as asked.
pub(super) fn table(rows: &[Vec<String>], numbers: bool) -> Vec<String> {
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let cell = |(column, text): (usize, &String)| {
        let width = width(column);
        if numbers && column > 0 { format!("{text:>width$}") } else { format!("{text:<width$}") }
    };
    let line = |row: &Vec<String>| row.iter().enumerate().map(cell).collect::<Vec<_>>().join("   ");
    rows.iter().map(line).collect()
}

/// `████····` of `width` cells.
pub(super) fn bar(done: usize, of: usize, width: usize) -> String {
    let full = (done * width).checked_div(of).unwrap_or(width).min(width);
    format!("{}{}", "█".repeat(full), "·".repeat(width - full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let rows = [row(["", "kcm-0"]), row(["pods", "7"])];
        assert_eq!(table(&rows, true), ["       kcm-0", "pods       7"]);
        assert_eq!(table(&rows, false), ["       kcm-0", "pods   7    "]);
    }

    #[test]
    fn a_bar_is_full_when_all_is_done() {
        assert_eq!(bar(0, 12, 4), "····");
        assert_eq!(bar(11, 12, 4), "███·");
        assert_eq!(bar(12, 12, 4), "████");
        assert_eq!(bar(0, 0, 4), "████");
    }
}
