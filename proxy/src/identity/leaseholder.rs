//! The Leases that this proxy holds: its identity, or the one that makes it a standby. One call to the hub at a time.

use std::time::Duration;

use k8s_openapi::api::{coordination::v1::Lease, core::v1::ConfigMap};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;
use shoal_api::{Lock, LockResource, ShardMap, names};
use shoal_sharding::{
    Acks, Moment, SlotMap,
    identity::{Left, Seat},
    kube::{
        Fault,
        lease::{self, Held},
    },
    times,
};

use super::{Goal, Hub, Identity, News, hub::in_time, seat::is_given_away};

/// Where a lock that is no Lease keeps its record (client-go `tools/leaderelection/resourcelock`).
const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";

/// How long after a Lease could not be given back that is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// What is held, and what was last written there.
#[derive(Debug, Default)]
pub(super) struct Tenancy {
    identity: Option<Held>,
    standby: Option<Held>,
    /// When the last call about a Lease that is held began.
    renewed: Moment,
    /// What the identity Lease says of the moves.
    written: Acks,
    /// Whether a call is under way.
    calling: bool,
    /// Whether the identity Lease was deleted: it is made anew.
    deleted: bool,
    /// Why the identity is to be given back, and when that was tried last.
    leaves: Option<Left>,
    tried: Option<Moment>,
}

