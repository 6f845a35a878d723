//! Faults of the coordinator.

use std::time::Duration;

use rustix::process::Signal;
use tokio::time::sleep;

use super::super::ground::Ground;
use crate::HarnessError;
use crate::health::Probe;
use crate::live::{Container, ring};
use crate::ports::Port;

const PAUSE_MS: std::ops::Range<u64> = 1000..20_000;
/// How long two decide at once.
const TOGETHER: Duration = Duration::from_secs(20);
const DEADLINE: Duration = Duration::from_mins(1);

pub(super) async fn stop(ground: &Ground, dice: &mut fastrand::Rng) -> Result<Option<String>, HarnessError> {
    let pause = Duration::from_millis(dice.u64(PAUSE_MS));
    if ground.ring.coordinator.signal(Signal::STOP).is_none() {
        return Ok(None);
    }
    sleep(pause).await;
    ground.ring.coordinator.signal(Signal::CONT);
    Ok(Some(format!("it stood still for {} ms", pause.as_millis())))
}

/// A second one that waits for no election.
pub(super) async fn double(ground: &mut Ground) -> Result<Option<String>, HarnessError> {
    let (plane, port) = (&ground.cluster.control_plane, Port::reserve()?);
    let second = Container::start(ring::coordinator(plane, "coordinator-2", false, port.number())?)?;
    let url = format!("http://127.0.0.1:{}", port.number());
    if let Some(process) = second.process() {
        Probe { url: &url, ca: None, path: "/readyz", deadline: DEADLINE }.ready(&process).await?;
    }
    ground.second = Some(second);
    sleep(TOGETHER).await;
    if let Some(second) = ground.second.take() {
        second.end().await;
    }
    Ok(Some(format!("two decided for {} s", TOGETHER.as_secs())))
}
