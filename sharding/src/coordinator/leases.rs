//! What a coordinator does to the Leases of a ring.

use std::collections::BTreeSet;

use super::{Command, Seen};
use crate::{
    identity::{Left, Observed, Seat},
    membership::{Membership, State},
    moment::Moment,
    times,
};

/// The Leases to create, to take from their holders and to delete. `owners` are the shards that the map gives slots.
pub(super) fn commands(
    members: &mut Membership,
    now: Moment,
    seen: &Seen,
    owners: &BTreeSet<&str>,
) -> Vec<Command> {
    let mut commands: Vec<Command> =
        members.to_depose(now).into_iter().map(|lease| depose(&lease, Left::Deposed)).collect();
    for shard in members.shards() {
        let owns = owners.contains(shard);
        let command = match members.lease(shard) {
            None => created(members, shard, seen, owns),
            Some(lease) if owns => sealed(members, lease, seen),
            Some(lease) if !seen.ring.has(shard) && lease.holder.is_none() => {
                Some(deleted(lease, Seat::Identity))
            }
            Some(_) => None,
        };
        commands.extend(command);
    }
    if !seen.ring.deleting {
        commands.extend(standbys(seen));
    }
    commands
}

/// When one of the rules here may come to hold although nothing changes.
pub(super) fn wake(members: &Membership, now: Moment, seen: &Seen) -> Option<Moment> {
    let due = |shard: &str| match members.state(shard) {
        State::Left(Left::Graceful) => members.unchanged_for(shard, seen.ring.restart_grace),
        State::Left(_) => None,
        _ => members.unchanged_for(shard, times::observed_lease()),
    };
    members.shards().filter_map(due).filter(|due| *due > now).min()
}

/// A Lease that is not there. Its last holder may count on it for a while, if it has slots: it is waited for as for a silent
/// one, so that it can create the Lease again.
fn created(members: &Membership, shard: &str, seen: &Seen, owns: bool) -> Option<Command> {
    let left = owns.then_some(Left::Deposed);
    let due = if owns { is_over(members, shard) } else { seen.ring.has(shard) && !seen.ring.deleting };
    let term = members.term(shard);
    due.then(|| Command::CreateLease { shard: shard.to_owned(), seat: Seat::Identity, left, term })
}

/// A Lease without a holder whose shard has slots: if they are not to wait for the next holder, it has to be kept from
/// claiming them. The compare-and-swap shows that nobody had.
fn sealed(members: &Membership, lease: &Observed, seen: &Seen) -> Option<Command> {
    let shard = lease.shard.as_str();
    let stays = seen.ring.has(shard) && !seen.wishes.drained.contains(shard) && !seen.ring.deleting;
    match members.state(shard) {
        State::Left(Left::Graceful) if !stays || members.unchanged(shard) >= seen.ring.restart_grace => {
            Some(depose(lease, Left::ControllerExit))
        }
        // How it lost its holder is not known, so that one may count on it still.
        State::Vacant if is_over(members, shard) => Some(depose(lease, Left::Deposed)),
        _ => None,
    }
}

fn standbys(seen: &Seen) -> impl Iterator<Item = Command> + '_ {
    let missing = |shard: &&str| !seen.standbys.iter().any(|lease| lease.shard == **shard);
    let create = |shard: &str| Command::CreateLease {
        shard: shard.to_owned(),
        seat: Seat::Standby,
        left: None,
        term: 0,
    };
    let surplus = seen.standbys.iter().filter(|lease| !seen.ring.has(&lease.shard));
    let missing = seen.ring.shards.iter().map(|shard| shard.name.as_str()).filter(missing);
    missing.map(create).chain(surplus.map(|lease| deleted(lease, Seat::Standby)))
}

fn is_over(members: &Membership, shard: &str) -> bool {
    members.unchanged(shard) >= times::observed_lease()
}

fn depose(lease: &Observed, left: Left) -> Command {
    Command::Depose { shard: lease.shard.clone(), version: lease.version.clone(), left }
}

fn deleted(lease: &Observed, seat: Seat) -> Command {
    Command::DeleteLease { shard: lease.shard.clone(), seat, version: lease.version.clone() }
}
