//! A shard without a controller: it holds its identity and follows the map as a proxy does, and needs no time to get objects
//! ready or to show them.

use std::pin::pin;

use futures_util::TryStreamExt;
use k8s_openapi::api::coordination::v1::Lease;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use shoal_api::ShardMap;
use shoal_sharding::kube::{Fault, Held, lease};
use shoal_sharding::{Left, Moment, Phase, Seat, Shard, SlotMap, Slots, times};
use shoal_tests::{soon, wait_for};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use crate::ground::{DEADLINE, NAMESPACE, RING};

/// What a holder is and has.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standing {
    /// Its Lease; none since it was taken away.
    pub(crate) held: Option<Held>,
    /// The slots that it would let writes pass for.
    pub(crate) open: Slots,
}

/// A played shard. Dropping it makes it silent.
pub(crate) struct Holder {
    standing: watch::Receiver<Standing>,
    leave: Option<oneshot::Sender<Left>>,
    task: JoinHandle<()>,
}

struct Play {
    leases: Api<Lease>,
    shard: Shard,
    held: Held,
    told: watch::Sender<Standing>,
}

// === impl Holder ===

impl Holder {
    /// Claims the shard as soon as it may, and holds it.
    pub(crate) async fn start(client: Client, shard: &str, pod: &str) -> Self {
        let leases: Api<Lease> = Api::namespaced(client.clone(), NAMESPACE);
        let maps: Api<ShardMap> = Api::namespaced(client, NAMESPACE);
        let claim = || claim(&leases, &maps, shard, pod);
        let held = wait_for(&format!("{shard} to be free"), DEADLINE, claim).await.unwrap();
        let (told, standing) = watch::channel(Standing { held: Some(held.clone()), open: Slots::NONE });
        let (leave, left) = oneshot::channel();
        let play = Play { leases, shard: Shard::new(shard), held, told };
        Self { standing, leave: Some(leave), task: tokio::spawn(play.run(maps, left)) }
    }

    /// What it is and has now.
    pub(crate) fn standing(&self) -> Standing {
        self.standing.borrow().clone()
    }

    /// Gives the identity up for that reason.
    pub(crate) async fn leave(mut self, left: Left) {
        self.leave.take().unwrap().send(left).unwrap();
        soon("the holder's end", &mut self.task).await.unwrap();
    }

    /// Says nothing more, as after a power cut.
    pub(crate) fn vanish(self) {
        drop(self);
    }

    /// Waits until that is true of it.
    pub(crate) async fn until(&self, what: &str, is_so: impl Fn(&Standing) -> bool) -> Standing {
        let mut standing = self.standing.clone();
        soon(what, standing.wait_for(|standing| is_so(standing))).await.unwrap().clone()
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A Lease that was not left in peace is claimed only once the map shows nothing of the shard.
async fn claim(leases: &Api<Lease>, maps: &Api<ShardMap>, shard: &str, pod: &str) -> Result<Held, String> {
    let text = |fault: Fault| fault.to_string();
    let free = lease::read(leases, Seat::Identity, shard).await.map_err(text)?;
    if free.holder.is_some() {
        return Err(format!("{free:?}"));
    }
    let map = maps.get(RING).await.map_err(|error| error.to_string())?;
    let map = SlotMap::try_from(&map.spec).map_err(|error| error.to_string())?;
    if free.left != Some(Left::Graceful) && map.owners().contains_key(shard) {
        return Err(format!("the map shows slots of {shard}"));
    }
    lease::claim(leases, Seat::Identity, &free, &format!("{pod}_1")).await.map_err(text)
}

// === impl Play ===

impl Play {
    async fn run(mut self, maps: Api<ShardMap>, mut left: oneshot::Receiver<Left>) {
        let named = watcher::Config::default().fields(&format!("metadata.name={RING}"));
        let mut events = pin!(watcher(maps, named).default_backoff());
        let mut beat = interval(times::RENEW);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let before = self.shard.acks();
            let due = tokio::select! {
                event = events.try_next() => {
                    if let Ok(Some(watcher::Event::Apply(map) | watcher::Event::InitApply(map))) = event {
                        self.follow(&map);
                    }
                    self.shard.acks() != before
                }
                _ = beat.tick() => true,
                reason = &mut left => {
                    let Ok(reason) = reason else { return };
                    return lease::release(&self.leases, &self.held, reason).await.unwrap();
                }
            };
            if due && !self.renew().await {
                return self.tell(None);
            }
            self.tell(Some(self.held.clone()));
        }
    }

    fn follow(&mut self, map: &ShardMap) {
        let Ok(map) = SlotMap::try_from(&map.spec) else { return };
        let Ok(asked) = self.shard.follow(&map) else { return };
        self.shard.prepared(&asked.prepare);
        self.shard.shown(&asked.show);
        let idle = self.shard.idle(Moment(0));
        self.shard.released(&idle);
    }

    /// Whether the Lease is still this holder's.
    async fn renew(&mut self) -> bool {
        for _ in 0..3 {
            match lease::renew(&self.leases, &self.held, &self.shard.acks()).await {
                Ok(held) => {
                    self.held = held;
                    return true;
                }
                Err(Fault::Conflict(_)) => {
                    let read = lease::read(&self.leases, Seat::Identity, self.shard.name()).await;
                    match read.map(|read| self.held.at(&read)) {
                        Ok(Some(held)) => self.held = held,
                        Ok(None) => return false,
                        Err(_) => return true,
                    }
                }
                Err(Fault::NotFound(_)) => match lease::recreate(&self.leases, RING, &self.held).await {
                    Ok(held) => self.held = held,
                    Err(_) => return false,
                },
                // It holds on while it cannot know.
                Err(_) => return true,
            }
        }
        true
    }

    fn tell(&self, held: Option<Held>) {
        let open = if held.is_some() {
            self.shard.slots(|phase| matches!(phase, Phase::Open(_)))
        } else {
            Slots::NONE
        };
        self.told.send_replace(Standing { held, open });
    }
}
