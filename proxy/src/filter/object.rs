//! Single objects: their names, and the few changes that they may get.
//!
//! For bodies that are held whole anyway: requests (bounded by the caller), single answers, Status.

mod conflict;
pub mod demand;
mod holder;
mod json;
mod patch;
mod protobuf;

pub use self::conflict::is_plain_conflict;
pub use self::holder::lock_holder;
pub use self::patch::{
    demand_in_json_patch, demanded_in_json_patch, json_of_yaml, rename_apply, rename_json_patch,
};

use super::{Encoding, FilterError, TableRows};
use bytes::Bytes;

/// The names of one object; an absent one is empty.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct OwnedView {
    /// `metadata.namespace`.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
    /// `metadata.generateName`.
    pub generate_name: String,
    /// `metadata.uid`.
    pub uid: String,
}

/// The names of the object in `bytes`: JSON, or protobuf with its `k8s\0` envelope.
pub fn view(bytes: &Bytes, encoding: Encoding) -> Result<OwnedView, FilterError> {
    match encoding {
        Encoding::Json => json::view(bytes),
        Encoding::Protobuf => protobuf::view(bytes),
    }
}

/// The object with `metadata.name` changed to `to` if it is `from`; everything else stays byte for byte.
///
/// Of a `Status` it is `details.name` that changes, and the quoted name in `message`, so that a client never sees the name
/// it did not use. Merge and strategic merge patches are objects of which `metadata` may be absent.
pub fn rename(bytes: &Bytes, encoding: Encoding, from: &str, to: &str) -> Result<Bytes, FilterError> {
    match encoding {
        Encoding::Json => json::rename(bytes, from, to),
        Encoding::Protobuf => protobuf::rename(bytes, from, to),
    }
}

/// The object with `name` as its `metadata.name`, which it lacks so far; everything else stays byte for byte.
pub fn give_name(bytes: &Bytes, encoding: Encoding, name: &str) -> Result<Bytes, FilterError> {
    match encoding {
        Encoding::Json => json::give_name(bytes, name),
        Encoding::Protobuf => protobuf::give_name(bytes, name),
    }
}

/// A single answer that came as a table in JSON, with the name changed in its row as [`rename`] does in an object: in the
/// row's object and in the cell of the name. `None` if it is no table.
pub fn rename_in_table(
    bytes: &Bytes,
    from: &str,
    to: &str,
    rows: TableRows,
) -> Result<Option<Bytes>, FilterError> {
    json::rename_in_table(bytes, from, to, rows)
}

/// The reason of a `Status`; empty if it has none.
pub fn status_reason(bytes: &Bytes, encoding: Encoding) -> Result<String, FilterError> {
    match encoding {
        Encoding::Json => json::status_reason(bytes),
        Encoding::Protobuf => protobuf::status_reason(bytes),
    }
}

/// The text with the name in quotes replaced, as API servers write names in messages.
fn requoted(message: &str, from: &str, to: &str) -> String {
    message.replace(&format!("\"{from}\""), &format!("\"{to}\""))
}

#[cfg(test)]
mod tests;
