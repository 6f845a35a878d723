//! What is never sharded, because each replica needs it to live: events, the controller's own
//! service accounts and their tokens, and reviews. The ring's locks are the election room's.

use super::Ring;

/// Whether objects of a kind in a namespace are in the lane.
pub fn holds(ring: &Ring, group: &str, resource: &str, namespace: &str) -> bool {
    match (group, resource) {
        ("" | "events.k8s.io", "events") => true,
        // Questions in the form of a create; nothing is stored (kubernetes `pkg/registry/{authentication,authorization}`).
        ("authentication.k8s.io" | "authorization.k8s.io", review) => review.ends_with("reviews"),
        ("", "serviceaccounts") => namespace == ring.namespace,
        _ => false,
    }
}

/// Whether a list of a kind, in one namespace or (empty) across all, can hold objects that are in the lane.
pub fn may_hold(ring: &Ring, group: &str, resource: &str, namespace: &str) -> bool {
    let namespace = if namespace.is_empty() { &ring.namespace } else { namespace };
    holds(ring, group, resource, namespace)
}
