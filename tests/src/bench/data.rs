//! What is read: many small objects over many namespaces, and a ring that owns half of them.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio::task::JoinSet;

use super::halves::{NAMESPACES, namespace};
use crate::{ControlPlane, HarnessError, User};

/// Objects in all.
pub(super) const OBJECTS: usize = 20_000;
/// Bytes of one object's value; with its metadata it is about 2.3 KB in JSON.
const VALUE_BYTES: usize = 2000;
/// Requests at once.
const WRITERS: usize = 16;
/// One object's path; every target answers with all of it.
pub(super) const ONE: &str = "/api/v1/namespaces/mesh-00/configmaps/object-00000";
/// From the API server's cache, as informers list.
pub(super) const ALL: &str = "/api/v1/configmaps?resourceVersion=0";

/// Creates the objects, through the API server itself.
pub(super) async fn create(plane: &ControlPlane) -> Result<(), HarnessError> {
    let client = plane.client(&User::ADMIN).await?;
    for number in 0..NAMESPACES {
        let metadata = ObjectMeta { name: Some(namespace(number)), ..ObjectMeta::default() };
        let object = Namespace { metadata, ..Namespace::default() };
        Api::all(client.clone()).create(&PostParams::default(), &object).await?;
    }
    let mut writers: JoinSet<_> = (0..WRITERS).map(|first| write(client.clone(), first)).collect();
    while let Some(written) = writers.join_next().await {
        written.map_err(|error| HarnessError::Answer {
            url: plane.url().to_owned(),
            reason: error.to_string(),
        })??;
    }
    Ok(())
}

async fn write(client: Client, first: usize) -> Result<(), HarnessError> {
    for number in (first..OBJECTS).step_by(WRITERS) {
        let api: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace(number % NAMESPACES));
        api.create(&PostParams::default(), &object(number)).await?;
    }
    Ok(())
}

fn object(number: usize) -> ConfigMap {
    let metadata = ObjectMeta { name: Some(format!("object-{number:05}")), ..ObjectMeta::default() };
    let data = BTreeMap::from([("value".to_owned(), "v".repeat(VALUE_BYTES))]);
    ConfigMap { metadata, data: Some(data), ..ConfigMap::default() }
}
