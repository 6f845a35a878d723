//! The kinds that an API server has.

use kube::discovery::{ApiResource, Scope, verbs};
use kube::{Client, Discovery};

/// Every namespaced kind that can be listed, at the version that the server prefers; but Events.
pub async fn namespaced(client: &Client) -> Result<Vec<ApiResource>, kube::Error> {
    let discovery = Discovery::new(client.clone()).run_aggregated().await?;
    let all = discovery.groups().flat_map(kube::discovery::ApiGroup::recommended_resources);
    let listed = all.filter(|(kind, can)| {
        can.scope == Scope::Namespaced && can.supports_operation(verbs::LIST) && kind.plural != "events"
    });
    Ok(listed.map(|(kind, _)| kind).collect())
}
