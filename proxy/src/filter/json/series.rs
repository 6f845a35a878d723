//! The elements of a container of which some are left out; the commas between the others stay valid.

/// Says from where on an element is copied: with the comma before it, unless it is the first that is kept.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Series {
    seen: bool,
    kept: bool,
}

// === impl Series ===

impl Series {
    /// Takes note of an element that is kept and begins at offset `begin` of the held piece, which starts behind the
    /// element before; returns the offset from which the piece is copied.
    pub(super) fn keep(&mut self, begin: usize) -> usize {
        let from = if self.seen && !self.kept { begin } else { 0 };
        self.seen = true;
        self.kept = true;
        from
    }

    /// Takes note of an element that is left out.
    pub(super) fn leave_out(&mut self) {
        self.seen = true;
    }
}
