//! The figures of a run: every one as CSV, their medians as a table with ratios and bars.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter, Write};

use super::bar::Bar;
use super::target::Name;

/// All figures of a run, by what was measured, in the order of the first round.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    what: String,
    bars: Vec<Bar>,
    figures: BTreeMap<Name, Vec<f64>>,
}

// === impl Table ===

impl Table {
    /// Adds a figure; `what` names its unit too.
    pub(super) fn add(&mut self, what: &str, bars: &[Bar], name: Name, figure: f64) {
        let index = self.rows.iter().position(|row| row.what == what).unwrap_or_else(|| {
            let (what, bars) = (what.to_owned(), bars.to_owned());
            self.rows.push(Row { what, bars, figures: BTreeMap::new() });
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
                    let _ = writeln!(csv, "\"{}\",{name},{round},{figure:.4}", row.what);
                }
            }
        }
        csv
    }
}

impl Display for Table {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:<38}", "median")?;
        Name::ALL.iter().try_for_each(|name| write!(f, "{name:>9}"))?;
        writeln!(f, "{:>10}{:>13}  bars of Shoal", "Shoal/Go", "Shoal/floor")?;
        self.rows.iter().try_for_each(|row| row.fmt(f))
    }
}

// === impl Row ===

impl Row {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:<38}", self.what)?;
        for name in Name::ALL {
            write!(f, "{:>9}", self.median(name).map_or("-".to_owned(), short))?;
        }
        write!(f, "{:>10}{:>13}  ", self.ratio(Name::Go), self.ratio(Name::Floor))?;
        let bars: Vec<_> = self.bars.iter().map(|bar| self.judged(*bar)).collect();
        writeln!(f, "{}", bars.join(", "))
    }

    fn judged(&self, bar: Bar) -> String {
        let verdict = match bar.holds(|name| self.median(name)) {
            Some(true) => "ok",
            Some(false) => "MISSED",
            None => "not measured",
        };
        format!("{bar} {verdict}")
    }

    /// Of Shoal to another. Nothing can be said of differences around zero.
    fn ratio(&self, to: Name) -> String {
        let pair = self.median(Name::Shoal).zip(self.median(to));
        match pair.filter(|(shoal, to)| *shoal > 0.0 && *to > 0.0) {
            Some((shoal, to)) => format!("{:.2}", shoal / to),
            None => "-".to_owned(),
        }
    }

    fn median(&self, name: Name) -> Option<f64> {
        let mut figures = self.figures.get(&name)?.clone();
        figures.sort_by(f64::total_cmp);
        figures.get(figures.len() / 2).copied()
    }
}

/// Three digits that mean something.
fn short(figure: f64) -> String {
    match figure.abs() {
        f if f >= 100.0 => format!("{figure:.0}"),
        f if f >= 10.0 => format!("{figure:.1}"),
        _ => format!("{figure:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_counts_and_every_figure_is_kept() {
        let mut table = Table::default();
        for figure in [300.0, 1.0, 20.0] {
            table.add("cpu us", &[Bar::go(0.5), Bar::FLOOR, Bar::at_most(20.0)], Name::Shoal, figure);
            table.add("cpu us", &[], Name::Floor, 10.0);
            table.add("cpu us", &[], Name::Go, 40.0);
        }
        let text = table.to_string();
        let row: Vec<_> = text.lines().nth(1).unwrap().split("  ").filter(|word| !word.is_empty()).collect();
        let bars = "<= 0.5 x Go ok, aim <= 1.3 x floor MISSED, <= 20 ok";
        assert_eq!(
            row.iter().map(|word| word.trim()).collect::<Vec<_>>(),
            ["cpu us", "-", "40.0", "10.0", "20.0", "0.50", "2.00", bars]
        );
        assert_eq!(table.csv().lines().nth(7), Some("\"cpu us\",Shoal,1,300.0000"));
    }

    #[test]
    fn what_was_not_measured_is_no_success() {
        let mut table = Table::default();
        table.add("items", &[Bar::exactly(5.0), Bar::DIRECT], Name::Shoal, 4.0);
        assert!(table.to_string().ends_with("= 5 MISSED, aim <= 1.2 x direct not measured\n"));
    }
}
