//! People who create Websites, give them other themes, and delete them, at a steady pace.

use std::time::Duration;

use http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::GROUP;
use crate::HarnessError;
use crate::load::namespaces;

const THEMES: u32 = 10;
const COLORS: [&str; 4] = ["aqua", "olive", "navy", "maroon"];

/// How much there is to do.
#[derive(Debug, Clone, Copy)]
pub struct Work {
    /// Namespaces that the Websites are in.
    pub namespaces: usize,
    /// Websites that exist before anything else happens.
    pub prefill: usize,
    /// Between two changes.
    pub pace: Duration,
}

/// People at work.
#[derive(Debug)]
pub struct Users {
    end: watch::Sender<bool>,
    task: JoinHandle<Result<Changed, HarnessError>>,
}

/// What they did.
#[derive(Debug, Default, Clone)]
pub struct Changed {
    /// Websites that are there.
    pub sites: Vec<(String, String)>,
    /// How many changes were made.
    pub changes: usize,
}

struct Crowd {
    client: Client,
    dice: fastrand::Rng,
    namespaces: Vec<String>,
    changed: Changed,
    made: u32,
}

// === impl Users ===

impl Users {
    /// Makes namespaces, themes and the first Websites, and goes on from there.
    pub async fn start(client: &Client, work: Work) -> Result<Self, HarnessError> {
        let namespaces = namespaces(work.namespaces);
        let (client, dice) = (client.clone(), fastrand::Rng::with_seed(7));
        let mut crowd = Crowd { client, dice, namespaces, changed: Changed::default(), made: 0 };
        crowd.begin(work.prefill).await?;
        let (end, ended) = watch::channel(false);
        Ok(Self { end, task: tokio::spawn(crowd.go_on(work.pace, ended)) })
    }

    /// Lets them stop.
    pub async fn end(self) -> Result<Changed, HarnessError> {
        let _ = self.end.send(true);
        self.task.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
    }
}

// === impl Crowd ===

impl Crowd {
    async fn begin(&mut self, prefill: usize) -> Result<(), HarnessError> {
        for namespace in &self.namespaces {
            self.ask(&Method::POST, "/api/v1/namespaces", &json!({"metadata": {"name": namespace}})).await?;
        }
        for number in 0..THEMES {
            let color = self.dice.choice(COLORS);
            let spec = json!({"color": color, "fontFamily": format!("Font {number}")});
            let theme = json!({"apiVersion": format!("{GROUP}/v1alpha1"), "kind": "Theme",
                "metadata": {"name": format!("theme-{number}")}, "spec": spec});
            self.ask(&Method::POST, &format!("/apis/{GROUP}/v1alpha1/themes"), &theme).await?;
        }
        for _ in 0..prefill {
            self.create().await?;
        }
        Ok(())
    }

    async fn go_on(
        mut self,
        pace: Duration,
        mut ended: watch::Receiver<bool>,
    ) -> Result<Changed, HarnessError> {
        while !*ended.borrow() {
            match self.dice.u32(0..10) {
                0..2 => self.create().await?,
                2 => self.delete().await?,
                _ => self.mutate().await?,
            }
            self.changed.changes += 1;
            tokio::select! {
                () = sleep(pace) => {}
                _ = ended.changed() => {}
            }
        }
        Ok(self.changed)
    }

    async fn create(&mut self) -> Result<(), HarnessError> {
        self.made += 1;
        let name = format!("site-{}", self.made);
        let Some(namespace) = self.dice.choice(&self.namespaces).cloned() else { return Ok(()) };
        let site = json!({"apiVersion": format!("{GROUP}/v1alpha1"), "kind": "Website",
            "metadata": {"name": name}, "spec": {"theme": self.theme()}});
        self.ask(&Method::POST, &path(&namespace, ""), &site).await?;
        self.changed.sites.push((namespace, name));
        Ok(())
    }

    async fn delete(&mut self) -> Result<(), HarnessError> {
        if self.changed.sites.is_empty() {
            return Ok(());
        }
        let (namespace, name) = self.changed.sites.swap_remove(self.dice.usize(0..self.changed.sites.len()));
        self.ask(&Method::DELETE, &path(&namespace, &name), &json!({})).await
    }

    async fn mutate(&mut self) -> Result<(), HarnessError> {
        let change = json!({"spec": {"theme": self.theme()}});
        let Some((namespace, name)) = self.dice.choice(&self.changed.sites) else { return Ok(()) };
        self.ask(&Method::PATCH, &path(namespace, name), &change).await
    }

    fn theme(&mut self) -> String {
        format!("theme-{}", self.dice.u32(0..THEMES))
    }

    async fn ask(&self, method: &Method, path: &str, body: &Value) -> Result<(), HarnessError> {
        let content =
            if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder().method(method).uri(path).header("content-type", content);
        let request = request
            .body(body.to_string().into_bytes())
            .map_err(|error| HarnessError::Answer { url: path.to_owned(), reason: error.to_string() })?;
        self.client.request::<Value>(request).await?;
        Ok(())
    }
}

fn path(namespace: &str, name: &str) -> String {
    let all = format!("/apis/{GROUP}/v1alpha1/namespaces/{namespace}/websites");
    if name.is_empty() { all } else { format!("{all}/{name}") }
}
