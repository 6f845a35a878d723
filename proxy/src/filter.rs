//! Shows a controller only the objects of its shard, while they stream by.

/// What the filter may see of an object. An absent field is the empty string, as in Go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View<'a> {
    /// `metadata.namespace`; empty for a cluster-scoped object.
    pub namespace: &'a str,
    /// `metadata.name`.
    pub name: &'a str,
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
}

/// The rule that a stream is filtered by. It must not depend on the order of calls.
pub trait Lens {
    /// Decides on one object.
    fn verdict(&self, view: View<'_>) -> Verdict<'_>;
}
