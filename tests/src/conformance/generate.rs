//! The pairs, from what discovery says is served.

mod bad;
mod lists;
mod objects;
mod plain;
mod watches;
mod writes;

use super::discovery::Resource;
use super::ground::Ground;
use super::pair::{About, Pair};
use crate::HarnessError;

/// A resource and what there is of it.
pub(super) struct Kind<'a> {
    pub(super) resource: &'a Resource,
    /// At most one object of the second shard and one of another.
    pub(super) existing: Vec<About>,
    /// Its place in discovery: what is not worth every form takes turns.
    pub(super) turn: usize,
}

/// All pairs whose requests change nothing.
pub(super) async fn pairs(ground: &Ground) -> Result<Vec<Pair>, HarnessError> {
    let mut all = plain::pairs(ground).await?;
    for (turn, resource) in ground.resources.iter().enumerate() {
        let existing = if resource.has("list") { ground.existing(resource).await? } else { Vec::new() };
        let kind = Kind { resource, existing, turn };
        all.extend(lists::pairs(ground, &kind));
        all.extend(objects::pairs(ground, &kind));
        all.extend(watches::pairs(ground, &kind));
        all.extend(writes::pairs(ground, &kind).await?);
        all.extend(bad::pairs(ground, &kind));
        if kind.is_unsorted() {
            all.iter_mut().filter(|pair| pair.about.resource == resource.plural).for_each(Pair::compare_code);
        }
    }
    Ok(all)
}

// === impl Kind ===

impl Kind<'_> {
    /// The server asks all components at once and lists them as they answer.
    fn is_unsorted(&self) -> bool {
        self.resource.plural == "componentstatuses"
    }

    /// One of several, by turns.
    pub(super) fn pick<T: Copy>(&self, of: &[T], step: usize) -> Option<T> {
        of.get((self.turn + step) % of.len().max(1)).copied()
    }

    /// The path of an object.
    pub(super) fn path(&self, about: &About) -> String {
        format!("{}/{}", self.resource.collection(&about.namespace), about.name)
    }

    /// Where a list can be asked for: everywhere, and in a namespace of each side.
    pub(super) fn collections(&self, ground: &Ground) -> Vec<About> {
        let mut all = vec![About::collection(self.resource, "")];
        if self.resource.namespaced {
            let sides = [&ground.own, &ground.foreign].into_iter().filter_map(|side| side.first());
            all.extend(sides.map(|namespace| About::collection(self.resource, namespace)));
        }
        all
    }
}
