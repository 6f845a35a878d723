//! Does what the rules decided, one request a command, in order. A command that fails ends the batch: those after it may rest
//! on it, and the next step says again what is still to be done.

use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use shoal_api::{ShardedControllerStatus, SlotState, names};
use shoal_sharding::{
    Seat, SlotMap,
    coordinator::Command,
    kube::{Fault, lease, map},
};
use tokio::time::timeout;

use super::{REQUEST, Ring, seen};

// === impl Ring ===

impl Ring {
    /// Says whether the map was written, so that another step may have more to do at once.
    pub(super) async fn execute(&mut self, commands: Vec<Command>) -> bool {
        let mut wrote_map = false;
        for command in commands {
            let is_map = matches!(command, Command::PutMap { .. });
            match timeout(REQUEST, self.command(command)).await {
                Ok(Ok(())) => wrote_map |= is_map,
                Ok(Err(fault)) => {
                    self.failed(&fault);
                    return false;
                }
                Err(_) => {
                    self.silent();
                    return false;
                }
            }
        }
        wrote_map
    }

    async fn command(&mut self, command: Command) -> Result<(), Fault> {
        match command {
            Command::PutMap { spec, over } => {
                let put = map::put(&self.maps(), &self.controller, spec, over.as_deref()).await?;
                tracing::info!(ring = self.full_name(), version = put.spec.version, "map");
                self.follow_map(Some(put));
            }
            Command::CreateLease { shard, seat, left, term } => {
                let created = lease::create(&self.leases(), &self.name, seat, &shard, term, left).await?;
                self.world.wrote(seat, created);
            }
            Command::Depose { shard, version, left } => {
                let vacated = lease::vacate(&self.leases(), Seat::Identity, &shard, &version, left).await?;
                tracing::info!(ring = self.full_name(), shard, %left, "took the identity");
                self.metrics.deposed.with_label_values(&[&self.full_name()]).inc();
                self.world.wrote(Seat::Identity, vacated);
            }
            Command::DeleteSecret { shard, term } => self.delete_secret(&shard, term).await?,
            Command::DeleteLease { shard, seat, version } => {
                lease::delete(&self.leases(), seat, &shard, &version).await?;
            }
            Command::ReleaseLocks => {
                self.locks.release(&self.client).await?;
                tracing::info!(ring = self.full_name(), "released the locks");
            }
            Command::Finish => {
                self.guard(false).await?;
                self.finished = true;
            }
            Command::Report(report) => self.report = Some(report),
        }
        Ok(())
    }

    /// Writes the ring's finalizer, or takes it away.
    pub(super) async fn guard(&self, guarded: bool) -> Result<(), Fault> {
        let others = self.controller.finalizers().iter().map(String::as_str);
        let mut finalizers: Vec<&str> = others.filter(|name| *name != names::RING_FINALIZER).collect();
        if guarded {
            finalizers.push(names::RING_FINALIZER);
        }
        self.patch_ring(json!({ "finalizers": finalizers })).await
    }

    /// Takes moves that came true off the annotation. Says whether it had to.
    pub(super) async fn clear_wishes(&self) -> Result<bool, Fault> {
        let (Ok(mut wishes), Some(Ok(map))) =
            (seen::wishes(&self.controller), self.map.as_ref().map(|map| SlotMap::try_from(&map.spec)))
        else {
            return Ok(false);
        };
        let before = wishes.moves.len();
        wishes.moves.retain(|slot, to| {
            let entry = map.entry(*slot);
            entry.state != SlotState::Owned || entry.to.is_some() || entry.owner.as_ref() != Some(to)
        });
        if wishes.moves.len() == before {
            return Ok(false);
        }
        let text = (!wishes.is_empty()).then(|| wishes.to_string());
        self.patch_ring(json!({ "annotations": { names::WISHES_ANNOTATION: text } })).await?;
        Ok(true)
    }

    /// Writes the status. Nobody else does, so it needs no version.
    pub(super) async fn write_status(&self, status: &ShardedControllerStatus) -> Result<(), Fault> {
        let change = json!({ "status": status });
        let (params, patch) = (PatchParams::default(), Patch::Merge(&change));
        let patched = self.rings().patch_status(&self.name, &params, &patch).await;
        patched.map(drop).map_err(|error| Fault::of(&self.what(), error))
    }

    async fn patch_ring(&self, mut metadata: Value) -> Result<(), Fault> {
        metadata["resourceVersion"] = json!(self.controller.resource_version());
        let change = json!({ "metadata": metadata });
        let patched = self.rings().patch(&self.name, &PatchParams::default(), &Patch::Merge(&change)).await;
        patched.map(drop).map_err(|error| Fault::of(&self.what(), error))
    }

    fn what(&self) -> String {
        format!("ShardedController {}", self.full_name())
    }

    async fn delete_secret(&self, shard: &str, term: i64) -> Result<(), Fault> {
        let name = format!("{}-{term}", names::identity_lease(shard));
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        match api.delete(&name, &DeleteParams::default()).await.map_err(|error| Fault::of(&name, error)) {
            Ok(_) | Err(Fault::NotFound(_)) => Ok(()),
            Err(fault) => Err(fault),
        }
    }
}
