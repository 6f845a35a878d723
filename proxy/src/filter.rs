//! Shows a controller only the objects of its shard, while they stream by.
//!
//! ```text
//! upstream body ─▶ body::Filtered ─▶ Scanner ─▶ json::{list,event} | proto::{list,event} ─▶ Out ─▶ client
//!                                                       │ View     ▲ Verdict
//!                                                       └─▶ Lens ──┘
//! ```
//!
//! A scanner is pure: bytes go in by [`Scan::push`], bytes come out of [`Out`]. It knows no kind; it walks to
//! `metadata` and copies everything else as it came. At most one undecided piece is held (an item, an event, a member of
//! the root), so memory does not grow with the list. What cannot be read ends in a [`FilterError`], never in bytes that
//! nobody looked at.

pub mod body;
pub mod event;
mod held;
mod json;
pub mod object;
mod out;
#[cfg(test)]
mod properties;
mod proto;
mod scanner;
#[cfg(test)]
mod testing;

pub use self::out::{Counts, Out};
pub use self::scanner::{Scanner, Shape, error_event};

use bytes::Bytes;
use std::sync::Arc;

/// The largest item, event or member of a list's root that is held, in bytes. Clients refuse larger watch frames
/// (apimachinery, `pkg/util/framer` and `serializer/streaming`), so nothing larger can be of use.
pub const MAX_PIECE: usize = 16 << 20;

/// The most kept bytes of a protobuf list that are gathered to give it exact lengths; above, dropped items become
/// unknown fields and the rest streams.
pub const EXACT_LIMIT: usize = 8 << 20;

/// The annotation of the bookmark that ends the initial events of a watch (apimachinery `meta/v1/types.go`). A bookmark has
/// no others.
const INITIAL_EVENTS_END: &[u8] = b"k8s.io/initial-events-end";

/// How the bodies of one request are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// `application/json`, also with `;stream=watch`, `as=PartialObjectMetadata(List)` and `as=Table`.
    Json,
    /// `application/vnd.kubernetes.protobuf`, likewise.
    Protobuf,
}

/// What a client wants to see of the objects behind the rows of a table (`includeObject`).
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TableRows {
    /// The row's `object` as it came.
    #[default]
    WithObject,
    /// `null`, as the server writes for `includeObject=None`. The server has to be asked for metadata all the same: a
    /// row without is nobody's.
    WithoutObject,
}

/// What the filter may see of an object. An absent field is the empty string, as in Go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View<'a> {
    /// `metadata.namespace`; empty for a cluster-scoped object.
    pub namespace: &'a str,
    /// `metadata.name`.
    pub name: &'a str,
    /// `metadata.uid`.
    pub uid: &'a str,
    /// `metadata.resourceVersion`; empty for a lens that does not [follow](Lens::FOLLOWS).
    pub version: &'a str,
    /// Whether an event says that it is gone.
    pub deleted: bool,
}

/// What becomes of one object of a list, or of one event of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// Its bytes pass unchanged.
    Keep,
    /// No byte of it passes.
    Drop,
    /// It passes under another `metadata.name`; everything else stays byte for byte.
    Rename(&'a str),
    /// No byte of it passes; of a watch the lens gets the whole event instead.
    Hold,
}

/// The rule that a stream is filtered by. One that does not [follow](Self::FOLLOWS) must not depend on the order of calls.
pub trait Lens {
    /// Whether it wants to know versions and page tokens too. What it does not want costs nothing.
    const FOLLOWS: bool = false;

    /// Decides on one object.
    fn verdict(&self, view: View<'_>) -> Verdict<'_>;

    /// Takes an event of a watch that it said to [hold](Verdict::Hold): whole, with its frame or its line feed.
    fn hold(&self, _event: &[u8]) {}

    /// A bookmark of a watch is about to pass: its version, and whether it ends the initial events.
    fn bookmark(&self, _version: &str, _ends_initial: bool) {}

    /// The version of a list.
    fn listed(&self, _version: &str) {}

    /// What a list shows in place of its page token; none for the token as it is.
    fn token(&self, _token: &str) -> Option<String> {
        None
    }
}

/// A body on its way: bytes in, bytes out. No call waits for anything.
pub trait Scan {
    /// Reads the next bytes of the body. What may pass is in `out` afterwards, also when an error ends the body:
    /// whatever came before the error is whole.
    fn push(&mut self, chunk: Bytes, out: &mut Out) -> Result<(), FilterError>;

    /// The body has ended; an error if it ended too early.
    fn finish(&mut self, out: &mut Out) -> Result<(), FilterError>;
}

/// Why a body cannot be filtered, or edited, any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// The bytes are not what their content type and request say.
    #[error(
        "malformed body: expected {0}; it cannot be filtered and is not passed on; look at what the sender serves"
    )]
    Malformed(&'static str),
    /// One piece is larger than a client would take.
    #[error(
        "one object or event is larger than {MAX_PIECE} bytes, the most a client reads; ask for it alone by GET"
    )]
    TooLarge,
    /// The body ended in the middle.
    #[error("the body ended early; what was sent is not the whole answer; ask again")]
    Truncated,
    /// A [`Verdict::Rename`] cannot be carried out.
    #[error("cannot rename the object: {0}; the rule that asked for it does not fit this object")]
    Rename(&'static str),
}

// === impl Lens ===

/// Hands every call on.
macro_rules! lens_behind {
    ($pointer:ty) => {
        impl<L: Lens> Lens for $pointer {
            const FOLLOWS: bool = L::FOLLOWS;

            fn verdict(&self, view: View<'_>) -> Verdict<'_> {
                (**self).verdict(view)
            }

            fn hold(&self, event: &[u8]) {
                (**self).hold(event);
            }

            fn bookmark(&self, version: &str, ends_initial: bool) {
                (**self).bookmark(version, ends_initial);
            }

            fn listed(&self, version: &str) {
                (**self).listed(version);
            }

            fn token(&self, token: &str) -> Option<String> {
                (**self).token(token)
            }
        }
    };
}

lens_behind!(Arc<L>);
lens_behind!(&L);

// === impl Verdict ===

impl Verdict<'_> {
    /// Whether the object is shown.
    pub fn shows(&self) -> bool {
        matches!(self, Self::Keep | Self::Rename(_))
    }
}
