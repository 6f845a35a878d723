//! The mark that a proxy leaves at the end of the User-Agent of each request that it forwards: ` shoal/<ring>/<shard>@<term>`, and
//! ` :<slot>.<epoch>` after it on a write that a slot decided.

use crate::slot::Slot;

/// What a mark says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evidence<'a> {
    /// The ring.
    pub ring: &'a str,
    /// The shard that sent the request.
    pub shard: &'a str,
    /// How often its identity was claimed.
    pub term: i64,
    /// The slot that decided, and the epoch at which the shard owns it.
    pub claim: Option<(Slot, i64)>,
}

// === impl Evidence ===

impl<'a> Evidence<'a> {
    /// Reads the mark at the end of a User-Agent; none if there is no sound one.
    pub fn read(agent: &'a str) -> Option<Self> {
        let mark = agent.strip_prefix("shoal/").or_else(|| Some(agent.rsplit_once(" shoal/")?.1))?;
        let (who, claim) = match mark.split_once(" :") {
            Some((who, claim)) => (who, Some(parsed(claim)?)),
            None => (mark, None),
        };
        let (ring, shard) = who.split_once('/')?;
        let (shard, term) = shard.split_once('@')?;
        Some(Self { ring, shard, term: term.parse().ok()?, claim })
    }
}

fn parsed(claim: &str) -> Option<(Slot, i64)> {
    let (slot, epoch) = claim.split_once('.')?;
    Some((Slot(slot.parse().ok()?), epoch.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_stands_at_the_end() {
        let read = Evidence { ring: "kcm", shard: "kcm-0", term: 3, claim: None };
        assert_eq!(Evidence::read("kubectl/v1 shoal/kcm/kcm-0@3"), Some(read));
        let write = Evidence { claim: Some((Slot(17), 5)), ..read };
        assert_eq!(Evidence::read("a/b (c) shoal/kcm/kcm-0@3 :17.5"), Some(write));
        assert_eq!(Evidence::read("shoal/kcm/kcm-0@3 :17.5"), Some(write));
    }

    #[test]
    fn what_is_no_mark_says_nothing() {
        for agent in
            ["", "kubectl", "a xshoal/k/k-0@1", "a shoal/k@1", "a shoal/k/k-0", "a shoal/k/k-0@1 :256.1"]
        {
            assert_eq!(Evidence::read(agent), None, "{agent}");
        }
    }
}
