//! Work for a ring: namespaces with the same few workloads in each, and what it looks like when it is done.
//!
//! ```text
//! namespaces(count) ─▶ Load::create ─▶ ring and kwok work ─▶ Load::wait_settled
//! ```
//! Everything is created by an administrator straight at the API server, so each write in the audit log that the
//! ring's users made is the ring's own idea.

use std::time::Duration;

use kube::Client;
use tokio::task::JoinSet;

use crate::{HarnessError, wait_for};

mod namespaces;
pub(crate) mod objects;
mod settled;

pub use namespaces::{EDGES, names_in_slot, namespaces};
pub use settled::{Count, Progress};

/// Namespaces that are filled at the same time.
const AT_ONCE: usize = 6;

/// The name of each namespace's Deployment and Service, and the `app` label of their Pods.
pub const WEB: &str = "web";
/// The name of each namespace's `StatefulSet`.
pub const DB: &str = "db";
/// The name of each namespace's Job.
pub const ONCE: &str = "once";

/// How big the workloads of a namespace are, in Pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Replicas of the Deployment [`WEB`].
    pub web: u32,
    /// Replicas of the `StatefulSet` [`DB`].
    pub db: u32,
    /// Completions, all at once, of the Job [`ONCE`].
    pub once: u32,
}

/// Namespaces and what is in each of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Load {
    /// The namespaces.
    pub namespaces: Vec<String>,
    /// The same in each.
    pub sizes: Sizes,
}

// === impl Sizes ===

impl Default for Sizes {
    fn default() -> Self {
        Self { web: 3, db: 2, once: 2 }
    }
}

// === impl Load ===

impl Load {
    /// A load of the default sizes in [`namespaces`]`(count)`.
    pub fn new(count: usize) -> Self {
        Self { namespaces: namespaces(count), sizes: Sizes::default() }
    }

    /// Creates everything; what exists already is an error. `client` is an administrator's.
    pub async fn create(&self, client: &Client) -> Result<(), HarnessError> {
        for batch in self.namespaces.chunks(AT_ONCE) {
            let mut tasks = JoinSet::new();
            for namespace in batch {
                tasks.spawn(objects::create(client.clone(), namespace.clone(), self.sizes));
            }
            while let Some(outcome) = tasks.join_next().await {
                outcome.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))?;
            }
        }
        Ok(())
    }

    /// How far the ring is. What is compared is each object's own spec, so it holds after a change of scale or image.
    pub async fn progress(&self, client: &Client) -> Result<Progress, HarnessError> {
        settled::look(client, &self.namespaces).await
    }

    /// Waits until every Deployment and `StatefulSet` is at its size and up to date, every Job complete, and every
    /// Service's `EndpointSlices` name exactly its ready Pods. `show` sees each look on the way.
    pub async fn wait_settled(
        &self,
        client: &Client,
        deadline: Duration,
        show: impl Fn(&Progress),
    ) -> Result<(), HarnessError> {
        let look = || async {
            let progress = self.progress(client).await.map_err(|error| error.to_string())?;
            show(&progress);
            if progress.is_settled() { Ok(()) } else { Err(progress.to_string()) }
        };
        wait_for("all workloads to settle", deadline, look).await
    }
}
