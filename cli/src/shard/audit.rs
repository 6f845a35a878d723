//! The writes in an audit log, against the map: by the marks that proxies leave in the User-Agent.
//!
//! It finds marks that no proxy may leave, by the map as it is now. Of the past only the epochs are known: one that has passed
//! belongs to the shard whose mark was met first.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
};

use serde::{Deserialize, Serialize};
use shoal_sharding::{Slot, SlotMap, evidence::Evidence};

use crate::error::CliError;

/// What was found.
#[derive(Debug, Default, Serialize)]
pub(super) struct Audit {
    /// Writes of the ring with a slot and an epoch.
    pub(super) writes: usize,
    /// What is wrong, one line each.
    pub(super) foreign: Vec<String>,
}

/// `audit.k8s.io/v1` Event, of the fields that are needed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    #[serde(rename = "auditID", default)]
    audit_id: String,
    #[serde(default)]
    stage: String,
    #[serde(default)]
    user_agent: String,
    #[serde(rename = "requestURI", default)]
    uri: String,
}

pub(super) fn read(path: &Path, ring: &str, map: &SlotMap) -> Result<Audit, CliError> {
    let failed = |error| CliError::File { path: path.to_owned(), error };
    let log = BufReader::new(File::open(path).map_err(failed)?);
    let mut owners: BTreeMap<(Slot, i64), String> = BTreeMap::new();
    let mut audit = Audit::default();
    for (number, line) in (1..).zip(log.lines()) {
        let line = line.map_err(failed)?;
        let event: Event = serde_json::from_str(&line)
            .map_err(|error| CliError::Audit { line: number, reason: error.to_string() })?;
        let Some(mark) = Evidence::read(&event.user_agent).filter(|mark| mark.ring == ring) else { continue };
        let Some((slot, epoch)) = mark.claim.filter(|_| event.stage == "ResponseComplete") else { continue };
        audit.writes += 1;
        if let Some(why) = flaw(&mut owners, map, mark.shard, slot, epoch) {
            audit.foreign.push(format!("{} {}: {why}", event.audit_id, event.uri));
        }
    }
    Ok(audit)
}

fn flaw(
    owners: &mut BTreeMap<(Slot, i64), String>,
    map: &SlotMap,
    shard: &str,
    slot: Slot,
    epoch: i64,
) -> Option<String> {
    let entry = map.entry(slot);
    if epoch > entry.epoch {
        return Some(format!(
            "{shard} claims slot {slot} at epoch {epoch}, but the map is at {}",
            entry.epoch
        ));
    }
    let owner = entry.owner.clone().filter(|_| epoch == entry.epoch);
    let owner = owners.entry((slot, epoch)).or_insert_with(|| owner.unwrap_or_else(|| shard.to_owned()));
    (owner != shard).then(|| format!("{shard} claims slot {slot} at epoch {epoch}, which is {owner}'s"))
}

#[cfg(test)]
mod tests {
    use shoal_api::{HashAlgorithm, Keying, ShardMapSpec, SlotRange, SlotState};

    use super::*;

    fn map() -> SlotMap {
        let (owner, state) = (Some("k-1".to_owned()), SlotState::Owned);
        let slots = vec![SlotRange { first: 0, last: 255, owner, epoch: 3, state, to: None, pin: None }];
        let keying = Keying { algorithm: HashAlgorithm::Xxh3_64, slots: 256 };
        SlotMap::try_from(&ShardMapSpec { version: 9, keying, slots }).unwrap()
    }

    #[test]
    fn a_claim_that_the_map_or_another_shard_contradicts_is_foreign() {
        let mut owners = BTreeMap::new();
        let mut is_foreign = |shard, epoch| flaw(&mut owners, &map(), shard, Slot(7), epoch).is_some();
        assert!(!is_foreign("k-1", 3));
        assert!(is_foreign("k-0", 3), "the map says k-1");
        assert!(is_foreign("k-1", 4), "no such epoch yet");
        assert!(!is_foreign("k-0", 2));
        assert!(is_foreign("k-2", 2), "two shards claim a past epoch");
    }
}
