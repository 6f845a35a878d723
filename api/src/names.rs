//! Names, labels and annotations of the objects that proxies and the control plane share.

/// On every object of a ring: the ring's name.
pub const RING_LABEL: &str = "mesh.shoal.dev/ring";
/// On an identity Lease: what its holder has done for the moves of the map, see `shoal_sharding::Acks`.
pub const ACKS_ANNOTATION: &str = "mesh.shoal.dev/acks";
/// On an identity Lease without a holder: why it has none, one of [`LEFT_GRACEFULLY`], [`LEFT_BY_EXIT`], [`DEPOSED`].
pub const LEFT_ANNOTATION: &str = "mesh.shoal.dev/left";
/// The holder was told to end: its slots wait for the next holder, for `restartGrace` at most.
pub const LEFT_GRACEFULLY: &str = "Graceful";
/// The holder's controller ended by itself: its slots go to others at once.
pub const LEFT_BY_EXIT: &str = "ControllerExit";
/// The holder was silent for too long, and the coordinator took the Lease away.
pub const DEPOSED: &str = "Deposed";

/// On a `ShardedController`: what people want of its slots and shards, see `shoal_sharding::Wishes`.
pub const WISHES_ANNOTATION: &str = "mesh.shoal.dev/wishes";
/// On a `ShardedController`: it goes only after its slots are let go of and its locks are free.
pub const RING_FINALIZER: &str = "mesh.shoal.dev/ring";

/// The name of a ring's shard of that number.
pub fn shard(ring: &str, number: u16) -> String {
    format!("{ring}-{number}")
}

/// The number of a shard by its name; none if it is no shard of that ring.
pub fn shard_number(ring: &str, shard: &str) -> Option<u16> {
    let number = shard.strip_prefix(ring)?.strip_prefix('-')?;
    number.parse().ok().filter(|parsed: &u16| parsed.to_string() == number)
}

/// The name of the Lease whose holder is that shard.
pub fn identity_lease(shard: &str) -> String {
    format!("shoal-{shard}")
}

/// The name of the Lease whose holder keeps warm what that shard owns, and is the next to claim it.
pub fn standby_lease(shard: &str) -> String {
    format!("shoal-{shard}-standby")
}

/// The name of the Secret that the tokens of one term of that shard are bound to, in mode `Credential`.
pub fn term_secret(shard: &str, term: i64) -> String {
    format!("shoal-{shard}-{term}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_number_makes_a_shard() {
        assert_eq!(shard_number("kcm", &shard("kcm", 12)), Some(12));
        for name in ["kcm-", "kcm-01", "kcm-+1", "kcm-65536", "kcm1", "kcm-a", "other-1"] {
            assert_eq!(shard_number("kcm", name), None, "{name}");
        }
    }
}