/// Why a call to the hub brought nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
    /// The hub's answer, or none.
    #[error("{0}")]
    Fault(#[from] Fault),
    /// The Lease was claimed, but the map could not be read.
    #[error("the map could not be read: {0}")]
    Map(#[source] kube::Error),
    /// The slots of the shard are still being given to others.
    #[error("its slots are still being given to others")]
    GivenAway,
    /// It took too long.
    #[error("the hub took too long")]
    Late,
    /// Somebody else holds the Lease, or nobody does: it was taken away.
    #[error("it was taken away")]
    Taken,
    /// The Lease was deleted.
    #[error("it was deleted")]
    Deleted,
}

/// A call to the hub that has ended.
#[derive(Debug)]
pub(super) enum Called {
    /// An identity was claimed, and the map read after that.
    Claimed { shard: String, sent: Moment, outcome: Result<(Held, Option<Box<ShardMap>>), Failed> },
    /// A standby Lease was claimed.
    StandsBy { shard: String, outcome: Result<Held, Failed> },
    /// A Lease was renewed.
    Renewed { sent: Moment, acks: Acks, outcome: Result<Held, Failed> },
    /// Leases were given back, or could not be.
    Released(bool),
}

// === impl Tenancy ===

impl Tenancy {
    /// The identity.
    pub(super) fn identity(&self) -> Option<&Held> {
        self.identity.as_ref()
    }

    /// The shard that this proxy stands by for.
    pub(super) fn standby(&self) -> Option<&str> {
        self.standby.as_ref().map(|held| held.shard.as_str())
    }

    /// Whether nothing is held and nothing is under way.
    pub(super) fn is_over(&self) -> bool {
        self.identity.is_none() && self.standby.is_none() && !self.calling
    }

    /// When the Lease has to be renewed.
    pub(super) fn next_renewal(&self) -> Option<Moment> {
        let holds = self.identity.is_some() || self.standby.is_some();
        (holds && !self.calling).then(|| self.renewed + times::RENEW)
    }

    /// Gives everything back as soon as that is possible.
    pub(super) fn leave(&mut self, left: Left) {
        if self.identity.is_some() || self.standby.is_some() {
            self.leaves.get_or_insert(left);
        }
    }

    /// The controller is back before the identity was given away, also if that was being tried when it came.
    fn stay(&mut self) {
        if self.leaves == Some(Left::ControllerExit) {
            (self.leaves, self.tried) = (None, None);
        }
    }

    fn forget(&mut self) {
        *self = Self { calling: self.calling, ..Self::default() };
    }
}

// === impl Identity ===

impl Identity {
    /// Begins the next call to the hub, if one is due.
    pub(super) fn call(&mut self, now: Moment) {
        if self.tenancy.calling {
            return;
        }
        if self.is_surplus() {
            self.tenancy.leave(Left::Graceful);
        }
        if self.attended && !self.drain.has_begun() && !self.ends {
            self.tenancy.stay();
        }
        if let Some(left) = self.tenancy.leaves {
            // The next holder cannot tell what this one let go of.
            let (is_letting_go, acks) = {
                let mut shard = self.live.shard();
                // A renewal that was under way may have come in between.
                shard.lapse();
                (shard.is_busy(now) || shard.is_letting_go(), shard.acks())
            };
            if !is_letting_go && (acks == self.tenancy.written || self.tenancy.identity.is_none()) {
                self.release(left, now);
            } else {
                self.renew_identity(now);
            }
        } else if self.tenancy.identity.is_some() {
            self.renew_identity(now);
        } else {
            match self.goal(now) {
                Goal::Identity(shard) => self.claim(shard, now),
                Goal::Standby(shard) => self.stand_by(shard),
                Goal::Wait(_) => self.renew_standby(now),
            }
        }
    }

    /// Whether the ring has become too small for this shard, and its slots are with others.
    fn is_surplus(&self) -> bool {
        let (Some(held), Some(map)) = (&self.tenancy.identity, &self.map) else { return false };
        let number = names::shard_number(&self.hub.ring, &held.shard);
        number.is_some_and(|number| number >= self.controller.spec.shards) && !map.names(&held.shard)
    }

    fn begin(&mut self, call: impl Future<Output = Called> + Send + 'static) {
        self.tenancy.calling = true;
        let news = self.news.clone();
        tokio::spawn(async move {
            let _ = news.send(News::Called(Box::new(call.await))).await;
        });
    }

    fn claim(&mut self, shard: String, now: Moment) {
        let (hub, holder) = (self.hub.clone(), self.holder.clone());
        let Some(free) = self.leases.get(Seat::Identity, &shard).cloned() else { return };
        let locks = self.controller.spec.leader_election.locks.clone();
        tracing::info!(shard, "claiming the identity");
        self.begin(async move {
            let claim = async {
                // Before the claim: what the watch shows may be older than the Lease.
                if is_given_away(&free)
                    && hub.map().await.map_err(Failed::Map)?.is_some_and(|map| gives(&map, &shard))
                {
                    return Err(Failed::GivenAway);
                }
                let held = lease::claim(&hub.leases(), Seat::Identity, &free, &holder).await?;
                free_locks(&hub, &locks, &shard).await;
                // The watch may show an older map than the one that goes with this term.
                match hub.map().await {
                    Ok(map) => Ok((held, map.map(Box::new))),
                    Err(error) => {
                        give_back(&hub.leases(), &held, Left::Graceful).await;
                        Err(Failed::Map(error))
                    }
                }
            };
            let outcome = in_time(claim).await.unwrap_or(Err(Failed::Late));
            Called::Claimed { shard, sent: now, outcome }
        });
    }

    fn stand_by(&mut self, shard: String) {
        let (hub, holder) = (self.hub.clone(), self.holder.clone());
        let Some(free) = self.leases.get(Seat::Standby, &shard).cloned() else { return };
        self.begin(async move {
            let leases = hub.leases();
            let claim = in_time(lease::claim(&leases, Seat::Standby, &free, &holder)).await;
            let outcome = claim.map_or(Err(Failed::Late), |claimed| claimed.map_err(Failed::from));
            Called::StandsBy { shard, outcome }
        });
    }

    fn renew_identity(&mut self, now: Moment) {
        let acks = self.live.shard().acks();
        let Some(held) = self.tenancy.identity.clone() else { return };
        if now >= self.tenancy.renewed + times::RENEW || acks != self.tenancy.written {
            self.renew(held, acks, now);
        }
    }

    fn renew_standby(&mut self, now: Moment) {
        let Some(held) = self.tenancy.standby.clone() else { return };
        if now >= self.tenancy.renewed + times::RENEW {
            self.renew(held, Acks::default(), now);
        }
    }

    fn renew(&mut self, held: Held, acks: Acks, now: Moment) {
        self.tenancy.renewed = now;
        let (hub, deleted) = (self.hub.clone(), self.tenancy.deleted);
        self.begin(async move {
            let renewal = async {
                let leases = hub.leases();
                if deleted { recreated(&hub, &held).await } else { kept(&leases, &held, &acks).await }
            };
            let outcome = in_time(renewal).await.unwrap_or(Err(Failed::Late));
            // A Lease that was made anew says nothing of the moves yet.
            let acks = if deleted { Acks::default() } else { acks };
            Called::Renewed { sent: now, acks, outcome }
        });
    }

    /// Until that has worked the Lease is held still, so it is tried again, unless the controller comes back first.
    fn release(&mut self, left: Left, now: Moment) {
        if self.tenancy.tried.is_some_and(|tried| now < tried + AGAIN) {
            return;
        }
        self.tenancy.tried = Some(now);
        let (hub, identity) = (self.hub.clone(), self.tenancy.identity.clone());
        let standby = self.tenancy.standby.clone();
        tracing::info!(%left, "giving the identity back");
        self.begin(async move {
            let api = hub.leases();
            let mut given = true;
            for held in identity.iter().chain(&standby) {
                given &= give_back(&api, held, left).await;
            }
            Called::Released(given)
        });
    }

    pub(super) fn take_call(&mut self, called: Called) {
        self.tenancy.calling = false;
        match called {
            Called::Claimed { shard, sent, outcome: Ok((held, map)) } => {
                self.begin_term(shard, held, sent, map);
            }
            Called::Claimed { shard, outcome: Err(error), .. } => {
                tracing::info!(shard, %error, "the identity was not claimed");
                self.leases.lost(&names::identity_lease(&shard));
            }
            Called::StandsBy { outcome: Ok(held), .. } => {
                tracing::info!(shard = held.shard, "standing by");
                self.tenancy.standby = Some(held);
                self.follow();
            }
            Called::StandsBy { shard, outcome: Err(_) } => self.leases.lost(&names::standby_lease(&shard)),
            Called::Renewed { sent, acks, outcome } => self.renewed(sent, acks, outcome),
            Called::Released(true) => {
                self.tenancy.forget();
                self.leave_the_rest();
            }
            Called::Released(false) => {}
        }
    }

    /// A term begins: the gate takes its deadline from before the claim was sent, and the map from after it.
    fn begin_term(&mut self, shard: String, held: Held, sent: Moment, map: Option<Box<ShardMap>>) {
        tracing::info!(shard, term = held.term, "the identity is claimed");
        {
            let mut gate = self.live.shard();
            gate.become_shard(shard);
            gate.renewed(sent);
        }
        let standby = self.tenancy.standby.take();
        self.tenancy = Tenancy { identity: Some(held), renewed: sent, ..Tenancy::default() };
        if let Some(standby) = standby {
            let hub = self.hub.clone();
            tokio::spawn(async move { give_back(&hub.leases(), &standby, Left::Graceful).await });
        }
        let read = map.and_then(|map| SlotMap::try_from(&map.spec).ok());
        let newer = |read: &SlotMap| self.map.as_ref().is_none_or(|seen| seen.version() <= read.version());
        if let Some(read) = read.filter(newer) {
            self.map = Some(read);
        }
        self.leave_the_rest();
        self.follow();
    }

    fn renewed(&mut self, sent: Moment, acks: Acks, outcome: Result<Held, Failed>) {
        let identity = self.tenancy.identity.is_some();
        match outcome {
            Ok(held) if identity => {
                self.tenancy.identity = Some(held);
                (self.tenancy.written, self.tenancy.deleted) = (acks, false);
                if self.tenancy.leaves.is_none() {
                    self.live.shard().renewed(sent);
                }
            }
            Ok(held) => self.tenancy.standby = Some(held),
            Err(Failed::Deleted) if identity => {
                tracing::warn!("the identity Lease was deleted: no write passes until it is made anew");
                self.live.shard().lapse();
                (self.tenancy.deleted, self.tenancy.renewed) = (true, Moment::default());
            }
            Err(error @ (Failed::Taken | Failed::Deleted)) => {
                tracing::warn!(%error, "the Lease is lost: no write passes");
                if identity {
                    self.live.shard().lapse();
                }
                self.tenancy.forget();
                self.leave_the_rest();
            }
            Err(error) => {
                tracing::warn!(%error, "the Lease was not renewed");
            }
        }
    }
}

/// Whether a map gives slots to a shard. One that cannot be read might.
fn gives(map: &ShardMap, shard: &str) -> bool {
    SlotMap::try_from(&map.spec).map_or(true, |map| map.names(shard))
}

/// Renews a Lease. One that has changed may still be held: a renewal whose answer was lost, or another's label.
async fn kept(leases: &Api<Lease>, held: &Held, acks: &Acks) -> Result<Held, Failed> {
    match lease::renew(leases, held, acks).await {
        Err(Fault::Conflict(_)) => {}
        Err(Fault::NotFound(_)) => return Err(Failed::Deleted),
        other => return Ok(other?),
    }
    match lease::read(leases, held.seat, &held.shard).await {
        Ok(read) => Ok(lease::renew(leases, &held.at(&read).ok_or(Failed::Taken)?, acks).await?),
        Err(Fault::NotFound(_)) => Err(Failed::Deleted),
        Err(other) => Err(other.into()),
    }
}

/// Makes an identity Lease anew that was deleted. If another is there already, it is the coordinator's.
async fn recreated(hub: &Hub, held: &Held) -> Result<Held, Failed> {
    match lease::recreate(&hub.leases(), &hub.ring, held).await {
        Err(Fault::AlreadyExists(_)) => Err(Failed::Taken),
        other => Ok(other?),
    }
}

/// Gives a Lease back; whether it is held no longer.
async fn give_back(leases: &Api<Lease>, held: &Held, left: Left) -> bool {
    let given = async {
        match lease::release(leases, held, left).await {
            Err(Fault::Conflict(_)) => {
                let read = lease::read(leases, held.seat, &held.shard).await?;
                match held.at(&read) {
                    Some(held) => lease::release(leases, &held, left).await,
                    None => Ok(()),
                }
            }
            other => other,
        }
    };
    match in_time(given).await {
        Some(Ok(()) | Err(Fault::NotFound(_))) => true,
        Some(Err(error)) => {
            tracing::warn!(%error, "the Lease could not be given back");
            false
        }
        None => {
            tracing::warn!("the Lease could not be given back in time");
            false
        }
    }
}

/// Frees the shard's own locks from whoever held them in an earlier term, so that its controller need not wait for them to
/// run out. Their holder can no longer write.
async fn free_locks(hub: &Hub, locks: &[Lock], shard: &str) {
    for lock in locks {
        let (name, client) = (format!("{}-{shard}", lock.name), hub.client().clone());
        let (params, namespace) = (PatchParams::default(), &lock.namespace);
        let freed = match lock.resource {
            LockResource::Leases => {
                let nobody = Patch::Merge(json!({"spec": {"holderIdentity": ""}}));
                Api::<Lease>::namespaced(client, namespace).patch(&name, &params, &nobody).await.map(drop)
            }
            LockResource::ConfigMaps => {
                let nobody = Patch::Merge(json!({"metadata": {"annotations": {LEADER: null}}}));
                Api::<ConfigMap>::namespaced(client, namespace).patch(&name, &params, &nobody).await.map(drop)
            }
        };
        match freed {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => {
                tracing::warn!(name, %error, "the last holder's lock could not be freed; it runs out by itself");
            }
            Ok(()) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_that_came_back_keeps_its_shard_unless_it_was_told_to_go() {
        let held = Held {
            seat: Seat::Identity,
            shard: "kcm-0".to_owned(),
            holder: "a_1".to_owned(),
            term: 1,
            version: "7".to_owned(),
        };
        for (left, stays) in [(Left::ControllerExit, true), (Left::Graceful, false)] {
            let mut tenancy = Tenancy { identity: Some(held.clone()), calling: true, ..Tenancy::default() };
            tenancy.leave(left);
            tenancy.stay();
            assert_eq!(tenancy.leaves.is_none(), stays, "{left}");
        }
    }
}
