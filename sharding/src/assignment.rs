//! Which slot should go to which shard: the fewest moves that make the loads fit the weights.
//!
//! First what must move: slots without an owner that may keep them, the heaviest first, each to the shard that is then
//! the least loaded. Then, if somebody's load is off by more than the hysteresis, single slots from the most loaded to the least,
//! as long as that lowers the higher of the two. Loads are compared for a unit of weight, so that a shard of weight 3 gets
//! three times as much. At most 256 moves, each found in one pass over slots and shards.

use std::{
    cmp::{Ordering, Reverse},
    collections::BTreeMap,
};

use crate::slot::Slot;

/// By how much a load may be off before slots are moved, as a fraction of the fair one: 1/20.
const HYSTERESIS: u128 = 20;

/// A shard that lives and may own slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its share in relation to the others'. With 0 it gets nothing.
    pub weight: u32,
    /// The version of its controller.
    pub version: Option<&'a str>,
    /// Whether it may get more than it has.
    pub gain: Gain,
}

/// Whether a shard may get more than it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gain {
    /// It may.
    Yes,
    /// Only what nobody else may have.
    AtNeed,
    /// No.
    No,
}

/// A slot and what binds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load<'a> {
    /// Who has it, or will.
    pub owner: Option<&'a str>,
    /// How much work it is, in any unit; 0 counts as 1.
    pub weight: u64,
    /// The controller version that its owner must have.
    pub pin: Option<&'a str>,
    /// Whether it stays with an owner that may keep it.
    pub fixed: bool,
}

/// What should be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The moves, the most urgent first.
    pub moves: Vec<(Slot, String)>,
    /// Slots that have to move, but that no shard may take.
    pub homeless: Vec<Slot>,
    /// Slots that are more work by themselves than their owner's fair share. No move can help.
    pub hot: Vec<Slot>,
}

/// How far to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// Move only what must move.
    Place,
    /// Balance, too, if a load is off by more than 5 %.
    Balance,
    /// Balance as far as it goes.
    Finish,
}

/// Plans the moves of `slots` (in order, one each) among `shards`.
pub fn plan(slots: &[Load<'_>], shards: &[Candidate<'_>], aim: Aim) -> Plan {
    let mut table = Table::new(slots, shards);
    table.place();
    if aim == Aim::Finish || (aim == Aim::Balance && table.is_off()) {
        while table.balance_one() {}
    }
    table.into_plan()
}

struct Table<'a> {
    shards: Vec<Candidate<'a>>,
    /// The work of each shard.
    loads: Vec<u128>,
    rows: Vec<Row<'a>>,
    /// Rows that move, the first to move first.
    moved: Vec<usize>,
}

struct Row<'a> {
    slot: Slot,
    load: Load<'a>,
    /// The index of the shard that has it.
    at: Option<usize>,
}

// === impl Table ===

impl<'a> Table<'a> {
    fn new(slots: &[Load<'a>], shards: &[Candidate<'a>]) -> Self {
        let shards: Vec<_> = shards.iter().copied().filter(|shard| shard.weight > 0).collect();
        let row = |(slot, load): (u8, &Load<'a>)| {
            let may_keep = |shard: &Candidate<'_>| Some(shard.name) == load.owner && suits(load, shard);
            let load = Load { weight: load.weight.max(1), ..*load };
            Row { slot: Slot(slot), at: shards.iter().position(may_keep), load }
        };
        let rows: Vec<_> = (0..=u8::MAX).zip(slots).map(row).collect();
        let mut loads = vec![0; shards.len()];
        for row in &rows {
            if let Some(load) = row.at.and_then(|at| loads.get_mut(at)) {
                *load += u128::from(row.load.weight);
            }
        }
        Self { shards, loads, rows, moved: Vec::new() }
    }

    /// Gives each slot without a place the one where it weighs least.
    fn place(&mut self) {
        let mut homeless: Vec<usize> =
            (0..self.rows.len()).filter(|row| self.rows[*row].at.is_none()).collect();
        homeless.sort_by_key(|row| Reverse(self.rows[*row].load.weight));
        for row in homeless {
            let to = |gain: Gain| {
                let suited = (0..self.shards.len()).filter(|to| self.may_go(row, *to, gain));
                suited.min_by(|a, b| {
                    self.compare(*a, *b, self.rows[row].load.weight).then(self.apart(row, *a, *b))
                })
            };
            if let Some(to) = to(Gain::Yes).or_else(|| to(Gain::AtNeed)) {
                self.shift(row, to);
            }
        }
        self.tidy();
    }

    /// Lets alike slots that were placed swap shards, so that neighbours are together: fewer ranges in the map.
    fn tidy(&mut self) {
        let mut alike: BTreeMap<(u64, Option<&str>), Vec<usize>> = BTreeMap::new();
        for row in &self.moved {
            let load = &self.rows[*row].load;
            alike.entry((load.weight, load.pin)).or_default().push(*row);
        }
        for mut rows in alike.into_values() {
            let mut places: Vec<Option<usize>> = rows.iter().map(|row| self.rows[*row].at).collect();
            places.sort_unstable();
            rows.sort_unstable();
            for (row, at) in rows.into_iter().zip(places) {
                self.rows[row].at = at;
            }
        }
    }

