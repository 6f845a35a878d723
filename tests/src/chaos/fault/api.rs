//! Faults of the API server and its store.

use std::time::Duration;

use rustix::process::Signal;
use tokio::task::block_in_place;
use tokio::time::sleep;

use super::super::ground::Ground;
use crate::HarnessError;

/// Longer than the API server works on a write of a ring, and shorter.
const STORE_MS: std::ops::Range<u64> = 1000..9000;

/// Ends it, by TERM or by KILL, and starts it again.
pub(super) async fn restart(
    ground: &mut Ground,
    dice: &mut fastrand::Rng,
) -> Result<Option<String>, HarnessError> {
    let plane = &mut ground.cluster.control_plane;
    let how = if dice.bool() { Signal::KILL } else { Signal::TERM };
    let Some(old) = plane.apiserver().map(crate::Process::pid) else { return Ok(None) };
    if let Some(process) = plane.apiserver().filter(|_| how == Signal::KILL) {
        process.kill();
        process.wait().await;
    }
    block_in_place(|| plane.stop_apiserver());
    plane.start_apiserver().await?;
    Ok(plane.apiserver().map(|new| format!("process {old} ended by {how:?}, {} took its place", new.pid())))
}

/// It is there, and answers nobody.
pub(super) async fn outage(ground: &Ground) -> Result<Option<String>, HarnessError> {
    let length = ground.args.outage();
    let Some(process) = ground.cluster.control_plane.apiserver() else { return Ok(None) };
    process.signal(Signal::STOP);
    sleep(length).await;
    process.signal(Signal::CONT);
    Ok(Some(format!("no answer for {} s", length.as_secs())))
}

/// Writes are taken, and it is not known what becomes of them.
pub(super) async fn stop_store(
    ground: &Ground,
    dice: &mut fastrand::Rng,
) -> Result<Option<String>, HarnessError> {
    let length = Duration::from_millis(dice.u64(STORE_MS));
    let Some(process) = ground.cluster.control_plane.etcd() else { return Ok(None) };
    process.signal(Signal::STOP);
    sleep(length).await;
    process.signal(Signal::CONT);
    Ok(Some(format!("etcd stood still for {} ms", length.as_millis())))
}

/// A new API server knows nothing from before it began, and its store has forgotten that too: whoever resumes a watch is told
/// that it is too old.
pub(super) async fn relist(ground: &mut Ground) -> Result<Option<String>, HarnessError> {
    let plane = &mut ground.cluster.control_plane;
    block_in_place(|| plane.stop_apiserver());
    let revision = plane.compact_etcd().await?;
    plane.start_apiserver().await?;
    Ok(Some(format!("nothing from before revision {revision} can be read")))
}
