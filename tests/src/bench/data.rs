//! What is read and written: many small objects over many namespaces.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio::task::JoinSet;

use super::halves::{self, NAMESPACES, namespace};
use super::joined;
use crate::{ControlPlane, HarnessError, User};

/// Bytes of one object's value; with its metadata it is about 2.3 KB in JSON.
const VALUE_BYTES: usize = 2000;
/// Requests at once.
const WRITERS: usize = 16;
/// In front of the number that [`patch`] writes.
pub(super) const MARK: &str = "\"seq\":\"";
/// From the API server's cache, as informers list.
pub(super) const ALL: &str = "/api/v1/configmaps?resourceVersion=0";

/// Creates that many objects, and a namespace that can hold Pods, through the API server itself.
pub(super) async fn create(plane: &ControlPlane, objects: usize) -> Result<(), HarnessError> {
    let client = plane.client(&User::ADMIN).await?;
    for name in (0..NAMESPACES).map(namespace).chain([halves::another()]) {
        let object = Namespace { metadata: named(&name), ..Namespace::default() };
        Api::all(client.clone()).create(&PostParams::default(), &object).await?;
    }
    // A Pod is refused where its service account is missing, and nobody here makes them.
    let account = ServiceAccount { metadata: named("default"), ..ServiceAccount::default() };
    Api::namespaced(client.clone(), &halves::another()).create(&PostParams::default(), &account).await?;
    let writers = (0..WRITERS).map(|first| write(client.clone(), first, objects));
    joined(writers.collect::<JoinSet<_>>()).await.map(drop)
}

async fn write(client: Client, first: usize, objects: usize) -> Result<(), HarnessError> {
    for number in (first..objects).step_by(WRITERS) {
        let api: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace(number % NAMESPACES));
        api.create(&PostParams::default(), &object(number)).await?;
    }
    Ok(())
}

fn object(number: usize) -> ConfigMap {
    let data = BTreeMap::from([("value".to_owned(), "v".repeat(VALUE_BYTES))]);
    ConfigMap { metadata: named(&name(number)), data: Some(data), ..ConfigMap::default() }
}

pub(super) fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}

fn name(number: usize) -> String {
    format!("object-{number:05}")
}

/// The path of the n-th object of a namespace, both by number.
pub(super) fn path(namespace: usize, nth: usize) -> String {
    let name = name(namespace + nth * NAMESPACES);
    format!("/api/v1/namespaces/{}/configmaps/{name}", halves::namespace(namespace))
}

/// A merge patch that makes the number part of an object; see [`super::events`].
pub(super) fn patch(number: u64) -> String {
    format!("{{\"data\":{{{MARK}{number}\"}}}}")
}
