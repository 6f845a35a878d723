//! How many sharded objects there are, by listing every kind that the API server has.

use kube::api::{Api, ListParams};
use kube::core::{DynamicObject, ResourceExt};
use kube::discovery::{ApiResource, Scope, verbs};
use kube::{Client, Discovery};
use shoal_api::RuleMode;
use shoal_sharding::Rules;

use crate::HarnessError;

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
    for kind in kinds(client).await? {
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

async fn kinds(client: &Client) -> Result<Vec<ApiResource>, HarnessError> {
    let discovery = Discovery::new(client.clone()).run_aggregated().await?;
    let all = discovery.groups().flat_map(kube::discovery::ApiGroup::recommended_resources);
    let listed = all.filter(|(kind, can)| {
        can.scope == Scope::Namespaced && can.supports_operation(verbs::LIST) && kind.plural != "events"
    });
    Ok(listed.map(|(kind, _)| kind).collect())
}
