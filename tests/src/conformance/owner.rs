//! Whose an object is, and what a shard may do: the rules of `examples/kube-controller-manager` once more, by code that
//! owes the product nothing. The slot is the judge's, by another implementation of the hash.

use std::ops::RangeInclusive;

use http::StatusCode;

use super::pair::About;
use crate::ring::HUB;

/// The namespace of the ring and of its lock.
const SYSTEM: &str = "kube-system";

/// A shard, by the slots that it owns.
#[derive(Debug, Clone)]
pub(super) struct Shard {
    pub(super) name: &'static str,
    pub(super) slots: RangeInclusive<u8>,
}

/// What a refused write is answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) code: StatusCode,
    pub(super) reason: &'static str,
    pub(super) cause: &'static str,
}

// === impl Shard ===

impl Shard {
    pub(super) fn owns(&self, key: &str) -> bool {
        self.slots.contains(&shoal_judge::slot_of(HUB, key))
    }

    /// Whether an object is shown in a list or a watch.
    pub(super) fn shows(&self, about: &About, namespace: &str, name: &str) -> bool {
        match (about.resource.as_str(), namespace) {
            ("namespaces", "") => self.owns(name),
            (_, "") => true,
            _ if is_free(about, namespace) || is_shared(about, namespace) => true,
            _ => self.owns(namespace),
        }
    }

    /// What becomes of a write; none if it passes.
    pub(super) fn refuses(&self, about: &About, method: &str) -> Option<Refusal> {
        let key = about.key();
        if is_free(about, &about.namespace) {
            return None;
        }
        let refusal = |code, reason, cause| Some(Refusal { code, reason, cause });
        if method == "DELETE" && about.name.is_empty() {
            return match key {
                _ if holds_locks(about) => refusal(StatusCode::FORBIDDEN, "Forbidden", "NotNarrowed"),
                "" => refusal(StatusCode::FORBIDDEN, "Forbidden", "NotNarrowed"),
                key if self.owns(key) => None,
                _ => refusal(StatusCode::FORBIDDEN, "Forbidden", "ForeignSlot"),
            };
        }
        match key {
            "" => refusal(StatusCode::FORBIDDEN, "Forbidden", "NoName"),
            key if self.owns(key) => None,
            _ if about.name.is_empty() => {
                refusal(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", "ForeignSlot")
            }
            _ => refusal(StatusCode::CONFLICT, "Conflict", "ForeignSlot"),
        }
    }
}

// === impl About ===

impl About {
    /// What is hashed; empty if the request does not say it.
    pub(super) fn key(&self) -> &str {
        let named = [&self.namespace, &self.name, &self.new_name, &self.selected];
        named.into_iter().find(|part| !part.is_empty()).map_or("", String::as_str)
    }

    /// Whether a write of it needs no owner.
    pub(super) fn is_unclaimed(&self) -> bool {
        is_free(self, &self.namespace)
    }

    /// Whether lists and watches of it are read by the proxy, because something in them may belong to others. By the
    /// path of a collection across namespaces the proxy cannot tell whether its objects are in one.
    pub(super) fn is_filtered(&self) -> bool {
        let within = self.namespace.as_str();
        !is_free(self, within) && !is_shared(self, within) || holds_locks(self)
    }
}

/// In the lane, or not sharded.
fn is_free(about: &About, namespace: &str) -> bool {
    match (about.group.as_str(), about.resource.as_str()) {
        ("" | "events.k8s.io", "events") => true,
        ("authentication.k8s.io" | "authorization.k8s.io", resource) => resource.ends_with("reviews"),
        ("", "serviceaccounts") => namespace == SYSTEM,
        ("coordination.k8s.io", "leases") => namespace == "kube-node-lease",
        _ => false,
    }
}

/// Everybody reads it.
fn is_shared(about: &About, namespace: &str) -> bool {
    (about.group.as_str(), about.resource.as_str(), namespace) == ("", "configmaps", SYSTEM)
}

fn holds_locks(about: &About) -> bool {
    let is_lease = (about.group.as_str(), about.resource.as_str()) == ("coordination.k8s.io", "leases");
    is_lease && matches!(about.namespace.as_str(), "" | SYSTEM)
}
