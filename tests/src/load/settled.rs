//! When a load is settled, as an administrator sees it straight at the API server.

use std::collections::BTreeSet;
use std::fmt;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};
use serde::de::DeserializeOwned;

use super::{ONCE, WEB};
use crate::HarnessError;

/// How many of a kind are as they should be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// As they should be.
    pub settled: usize,
    /// That there should be.
    pub of: usize,
}

/// How far the ring is with a load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Deployments at their size, all Pods of the newest template and available.
    pub deployments: Count,
    /// `StatefulSets` at their size, all Pods of the newest template and ready.
    pub stateful_sets: Count,
    /// Jobs [`ONCE`] that are complete.
    pub jobs: Count,
    /// Services whose `EndpointSlices` name exactly the ready Pods, and as many as the Deployment asks for.
    pub services: Count,
}

/// One look, of the load's namespaces only.
struct Seen {
    deployments: Vec<Deployment>,
    stateful_sets: Vec<StatefulSet>,
    jobs: Vec<Job>,
    slices: Vec<EndpointSlice>,
    pods: Vec<Pod>,
}

// === impl Progress ===

impl Progress {
    /// Whether nothing is left to do.
    pub fn is_settled(&self) -> bool {
        self.all().iter().all(|(_, count)| count.settled == count.of)
    }

    /// The counts and what they are of.
    pub fn all(&self) -> [(&'static str, Count); 4] {
        [
            ("Deployments", self.deployments),
            ("StatefulSets", self.stateful_sets),
            ("Jobs", self.jobs),
            ("Services", self.services),
        ]
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (kind, count)) in self.all().into_iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{kind} {}/{}", count.settled, count.of)?;
        }
        Ok(())
    }
}

/// Looks once.
pub(super) async fn look(client: &Client, namespaces: &[String]) -> Result<Progress, HarnessError> {
    let seen = Seen {
        deployments: list(client, namespaces).await?,
        stateful_sets: list(client, namespaces).await?,
        jobs: list(client, namespaces).await?,
        slices: list(client, namespaces).await?,
        pods: list(client, namespaces).await?,
    };
    Ok(seen.progress(namespaces))
}

async fn list<K>(client: &Client, namespaces: &[String]) -> Result<Vec<K>, HarnessError>
where
    K: kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + fmt::Debug,
{
    let all = Api::<K>::all(client.clone()).list(&ListParams::default()).await?;
    let ours = |object: &K| object.namespace().is_some_and(|namespace| namespaces.contains(&namespace));
    Ok(all.items.into_iter().filter(ours).collect())
}

// === impl Seen ===

impl Seen {
    fn progress(&self, namespaces: &[String]) -> Progress {
        let of = namespaces.len();
        let count = |settled| Count { settled, of };
        Progress {
            deployments: count(self.deployments.iter().filter(|it| deployment_settled(it)).count()),
            stateful_sets: count(self.stateful_sets.iter().filter(|it| stateful_set_settled(it)).count()),
            jobs: count(self.jobs.iter().filter(|it| job_complete(it)).count()),
            services: count(namespaces.iter().filter(|namespace| self.serves(namespace)).count()),
        }
    }

    fn serves(&self, namespace: &str) -> bool {
        let deployment =
            self.deployments.iter().find(|it| it.metadata.namespace.as_deref() == Some(namespace));
        let wanted = deployment.and_then(|it| it.spec.as_ref()?.replicas).unwrap_or(-1);
        let (ready, named) = (self.ready_pods(namespace), self.endpoints(namespace));
        i32::try_from(ready.len()) == Ok(wanted) && ready == named
    }

    /// UIDs of a namespace's ready Pods of [`WEB`].
    fn ready_pods(&self, namespace: &str) -> BTreeSet<&str> {
        let web = |pod: &&Pod| {
            pod.metadata.namespace.as_deref() == Some(namespace)
                && pod.metadata.deletion_timestamp.is_none()
                && pod.labels().get("app").is_some_and(|app| app == WEB)
                && is_ready(pod)
        };
        self.pods.iter().filter(web).filter_map(|pod| pod.metadata.uid.as_deref()).collect()
    }

    /// UIDs of the Pods that a namespace's slices of [`WEB`] call ready.
    fn endpoints(&self, namespace: &str) -> BTreeSet<&str> {
        let web = |slice: &&EndpointSlice| {
            let service = slice.labels().get("kubernetes.io/service-name");
            slice.metadata.namespace.as_deref() == Some(namespace) && service.is_some_and(|name| name == WEB)
        };
        let endpoints = self.slices.iter().filter(web).flat_map(|slice| slice.endpoints.iter().flatten());
        let ready = endpoints.filter(|it| it.conditions.as_ref().is_some_and(|now| now.ready == Some(true)));
        ready.filter_map(|endpoint| endpoint.target_ref.as_ref()?.uid.as_deref()).collect()
    }
}

fn deployment_settled(deployment: &Deployment) -> bool {
    let (Some(spec), Some(status)) = (&deployment.spec, &deployment.status) else { return false };
    let counts = [status.replicas, status.updated_replicas, status.available_replicas];
    status.observed_generation == deployment.metadata.generation
        && counts.into_iter().all(|count| count.unwrap_or(0) == spec.replicas.unwrap_or(1))
}

fn stateful_set_settled(set: &StatefulSet) -> bool {
    let (Some(spec), Some(status)) = (&set.spec, &set.status) else { return false };
    let counts = [Some(status.replicas), status.updated_replicas, status.ready_replicas];
    status.observed_generation == set.metadata.generation
        && status.current_revision == status.update_revision
        && counts.into_iter().all(|count| count.unwrap_or(0) == spec.replicas.unwrap_or(1))
}

fn job_complete(job: &Job) -> bool {
    let conditions = job.status.as_ref().filter(|_| job.metadata.name.as_deref() == Some(ONCE));
    let conditions = conditions.and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|all| all.iter().any(|it| it.type_ == "Complete" && it.status == "True"))
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|all| all.iter().any(|it| it.type_ == "Ready" && it.status == "True"))
}

#[cfg(test)]
mod tests;
