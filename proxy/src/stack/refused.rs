//! Which resources of a cluster are asked for in the second way at once: lists without a selector of ours, and objects by a
//! list, as clients may not get them.
//!
//! A server that answers a `shardSelector` with an error is asked again without. Were that forgotten, each list of a
//! resource whose server knows no such selector would be asked for twice, and so would each list of a server that is in
//! trouble already.

use std::{collections::BTreeMap, time::Duration};

use arc_swap::ArcSwap;
use tokio::time::Instant;

use crate::request::path::Target;

/// How long a refusal is remembered. What is left out meanwhile is bytes saved, nothing else.
const MEMORY: Duration = Duration::from_mins(5);
/// How many resources are remembered; then all are forgotten, since a client chooses their names.
const RESOURCES: usize = 256;

/// The resources of one cluster whose server has refused the first way of late.
#[derive(Default)]
pub(super) struct Refused(ArcSwap<BTreeMap<Resource, Instant>>);

/// Group and resource.
type Resource = (String, String);

// === impl Refused ===

impl Refused {
    /// Whether the server of the resource is to be asked without.
    pub(super) fn holds(&self, target: &Target, now: Instant) -> bool {
        let since = self.0.load().get(&resource(target)).copied();
        since.is_some_and(|since| now.saturating_duration_since(since) < MEMORY)
    }

    /// The server of the resource may have refused one.
    pub(super) fn note(&self, target: &Target, now: Instant) {
        self.0.rcu(|known| {
            let fresh = |since: &Instant| now.saturating_duration_since(*since) < MEMORY;
            let mut fresh: BTreeMap<_, _> = known
                .iter()
                .filter(|(_, since)| fresh(since))
                .map(|(key, since)| (key.clone(), *since))
                .collect();
            if fresh.len() >= RESOURCES {
                fresh.clear();
            }
            fresh.insert(resource(target), now);
            fresh
        });
    }
}

fn resource(target: &Target) -> Resource {
    (target.resource.group.clone(), target.resource.resource.clone())
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Method};

    use super::*;
    use crate::request::KubeRequest;

    fn target(path: &str) -> Target {
        let request = KubeRequest::parse(&Method::GET, &path.parse().unwrap(), &HeaderMap::new()).unwrap();
        request.target().unwrap().clone()
    }

    #[test]
    fn a_refusal_is_remembered_for_a_while_and_for_its_resource() {
        let (refused, start) = (Refused::default(), Instant::now());
        let deployments = target("/apis/apps/v1/namespaces/a/deployments?watch=1");
        assert!(!refused.holds(&deployments, start));
        refused.note(&deployments, start);
        let after = |seconds| start + Duration::from_secs(seconds);
        for path in ["/apis/apps/v1/deployments", "/apis/apps/v1beta1/namespaces/b/deployments"] {
            assert!(refused.holds(&target(path), after(299)), "{path}");
            assert!(!refused.holds(&target(path), after(300)), "{path}");
        }
        for path in ["/apis/x/v1/deployments", "/apis/apps/v1/replicasets", "/api/v1/pods"] {
            assert!(!refused.holds(&target(path), start), "{path}");
        }
        refused.note(&deployments, after(300));
        assert!(refused.holds(&deployments, after(599)));
    }

    #[test]
    fn not_more_is_remembered_than_there_is_room_for() {
        let (refused, now) = (Refused::default(), Instant::now());
        for number in 0..1000 {
            let target = target(&format!("/apis/g{number}/v1/things"));
            refused.note(&target, now);
            assert!(refused.holds(&target, now));
            assert!(refused.0.load().len() <= RESOURCES);
        }
        refused.note(&target("/api/v1/pods"), now + MEMORY);
        assert_eq!(refused.0.load().len(), 1);
    }
}
