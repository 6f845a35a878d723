//! The controller of kube-rs, written the usual way: a finalizer, server-side apply, deletes, a status patch, events.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::runtime::controller::Action;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::runtime::finalizer::{self, finalizer};
use kube::runtime::{Controller, watcher};
use kube::{Client, Resource, ResourceExt};
use serde_json::json;
use tokio::task::AbortHandle;

use crate::gadgets::{self, FINALIZER, OWNER, RUST};

const MANAGER: &str = "gadgets";
/// The most seconds of a watch, a sixtieth of what kube-rs asks for by itself.
const WATCH_SECONDS: u32 = 5;

/// A running controller. Dropping it ends it.
pub(crate) struct KubeRs(AbortHandle);

struct Context {
    client: Client,
    recorder: Recorder,
}

type Error = finalizer::Error<kube::Error>;

// === impl KubeRs ===

impl KubeRs {
    pub(crate) fn start(client: Client) -> Self {
        let config = watcher::Config::default().timeout(WATCH_SECONDS);
        let resource = gadgets::resource(RUST);
        let gadgets = Api::<DynamicObject>::all_with(client.clone(), &resource);
        let recorder = Recorder::new(client.clone(), Reporter::from(MANAGER));
        let context = Arc::new(Context { client: client.clone(), recorder });
        let controller = Controller::new_with(gadgets, config.clone(), resource)
            .owns(Api::<ConfigMap>::all(client), config)
            .run(reconcile, |_, _, _| Action::requeue(Duration::from_millis(50)), context);
        // An error is followed by a new try.
        Self(tokio::spawn(controller.for_each(|_| std::future::ready(()))).abort_handle())
    }
}

impl Drop for KubeRs {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn reconcile(gadget: Arc<DynamicObject>, context: Arc<Context>) -> Result<Action, Error> {
    let namespace = gadget.namespace().unwrap_or_default();
    let gadgets =
        Api::<DynamicObject>::namespaced_with(context.client.clone(), &namespace, &gadgets::resource(RUST));
    let act = |event| async {
        match event {
            finalizer::Event::Apply(gadget) => context.apply(&gadget, &gadgets).await,
            finalizer::Event::Cleanup(gadget) => {
                context.remove(&gadget, 0).await.map(|()| Action::await_change())
            }
        }
    };
    finalizer(&gadgets, FINALIZER, gadget, act).await
}

// === impl Context ===

impl Context {
    async fn apply(
        &self,
        gadget: &DynamicObject,
        gadgets: &Api<DynamicObject>,
    ) -> Result<Action, kube::Error> {
        let size = gadget.data["spec"]["size"].as_u64().unwrap_or_default();
        for index in 0..size {
            self.part(gadget, index).await?;
        }
        self.remove(gadget, size).await?;
        let status = json!({"parts": size, "observedGeneration": gadget.metadata.generation});
        if gadget.data.get("status") != Some(&status) {
            let patch = Patch::Merge(json!({"status": status}));
            gadgets.patch_status(&gadget.name_any(), &PatchParams::default(), &patch).await?;
        }
        Ok(Action::await_change())
    }

    async fn part(&self, gadget: &DynamicObject, index: u64) -> Result<(), kube::Error> {
        let name = format!("{}-{index}", gadget.name_any());
        let parts = self.parts(gadget);
        let color = gadget.data["spec"]["color"].as_str().unwrap_or_default();
        let is_new = match parts.get_opt(&name).await? {
            Some(part) if part.data == Some(BTreeMap::from([("color".to_owned(), color.to_owned())])) => {
                return Ok(());
            }
            part => part.is_none(),
        };
        let part = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": name,
                "labels": {OWNER: gadget.name_any()},
                "ownerReferences": [gadget.controller_owner_ref(&gadgets::resource(RUST))],
            },
            "data": {"color": color},
        });
        parts.patch(&name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(part)).await?;
        if is_new { self.tell(gadget, &name).await } else { Ok(()) }
    }

    async fn tell(&self, gadget: &DynamicObject, part: &str) -> Result<(), kube::Error> {
        let event = Event {
            type_: EventType::Normal,
            reason: "Created".to_owned(),
            note: Some(format!("created {part}")),
            action: "Create".to_owned(),
            secondary: None,
        };
        self.recorder.publish(&event, &gadget.object_ref(&gadgets::resource(RUST))).await
    }

    /// Deletes the parts that are too many.
    async fn remove(&self, gadget: &DynamicObject, size: u64) -> Result<(), kube::Error> {
        let parts = self.parts(gadget);
        let own = ListParams::default().labels(&format!("{OWNER}={}", gadget.name_any()));
        for part in parts.list(&own).await?.items {
            let number = part.name_any().rsplit_once('-').and_then(|(_, number)| number.parse::<u64>().ok());
            if number.is_none_or(|number| number >= size) {
                let deleted = parts.delete(&part.name_any(), &DeleteParams::default()).await;
                ignore_not_found(deleted.map(drop))?;
            }
        }
        Ok(())
    }

    fn parts(&self, gadget: &DynamicObject) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), &gadget.namespace().unwrap_or_default())
    }
}

/// Somebody else was faster.
pub(crate) fn ignore_not_found(done: Result<(), kube::Error>) -> Result<(), kube::Error> {
    match done {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        done => done,
    }
}
