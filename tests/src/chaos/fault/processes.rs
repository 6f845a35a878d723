//! Faults of the programs of a Pod.

use std::fs;
use std::time::Duration;

use rustix::process::Signal;
use tokio::time::{sleep, timeout};

use super::super::ground::Ground;
use crate::live::{Container, Pod};
use crate::{HarnessError, wait_for};

/// Longer than an identity holds, so that it is taken away, or not.
const PAUSE_MS: std::ops::Range<u64> = 500..22_000;
/// A few writes take as long.
const FLICKER_MS: std::ops::Range<u64> = 20..300;
const FLICKERS: usize = 20;
/// Until another Pod comes for one that went with its node.
const ABSENCE_MS: std::ops::Range<u64> = 1000..25_000;
const DEADLINE: Duration = Duration::from_mins(1);

/// What of a Pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Controller,
    Proxy,
    Both,
}

// === impl Part ===

impl Part {
    fn of(self, pod: &Pod) -> Vec<&Container> {
        match self {
            Self::Controller => vec![&pod.controller],
            Self::Proxy => vec![&pod.proxy],
            Self::Both => vec![&pod.controller, &pod.proxy],
        }
    }
}

/// KILL; the kubelet starts it again.
pub(super) async fn kill(
    ground: &Ground,
    dice: &mut fastrand::Rng,
    part: Part,
) -> Result<Option<String>, HarnessError> {
    let Some(pod) = ground.any_pod(dice) else { return Ok(None) };
    let mut seen = Vec::new();
    for container in part.of(pod) {
        seen.extend(end(container, Signal::KILL).await?);
    }
    Ok((!seen.is_empty()).then(|| seen.join(", ")))
}

/// TERM to the controller, as if it ended by itself.
pub(super) async fn term_controller(
    ground: &Ground,
    dice: &mut fastrand::Rng,
) -> Result<Option<String>, HarnessError> {
    let Some(pod) = ground.any_pod(dice) else { return Ok(None) };
    end(&pod.controller, Signal::TERM).await
}

/// Waits for the end, then for the next start.
pub(super) async fn end(container: &Container, signal: Signal) -> Result<Option<String>, HarnessError> {
    let ended = timeout(DEADLINE, container.restart_by(signal)).await;
    let ended = ended.map_err(|_| HarnessError::Timeout {
        what: format!("{} to be started again", container.name()),
        waited: DEADLINE,
        last: "it is not".to_owned(),
    })?;
    Ok(ended.map(|code| format!("{} ended with code {code} and was started again", container.name())))
}

/// STOP, and CONT after a while.
pub(super) async fn stop(
    ground: &Ground,
    dice: &mut fastrand::Rng,
    part: Part,
) -> Result<Option<String>, HarnessError> {
    let pause = Duration::from_millis(dice.u64(PAUSE_MS));
    let Some(pod) = ground.any_pod(dice) else { return Ok(None) };
    let seat = pod
        .seat()
        .await
        .map_or_else(|error| error.to_string(), |seat| format!("{} {}", seat.role, seat.shard));
    let stopped = part.of(pod).into_iter().filter_map(|it| it.signal(Signal::STOP)).collect::<Vec<_>>();
    let seen = wait_for("the processes to be stopped", DEADLINE, || async { all_stopped(&stopped) }).await;
    sleep(pause).await;
    for container in part.of(pod) {
        container.signal(Signal::CONT);
    }
    seen?;
    let what = format!("{} ({seat}), {part:?}, stood still for {} ms", pod.name(), pause.as_millis());
    Ok((!stopped.is_empty()).then_some(what))
}

/// The state of a process, the third field of `/proc/PID/stat`; its name before it may hold anything.
fn all_stopped(pids: &[u32]) -> Result<(), String> {
    for pid in pids {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).map_err(|error| error.to_string())?;
        let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        if state != Some('T') {
            return Err(format!("{pid} is {state:?}"));
        }
    }
    Ok(())
}

/// Many short pauses, each for another place in the middle of something.
pub(super) async fn flicker(
    ground: &Ground,
    dice: &mut fastrand::Rng,
) -> Result<Option<String>, HarnessError> {
    let Some(pod) = ground.any_pod(dice) else { return Ok(None) };
    let mut seen = 0;
    for _ in 0..FLICKERS {
        seen += usize::from(pod.proxy.signal(Signal::STOP).is_some());
        sleep(Duration::from_millis(dice.u64(FLICKER_MS))).await;
        pod.proxy.signal(Signal::CONT);
        sleep(Duration::from_millis(dice.u64(FLICKER_MS))).await;
    }
    Ok((seen > 0).then(|| format!("{} stood still {seen} times", pod.proxy.name())))
}

/// Both programs are gone and do not come back; another Pod comes.
pub(super) async fn lose_node(
    ground: &mut Ground,
    dice: &mut fastrand::Rng,
) -> Result<Option<String>, HarnessError> {
    if ground.ring.pods.len() < 2 {
        return Ok(None);
    }
    let index = dice.usize(0..ground.ring.pods.len());
    let Some(pod) = ground.ring.take(index) else { return Ok(None) };
    let seat = pod
        .seat()
        .await
        .map_or_else(|error| error.to_string(), |seat| format!("{} {}", seat.role, seat.shard));
    let processes = [pod.controller.process(), pod.proxy.process()];
    pod.kill();
    for process in processes.into_iter().flatten() {
        process.wait().await;
    }
    let absence = Duration::from_millis(dice.u64(ABSENCE_MS));
    sleep(absence).await;
    ground.fill().await?;
    Ok(Some(format!("{} ({seat}) is gone; another came after {} ms", pod.name(), absence.as_millis())))
}
