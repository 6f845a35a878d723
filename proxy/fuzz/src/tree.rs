//! JSON as a tree that keeps the order of members and those that repeat.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub enum Tree {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    Array(Vec<Tree>),
    Object(Vec<(String, Tree)>),
}

/// The names of an object.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Names {
    pub name: String,
    pub namespace: String,
    pub generate_name: String,
    pub uid: String,
}

// === impl Tree ===

impl Tree {
    /// The members of an object.
    pub fn members(&self) -> Option<&[(String, Tree)]> {
        if let Self::Object(members) = self { Some(members) } else { None }
    }

    /// The last member with this key.
    pub fn get(&self, key: &str) -> Option<&Tree> {
        self.members()?.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The last member with this key, to be changed.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Tree> {
        let Self::Object(members) = self else { return None };
        members.iter_mut().rev().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The text of a string.
    pub fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// The names of an object, of which the last reading counts; `None` where the shape is not that of an object.
    pub fn names(&self) -> Option<Names> {
        let mut names = Names::default();
        for (key, metadata) in self.members()? {
            match (key.as_str(), metadata) {
                ("metadata", Self::Null) => names = Names::default(),
                ("metadata", metadata) => names = metadata.names_in_metadata()?,
                _ => {}
            }
        }
        Some(names)
    }

    fn names_in_metadata(&self) -> Option<Names> {
        let mut names = Names::default();
        for (key, value) in self.members()? {
            let field = match key.as_str() {
                "name" => &mut names.name,
                "namespace" => &mut names.namespace,
                "generateName" => &mut names.generate_name,
                "uid" => &mut names.uid,
                _ => continue,
            };
            *field = match value {
                Self::Null => String::new(),
                value => value.text()?.to_owned(),
            };
        }
        Some(names)
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyTree)
    }
}

struct AnyTree;

impl<'de> Visitor<'de> for AnyTree {
    type Value = Tree;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Bool(value))
    }

    #[allow(clippy::cast_precision_loss, reason = "both sides lose the same")]
    fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Number(value as f64))
    }

    #[allow(clippy::cast_precision_loss, reason = "both sides lose the same")]
    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Tree, E> {
        Ok(Tree::Number(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<Tree, E> {
        Ok(Tree::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Tree, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = seq.next_element()? {
            elements.push(element);
        }
        Ok(Tree::Array(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Tree::Object(members))
    }
}
