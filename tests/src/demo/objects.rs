//! How many sharded objects there are, by listing every kind that the API server has.

use kube::Client;
use kube::api::{Api, ListParams};
use kube::core::{DynamicObject, ResourceExt};
use shoal_api::RuleMode;
use shoal_sharding::Rules;

use crate::{HarnessError, kinds};

/// Counts the objects in `namespaces` that one shard owns by the rules.
///
/// Every namespaced kind that can be listed is asked for, at the version that the server prefers, straight at the
/// API server. Events are left out: every replica writes them.
pub(super) async fn count(
    client: &Client,
    rules: &Rules,
    namespaces: &[String],
) -> Result<usize, HarnessError> {
    let mut objects = 0;
    for kind in kinds::namespaced(client).await? {
        let sharded = |object: &DynamicObject| {
            let namespace = object.namespace().unwrap_or_default();
            namespaces.contains(&namespace)
                && rules.treatment(&kind.group, &kind.plural, &namespace).mode == RuleMode::Sharded
        };
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
        objects += api.list(&ListParams::default()).await?.iter().filter(|object| sharded(object)).count();
    }
    Ok(objects)
}
