//! What a list or a table is without what is hidden.

use crate::feed::is_shown;
use crate::tree::Tree;

/// What a client knows of a table's columns.
#[derive(Debug, Default)]
pub struct Columns {
    definitions: Option<Tree>,
    shown: bool,
}

/// A list and how many of its elements are shown, and hidden.
#[derive(Debug)]
pub struct Filtered {
    pub list: Tree,
    pub kept: usize,
    pub hidden: usize,
}

/// Whether an object is a table.
pub fn is_table(object: &Tree) -> bool {
    let text = |key| object.get(key).and_then(Tree::text).unwrap_or_default();
    text("kind") == "Table" && text("apiVersion").starts_with("meta.k8s.io/")
}

/// The list without what is hidden, or with all of it; `None` if it is no list.
pub fn filtered(list: Tree, columns: &mut Columns, all: bool) -> Option<Filtered> {
    let Tree::Object(members) = list else { return None };
    let (mut kept, mut hidden, mut is_list) = (0, 0, false);
    let was_shown = columns.shown;
    let mut elements = |elements: Vec<Tree>, names: fn(&Tree) -> Option<String>| {
        let mut shown = Vec::new();
        for element in elements {
            let is_shown = is_shown(&names(&element)?) || all;
            *(if is_shown { &mut kept } else { &mut hidden }) += 1;
            shown.extend(is_shown.then_some(element));
        }
        Some(Tree::Array(shown))
    };
    let mut rest = Vec::new();
    for (key, value) in members {
        is_list |= matches!(key.as_str(), "items" | "rows");
        let value = match (key.as_str(), value) {
            ("items", Tree::Null) => Tree::Array(Vec::new()),
            ("items", Tree::Array(items)) => elements(items, |item| Some(item.names()?.name))?,
            ("rows", Tree::Array(rows)) => elements(rows, name_of_row)?,
            ("rows", Tree::Null) => Tree::Null,
            ("items" | "rows", _) => return None,
            ("metadata", Tree::Object(members)) => {
                Tree::Object(members.into_iter().filter(|(key, _)| key != "remainingItemCount").collect())
            }
            ("columnDefinitions", value) => columns.pass(value),
            (_, value) => value,
        };
        rest.push((key, value));
    }
    if kept == 0 && hidden > 0 {
        columns.shown &= was_shown;
    }
    is_list.then_some(Filtered { list: Tree::Object(rest), kept, hidden })
}

/// A row with two objects, or two cells, is refused: a reader may take the other one.
fn name_of_row(row: &Tree) -> Option<String> {
    let members = row.members()?;
    let is_single = |key: &str| members.iter().filter(|(name, _)| name == key).count() < 2;
    let object = row.get("object").filter(|_| is_single("object") && is_single("cells"))?;
    Some(object.names()?.name)
}

// === impl Columns ===

impl Columns {
    fn pass(&mut self, value: Tree) -> Tree {
        match value {
            Tree::Object(_) | Tree::Array(_) => {
                self.definitions = Some(value.clone());
                self.shown = true;
                value
            }
            Tree::Null if !self.shown => {
                self.shown = self.definitions.is_some();
                self.definitions.clone().unwrap_or(value)
            }
            value => value,
        }
    }
}
