//! The identity of a shard: the Lease that its proxy holds, as it was read.

use std::{fmt, str::FromStr};

use shoal_api::names;

use crate::acks::Acks;

/// One identity or standby Lease as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Observed {
    /// The shard that it is about.
    pub shard: String,
    /// The object's resourceVersion: what a write that depends on this reading must name.
    pub version: String,
    /// Who holds it; none while it is free.
    pub holder: Option<String>,
    /// How often it was claimed.
    pub term: i64,
    /// Why it is free; none while it is held, or was never held.
    pub left: Option<Left>,
    /// What its holder has done. What cannot be read counts as nothing.
    pub acks: Acks,
}

/// Why a Lease has no holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Left {
    /// The holder was told to end: its slots wait for the next one.
    Graceful,
    /// The holder's controller ended by itself; no write of its is under way.
    ControllerExit,
    /// The holder was silent, and the coordinator took the Lease: writes of its may be under way.
    Deposed,
}

/// The text is none of the known reasons. Whoever wrote the annotation is at fault.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected Graceful, ControllerExit or Deposed, found {0:?}")]
pub struct LeftError(String);

/// The two Leases of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Seat {
    /// Its holder is the shard.
    Identity,
    /// Its holder keeps warm what the shard owns, and is the next to claim the identity.
    Standby,
}

// === impl Left ===

impl Left {
    fn as_str(self) -> &'static str {
        match self {
            Self::Graceful => names::LEFT_GRACEFULLY,
            Self::ControllerExit => names::LEFT_BY_EXIT,
            Self::Deposed => names::DEPOSED,
        }
    }
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Left {
    type Err = LeftError;

    fn from_str(text: &str) -> Result<Self, LeftError> {
        let all = [Self::Graceful, Self::ControllerExit, Self::Deposed];
        all.into_iter().find(|left| left.as_str() == text).ok_or_else(|| LeftError(text.to_owned()))
    }
}

// === impl Seat ===

impl Seat {
    /// The name of that Lease of a shard.
    pub fn lease(self, shard: &str) -> String {
        match self {
            Self::Identity => names::identity_lease(shard),
            Self::Standby => names::standby_lease(shard),
        }
    }

    /// Which Lease of which shard of the ring has that name; none if it is no such Lease.
    pub fn of_lease<'a>(ring: &str, name: &'a str) -> Option<(Self, &'a str)> {
        let rest = name.strip_prefix("shoal-")?;
        let (seat, shard) = match rest.strip_suffix("-standby") {
            Some(shard) => (Self::Standby, shard),
            None => (Self::Identity, rest),
        };
        names::shard_number(ring, shard).map(|_| (seat, shard))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_known_by_its_name() {
        for seat in [Seat::Identity, Seat::Standby] {
            assert_eq!(Seat::of_lease("kcm", &seat.lease("kcm-7")), Some((seat, "kcm-7")));
        }
        let odd = Seat::Identity.lease("a-standby-0");
        assert_eq!(Seat::of_lease("a-standby", &odd), Some((Seat::Identity, "a-standby-0")));
        for other in ["kcm-0", "shoal-kcm", "shoal-kcm-0-1", "shoal-other-0", "shoal-kcm-standby"] {
            assert_eq!(Seat::of_lease("kcm", other), None, "{other}");
        }
    }

    #[test]
    fn the_reason_of_leaving_is_read_as_written() {
        for left in [Left::Graceful, Left::ControllerExit, Left::Deposed] {
            assert_eq!(left.to_string().parse(), Ok(left));
        }
        assert!("graceful".parse::<Left>().is_err());
    }
}
