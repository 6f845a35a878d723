//! Faults between a proxy and the API server, and of a proxy's clock.

use std::time::Duration;

use shoal_api::names;
use tokio::time::sleep;

use super::super::ground::Ground;
use crate::relay::Cut;
use crate::{HarnessError, wait_for};

const HOLD_MS: std::ops::Range<u64> = 500..22_000;
/// Longer than any time of the protocol.
const HOURS: i64 = 3600;
/// A clock that is wrong by more than this is seen to be so.
const WRONG: i64 = 60;
const DEADLINE: Duration = Duration::from_secs(30);
/// How long the clock is wrong.
const TURN: Duration = Duration::from_secs(6);

pub(super) fn cut(ground: &Ground, dice: &mut fastrand::Rng) -> Option<String> {
    let how = if dice.bool() { Cut::Reset } else { Cut::Close };
    let pod = ground.any_pod(dice)?;
    let connections = pod.relay.cut(how);
    (connections > 0).then(|| format!("{connections} connections of {}", pod.name()))
}

pub(super) async fn partition(
    ground: &Ground,
    dice: &mut fastrand::Rng,
) -> Result<Option<String>, HarnessError> {
    let length = Duration::from_millis(dice.u64(HOLD_MS));
    let Some(pod) = ground.any_pod(dice) else { return Ok(None) };
    let held = pod.relay.held();
    pod.relay.hold();
    sleep(length).await;
    pod.relay.release();
    let what = format!("{held} connections of {}, for {} ms", pod.name(), length.as_millis());
    Ok((held > 0).then_some(what))
}

/// Forth, then back by twice as much, then right again; seen in the renewals of the shard.
pub(super) async fn jump(ground: &Ground, dice: &mut fastrand::Rng) -> Result<Option<String>, HarnessError> {
    let Some(pod) = ground.any_pod(dice) else { return Ok(None) };
    let Some(clock) = &pod.clock else { return Ok(None) };
    let shard = match pod.seat().await {
        Ok(seat) if seat.role == "holder" => seat.shard,
        _ => return Ok(None),
    };
    let mut seen = Vec::new();
    for hours in [1, -1] {
        clock.jump(hours * HOURS)?;
        let wrong =
            wait_for("a renewal by the wrong clock", DEADLINE, || error_of(ground, &shard, hours)).await;
        seen.extend(wrong.ok().map(|seconds| format!("{seconds} s")));
        sleep(TURN).await;
    }
    clock.jump(0)?;
    Ok((!seen.is_empty()).then(|| format!("{shard} renewed wrong by {}", seen.join(", "))))
}

/// By how much a shard's last renewal is off the clock of this machine, if it is so in that direction.
async fn error_of(ground: &Ground, shard: &str, direction: i64) -> Result<i64, String> {
    let lease = ground.ring.leases().get(&names::identity_lease(shard)).await;
    let lease = lease.map_err(|error| error.to_string())?;
    let renewed = lease.spec.and_then(|spec| spec.renew_time).ok_or("never renewed")?.0;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.ok().and_then(|now| i64::try_from(now.as_secs()).ok()).ok_or("no time")?;
    let wrong = renewed.as_second() - now;
    if wrong * direction > WRONG { Ok(wrong) } else { Err(format!("{wrong} s")) }
}
