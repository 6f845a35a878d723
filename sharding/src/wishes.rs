//! What people want of a ring's slots and shards beside its spec: written on the `ShardedController`, taken up and cleared by
//! the coordinator.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
};

use crate::slot::Slot;

/// The wishes for one ring. As text: `move=0-15>kcm-1,40>kcm-2 drain=kcm-0`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Wishes {
    /// Where slots are to go. A wish ends when that shard owns the slot.
    pub moves: BTreeMap<Slot, String>,
    /// Shards that are to own nothing. Stays until it is taken back.
    pub drained: BTreeSet<String>,
}

/// Why a text is no wish. Whoever wrote the annotation is at fault.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected words like move=0-15>kcm-1,40>kcm-2 or drain=kcm-0, found {0:?}")]
pub struct WishesError(String);

// === impl Wishes ===

impl Wishes {
    /// Whether nothing is wished for.
    pub fn is_empty(&self) -> bool {
        self.moves.is_empty() && self.drained.is_empty()
    }
}

impl fmt::Display for Wishes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let drained = self.drained.iter().cloned().collect::<Vec<_>>().join(",");
        let words = [("move", moves_text(&self.moves)), ("drain", drained)];
        let words = words.iter().filter(|(_, value)| !value.is_empty());
        f.write_str(&words.map(|(word, value)| format!("{word}={value}")).collect::<Vec<_>>().join(" "))
    }
}

impl FromStr for Wishes {
    type Err = WishesError;

    fn from_str(text: &str) -> Result<Self, WishesError> {
        let mut wishes = Self::default();
        for word in text.split_ascii_whitespace() {
            let wrong = || WishesError(word.to_owned());
            match word.split_once('=').ok_or_else(wrong)? {
                ("move", moves) => wishes.moves.extend(parsed(moves).ok_or_else(wrong)?),
                ("drain", shards) if shards.split(',').all(|shard| !shard.is_empty()) => {
                    wishes.drained.extend(shards.split(',').map(str::to_owned));
                }
                _ => return Err(wrong()),
            }
        }
        Ok(wishes)
    }
}

/// Neighbours with one goal as one range.
fn moves_text(moves: &BTreeMap<Slot, String>) -> String {
    let mut ranges: Vec<(u8, u8, &str)> = Vec::new();
    for (Slot(slot), to) in moves {
        match ranges.last_mut() {
            Some((_, last, goal)) if goal == to && last.checked_add(1) == Some(*slot) => *last = *slot,
            _ => ranges.push((*slot, *slot, to)),
        }
    }
    let range = |(first, last, to): &(u8, u8, &str)| {
        if first == last { format!("{first}>{to}") } else { format!("{first}-{last}>{to}") }
    };
    ranges.iter().map(range).collect::<Vec<_>>().join(",")
}

fn parsed(text: &str) -> Option<BTreeMap<Slot, String>> {
    let mut moves = BTreeMap::new();
    for range in text.split(',') {
        let (range, to) = range.split_once('>').filter(|(_, to)| !to.is_empty())?;
        let (first, last) = slots(range)?;
        moves.extend((first..=last).map(|slot| (Slot(slot), to.to_owned())));
    }
    Some(moves)
}

/// The first and last slot of `SLOT` or `SLOT-SLOT`.
pub fn slots(text: &str) -> Option<(u8, u8)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut wishes = Wishes::default();
        assert_eq!(wishes.to_string(), "");
        for slot in [0, 1, 2, 40, 255] {
            wishes.moves.insert(Slot(slot), "kcm-1".to_owned());
        }
        wishes.moves.insert(Slot(3), "kcm-2".to_owned());
        assert_eq!(wishes.to_string(), "move=0-2>kcm-1,3>kcm-2,40>kcm-1,255>kcm-1");
        wishes.drained.extend(["kcm-0".to_owned(), "kcm-3".to_owned()]);
        assert!(wishes.to_string().ends_with(" drain=kcm-0,kcm-3"));
        assert_eq!(wishes.to_string().parse(), Ok(wishes));
        assert_eq!("".parse(), Ok(Wishes::default()));
    }

    #[test]
    fn what_is_no_wish_is_refused() {
        for wrong in ["move", "move=1", "move=1>", "move=5-4>a", "move=256>a", "drain=", "drain=a,,b", "x=1"]
        {
            assert!(wrong.parse::<Wishes>().is_err(), "{wrong}");
        }
    }
}
