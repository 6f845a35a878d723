//! What a user who watches all Websites gets to see.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;

use futures_util::StreamExt;
use kube::api::{Api, DynamicObject};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::website;

/// What was seen so far.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// The phase of each Website, and the generation that it is about; by namespace and name.
    pub sites: BTreeMap<(String, String), Standing>,
    /// Websites that ever showed phase Error, with what they said.
    pub errors: BTreeSet<String>,
}

/// How a Website stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    /// `status.phase`; empty before it has one.
    pub phase: String,
    /// `status.observedGeneration`.
    pub about: i64,
    /// `metadata.generation`.
    pub wanted: i64,
}

/// A watch of all Websites. Dropping it ends it.
#[derive(Debug)]
pub struct Watching {
    seen: watch::Receiver<Seen>,
    task: JoinHandle<()>,
}

// === impl Watching ===

impl Watching {
    /// Begins to watch.
    pub fn start(client: &Client) -> Self {
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &website());
        let (tell, seen) = watch::channel(Seen::default());
        let task = tokio::spawn(async move {
            let mut events = pin!(watcher(api, watcher::Config::default()).default_backoff());
            while let Some(event) = events.next().await {
                // An error of the watch is followed by a new list.
                if let Ok(event) = event {
                    tell.send_modify(|seen| seen.take(event));
                }
            }
        });
        Self { seen, task }
    }

    /// What was seen until now.
    pub fn seen(&self) -> Seen {
        self.seen.borrow().clone()
    }

    /// Waits until all of these, and no others, are Ready at their newest generation.
    pub async fn all_ready(&self, sites: &[(String, String)]) -> Seen {
        let mut seen = self.seen.clone();
        let wanted: BTreeSet<_> = sites.iter().collect();
        let ready = |seen: &Seen| seen.sites.keys().eq(wanted.iter().copied()) && seen.open().is_none();
        let found = seen.wait_for(ready).await.map(|seen| seen.clone());
        found.unwrap_or_default()
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.task.abort();
    }
}

// === impl Seen ===

impl Seen {
    /// A Website that is not Ready at its newest generation.
    pub fn open(&self) -> Option<(&(String, String), &Standing)> {
        self.sites.iter().find(|(_, it)| it.phase != "Ready" || it.about < it.wanted)
    }

    fn take(&mut self, event: watcher::Event<DynamicObject>) {
        match event {
            watcher::Event::Init => self.sites.clear(),
            watcher::Event::InitDone => {}
            watcher::Event::Delete(site) => drop(self.sites.remove(&key(&site))),
            watcher::Event::Apply(site) | watcher::Event::InitApply(site) => {
                let standing = standing(&site);
                if standing.phase == "Error" {
                    self.errors.insert(format!(
                        "{}/{}",
                        site.namespace().unwrap_or_default(),
                        site.name_any()
                    ));
                }
                self.sites.insert(key(&site), standing);
            }
        }
    }
}

fn key(site: &DynamicObject) -> (String, String) {
    (site.namespace().unwrap_or_default(), site.name_any())
}

fn standing(site: &DynamicObject) -> Standing {
    let status = site.data.get("status");
    let field = |name| status.and_then(|status| status.get(name));
    Standing {
        phase: field("phase").and_then(|it| it.as_str()).unwrap_or_default().to_owned(),
        about: field("observedGeneration").and_then(serde_json::Value::as_i64).unwrap_or(0),
        wanted: site.metadata.generation.unwrap_or(0),
    }
}
