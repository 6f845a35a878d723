//! What operators do to a ring, and what they should not.

use std::time::Duration;

use kube::api::DeleteParams;
use serde_json::json;
use shoal_api::names;

use super::super::ground::Ground;
use crate::{HarnessError, wait_for};

/// A loaded machine, and whatever the fault before has left to do.
const DEADLINE: Duration = Duration::from_mins(3);
const SHARDS: std::ops::RangeInclusive<u16> = 2..=4;

pub(super) async fn scale(
    ground: &mut Ground,
    dice: &mut fastrand::Rng,
) -> Result<Option<String>, HarnessError> {
    let (before, mut shards) = (ground.shards, dice.u16(SHARDS));
    if shards == before {
        shards = if before == *SHARDS.end() { *SHARDS.start() } else { before + 1 };
    }
    ground.shards = shards;
    ground.ring.set_shards(shards).await?;
    ground.fill().await?;
    let state = ground.ring.wait_settled(shards, DEADLINE).await?;
    ground.thin(DEADLINE).await?;
    Ok(Some(format!("{before} shards became {shards}: {:?}", state.owners())))
}

/// A new Pod stands by before an old one is told to end.
pub(super) async fn rolling(ground: &mut Ground) -> Result<Option<String>, HarnessError> {
    let before = ground.ring.state().await?;
    for _ in 0..ground.ring.pods.len() {
        ground.ring.add_pod(&ground.cluster.control_plane).await?;
        let new = ground.ring.pods.last();
        wait_for("the new Pod to stand by", DEADLINE, || async {
            let seat = match new {
                Some(pod) => pod.seat().await.map_err(|error| error.to_string())?,
                None => return Err("there is none".to_owned()),
            };
            if seat.role == "nobody" { Err("it does nothing".to_owned()) } else { Ok(()) }
        })
        .await?;
        if let Some(old) = ground.ring.take(0) {
            old.end().await;
        }
        ground.ring.wait_settled(ground.shards, DEADLINE).await?;
    }
    let after = ground.ring.state().await?;
    let version = |state: &crate::live::ring::State| state.map.as_ref().map_or(0, |map| map.spec.version);
    let (from, to) = (version(&before), version(&after));
    Ok(Some(format!(
        "{} Pods were replaced; the map went from version {from} to {to}",
        ground.ring.pods.len()
    )))
}

/// A few slots of one shard to another, by a wish.
pub(super) async fn send(ground: &Ground, dice: &mut fastrand::Rng) -> Result<Option<String>, HarnessError> {
    let state = ground.ring.state().await?;
    let Some(map) = &state.map else { return Ok(None) };
    let owned: Vec<_> =
        map.spec.slots.iter().filter(|range| range.owner.is_some() && range.to.is_none()).collect();
    let Some(range) = dice.choice(&owned) else { return Ok(None) };
    let shards = (0..ground.shards).map(|number| names::shard(ground.ring.name(), number));
    let others: Vec<String> = shards.filter(|shard| Some(shard) != range.owner.as_ref()).collect();
    let Some(to) = dice.choice(&others) else { return Ok(None) };
    let last = range.first.saturating_add(7).min(range.last);
    let wish = format!("move={}-{last}>{to}", range.first);
    ground.ring.patch(&json!({"metadata": {"annotations": {names::WISHES_ANNOTATION: wish}}})).await?;
    let first = range.first;
    wait_for(&format!("slots {first}-{last} to be {to}'s"), DEADLINE, || async {
        let state = ground.ring.state().await.map_err(|error| error.to_string())?;
        let slots = state.map.map(|map| map.spec.slots).unwrap_or_default();
        let there = slots.iter().find(|range| (range.first..=range.last).contains(&first));
        match there {
            Some(range) if range.owner.as_ref() == Some(to) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    Ok(Some(wish))
}

/// Its holder makes it again.
pub(super) async fn delete_lease(
    ground: &Ground,
    dice: &mut fastrand::Rng,
) -> Result<Option<String>, HarnessError> {
    let state = ground.ring.state().await?;
    let held: Vec<_> = state.leases.identities.iter().filter(|lease| lease.holder.is_some()).collect();
    let Some(lease) = dice.choice(&held) else { return Ok(None) };
    let (api, name) = (ground.ring.leases(), names::identity_lease(&lease.shard));
    let Some(old) = api.get_opt(&name).await?.and_then(|lease| lease.metadata.uid) else { return Ok(None) };
    api.delete(&name, &DeleteParams::default()).await?;
    let new = wait_for(&format!("{name} to be made again"), DEADLINE, || async {
        let lease = api.get_opt(&name).await.map_err(|error| error.to_string())?;
        let holder =
            lease.filter(|lease| lease.metadata.uid.as_ref() != Some(&old)).and_then(|lease| lease.spec);
        holder.and_then(|spec| spec.holder_identity).ok_or_else(|| "it is not there".to_owned())
    })
    .await?;
    let same = lease.holder.as_ref() == Some(&new);
    Ok(Some(format!("{name} was made again by {}", if same { "its holder" } else { "another" })))
}
