//! Single watch events that are held whole: what they are about, and the few that are made here.

mod json;
mod protobuf;

use super::{Encoding, FilterError};
use bytes::Bytes;

/// What an event says of its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Change {
    /// It is there.
    Added,
    /// It is there, and is not what it was.
    Modified,
    /// It is gone.
    Deleted,
}

/// What an event is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub change: Change,
    /// `metadata.namespace` and `metadata.name`.
    pub key: Key,
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.resourceVersion`, as a number.
    pub version: u64,
    /// The uid of its controller, by its owner references.
    pub owner: Option<String>,
}

/// Which object of a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// `metadata.namespace`; empty for a cluster-scoped object.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
}

const NOT_NUMERIC: FilterError = FilterError::Malformed("a number as resourceVersion");
const NO_CHANGE: FilterError = FilterError::Malformed("an event of type ADDED, MODIFIED or DELETED");

/// Reads a whole event, as a lens gets it.
pub fn read(event: &[u8], encoding: Encoding) -> Result<Event, FilterError> {
    match encoding {
        Encoding::Json => json::read(event),
        Encoding::Protobuf => protobuf::read(event),
    }
}

/// The event with another type.
pub fn retyped(event: &Bytes, encoding: Encoding, change: Change) -> Result<Bytes, FilterError> {
    match encoding {
        Encoding::Json => json::retyped(event, change),
        Encoding::Protobuf => protobuf::retyped(event, change),
    }
}

/// The event as a `DELETED` of that version.
pub fn deleted(event: &Bytes, encoding: Encoding, version: u64) -> Result<Bytes, FilterError> {
    match encoding {
        Encoding::Json => json::deleted(event, version),
        Encoding::Protobuf => protobuf::deleted(event, version),
    }
}

/// A bookmark for the stream that this event is of.
pub fn bookmark(event: &[u8], encoding: Encoding, version: u64) -> Result<Bytes, FilterError> {
    match encoding {
        Encoding::Json => json::bookmark(event, version),
        Encoding::Protobuf => protobuf::bookmark(event, version),
    }
}

/// An `ERROR` with the Status 410 that makes a client ask for the whole state again.
pub fn expired(encoding: Encoding, message: &str) -> Bytes {
    super::scanner::error_of(encoding, 410, "Expired", message)
}

fn number(version: &str) -> Result<u64, FilterError> {
    version.parse().map_err(|_| NOT_NUMERIC)
}

// === impl Change ===

impl Change {
    /// The type of an event that says so.
    pub fn name(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }

    fn of(name: &str) -> Result<Self, FilterError> {
        let known = [Self::Added, Self::Modified, Self::Deleted];
        known.into_iter().find(|change| change.name() == name).ok_or(NO_CHANGE)
    }
}

#[cfg(test)]
mod tests;
