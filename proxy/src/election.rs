//! Room 6: leader election. Each shard has a lock of its own behind the name that the controller
//! knows, so that every replica leads its own shard.
//!
//! ```text
//! controller: kube-controller-manager  <-- renamed in path, body, selector -->  kube-controller-manager-kcm-0
//!             (sisters and original hidden)       and back in every response
//! ```

use http::StatusCode;
use shoal_api::Lock;

use crate::{
    filter::Verdict,
    request::path::{Target, Verb},
    respond::{Refusal, Subject},
};

/// The group and the resource of a Lease.
const LEASES: (&str, &str) = ("coordination.k8s.io", "leases");

/// The locks of a ring, as one shard knows them.
#[derive(Clone, Debug, Default)]
pub struct Locks(Vec<LockNames>);

/// One lock's names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockNames {
    /// Where the lock is.
    pub namespace: String,
    /// The name that the controller knows.
    pub original: String,
    /// The name that this shard's lock has on the API server.
    pub own: String,
    /// What the name of each shard's lock begins with; a number follows.
    prefix: String,
}

/// What a request has to do with the locks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Touch<'a> {
    /// Nothing.
    None,
    /// It is about the shard's lock, named in its path.
    Lock(&'a LockNames),
    /// It creates a Lease where a lock is: the name is in the body.
    Create,
    /// It reads Leases among which the locks are.
    Collection,
}

// === impl Locks ===

impl Locks {
    /// The names of a ring's locks for one of its shards.
    pub fn new(locks: &[Lock], ring: &str, shard: &str) -> Self {
        let names = |lock: &Lock| LockNames {
            namespace: lock.namespace.clone(),
            original: lock.name.clone(),
            own: format!("{}-{shard}", lock.name),
            prefix: format!("{}-{ring}-", lock.name),
        };
        Self(locks.iter().map(names).collect())
    }

    /// What a request has to do with the locks; a refusal where it would touch another shard's.
    pub fn touch(&self, verb: &Verb, target: &Target, is_write: bool) -> Result<Touch<'_>, Refusal> {
        if !is_lease(&target.resource.group, &target.resource.resource) || !self.any_in(&target.namespace) {
            return Ok(Touch::None);
        }
        match verb {
            Verb::List | Verb::Watch if target.name_in_path.is_none() => self.collection(target),
            Verb::DeleteCollection => Err(refuse_delete_collection()),
            Verb::Create if target.name.is_empty() => Ok(Touch::Create),
            _ => self.object(target, &target.name, is_write),
        }
    }

    /// What a create whose body names `name` has to do with the locks.
    pub fn create(&self, target: &Target, name: &str) -> Result<Touch<'_>, Refusal> {
        self.object(target, name, true)
    }

    /// What becomes of a Lease in a response; none if it is no lock.
    pub fn verdict(&self, namespace: &str, name: &str) -> Option<Verdict<'_>> {
        let mut locks = self.0.iter().filter(|lock| lock.namespace == namespace);
        locks.find_map(|lock| match name {
            _ if name == lock.own => Some(Verdict::Rename(&lock.original)),
            _ if name == lock.original || lock.is_sharded(name) => Some(Verdict::Drop),
            _ => None,
        })
    }

    /// The name that a client's selector means; none if it is no lock's.
    pub fn selected(&self, namespace: &str, name: &str) -> Option<&str> {
        self.named(namespace, name).map(|lock| lock.own.as_str())
    }

    /// Whether a list of a kind can hold locks; an empty namespace is all of them.
    pub fn within(&self, group: &str, resource: &str, namespace: &str) -> bool {
        is_lease(group, resource) && self.any_in(namespace)
    }

    /// Across namespaces one selector cannot mean the shard's lock here and a lease of the same name there.
    fn collection(&self, target: &Target) -> Result<Touch<'_>, Refusal> {
        let ambiguous = target.namespace.is_empty() && self.0.iter().any(|lock| lock.original == target.name);
        if ambiguous { Err(refuse_selector(&target.name)) } else { Ok(Touch::Collection) }
    }

    fn object(&self, target: &Target, name: &str, is_write: bool) -> Result<Touch<'_>, Refusal> {
        if let Some(lock) = self.named(&target.namespace, name) {
            return Ok(Touch::Lock(lock));
        }
        let sharded = |lock: &&LockNames| lock.namespace == target.namespace && lock.is_sharded(name);
        match self.0.iter().find(sharded) {
            Some(lock) if is_write => Err(lock.refuse(name, target.name.is_empty())),
            _ => Ok(Touch::None),
        }
    }

    fn named(&self, namespace: &str, name: &str) -> Option<&LockNames> {
        self.0.iter().find(|lock| lock.namespace == namespace && lock.original == name)
    }

    fn any_in(&self, namespace: &str) -> bool {
        self.0.iter().any(|lock| namespace.is_empty() || lock.namespace == namespace)
    }
}

// === impl LockNames ===

impl LockNames {
    /// Whether a name is that of some shard's lock.
    fn is_sharded(&self, name: &str) -> bool {
        let number = name.strip_prefix(&self.prefix);
        number.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
    }

    fn refuse(&self, name: &str, is_create: bool) -> Refusal {
        let why = format!(
            "{name:?} is the lock of one shard; this shard's is written under the name {:?}",
            self.original
        );
        let refusal = if is_create {
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", why.clone())
        } else {
            let message =
                format!("Operation cannot be fulfilled on leases.coordination.k8s.io {name:?}: {why}");
            Refusal::new(StatusCode::CONFLICT, "Conflict", message)
        };
        refusal.about(subject(name)).because("ForeignLock", "metadata.name", why)
    }
}

fn is_lease(group: &str, resource: &str) -> bool {
    (group, resource) == LEASES
}

fn refuse_delete_collection() -> Refusal {
    let why = "deletecollection of leases is forbidden where the ring's locks are: it would delete those of other \
               shards; delete leases there by name";
    Refusal::new(StatusCode::FORBIDDEN, "Forbidden", why).about(subject("")).because(
        "NotNarrowed",
        "metadata.name",
        why,
    )
}

fn refuse_selector(name: &str) -> Refusal {
    let why = format!("{name:?} is the name of a leader election lock: list it in its namespace");
    Refusal::new(StatusCode::BAD_REQUEST, "BadRequest", why)
}

fn subject(name: &str) -> Subject {
    Subject { group: LEASES.0.to_owned(), resource: LEASES.1.to_owned(), name: name.to_owned() }
}

#[cfg(test)]
mod tests;
