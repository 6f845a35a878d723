//! What can go wrong, one kind each. A fault is done, is seen to have happened, and is over when its function returns, but for
//! what it leaves the ring to do.

use std::fmt;

use clap::ValueEnum;
use rustix::process::Signal;

use super::ground::Ground;
use crate::HarnessError;

mod api;
mod coordinator;
mod network;
mod processes;
mod shards;

/// A fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Fault {
    /// A shard more, or less.
    Scale,
    /// Each Pod is replaced, the new one first.
    Rolling,
    /// Slots are sent to another shard by hand.
    Move,
    /// KILL to a controller.
    ControllerKill,
    /// TERM to a controller alone.
    ControllerTerm,
    /// A controller is paused.
    ControllerStop,
    /// KILL to a proxy.
    ProxyKill,
    /// A proxy is paused for longer than its Lease.
    ProxyStop,
    /// A proxy is paused many times for a moment: between a check and what it was for, among others.
    ProxyFlicker,
    /// A whole Pod is paused for longer than its Lease.
    PodStop,
    /// A Pod goes with its node; another comes after a while.
    NodeKill,
    /// A living shard's identity Lease is deleted.
    LeaseDelete,
    /// KILL to the coordinator.
    CoordinatorKill,
    /// The coordinator is paused.
    CoordinatorStop,
    /// Two coordinators decide at once.
    CoordinatorDouble,
    /// The wall clock of a shard jumps by hours, forth and back.
    Clock,
    /// A proxy's connections to the API server are cut.
    Cut,
    /// A proxy and the API server hear nothing of each other for a while.
    Partition,
    /// The API server is started again.
    ApiRestart,
    /// The API server answers nobody for a minute.
    ApiOutage,
    /// The API server's store answers nobody for a few seconds: what becomes of a write is not known.
    EtcdStop,
    /// History is gone, and every watch has to be begun anew.
    Relist,
}

// === impl Fault ===

impl Fault {
    /// Every fault.
    pub const ALL: [Self; 22] = [
        Self::Scale,
        Self::Rolling,
        Self::Move,
        Self::ControllerKill,
        Self::ControllerTerm,
        Self::ControllerStop,
        Self::ProxyKill,
        Self::ProxyStop,
        Self::ProxyFlicker,
        Self::PodStop,
        Self::NodeKill,
        Self::LeaseDelete,
        Self::CoordinatorKill,
        Self::CoordinatorStop,
        Self::CoordinatorDouble,
        Self::Clock,
        Self::Cut,
        Self::Partition,
        Self::ApiRestart,
        Self::ApiOutage,
        Self::EtcdStop,
        Self::Relist,
    ];

    /// Does it, and says what was seen; nothing if there was nothing to do it to.
    pub(super) async fn inject(
        self,
        ground: &mut Ground,
        dice: &mut fastrand::Rng,
    ) -> Result<Option<String>, HarnessError> {
        match self {
            Self::Scale => shards::scale(ground, dice).await,
            Self::Rolling => shards::rolling(ground).await,
            Self::Move => shards::send(ground, dice).await,
            Self::LeaseDelete => shards::delete_lease(ground, dice).await,
            Self::ControllerKill => processes::kill(ground, dice, processes::Part::Controller).await,
            Self::ControllerTerm => processes::term_controller(ground, dice).await,
            Self::ControllerStop => processes::stop(ground, dice, processes::Part::Controller).await,
            Self::ProxyKill => processes::kill(ground, dice, processes::Part::Proxy).await,
            Self::ProxyStop => processes::stop(ground, dice, processes::Part::Proxy).await,
            Self::ProxyFlicker => processes::flicker(ground, dice).await,
            Self::PodStop => processes::stop(ground, dice, processes::Part::Both).await,
            Self::NodeKill => processes::lose_node(ground, dice).await,
            Self::CoordinatorKill => processes::end(&ground.ring.coordinator, Signal::KILL).await,
            Self::CoordinatorStop => coordinator::stop(ground, dice).await,
            Self::CoordinatorDouble => coordinator::double(ground).await,
            Self::Clock => network::jump(ground, dice).await,
            Self::Cut => Ok(network::cut(ground, dice)),
            Self::Partition => network::partition(ground, dice).await,
            Self::ApiRestart => api::restart(ground, dice).await,
            Self::ApiOutage => api::outage(ground).await,
            Self::EtcdStop => api::stop_store(ground, dice).await,
            Self::Relist => api::relist(ground).await,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.pad(value.as_ref().map_or("", |value| value.get_name()))
    }
}
