//! What the test asks of the ring, and so what the audit log has to show.

use std::collections::BTreeMap;

use serde_json::json;
use shoal_tests::Load;
use shoal_tests::evidence::Work;
use shoal_tests::load::{DB, ONCE, WEB};

/// The load's image.
pub(crate) const IMAGE: &str = "registry.example/app:1";

/// Everything that was asked for since the start.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// How many Pods each piece of work is to have been given.
    pub(crate) pods: BTreeMap<Work, u64>,
    /// How many `ReplicaSets` each template of a Deployment is to have been given.
    pub(crate) replica_sets: BTreeMap<Work, u64>,
    /// What may be deleted, in the judge's form.
    pub(crate) deletions: String,
}

// === impl Script ===

impl Script {
    /// What a fresh load asks for: nothing is to be deleted.
    pub(crate) fn of(load: &Load) -> Self {
        let mut script = Self::default();
        for namespace in &load.namespaces {
            script.template(namespace, IMAGE, load.sizes.web.into());
            (0..load.sizes.db).for_each(|ordinal| script.ordinal(namespace, ordinal));
            script.pods.insert(Work::new(namespace, "Job", ONCE, IMAGE), load.sizes.once.into());
        }
        script
    }

    /// One `ReplicaSet` of that image, and so many Pods over its whole life.
    pub(crate) fn template(&mut self, namespace: &str, image: &str, pods: u64) {
        let work = Work::new(namespace, "Deployment", WEB, image);
        self.replica_sets.insert(work.clone(), 1);
        self.pods.insert(work, pods);
    }

    /// One Pod of the `StatefulSet`, created once.
    pub(crate) fn ordinal(&mut self, namespace: &str, ordinal: u32) {
        self.pods.insert(Work::new(namespace, "StatefulSet", DB, &format!("{DB}-{ordinal}")), 1);
    }

    /// Objects of a resource whose names begin so may be deleted.
    pub(crate) fn deletes(&mut self, resource: &str, namespace: &str, prefix: &str) {
        let line = json!({"resource": resource, "namespace": namespace, "namePrefix": prefix});
        self.deletions.extend([line.to_string().as_str(), "\n"]);
    }
}
