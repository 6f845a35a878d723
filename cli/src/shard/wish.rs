//! `move`, `drain`, `undrain`: wishes on the `ShardedController`, which the coordinator takes up.

use std::time::Duration;

use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use serde::Serialize;
use serde_json::json;
use shoal_api::{ShardedController, names};
use shoal_sharding::{Slot, SlotMap, Wishes, kube::Fault};
use tokio::time::{Instant, sleep};

use crate::{
    app::Answer,
    args::{RingName, SlotRange, Wait},
    error::CliError,
    hub::{Hub, Ring},
};

/// How often a wish is written anew when somebody else wrote the ring in between.
const TRIES: usize = 5;
/// Between two looks at the map.
const PAUSE: Duration = Duration::from_millis(200);

/// What became of a wish.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Wished {
    ring: String,
    /// All wishes for the ring.
    wishes: String,
    /// Whether the map shows what was wished for; none if nobody waited.
    done: Option<bool>,
}

pub(super) async fn moved(
    hub: &Hub,
    ring: &Ring,
    slots: &[SlotRange],
    to: &str,
    wait: Wait,
) -> Result<Wished, CliError> {
    let to = ring.shard(to)?;
    let slots: Vec<Slot> = slots.iter().flat_map(|range| range.first..=range.last).map(Slot).collect();
    let add = |wishes: &mut Wishes| wishes.moves.extend(slots.iter().map(|slot| (*slot, to.clone())));
    let wishes = write(hub, ring, add).await?;
    finish(hub, ring, &wishes, wait, |map| slots.iter().all(|slot| map.owned_at(*slot, &to).is_some())).await
}

pub(super) async fn drained(hub: &Hub, ring: &Ring, shard: &str, wait: Wait) -> Result<Wished, CliError> {
    let shard = ring.shard(shard)?;
    let wishes = write(hub, ring, |wishes| _ = wishes.drained.insert(shard.clone())).await?;
    finish(hub, ring, &wishes, wait, |map| !map.owners().contains_key(shard.as_str())).await
}

pub(super) async fn undrained(hub: &Hub, ring: &Ring, shard: &str) -> Result<Wished, CliError> {
    let wishes = write(hub, ring, |wishes| _ = wishes.drained.remove(shard)).await?;
    Ok(Wished { ring: ring.full_name(), wishes: wishes.to_string(), done: None })
}

/// Changes the wishes for the ring as they are now.
async fn write(hub: &Hub, ring: &Ring, change: impl Fn(&mut Wishes)) -> Result<Wishes, CliError> {
    let api: Api<ShardedController> = Api::namespaced(hub.client.clone(), &ring.namespace);
    let name = RingName { namespace: ring.namespace.clone(), name: ring.name.clone() };
    let mut tries = 0;
    loop {
        let controller = hub.ring(Some(&name)).await?.controller;
        let text = controller.annotations().get(names::WISHES_ANNOTATION);
        let mut wishes: Wishes = text.map_or(Ok(Wishes::default()), |text| text.parse())?;
        change(&mut wishes);
        let text = (!wishes.is_empty()).then(|| wishes.to_string());
        let patch = json!({ "metadata": {
            "resourceVersion": controller.resource_version(),
            "annotations": { names::WISHES_ANNOTATION: text },
        }});
        let patched = api.patch(&ring.name, &PatchParams::default(), &Patch::Merge(&patch)).await;
        tries += 1;
        match patched.map_err(|error| Fault::of(&format!("ShardedController {}", ring.full_name()), error)) {
            Ok(_) => return Ok(wishes),
            Err(Fault::Conflict(_)) if tries < TRIES => {}
            Err(fault) => return Err(fault.into()),
        }
    }
}

/// Waits, if that was asked for, until the map is so.
async fn finish(
    hub: &Hub,
    ring: &Ring,
    wishes: &Wishes,
    wait: Wait,
    is_so: impl Fn(&SlotMap) -> bool,
) -> Result<Wished, CliError> {
    let answer = |done| Wished { ring: ring.full_name(), wishes: wishes.to_string(), done };
    if !wait.wait {
        return Ok(answer(None));
    }
    let end = Instant::now() + wait.timeout;
    loop {
        let done = is_so(&hub.map(ring).await?);
        if done || Instant::now() >= end {
            return Ok(answer(Some(done)));
        }
        sleep(PAUSE).await;
    }
}

impl Answer for Wished {
    fn text(&self, _: bool) -> String {
        match self.done {
            Some(true) => format!("ring {}: done\n", self.ring),
            Some(false) => format!("ring {}: not done in time; the wish stays: {}\n", self.ring, self.wishes),
            None if self.wishes.is_empty() => format!("ring {}: nothing is wished for any more\n", self.ring),
            None => format!("ring {}: wished for: {}\n", self.ring, self.wishes),
        }
    }

    fn is_good(&self) -> bool {
        self.done != Some(false)
    }
}
