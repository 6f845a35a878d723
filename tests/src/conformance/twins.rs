//! Writes that are really done: the life of one object of each kind, once straight and once through each proxy, under
//! the same name.

use http::StatusCode;
use serde_json::{Value, json};

use super::compare::{self, Mismatch};
use super::difference::Difference;
use super::discovery::Resource;
use super::form::Form;
use super::ground::{Ground, Way};
use super::mask;
use super::pair::{About, Ask, Pair};
use super::report::Report;
use super::run::Outcome;
use super::seeds::Seeds;
use crate::HarnessError;
use crate::raw::Answer;

/// New in each life.
const OF_THE_LIFE: [&str; 7] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "lastTransitionTime",
    "lastUpdateTime",
    "time",
];
const PATCHES: [(&str, &str); 3] = [
    ("application/merge-patch+json", r#"{"metadata":{"annotations":{"merge":"1"}}}"#),
    ("application/strategic-merge-patch+json", r#"{"metadata":{"annotations":{"strategic":"1"}}}"#),
    ("application/json-patch+json", r#"[{"op":"add","path":"/metadata/labels/patched","value":"yes"}]"#),
];

/// One object and its life.
struct Twin<'a> {
    resource: &'a Resource,
    about: About,
    object: Value,
}

/// Every kind that can be created and deleted and of which there is an example.
pub(super) async fn all(ground: &Ground, report: &mut Report) -> Result<(), HarnessError> {
    for resource in &ground.resources {
        // A namespace ends only where its controller runs.
        let ends = !resource.subresources.iter().any(|subresource| subresource.name == "finalize");
        let Some(seed) = ground.seeds.of(resource).filter(|_| ends && resource.has("delete")) else {
            continue;
        };
        let twin = Twin::new(ground, resource, seed);
        let direct = twin.live(&ground.direct).await?;
        twin.bury(ground).await?;
        for view in &ground.views {
            let lived = twin.live(&view.way).await?;
            twin.bury(ground).await?;
            for ((pair, expected), (_, seen)) in direct.iter().zip(lived) {
                let result = compare::check(pair, &view.shard, &straight(expected), &masked(&seen));
                let result = result.map(|_| vec![Difference::Twin]);
                report.add(&Outcome::of(pair.clone(), view.title, result));
            }
        }
    }
    Ok(())
}

fn straight(answer: &Answer) -> compare::Direct {
    compare::Direct { answer: masked(answer), guide: None }
}

/// The uid is also in labels and selectors of some kinds.
fn masked(answer: &Answer) -> Answer {
    let mut body = answer.body.to_vec();
    let uid = answer.metadata().map(|metadata| metadata.uid).filter(|uid| !uid.is_empty());
    // Of what a deletecollection took away it is in the one item.
    if let Some(uid) = uid.or_else(|| mask::value(&body, "uid")) {
        mask::replace(&mut body, uid.as_bytes(), b'0');
    }
    mask::values(&mut body, &OF_THE_LIFE);
    let mut headers = answer.headers.clone();
    // It counts the digits of the version too.
    headers.remove(http::header::CONTENT_LENGTH);
    Answer { body: body.into(), headers, ..answer.clone() }
}

// === impl Twin ===

impl<'a> Twin<'a> {
    fn new(ground: &Ground, resource: &'a Resource, seed: &Value) -> Self {
        let [_, view] = &ground.views;
        let names = (0_u32..).map(|number| format!("twin-{number}"));
        let name = names.into_iter().find(|name| view.shard.owns(name)).unwrap_or_default();
        let namespace = ground.own.first().map(String::as_str).filter(|_| resource.namespaced);
        let about = About::object(resource, namespace.unwrap_or_default(), &name);
        let object = Seeds::object(seed, &about.namespace, &name);
        Self { resource, about, object }
    }

    async fn live(&self, way: &Way) -> Result<Vec<(Pair, Answer)>, HarnessError> {
        let (collection, path) = (self.resource.collection(&self.about.namespace), self.path());
        let mut life = Vec::new();
        let created =
            Ask::new("POST", &collection, Form::Json).carrying("application/json", self.object.to_string());
        let created = self.step(way, "real create", created, &mut life).await?;
        let mut changed: Value = serde_json::from_slice(&created.body).unwrap_or_default();
        changed["metadata"]["annotations"] = json!({"updated": "1"});
        let update = Ask::new("PUT", &path, Form::Json).carrying("application/json", changed.to_string());
        self.step(way, "real update", update, &mut life).await?;
        for (content_type, body) in PATCHES {
            let change = Ask::new("PATCH", &path, Form::Json).carrying(content_type, body);
            self.step(way, "real patch", change, &mut life).await?;
        }
        self.step(way, "real patch", self.apply(&path), &mut life).await?;
        self.step(way, "real get", Ask::new("GET", &path, Form::Json), &mut life).await?;
        for subresource in
            self.resource.subresources.iter().filter(|one| one.name == "status" && one.has("patch"))
        {
            let path = format!("{path}/{}", subresource.name);
            let change = Ask::new("PATCH", path, Form::Json)
                .carrying("application/merge-patch+json", r#"{"status":{}}"#);
            self.step(way, "real patch", change, &mut life).await?;
        }
        let delete = if self.resource.has("deletecollection") && self.resource.namespaced {
            Ask::new("DELETE", &collection, Form::Json).query("labelSelector=patched%3Dyes")
        } else {
            Ask::new("DELETE", &path, Form::Json)
        };
        self.step(way, "real delete", delete, &mut life).await?;
        self.step(way, "real delete", Ask::new("DELETE", &path, Form::Json), &mut life).await?;
        Ok(life)
    }

    fn path(&self) -> String {
        format!("{}/{}", self.resource.collection(&self.about.namespace), self.about.name)
    }

    fn apply(&self, path: &str) -> Ask {
        let applied = json!({"apiVersion": self.resource.api_version(), "kind": self.resource.kind,
            "metadata": {"name": self.about.name, "labels": {"applied": "yes"}}});
        let ask = Ask::new("PATCH", path, Form::Json).query("fieldManager=conformance&force=true");
        ask.carrying("application/apply-patch+yaml", applied.to_string())
    }

    async fn step(
        &self,
        way: &Way,
        verb: &'static str,
        ask: Ask,
        life: &mut Vec<(Pair, Answer)>,
    ) -> Result<Answer, HarnessError> {
        let answer = way.send(&ask, false).await?;
        life.push((Pair::same(verb, Form::Json, ask), answer.clone()));
        Ok(answer)
    }

    /// Protection of volumes keeps some of them.
    async fn bury(&self, ground: &Ground) -> Result<(), HarnessError> {
        let path = self.path();
        if ground.get(&path).await?.code == StatusCode::NOT_FOUND {
            return Ok(());
        }
        let free = Ask::new("PATCH", &path, Form::Json).without("user-agent");
        let free = free.carrying("application/merge-patch+json", r#"{"metadata":{"finalizers":null}}"#);
        ground.direct.send(&free, false).await?;
        ground.direct.send(&Ask::new("DELETE", &path, Form::Json).without("user-agent"), false).await?;
        let left = ground.get(&path).await?;
        if left.code == StatusCode::NOT_FOUND {
            return Ok(());
        }
        Err(HarnessError::Answer { url: path, reason: format!("it stays: {}", compare::brief(&left)) })
    }
}

// === impl Outcome ===

impl Outcome {
    /// Of one proxy.
    pub(super) fn of(pair: Pair, title: &'static str, result: Result<Vec<Difference>, Mismatch>) -> Self {
        Self { pair, results: vec![(title, result)], next: None }
    }
}
