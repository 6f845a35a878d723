//! What users ask for while the faults go on, and what that makes go away.
//!
//! Everything is asked straight at the API server, by an administrator who tries again until it is done: an outage is the
//! ring's trial, not the user's.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Duration;

use http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::ground::Ground;
use crate::load::{DB, ONCE, Sizes, WEB, namespaces, objects};
use crate::{HarnessError, wait_for};

/// Between two changes.
const PACE: Duration = Duration::from_millis(600);
/// An outage may last a minute.
const DEADLINE: Duration = Duration::from_mins(4);
const FIRST_NAMESPACES: usize = 12;
const MAX_NAMESPACES: usize = 20;
/// The `CronJob` that a namespace may get.
const CRON: &str = "tick";
/// So many revisions are kept beside the newest; the garbage of more is cleaned up.
const REVISIONS: u32 = 8;

/// Users at work.
pub(super) struct Changes {
    end: watch::Sender<bool>,
    task: JoinHandle<Result<Wanted, HarnessError>>,
}

/// What there is to be, and what was asked to go.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// Namespaces that are to be there, each with what is in it.
    pub(super) namespaces: BTreeMap<String, Inside>,
    /// Namespaces that are to be gone.
    pub(super) deleted: Vec<String>,
    asked: Vec<Value>,
}

/// What a namespace has beside its first objects.
#[derive(Debug, Clone, Default)]
pub(super) struct Inside {
    images: u32,
    jobs: u32,
    pub(super) cron: bool,
}

/// Who asks.
struct User {
    client: Client,
    dice: fastrand::Rng,
    wanted: Wanted,
    made: u32,
}

// === impl Changes ===

impl Changes {
    /// Begins with a few namespaces.
    pub(super) fn start(ground: &Ground, seed: u64) -> Self {
        let (end, ended) = watch::channel(false);
        let client = ground.ring.client.clone();
        let dice = fastrand::Rng::with_seed(seed ^ 0x5eed);
        let user = User { client, dice, wanted: Wanted::default(), made: 0 };
        Self { end, task: tokio::spawn(user.work(ended)) }
    }

    /// Lets the change that is under way end; `CronJobs` are suspended, so that everything can come to rest.
    pub(super) async fn end(self) -> Result<Wanted, HarnessError> {
        let _ = self.end.send(true);
        self.task.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
    }
}

// === impl Wanted ===

impl Wanted {
    /// The deletions that were asked for, in the judge's form.
    pub(super) fn lines(&self) -> String {
        self.asked.iter().map(Value::to_string).collect::<Vec<_>>().join("\n")
    }

    fn ask(&mut self, resource: &str, namespace: &str, prefix: &str) {
        let entry = json!({"resource": resource, "namespace": namespace, "namePrefix": prefix});
        if !self.asked.contains(&entry) {
            self.asked.push(entry);
        }
    }
}

// === impl User ===

impl User {
    async fn work(mut self, mut ended: watch::Receiver<bool>) -> Result<Wanted, HarnessError> {
        for name in namespaces(FIRST_NAMESPACES) {
            self.create_namespace(name).await?;
        }
        while !*ended.borrow() {
            self.change().await?;
            tokio::select! {
                () = sleep(PACE) => {}
                _ = ended.changed() => {}
            }
        }
        for (namespace, inside) in self.wanted.namespaces.clone() {
            if inside.cron {
                let path = format!("/apis/batch/v1/namespaces/{namespace}/cronjobs/{CRON}");
                self.patch(&path, &json!({"spec": {"suspend": true}})).await?;
            }
        }
        Ok(self.wanted)
    }

    async fn change(&mut self) -> Result<(), HarnessError> {
        let names: Vec<String> = self.wanted.namespaces.keys().cloned().collect();
        let Some(namespace) = self.dice.choice(&names).cloned() else { return Ok(()) };
        match self.dice.u32(0..100) {
            0..34 => self.scale(&namespace, WEB, "deployments", 0..6).await,
            34..46 => self.scale(&namespace, DB, "statefulsets", 1..4).await,
            46..60 => self.update(&namespace, WEB, "deployments", "replicasets").await,
            60..66 => self.update(&namespace, DB, "statefulsets", "controllerrevisions").await,
            66..78 => self.add_job(&namespace).await,
            78..83 => self.replace_service(&namespace).await,
            83..86 => self.add_cron(&namespace).await,
            86..94 if names.len() < MAX_NAMESPACES => {
                self.made += 1;
                self.create_namespace(format!("more-{}", self.made)).await
            }
            _ if names.len() > FIRST_NAMESPACES / 2 => self.delete_namespace(&namespace).await,
            _ => Ok(()),
        }
    }

    async fn create_namespace(&mut self, name: String) -> Result<(), HarnessError> {
        let Sizes { web, db, once } = Sizes::default();
        self.post("/api/v1/namespaces", &json!({"metadata": {"name": name}})).await?;
        for (path, object) in [
            ("api/v1", objects::service()),
            ("apis/apps/v1", with_history(objects::deployment(web))),
            ("apis/apps/v1", with_history(objects::stateful_set(db))),
            ("apis/batch/v1", objects::job(once)),
        ] {
            let kind = match path {
                "api/v1" => "services",
                "apis/batch/v1" => "jobs",
                _ if object.pointer("/metadata/name") == Some(&json!(WEB)) => "deployments",
                _ => "statefulsets",
            };
            self.post(&format!("/{path}/namespaces/{name}/{kind}"), &object).await?;
        }
        self.wanted.namespaces.insert(name, Inside::default());
        Ok(())
    }

