//! Leases and maps on an API server: each function sends exactly one request, and decides nothing.
//!
//! Every write names the version of the object that it was decided on, so that it fails when anything has changed since.

pub mod lease;
pub mod map;

pub use self::lease::Held;

use kube::core::Status;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The object is no longer what was read. Nothing was done: read it again.
    #[error("{0} has changed since it was read: read it again")]
    Conflict(String),
    /// There is no such object.
    #[error("{0} does not exist")]
    NotFound(String),
    /// There is such an object already.
    #[error("{0} exists already: read it")]
    AlreadyExists(String),
    /// The API server refused. If its code is a client's (4xx), nothing was done, and a right or a field is wrong.
    #[error("the API server refused {0}: {1}")]
    Refused(String, Box<Status>),
    /// No answer came, or none that could be read: it is not known whether a write was done.
    #[error("no answer about {0}: {1}; whether a write was done is not known")]
    Unreachable(String, #[source] Box<kube::Error>),
}

// === impl Fault ===

impl Fault {
    /// Why a request about the object of that name failed.
    pub fn of(what: &str, error: kube::Error) -> Self {
        let what = what.to_owned();
        match error {
            // It must come before Conflict: both have the code 409.
            kube::Error::Api(status) if status.is_already_exists() => Self::AlreadyExists(what),
            kube::Error::Api(status) if status.is_conflict() => Self::Conflict(what),
            kube::Error::Api(status) if status.is_not_found() => Self::NotFound(what),
            kube::Error::Api(status) => Self::Refused(what, status),
            other => Self::Unreachable(what, Box::new(other)),
        }
    }
}
