//! Protobuf lists, watches and objects, read by structure only.
//!
//! Every body but a watch frame starts with `k8s\0`, then a `runtime.Unknown` whose `raw` holds the message. Lists of all
//! kinds number their fields alike, and so do all objects (`metadata` is 1), so nothing depends on the kind.

pub(super) mod event;
pub(super) mod list;
pub(super) mod message;
pub(super) mod wire;

/// The four bytes before a `runtime.Unknown` (apimachinery, `runtime/serializer/protobuf`).
pub(super) const MAGIC: &[u8] = b"k8s\0";

#[cfg(test)]
pub(super) mod reference;
