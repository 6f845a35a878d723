//! The order in which objects appear and go: what is owned before its owner.
//!
//! A controller that sees a parent without its children makes them again; one that sees children without their parent
//! waits, or asks the API server.

use std::collections::{HashMap, HashSet};

/// An object by its uid, and its controller by its.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    /// The object.
    pub(super) uid: String,
    /// Its controller, by its owner references.
    pub(super) owner: Option<String>,
    /// Whether others may be in it though nothing says that it owns them: it has no namespace, as a Namespace has none.
    pub(super) holds: bool,
}

/// The uids of all nodes, those first that own none of the others; each level only owns what is in the levels before it. What
/// owns itself, over however many others, comes behind those, and what others may be in comes last.
pub(super) fn levels(nodes: &[Node]) -> Vec<HashSet<String>> {
    let (holders, nodes): (Vec<_>, Vec<_>) = nodes.iter().cloned().partition(|node| node.holds);
    let mut levels = owned_first(&nodes);
    if !holders.is_empty() {
        levels.push(holders.into_iter().map(|node| node.uid).collect());
    }
    levels
}

fn owned_first(nodes: &[Node]) -> Vec<HashSet<String>> {
    let mut owned: HashMap<&str, usize> = nodes.iter().map(|node| (node.uid.as_str(), 0)).collect();
    let owners: HashMap<&str, &str> =
        nodes.iter().filter_map(|node| Some((node.uid.as_str(), node.owner.as_deref()?))).collect();
    for owner in owners.values() {
        owned.entry(owner).and_modify(|count| *count += 1);
    }
    let mut levels = Vec::new();
    loop {
        let level: HashSet<&str> =
            owned.iter().filter(|(_, count)| **count == 0).map(|(uid, _)| *uid).collect();
        if level.is_empty() {
            break;
        }
        for uid in &level {
            owned.remove(uid);
            if let Some(count) = owners.get(uid).and_then(|owner| owned.get_mut(owner)) {
                *count -= 1;
            }
        }
        levels.push(level.into_iter().map(str::to_owned).collect());
    }
    if !owned.is_empty() {
        levels.push(owned.into_keys().map(str::to_owned).collect());
    }
    levels
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::*;

    fn node(uid: usize, owner: Option<usize>) -> Node {
        Node { uid: uid.to_string(), owner: owner.map(|owner| owner.to_string()), holds: false }
    }

    #[test]
    fn in_a_thousand_random_trees_children_come_before_their_owners() {
        for seed in 0..1000 {
            let mut rng = Rng::with_seed(seed);
            let size = rng.usize(1..60);
            let mut nodes: Vec<Node> =
                (0..size).map(|uid| node(uid, (uid > 0).then(|| rng.usize(..uid)))).collect();
            rng.shuffle(&mut nodes);
            // Several watches show the same object.
            nodes.extend_from_within(..size / 3);
            let levels = levels(&nodes);
            let height = |uid: &str| levels.iter().position(|level| level.contains(uid)).unwrap();
            assert_eq!(levels.iter().map(HashSet::len).sum::<usize>(), size);
            for Node { uid, owner, .. } in &nodes {
                assert!(owner.as_ref().is_none_or(|owner| height(uid) < height(owner)), "{nodes:?}");
            }
        }
    }

    #[test]
    fn owners_outside_and_circles_hold_nothing_up() {
        let nodes = [node(0, Some(9)), node(1, Some(2)), node(2, Some(1)), node(3, Some(3))];
        let sizes: Vec<usize> = levels(&nodes).iter().map(HashSet::len).collect();
        assert_eq!(sizes, [1, 3]);
        assert!(levels(&[]).is_empty());
    }

    #[test]
    fn a_namespace_comes_behind_all_that_is_in_it() {
        let namespace = Node { holds: true, ..node(3, None) };
        let levels = levels(&[namespace, node(0, None), node(1, Some(0))]);
        let sizes: Vec<usize> = levels.iter().map(HashSet::len).collect();
        assert_eq!(sizes, [1, 1, 1]);
        assert!(levels[2].contains("3"));
    }
}
