//! The `CustomResourceDefinition` of every kind, as the chart ships them.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

use crate::{ShardMap, ShardedController};

/// Every CRD, in the order of the files.
pub fn all() -> Vec<CustomResourceDefinition> {
    vec![ShardMap::crd(), ShardedController::crd()]
}

/// The file name and the YAML of every CRD. Errors only if a type cannot be written as YAML.
pub fn files() -> Result<Vec<(String, String)>, serde_saphyr::ser::Error> {
    all().iter().map(|crd| Ok((file_name(crd), serde_saphyr::to_string(crd)?))).collect()
}

fn file_name(crd: &CustomResourceDefinition) -> String {
    format!("{}.yaml", crd.spec.names.plural)
}
