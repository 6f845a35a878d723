//! Which of several control planes works: the holder of the Lease `shoal-controller-mesh`.
//!
//! It spares the API server the work of the others. Safety does not rest on it: each write of a coordinator names the version
//! that it was decided on.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use shoal_sharding::{
    Acks, Left, Moment, Observed, Seat,
    kube::{Fault, Held, lease},
    times,
};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::{REQUEST, clock::Clock};

/// `shoal-controller-mesh`: the name of an identity Lease, so that the same functions do.
const NAME: &str = "controller-mesh";

/// One candidate.
#[derive(Debug)]
pub struct Election {
    api: Api<Lease>,
    holder: String,
    clock: Clock,
    /// The version seen last, and when it was seen first.
    seen: Option<(String, Moment)>,
}

/// A Lease that was won, and until when it counts without another renewal.
#[derive(Debug)]
pub struct Won {
    held: Held,
    until: Instant,
}

// === impl Election ===

impl Election {
    /// A candidate of that name, `<pod>_<random>`.
    pub fn new(api: Api<Lease>, holder: String) -> Self {
        Self { api, holder, clock: Clock::new(), seen: None }
    }

    /// Waits until this candidate holds the Lease.
    pub async fn win(&mut self) -> Won {
        loop {
            let sent = Instant::now();
            match timeout(REQUEST, self.step()).await {
                Ok(Ok(Some(held))) => return Won { held, until: sent + times::held_lease() },
                Ok(Ok(None)) | Err(_) => {}
                Ok(Err(fault)) => tracing::warn!(%fault, "election"),
            }
            sleep(times::RENEW).await;
        }
    }

    /// Renews until that fails for too long, or somebody else holds it.
    pub async fn hold(&self, won: &mut Won) {
        loop {
            sleep(times::RENEW.min(won.until - Instant::now())).await;
            let sent = Instant::now();
            let silent = sleep_until(won.until.min(sent + REQUEST));
            tokio::select! {
                renewed = self.renewed(&won.held) => match renewed {
                    Ok(Some(held)) => *won = Won { held, until: sent + times::held_lease() },
                    Ok(None) => return,
                    Err(fault) => tracing::warn!(%fault, "election"),
                },
                () = silent => tracing::warn!("election: the renewal was not answered in time"),
            }
            if Instant::now() >= won.until {
                return;
            }
        }
    }

    /// Lets the next candidate go on at once.
    pub async fn resign(&self, won: &Won) -> Result<(), Fault> {
        lease::release(&self.api, &won.held, Left::Graceful).await
    }

    /// One look at the Lease, and the one write that it calls for.
    async fn step(&mut self) -> Result<Option<Held>, Fault> {
        let found = match lease::read(&self.api, Seat::Identity, NAME).await {
            Err(Fault::NotFound(_)) => lease::create(&self.api, NAME, Seat::Identity, NAME, 0, None).await?,
            found => found?,
        };
        if found.holder.is_none() {
            return lease::claim(&self.api, Seat::Identity, &found, &self.holder).await.map(Some);
        }
        if self.silent_for(&found) > times::observed_lease() {
            lease::vacate(&self.api, Seat::Identity, NAME, &found.version, Left::Deposed).await?;
        }
        Ok(None)
    }

    fn silent_for(&mut self, found: &Observed) -> Duration {
        let now = self.clock.now();
        let since = match &self.seen {
            Some((version, since)) if *version == found.version => *since,
            _ => now,
        };
        self.seen = Some((found.version.clone(), since));
        now.since(since)
    }

    /// The Lease after a renewal; none if somebody else holds it.
    async fn renewed(&self, held: &Held) -> Result<Option<Held>, Fault> {
        match lease::renew(&self.api, held, &Acks::default()).await {
            // An earlier renewal may have been done without an answer.
            Err(Fault::Conflict(_)) => {
                let read = lease::read(&self.api, Seat::Identity, NAME).await?;
                Ok(held.at(&read))
            }
            Err(Fault::NotFound(_)) => Ok(None),
            renewed => renewed.map(Some),
        }
    }
}