    /// Moves one slot from a more loaded shard to a less loaded one; false if none helps.
    fn balance_one(&mut self) -> bool {
        let mut order: Vec<usize> = (0..self.shards.len()).collect();
        order.sort_by(|a, b| self.compare(*a, *b, 0));
        for from in order.iter().rev() {
            for to in &order {
                if let Some(row) = self.best(*from, *to) {
                    self.shift(row, *to);
                    return true;
                }
            }
        }
        false
    }

    /// The slot whose move from one shard to another helps most: the heaviest that does not overshoot.
    fn best(&self, from: usize, to: usize) -> Option<usize> {
        let helps = |row: &usize| {
            let Row { at, load, .. } = &self.rows[*row];
            *at == Some(from)
                && !load.fixed
                && self.may_go(*row, to, Gain::Yes)
                && self.lowers(from, to, load.weight)
        };
        let surplus = self.loads[from].saturating_sub(self.fair(from)).max(1);
        let merit = |row: &usize| {
            let weight = u128::from(self.rows[*row].load.weight);
            let fits = weight <= surplus;
            (fits, if fits { weight } else { u128::MAX - weight }, self.is_beside(*row, to), Reverse(*row))
        };
        (0..self.rows.len()).filter(helps).max_by_key(merit)
    }

    /// Whether a move leaves both less loaded than the first one was.
    fn lowers(&self, from: usize, to: usize, weight: u64) -> bool {
        let after = (self.loads[to] + u128::from(weight)) * u128::from(self.shards[from].weight);
        after < self.loads[from] * u128::from(self.shards[to].weight)
    }

    fn shift(&mut self, row: usize, to: usize) {
        let weight = u128::from(self.rows[row].load.weight);
        if let Some(from) = self.rows[row].at.replace(to) {
            self.loads[from] -= weight;
        }
        self.loads[to] += weight;
        if !self.moved.contains(&row) {
            self.moved.push(row);
        }
    }

    fn may_go(&self, row: usize, to: usize, gain: Gain) -> bool {
        let shard = &self.shards[to];
        shard.gain == gain && suits(&self.rows[row].load, shard)
    }

    /// Which of two shards is less loaded once it gets that much more.
    fn compare(&self, a: usize, b: usize, more: u64) -> Ordering {
        let load = |of: usize, other: usize| {
            (self.loads[of] + u128::from(more)) * u128::from(self.shards[other].weight)
        };
        load(a, b).cmp(&load(b, a))
    }

    /// Between equals, the one that has a neighbour of the slot: fewer ranges in the map.
    fn apart(&self, row: usize, a: usize, b: usize) -> Ordering {
        self.is_beside(row, b).cmp(&self.is_beside(row, a))
    }

    fn is_beside(&self, row: usize, shard: usize) -> bool {
        let has = |row: Option<usize>| {
            row.and_then(|row| self.rows.get(row)).is_some_and(|row| row.at == Some(shard))
        };
        has(row.checked_sub(1)) || has(row.checked_add(1))
    }

    /// A shard's share of all the work, rounded down.
    fn fair(&self, shard: usize) -> u128 {
        let (work, weight) = self.totals();
        work * u128::from(self.shards[shard].weight) / weight.max(1)
    }

    fn totals(&self) -> (u128, u128) {
        (self.loads.iter().sum(), self.shards.iter().map(|shard| u128::from(shard.weight)).sum())
    }

    fn is_off(&self) -> bool {
        let (work, weight) = self.totals();
        let off = |(shard, load): (&Candidate<'_>, &u128)| {
            let fair = work * u128::from(shard.weight);
            (load * weight).abs_diff(fair) * HYSTERESIS > fair
        };
        self.shards.iter().zip(&self.loads).any(off)
    }

    fn into_plan(self) -> Plan {
        let hot =
            |row: &&Row<'_>| row.at.is_some_and(|at| u128::from(row.load.weight) > self.fair(at).max(1));
        let name = |row: &Row<'_>| Some((row.slot, self.shards[row.at?].name));
        let mut moves: Vec<_> = self.moved.iter().filter_map(|row| name(&self.rows[*row])).collect();
        // A slot that came back to where it is need not move.
        moves.retain(|(slot, to)| self.rows[usize::from(slot.0)].load.owner != Some(*to));
        Plan {
            moves: moves.into_iter().map(|(slot, to)| (slot, to.to_owned())).collect(),
            homeless: self.rows.iter().filter(|row| row.at.is_none()).map(|row| row.slot).collect(),
            hot: self.rows.iter().filter(hot).map(|row| row.slot).collect(),
        }
    }
}

fn suits(load: &Load<'_>, shard: &Candidate<'_>) -> bool {
    load.pin.is_none_or(|pin| shard.version == Some(pin))
}

#[cfg(test)]
mod tests;
