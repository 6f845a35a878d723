//! Tables, as kubectl prints them.

use std::fmt::Write;

/// Rows under a head, each column as wide as its widest cell and three spaces from the next.
#[derive(Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

// === impl Table ===

impl Table {
    /// A table with those columns.
    pub fn new(head: &[&str]) -> Self {
        Self { rows: vec![head.iter().map(|&name| name.to_owned()).collect()] }
    }

    /// Adds a row. An empty cell is shown as `-`.
    pub fn row(&mut self, cells: Vec<String>) {
        let dash = |cell: String| if cell.is_empty() { "-".to_owned() } else { cell };
        self.rows.push(cells.into_iter().map(dash).collect());
    }

    fn width(&self, column: usize) -> usize {
        self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for row in &self.rows {
            let mut line = String::new();
            for (at, cell) in row.iter().enumerate() {
                write!(line, "{cell:<width$}   ", width = self.width(at))?;
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(&["A", "LONG"]);
        table.row(vec!["wide".to_owned(), String::new()]);
        table.row(vec!["x".to_owned(), "y".to_owned()]);
        assert_eq!(table.to_string(), "A      LONG\nwide   -\nx      y\n");
    }
}
