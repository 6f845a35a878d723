//! What the audit log of a run proves: what the ring created, for whom, by which shard, and the judge's verdict.
//!
//! ```text
//! audit.log ── snapshot ─┬─▶ Creates ─ differences ─▶ nothing but what was asked for
//!                        └─▶ judge ─▶ Report
//! ```

use std::fs;
use std::path::Path;

use shoal_api::ShardedController;
use shoal_judge::{Asked, Case, InputError, Judge, Owners, Report, Ring};

use crate::HarnessError;
use crate::controllers::RING_WRITERS;
use crate::ring::HUB;

mod creates;

pub use creates::{Created, Creates, Owner, Work, differences};

/// The log as it is now, up to the end of its last whole line: the server may be writing the next one.
pub fn snapshot(log: &Path) -> Result<Vec<u8>, HarnessError> {
    let mut text = whole(log)?;
    let end = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
    text.truncate(end);
    Ok(text)
}

/// All of the log, for when the server has ended.
pub fn whole(log: &Path) -> Result<Vec<u8>, HarnessError> {
    fs::read(log).map_err(HarnessError::io("read", log))
}

/// What the judge says of the hub's log. `config` is the folder of the ring and its map; `asked` lists the deletions
/// that the load asked for, in the judge's form.
pub fn judge(log: &[u8], config: &Path, asked: &str) -> Result<Report, HarnessError> {
    let mut judge = Judge::new(case(config, asked)?);
    judge.read(HUB, log);
    Ok(judge.finish())
}

/// What the judge says of the hub's log of a live ring, whose map it reads there. Deletions are judged by owner alone.
pub fn judge_live(
    log: &[u8],
    ring: &ShardedController,
    writers: Vec<String>,
) -> Result<Report, HarnessError> {
    let ring = Ring::parse(&serde_json::to_string(ring).unwrap_or_default())?;
    let owners = Owners::default();
    let mut judge =
        Judge::new(Case { ring, owners, writers, asked: None, orphan_budget: None, adopted: false });
    judge.survey(HUB, log);
    judge.read(HUB, log);
    Ok(judge.finish())
}

/// Creates by that user that were refused because the object was there, as kubectl writes them.
pub fn refused_creates(log: &[u8], user: &str) -> Vec<String> {
    let refused = shoal_judge::read_events(log).filter_map(Result::ok).filter(|event| {
        event.verb == "create" && event.is_final() && event.code() == 409 && event.user.username == user
    });
    refused.filter_map(|event| shoal_judge::Object::of(&event)).map(|object| object.to_string()).collect()
}

/// A ring of [`RING_WRITERS`] and its one map.
fn case(config: &Path, asked: &str) -> Result<Case, HarnessError> {
    let ring = Ring::parse(&text(&config.join("ring.yaml"))?)?;
    let asked = Some(Asked::parse(asked)?);
    let writers = RING_WRITERS.map(str::to_owned).into();
    Ok(Case { owners: owners(config)?, ring, writers, asked, orphan_budget: None, adopted: false })
}

/// Who owns which slot under the map in `config`, as the judge reads it.
pub fn owners(config: &Path) -> Result<Owners, HarnessError> {
    let ring = Ring::parse(&text(&config.join("ring.yaml"))?)?;
    let mut owners = Owners::default();
    match owners.add(&ring, &text(&config.join("shardmap.yaml"))?)? {
        0 => Err(InputError::NoMap.into()),
        _ => Ok(owners),
    }
}

fn text(path: &Path) -> Result<String, HarnessError> {
    fs::read_to_string(path).map_err(HarnessError::io("read", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_ends_with_a_whole_line() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("audit.log");
        for (written, shown) in [("one\ntw", "one\n"), ("one\ntwo\n", "one\ntwo\n"), ("on", ""), ("", "")] {
            fs::write(&log, written).unwrap();
            assert_eq!(snapshot(&log).unwrap(), shown.as_bytes());
        }
        assert_eq!(whole(&log).unwrap(), b"");
    }

    #[test]
    fn the_example_can_be_judged() {
        let report = judge(b"", &crate::ring::example(), "").unwrap();
        assert_eq!(report.count(shoal_judge::Reason::EmptyLog), 1, "{report}");
    }
}
