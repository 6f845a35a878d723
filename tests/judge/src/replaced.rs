//! Objects that were made twice: whoever deleted them, the second making shows that it was not meant.

use std::collections::HashSet;

use crate::{event::Event, object::Object};

/// The names that were made or deleted so far. Grows with the number of objects of a run.
#[derive(Debug, Default)]
pub(crate) struct Names {
    known: HashSet<String>,
}

// === impl Names ===

impl Names {
    /// Notes an effective write by anybody; true if it makes an object under a name that was there before. What the
    /// server names itself is never there twice.
    pub(crate) fn note(&mut self, cluster: &str, event: &Event, object: &Object) -> bool {
        let made = event.is_creation() && !event.is_dry_run();
        if object.name.is_none() || !(made || event.is_deletion()) || !event.took_effect() {
            return false;
        }
        let was_known = !self.known.insert(format!("{cluster} {object}"));
        made && was_known
    }
}
