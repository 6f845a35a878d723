//! The figures of a run: every one as CSV, their medians as a table with ratios.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter, Write};

use super::target::Name;

/// All figures of a run, by what was measured, in the order of the first round.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    what: String,
    figures: BTreeMap<Name, Vec<f64>>,
}

// === impl Table ===

impl Table {
    /// Adds a figure; `what` names its unit too.
    pub(super) fn add(&mut self, what: &str, name: Name, figure: f64) {
        let index = self.rows.iter().position(|row| row.what == what).unwrap_or_else(|| {
            self.rows.push(Row { what: what.to_owned(), figures: BTreeMap::new() });
            self.rows.len() - 1
        });
        if let Some(row) = self.rows.get_mut(index) {
            row.figures.entry(name).or_default().push(figure);
        }
    }

    /// One line a figure.
    pub(super) fn csv(&self) -> String {
        let mut csv = "what,target,round,figure\n".to_owned();
        for row in &self.rows {
            for (name, figures) in &row.figures {
                for (round, figure) in (1..).zip(figures) {
                    let _ = writeln!(csv, "{},{name},{round},{figure:.3}", row.what);
                }
            }
        }
        csv
    }
}

impl Display for Table {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<36}{:>10}{:>10}{:>10}{:>14}", "median", "direct", "floor", "Shoal", "Shoal/floor")?;
        self.rows.iter().try_for_each(|row| row.fmt(f))
    }
}

// === impl Row ===

impl Row {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:<36}", self.what)?;
        for name in Name::ALL {
            write!(f, "{:>10}", self.median(name).map_or("-".to_owned(), short))?;
        }
        let ratio = self.median(Name::Shoal).zip(self.median(Name::Floor));
        writeln!(f, "{:>14}", ratio.map_or("-".to_owned(), |(shoal, floor)| format!("{:.2}", shoal / floor)))
    }

    fn median(&self, name: Name) -> Option<f64> {
        let mut figures = self.figures.get(&name)?.clone();
        figures.sort_by(f64::total_cmp);
        figures.get(figures.len() / 2).copied()
    }
}

/// Three digits that mean something.
fn short(figure: f64) -> String {
    match figure {
        f if f >= 100.0 => format!("{f:.0}"),
        f if f >= 10.0 => format!("{f:.1}"),
        f => format!("{f:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_counts_and_every_figure_is_kept() {
        let mut table = Table::default();
        for figure in [300.0, 1.0, 20.0] {
            table.add("cpu us", Name::Shoal, figure);
            table.add("cpu us", Name::Floor, 10.0);
        }
        let text = table.to_string();
        let row: Vec<_> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(row, ["cpu", "us", "-", "10.0", "20.0", "2.00"]);
        assert_eq!(table.csv().lines().nth(4), Some("cpu us,shoal,1,300.000"));
    }
}
