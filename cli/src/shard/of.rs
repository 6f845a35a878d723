//! `of`: which shard owns an object, and why.

use kube::{
    Api, ResourceExt,
    core::{ApiResource, DynamicObject},
    discovery::{ApiGroup, Discovery, Scope},
};
use serde::Serialize;
use shoal_api::{KeyMode, RuleMode, SlotRange};
use shoal_sharding::{Object, Part, Rules, kube::Fault, slot_in};

use crate::{
    app::Answer,
    args::ObjectName,
    error::CliError,
    hub::{Hub, Ring},
};

/// An object and its owner.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Of {
    object: String,
    ring: String,
    mode: RuleMode,
    key: KeyMode,
    key_field: &'static str,
    key_value: String,
    slot: u8,
    map_version: i64,
    /// The slot's range in the map: owner, epoch, state and where it goes.
    entry: SlotRange,
}

pub(super) async fn of(hub: &Hub, ring: &Ring, name: &ObjectName, cluster: &str) -> Result<Of, CliError> {
    let (kind, scope) = resolve(hub, &name.kind).await?;
    let api: Api<DynamicObject> = match scope {
        Scope::Namespaced => Api::namespaced_with(hub.client.clone(), &hub.namespace, &kind),
        Scope::Cluster => Api::all_with(hub.client.clone(), &kind),
    };
    let what = format!("{} {}", kind.kind, name.name);
    let found = api.get_metadata(&name.name).await.map_err(|error| Fault::of(&what, error))?;
    let (namespace, uid) = (found.namespace().unwrap_or_default(), found.uid().unwrap_or_default());
    let object = Object { namespace: &namespace, name: &name.name, uid: &uid };
    let rules = Rules::new(&ring.controller.spec.resources);
    let treatment = rules.treatment(&kind.group, &kind.plural, &namespace);
    let (part, slot) = (Part::of(treatment.key, &namespace), slot_in(treatment.key, cluster, object));
    let map = hub.map(ring).await?;
    Ok(Of {
        object: if namespace.is_empty() { what } else { format!("{what} in {namespace}") },
        ring: ring.full_name(),
        mode: treatment.mode,
        key: treatment.key,
        key_field: part.field(),
        key_value: part.text(object).to_owned(),
        slot: slot.0,
        map_version: map.version(),
        entry: map.entry(slot).clone(),
    })
}

/// The kind by any of its names, with its group after a dot or not.
async fn resolve(hub: &Hub, name: &str) -> Result<(ApiResource, Scope), CliError> {
    let discovery = Discovery::new(hub.client.clone()).run_aggregated().await;
    let discovery = discovery.map_err(|error| Fault::of("the kinds of the API server", error))?;
    let wanted = name.to_lowercase();
    let (plain, group) = wanted.split_once('.').unwrap_or((&wanted, ""));
    let kinds = discovery.groups_alphabetical().into_iter().flat_map(ApiGroup::recommended_resources);
    let named = kinds.filter(|(kind, _)| {
        let is_kind = kind.plural == plain || kind.kind.to_lowercase() == plain;
        is_kind && (group.is_empty() || kind.group == group)
    });
    let mut found: Vec<_> = named.map(|(kind, capabilities)| (kind, capabilities.scope)).collect();
    // As with kubectl, the core group wins.
    if found.iter().any(|(kind, _)| kind.group.is_empty()) {
        found.retain(|(kind, _)| kind.group.is_empty());
    }
    let full = |(kind, _): &(ApiResource, Scope)| format!("{}.{}", kind.plural, kind.group);
    let full_names: Vec<String> = found.iter().map(full).collect();
    match (found.pop(), found.is_empty()) {
        (Some(one), true) => Ok(one),
        (Some(_), false) => Err(CliError::ManyKinds { kind: name.to_owned(), found: full_names }),
        (None, _) => Err(CliError::NoKind(name.to_owned())),
    }
}

impl Answer for Of {
    fn text(&self, _: bool) -> String {
        let entry = &self.entry;
        let owner = entry.owner.as_deref().unwrap_or("nobody");
        let goes = entry.to.as_ref().map(|to| format!(", on its way to {to}")).unwrap_or_default();
        let who = match self.mode {
            RuleMode::Sharded => format!("{owner} sees and writes it"),
            RuleMode::SharedRead => format!("all shards see it, {owner} writes it"),
            RuleMode::Unsharded => "all shards see and write it".to_owned(),
        };
        let key = if self.key_field.is_empty() {
            "none: all objects of the cluster go together".to_owned()
        } else {
            format!("{} {}", self.key_field, self.key_value)
        };
        format!(
            "{}: {who}\n  ring   {}, map {}\n  key    {key}\n  slot   {}\n  state  {:?} at epoch {}{goes}\n",
            self.object, self.ring, self.map_version, self.slot, entry.state, entry.epoch
        )
    }
}