    async fn delete_namespace(&mut self, name: &str) -> Result<(), HarnessError> {
        self.wanted.asked.push(json!({"resource": "*", "namespace": name}));
        self.wanted.namespaces.remove(name);
        self.wanted.deleted.push(name.to_owned());
        self.delete(&format!("/api/v1/namespaces/{name}")).await
    }

    async fn scale(
        &mut self,
        namespace: &str,
        name: &str,
        kind: &str,
        sizes: std::ops::Range<u32>,
    ) -> Result<(), HarnessError> {
        self.wanted.ask("pods", namespace, &format!("{name}-"));
        let path = format!("/apis/apps/v1/namespaces/{namespace}/{kind}/{name}");
        let replicas = self.dice.u32(sizes);
        self.patch(&path, &json!({"spec": {"replicas": replicas}})).await
    }

    /// A new image; after some of them the oldest revision is cleaned up.
    async fn update(
        &mut self,
        namespace: &str,
        name: &str,
        kind: &str,
        history: &str,
    ) -> Result<(), HarnessError> {
        self.wanted.ask("pods", namespace, &format!("{name}-"));
        let inside = self.wanted.namespaces.entry(namespace.to_owned()).or_default();
        inside.images += 1;
        let image = format!("registry.example/app:{}", inside.images + 1);
        if inside.images > REVISIONS {
            self.wanted.ask(history, namespace, &format!("{name}-"));
        }
        let containers = json!([{"name": "app", "image": image}]);
        let path = format!("/apis/apps/v1/namespaces/{namespace}/{kind}/{name}");
        self.patch(&path, &json!({"spec": {"template": {"spec": {"containers": containers}}}})).await
    }

    async fn add_job(&mut self, namespace: &str) -> Result<(), HarnessError> {
        let inside = self.wanted.namespaces.entry(namespace.to_owned()).or_default();
        inside.jobs += 1;
        let mut job = objects::job(2);
        job["metadata"]["name"] = json!(format!("{ONCE}-{}", inside.jobs));
        self.post(&format!("/apis/batch/v1/namespaces/{namespace}/jobs"), &job).await
    }

    /// The old one's endpoints go with it.
    async fn replace_service(&mut self, namespace: &str) -> Result<(), HarnessError> {
        self.wanted.ask("endpoints", namespace, WEB);
        self.wanted.ask("endpointslices", namespace, WEB);
        let path = format!("/api/v1/namespaces/{namespace}/services");
        self.delete(&format!("{path}/{WEB}")).await?;
        self.post(&path, &objects::service()).await
    }

    /// It makes a Job a minute, and keeps the last few.
    async fn add_cron(&mut self, namespace: &str) -> Result<(), HarnessError> {
        self.wanted.ask("jobs", namespace, CRON);
        self.wanted.ask("pods", namespace, CRON);
        self.wanted.namespaces.entry(namespace.to_owned()).or_default().cron = true;
        let job = json!({"spec": objects::job(1)["spec"]});
        let cron = json!({"metadata": {"name": CRON}, "spec": {"schedule": "* * * * *", "jobTemplate": job}});
        self.post(&format!("/apis/batch/v1/namespaces/{namespace}/cronjobs"), &cron).await
    }

    async fn post(&self, path: &str, object: &Value) -> Result<(), HarnessError> {
        self.ask(&Method::POST, path, "application/json", object, &[409]).await
    }

    async fn patch(&self, path: &str, change: &Value) -> Result<(), HarnessError> {
        self.ask(&Method::PATCH, path, "application/strategic-merge-patch+json", change, &[]).await
    }

    async fn delete(&self, path: &str) -> Result<(), HarnessError> {
        self.ask(&Method::DELETE, path, "application/json", &json!({}), &[404]).await
    }

    /// Asks until it is done. `done` are refusals that say that it was done before: an answer may have been lost.
    async fn ask(
        &self,
        method: &Method,
        path: &str,
        content: &str,
        body: &Value,
        done: &[u16],
    ) -> Result<(), HarnessError> {
        wait_for(&format!("{method} {path}"), DEADLINE, || async {
            let request = Request::builder().method(method).uri(path).header("content-type", content);
            let request = request.body(body.to_string().into_bytes()).map_err(|error| error.to_string())?;
            match self.client.request::<Value>(request).await {
                Err(kube::Error::Api(status)) if done.contains(&status.code) => Ok(()),
                other => other.map(drop).map_err(shown),
            }
        })
        .await
    }
}

fn shown(error: impl Display) -> String {
    error.to_string()
}

fn with_history(mut object: Value) -> Value {
    object["spec"]["revisionHistoryLimit"] = json!(REVISIONS);
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_in_the_judge_s_form_and_said_once() {
        let mut wanted = Wanted::default();
        for _ in 0..2 {
            wanted.ask("pods", "a", "web-");
        }
        wanted.ask("jobs", "a", CRON);
        assert_eq!(wanted.lines().lines().count(), 2);
        shoal_judge::Asked::parse(&wanted.lines()).unwrap();
    }
}
