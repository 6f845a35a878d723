//! Room 6: leader election. Each shard has a lock of its own behind the name that the controller
//! knows, so that every replica leads its own shard.
//!
//! ```text
//! controller: kube-controller-manager  <-- renamed in path, body, selector -->  kube-controller-manager-kcm-0
//!             (sisters and original hidden)       and back in every response
//! ```

use http::StatusCode;
use shoal_api::{Lock, LockResource};

use crate::{
    filter::Verdict,
    request::path::{Target, Verb},
    respond::{Refusal, Subject},
};

/// The locks of a ring, as one shard knows them.
#[derive(Clone, Debug, Default)]
pub struct Locks(Vec<LockNames>);

/// One lock's names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockNames {
    /// What kind of object the lock is.
    pub resource: LockResource,
    /// Where it is.
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
    /// It creates an object of a lock's kind where that lock is: the name is in the body.
    Create,
    /// It reads objects among which the locks are.
    Collection,
}

// === impl Locks ===

impl Locks {
    /// The names of a ring's locks for one of its shards.
    pub fn new(locks: &[Lock], ring: &str, shard: &str) -> Self {
        let names = |lock: &Lock| LockNames {
            resource: lock.resource,
            namespace: lock.namespace.clone(),
            original: lock.name.clone(),
            own: format!("{}-{shard}", lock.name),
            prefix: format!("{}-{ring}-", lock.name),
        };
        Self(locks.iter().map(names).collect())
    }

    /// What a request has to do with the locks; a refusal where it would touch another shard's.
    pub fn touch(&self, verb: &Verb, target: &Target, is_write: bool) -> Result<Touch<'_>, Refusal> {
        let (group, resource) = (&target.resource.group, &target.resource.resource);
        if !self.within(group, resource, &target.namespace) {
            return Ok(Touch::None);
        }
        match verb {
            Verb::List | Verb::Watch if target.name_in_path.is_none() => self.collection(target),
            Verb::DeleteCollection => Err(refuse_delete_collection(target)),
            Verb::Create if target.name.is_empty() => Ok(Touch::Create),
            _ => self.object(target, &target.name, is_write),
        }
    }

    /// What a create whose body names `name` has to do with the locks.
    pub fn create(&self, target: &Target, name: &str) -> Result<Touch<'_>, Refusal> {
        self.object(target, name, true)
    }

    /// What becomes of an object of that kind in a response; none if it is no lock.
    pub fn verdict(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Option<Verdict<'_>> {
        self.of_kind(group, resource).filter(|lock| lock.namespace == namespace).find_map(|lock| match name {
            _ if name == lock.own => Some(Verdict::Rename(&lock.original)),
            _ if name == lock.original || lock.is_sharded(name) => Some(Verdict::Drop),
            _ => None,
        })
    }

    /// The name that a client's selector means among the objects that it reads; none if it is no lock's.
    pub fn selected(&self, target: &Target, name: &str) -> Option<&str> {
        self.named(target, name).map(|lock| lock.own.as_str())
    }

    /// Whether a list of a kind can hold locks; an empty namespace is all of them.
    pub fn within(&self, group: &str, resource: &str, namespace: &str) -> bool {
        self.of_kind(group, resource).any(|lock| namespace.is_empty() || lock.namespace == namespace)
    }

    /// Across namespaces one selector cannot mean the shard's lock here and another object of the same name there.
    fn collection(&self, target: &Target) -> Result<Touch<'_>, Refusal> {
        let ambiguous =
            target.namespace.is_empty() && self.beside(target).any(|lock| lock.original == target.name);
        if ambiguous { Err(refuse_selector(&target.name)) } else { Ok(Touch::Collection) }
    }

    fn object(&self, target: &Target, name: &str, is_write: bool) -> Result<Touch<'_>, Refusal> {
        if let Some(lock) = self.named(target, name) {
            return Ok(Touch::Lock(lock));
        }
        let mut locks = self.beside(target);
        match locks.find(|lock| lock.namespace == target.namespace && lock.is_sharded(name)) {
            Some(lock) if is_write => Err(lock.refuse(target, name)),
            _ => Ok(Touch::None),
        }
    }

    fn named(&self, target: &Target, name: &str) -> Option<&LockNames> {
        self.beside(target).find(|lock| lock.namespace == target.namespace && lock.original == name)
    }

    /// The locks of the kind that a request is about.
    fn beside(&self, target: &Target) -> impl Iterator<Item = &LockNames> {
        self.of_kind(&target.resource.group, &target.resource.resource)
    }

    fn of_kind(&self, group: &str, resource: &str) -> impl Iterator<Item = &LockNames> {
        let kind = match (group, resource) {
            ("coordination.k8s.io", "leases") => Some(LockResource::Leases),
            ("", "configmaps") => Some(LockResource::ConfigMaps),
            _ => None,
        };
        self.0.iter().filter(move |lock| Some(lock.resource) == kind)
    }
}

// === impl LockNames ===

impl LockNames {
    /// Whether a name is that of some shard's lock.
    fn is_sharded(&self, name: &str) -> bool {
        let number = name.strip_prefix(&self.prefix);
        number.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
    }

    /// What the lock is, as refusals name it.
    pub fn subject(&self) -> Subject {
        let (group, resource) = match self.resource {
            LockResource::Leases => ("coordination.k8s.io", "leases"),
            LockResource::ConfigMaps => ("", "configmaps"),
        };
        Subject { group: group.to_owned(), resource: resource.to_owned(), name: self.original.clone() }
    }

    /// The refusal of a write to the lock by whom it is not to be held: a conflict, as if another had been first.
    pub fn lost(&self, why: &str) -> Refusal {
        let message = format!("Operation cannot be fulfilled on {}: {why}", self.subject());
        Refusal::new(StatusCode::CONFLICT, "Conflict", message).about(self.subject()).because(
            "LostLock",
            "metadata.name",
            why.to_owned(),
        )
    }

    fn refuse(&self, target: &Target, name: &str) -> Refusal {
        let why = format!(
            "{name:?} is the lock of one shard; this shard's is written under the name {:?}",
            self.original
        );
        let subject = subject(target, name);
        let refusal = if target.name.is_empty() {
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", why.clone())
        } else {
            let message = format!("Operation cannot be fulfilled on {subject}: {why}");
            Refusal::new(StatusCode::CONFLICT, "Conflict", message)
        };
        refusal.about(subject).because("ForeignLock", "metadata.name", why)
    }
}

fn refuse_delete_collection(target: &Target) -> Refusal {
    let subject = subject(target, "");
    let why = format!(
        "deletecollection of {subject} is forbidden where the ring's locks are: it would delete those of other \
         shards; delete them by name there"
    );
    Refusal::new(StatusCode::FORBIDDEN, "Forbidden", why.clone()).about(subject).because(
        "NotNarrowed",
        "metadata.name",
        why,
    )
}

fn refuse_selector(name: &str) -> Refusal {
    let why = format!("{name:?} is the name of a leader election lock: list it in its namespace");
    Refusal::new(StatusCode::BAD_REQUEST, "BadRequest", why)
}

fn subject(target: &Target, name: &str) -> Subject {
    let (group, resource) = (target.resource.group.clone(), target.resource.resource.clone());
    Subject { group, resource, name: name.to_owned() }
}

#[cfg(test)]
mod tests;
