//! What a figure is held to: the bars of the project, and what becomes of them in a run. No exit code hangs on them.

use std::fmt::{self, Display, Formatter};

use super::target::Name;

/// One bar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bar {
    /// Else it is aimed at.
    hard: bool,
    limit: Limit,
}

/// What Shoal's median is compared with.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Limit {
    /// At most so many times that target's median.
    Times(f64, Name),
    AtMost(f64),
    Exactly(f64),
}

// === impl Bar ===

impl Bar {
    /// The aim of everything that a proxy costs.
    pub(super) const FLOOR: Self = Self::aim(Limit::Times(1.3, Name::Floor));
    /// The aim of what a proxy does not cost: differences below are noise.
    pub(super) const DIRECT: Self = Self::aim(Limit::Times(1.2, Name::Direct));

    /// At most so many times what Go's proxy costs.
    pub(super) const fn go(times: f64) -> Self {
        Self { hard: true, limit: Limit::Times(times, Name::Go) }
    }

    /// At most that.
    pub(super) const fn at_most(figure: f64) -> Self {
        Self { hard: true, limit: Limit::AtMost(figure) }
    }

    /// That and nothing else.
    pub(super) const fn exactly(figure: f64) -> Self {
        Self { hard: true, limit: Limit::Exactly(figure) }
    }

    /// At most that, if it can be had.
    pub(super) const fn aim_at(figure: f64) -> Self {
        Self::aim(Limit::AtMost(figure))
    }

    const fn aim(limit: Limit) -> Self {
        Self { hard: false, limit }
    }

    /// Whether Shoal's figure holds it; none if there is nothing to compare with.
    pub(super) fn holds(self, median: impl Fn(Name) -> Option<f64>) -> Option<bool> {
        let shoal = median(Name::Shoal)?;
        Some(match self.limit {
            Limit::Times(times, name) => shoal <= times * median(name)?,
            Limit::AtMost(most) => shoal <= most,
            Limit::Exactly(figure) => (shoal - figure).abs() < 0.5,
        })
    }
}

impl Display for Bar {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(if self.hard { "" } else { "aim " })?;
        match self.limit {
            Limit::Times(times, name) => write!(f, "<= {times} x {name}"),
            Limit::AtMost(most) => write!(f, "<= {most}"),
            Limit::Exactly(figure) => write!(f, "= {figure}"),
        }
    }
}
