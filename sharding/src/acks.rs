//! What a shard has done for the moves of the map: written on its identity Lease, read by the coordinator.

use std::{fmt, str::FromStr};

use crate::slot::Slot;

/// Slots, each at an epoch.
pub type AtEpoch = Vec<(Slot, i64)>;

/// The acknowledgements of one shard. As text: `map=12 ready=0-15@3,40@7 released=16@2`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Acks {
    /// The version of the newest map all of whose slots of this shard are open.
    pub map: i64,
    /// Slots that may come to this shard (`to` names it): their objects are at hand. Sorted.
    pub ready: AtEpoch,
    /// Slots that were this shard's at that epoch and are let go: no write of it is under way, and none will begin. Sorted.
    /// Final for that epoch.
    pub released: AtEpoch,
}

/// Why a text is no acknowledgement. Whoever wrote the annotation is at fault.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected words like map=12, ready=0-15@3,40@7 or released=16@2, found {0:?}")]
pub struct AcksError(String);

// === impl Acks ===

impl fmt::Display for Acks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "map={}", self.map)?;
        for (word, slots) in [("ready", &self.ready), ("released", &self.released)] {
            if !slots.is_empty() {
                write!(f, " {word}={}", text(slots))?;
            }
        }
        Ok(())
    }
}

impl FromStr for Acks {
    type Err = AcksError;

    fn from_str(text: &str) -> Result<Self, AcksError> {
        let mut acks = Self::default();
        for word in text.split_ascii_whitespace() {
            let wrong = || AcksError(word.to_owned());
            match word.split_once('=').ok_or_else(wrong)? {
                ("map", version) => acks.map = version.parse().map_err(|_| wrong())?,
                ("ready", slots) => acks.ready = parsed(slots).ok_or_else(wrong)?,
                ("released", slots) => acks.released = parsed(slots).ok_or_else(wrong)?,
                _ => return Err(wrong()),
            }
        }
        Ok(acks)
    }
}

/// Neighbours of one epoch as one range.
fn text(slots: &[(Slot, i64)]) -> String {
    let mut ranges: Vec<(u8, u8, i64)> = Vec::new();
    for (Slot(slot), epoch) in slots {
        match ranges.last_mut() {
            Some((_, last, at)) if at == epoch && last.checked_add(1) == Some(*slot) => *last = *slot,
            _ => ranges.push((*slot, *slot, *epoch)),
        }
    }
    let range = |(first, last, epoch): &(u8, u8, i64)| {
        if first == last { format!("{first}@{epoch}") } else { format!("{first}-{last}@{epoch}") }
    };
    ranges.iter().map(range).collect::<Vec<_>>().join(",")
}

fn parsed(text: &str) -> Option<AtEpoch> {
    let mut slots = Vec::new();
    for range in text.split(',') {
        let (range, epoch) = range.split_once('@')?;
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u8, u8) = (first.parse().ok()?, last.parse().ok()?);
        let epoch = epoch.parse().ok()?;
        slots.extend((first..=last).map(|slot| (Slot(slot), epoch)));
    }
    (slots.is_sorted() && slots.windows(2).all(|pair| pair[0].0 != pair[1].0)).then_some(slots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let at = |slots: &[(u8, i64)]| slots.iter().map(|(slot, epoch)| (Slot(*slot), *epoch)).collect();
        for (acks, text) in [
            (Acks { map: 3, ..Acks::default() }, "map=3"),
            (
                Acks { map: 12, ready: at(&[(0, 3), (1, 3), (2, 4), (40, 7)]), released: at(&[(255, 1)]) },
                "map=12 ready=0-1@3,2@4,40@7 released=255@1",
            ),
        ] {
            assert_eq!(acks.to_string(), text);
            assert_eq!(text.parse(), Ok(acks));
        }
        let all: AtEpoch = (0..=255).map(|slot| (Slot(slot), 9)).collect();
        assert_eq!(text(&all), "0-255@9");
    }

    #[test]
    fn what_is_no_acknowledgement_is_refused() {
        for wrong in [
            "map",
            "map=a",
            "ready=1",
            "ready=a@1",
            "ready=5@1,4@1",
            "ready=1@1,1@2",
            "ready=256@1",
            "x=1",
            "ready=",
        ] {
            assert!(wrong.parse::<Acks>().is_err(), "{wrong}");
        }
        assert_eq!("".parse(), Ok(Acks::default()));
    }
}
