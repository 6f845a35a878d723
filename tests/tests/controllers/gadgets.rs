//! The kind that the controllers are about, and what becomes of it.
//!
//! A Gadget wants `spec.size` `ConfigMap`s of its own with `spec.color` in their data. Each controller has an API group of
//! its own.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, ListParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::json;
use shoal_tests::wait_for;

/// The groups of the controller-runtime manager and of the kube-rs controller.
pub(crate) const GROUPS: [&str; 2] = [GO, RUST];
pub(crate) const GO: &str = "go.test.shoal.dev";
pub(crate) const RUST: &str = "rs.test.shoal.dev";
/// The label of a part that names its Gadget.
pub(crate) const OWNER: &str = "test.shoal.dev/gadget";
pub(crate) const FINALIZER: &str = "test.shoal.dev/parts";
const DEADLINE: Duration = Duration::from_mins(2);

/// All Gadgets and parts of a world, a line each.
pub(crate) type State = BTreeMap<String, String>;

/// The kind in a group.
pub(crate) fn resource(group: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", "Gadget"))
}

/// Makes the API server serve both groups and returns when it does.
pub(crate) async fn install(client: &Client) {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    for group in GROUPS {
        crds.create(&PostParams::default(), &definition(group)).await.unwrap();
        let gadgets: Api<DynamicObject> = Api::all_with(client.clone(), &resource(group));
        let list = || async { gadgets.list(&ListParams::default()).await };
        wait_for("the API server to serve Gadgets", DEADLINE, list).await.unwrap();
    }
}

fn definition(group: &str) -> CustomResourceDefinition {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = json!({
        "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": open, "status": open}}},
    });
    let names = json!({"plural": "gadgets", "singular": "gadget", "kind": "Gadget"});
    let spec = json!({"group": group, "scope": "Namespaced", "names": names, "versions": [version]});
    serde_json::from_value(json!({"metadata": {"name": format!("gadgets.{group}")}, "spec": spec})).unwrap()
}

/// The line of a Gadget whose controller is done with it.
pub(crate) fn done(size: u64, color: &str) -> String {
    gadget_line(size, color, size, true, &[FINALIZER.to_owned()])
}

/// The line of a part that is as it should be.
pub(crate) fn part(gadget: &str, color: &str) -> String {
    format!("of {gadget}, {color}, controlled by it")
}

/// What a server has of a group.
pub(crate) async fn state(client: &Client, group: &str) -> State {
    let gadgets = all::<DynamicObject>(&Api::all_with(client.clone(), &resource(group))).await;
    let parts = all::<ConfigMap>(&Api::all(client.clone())).await;
    let uids: BTreeMap<_, _> = gadgets.iter().map(|gadget| (gadget.uid(), gadget.name_any())).collect();
    let gadgets = gadgets.iter().map(|gadget| (key(gadget), of_gadget(gadget)));
    let parts = parts.iter().filter(|part| is_of(part, group)).map(|part| {
        let owner = part.owner_references().iter().find(|owner| owner.controller == Some(true));
        let owner = owner.and_then(|owner| uids.get(&Some(owner.uid.clone())));
        let named = part.labels().get(OWNER).map_or("", String::as_str);
        let color = part.data.as_ref().and_then(|data| data.get("color")).map_or("", String::as_str);
        let controlled = if owner.is_some_and(|owner| owner == named) { ", controlled by it" } else { "" };
        (key(part), format!("of {named}, {color}{controlled}"))
    });
    gadgets.chain(parts).collect()
}

/// Namespaces are of one group each.
fn is_of(part: &ConfigMap, group: &str) -> bool {
    part.namespace().unwrap_or_default().starts_with(prefix(group)) && part.labels().contains_key(OWNER)
}

/// What the names of a group's namespaces begin with.
pub(crate) fn prefix(group: &str) -> &str {
    group.split_once('.').map_or(group, |(first, _)| first)
}

fn of_gadget(gadget: &DynamicObject) -> String {
    let number =
        |pointer| gadget.data.pointer(pointer).and_then(serde_json::Value::as_u64).unwrap_or_default();
    let color = gadget.data.pointer("/spec/color").and_then(serde_json::Value::as_str).unwrap_or_default();
    let observed = gadget.data.pointer("/status/observedGeneration").and_then(serde_json::Value::as_i64);
    let current = observed.is_some() && observed == gadget.metadata.generation;
    gadget_line(number("/spec/size"), color, number("/status/parts"), current, gadget.finalizers())
}

fn gadget_line(size: u64, color: &str, parts: u64, current: bool, finalizers: &[String]) -> String {
    let seen = if current { "seen" } else { "not seen" };
    format!("wants {size} {color}, has {parts}, {seen}, {finalizers:?}")
}

fn key(object: &impl ResourceExt) -> String {
    format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any())
}

async fn all<K: Clone + DeserializeOwned + Debug>(api: &Api<K>) -> Vec<K> {
    api.list(&ListParams::default()).await.unwrap().items
}
