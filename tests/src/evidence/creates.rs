//! The creates that took effect, and what they add up to.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::BufRead;

use serde_json::Value;
use shoal_judge::{CutLine, Event, Object, read_events, read_mark};

/// Everything that was created, in the log's order. Only kinds whose bodies the audit policy records have an owner.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Creates(Vec<Created>);

/// One object that was created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    /// What it is; its name is absent if the server chose it.
    pub object: Object,
    /// Its controller.
    pub owner: Option<Owner>,
    /// The image of its first container, or of its template's; else empty.
    pub image: String,
    /// Through whose proxy it came; absent for who came past them.
    pub shard: Option<String>,
}

/// The controller among an object's owner references.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
}

/// A piece of work that asks for a number of objects.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Work {
    /// The namespace.
    pub namespace: String,
    /// The kind of the workload: `Deployment`, `StatefulSet` or `Job`.
    pub kind: String,
    /// The workload's name.
    pub name: String,
    /// What of it: of a `StatefulSet` one Pod by name, else all Pods of one image.
    pub part: String,
}

// === impl Creates ===

impl Creates {
    /// Reads a whole log.
    pub fn read(log: impl BufRead) -> Result<Self, CutLine> {
        let mut all = Vec::new();
        for event in read_events(log) {
            all.extend(Created::of(&event?));
        }
        Ok(Self(all))
    }

    /// Those of a resource, `pods` for example.
    pub fn of(&self, resource: &str) -> impl Iterator<Item = &Created> {
        self.0.iter().filter(move |it| it.object.resource == resource)
    }

    /// How many Pods were created for each piece of work, by the UID of the controller that they name. A
    /// Deployment's Pods name its `ReplicaSets`, so more than one UID there is more than one `ReplicaSet` of a template.
    pub fn pods(&self) -> BTreeMap<Work, BTreeMap<String, u64>> {
        let replica_sets = self.deployments();
        let mut made = BTreeMap::<_, BTreeMap<_, _>>::new();
        for pod in self.of("pods") {
            let Some(owner) = &pod.owner else { continue };
            let work = pod.work(&replica_sets).unwrap_or_else(|| pod.part_of(&owner.kind, &owner.name));
            *made.entry(work).or_default().entry(owner.uid.clone()).or_default() += 1;
        }
        made
    }

    /// How many `ReplicaSets` were created for each template of a Deployment, by the Deployment's UID.
    pub fn replica_sets(&self) -> BTreeMap<Work, BTreeMap<String, u64>> {
        let mut made = BTreeMap::<_, BTreeMap<_, _>>::new();
        for set in self.of("replicasets") {
            let Some(owner) = &set.owner else { continue };
            let work = set.part_of(&owner.kind, &owner.name);
            *made.entry(work).or_default().entry(owner.uid.clone()).or_default() += 1;
        }
        made
    }

    /// In which namespaces each shard created Pods; under the empty name those that came past the proxies.
    pub fn namespaces_of_pods(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut all = BTreeMap::<_, BTreeSet<_>>::new();
        for pod in self.of("pods") {
            let shard = pod.shard.clone().unwrap_or_default();
            all.entry(shard).or_default().extend(pod.object.namespace.clone());
        }
        all
    }

    /// The Deployment of each `ReplicaSet`, by namespace and name.
    fn deployments(&self) -> BTreeMap<(&str, &str), &str> {
        let sets = self.of("replicasets");
        sets.filter_map(|set| Some((set.key()?, set.owner.as_ref()?.name.as_str()))).collect()
    }
}

// === impl Created ===

impl Created {
    /// The object that an event created; nothing for other events.
    fn of(event: &Event) -> Option<Self> {
        let is_object = event.object_ref.as_ref().is_some_and(|it| it.subresource.is_empty());
        let created = event.verb == "create" && event.is_final() && event.took_effect();
        if !is_object || !created || event.is_dry_run() {
            return None;
        }
        let body = event.request_object.as_ref();
        Some(Self {
            object: Object::of(event)?,
            owner: body.and_then(Owner::of),
            image: body.and_then(image).unwrap_or_default().to_owned(),
            shard: read_mark(&event.user_agent).ok().map(|mark| mark.shard.to_owned()),
        })
    }

    fn key(&self) -> Option<(&str, &str)> {
        Some((self.object.namespace.as_deref()?, self.object.name.as_deref()?))
    }

    /// The work that a Pod was created for, where its controller works for another one.
    fn work(&self, deployments: &BTreeMap<(&str, &str), &str>) -> Option<Work> {
        let (owner, namespace) = (self.owner.as_ref()?, self.object.namespace.as_deref()?);
        let deployment = deployments.get(&(namespace, owner.name.as_str()))?;
        (owner.kind == "ReplicaSet").then(|| self.part_of("Deployment", deployment))
    }

    fn part_of(&self, kind: &str, name: &str) -> Work {
        let part = match kind {
            "StatefulSet" => self.object.name.clone().unwrap_or_default(),
            _ => self.image.clone(),
        };
        Work::new(self.object.namespace.as_deref().unwrap_or_default(), kind, name, &part)
    }
}

// === impl Owner ===

impl Owner {
    fn of(body: &Value) -> Option<Self> {
        let references = body.pointer("/metadata/ownerReferences")?.as_array()?;
        let owner =
            references.iter().find(|it| it.get("controller").and_then(Value::as_bool) == Some(true))?;
        let field = |name| owner.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        Some(Self { kind: field("kind"), name: field("name"), uid: field("uid") })
    }
}

fn image(body: &Value) -> Option<&str> {
    let paths = ["/spec/containers/0/image", "/spec/template/spec/containers/0/image"];
    paths.iter().find_map(|path| body.pointer(path)).and_then(Value::as_str)
}

// === impl Work ===

impl Work {
    /// The fields in order.
    pub fn new(namespace: &str, kind: &str, name: &str, part: &str) -> Self {
        let [namespace, kind, name, part] = [namespace, kind, name, part].map(str::to_owned);
        Self { namespace, kind, name, part }
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} {} ({})", self.namespace, self.kind, self.name, self.part)
    }
}

/// How what was made for each piece of work differs from what was asked for: exactly so many, all for one UID. A
/// sentence for each difference.
pub fn differences(asked: &BTreeMap<Work, u64>, made: &BTreeMap<Work, BTreeMap<String, u64>>) -> Vec<String> {
    let missing = asked.iter().filter(|(work, _)| !made.contains_key(work));
    let mut all: Vec<_> =
        missing.map(|(work, count)| format!("{work}: asked for {count}, made none")).collect();
    for (work, by_uid) in made {
        let count = asked.get(work).copied().unwrap_or(0);
        if !by_uid.values().eq([&count]) {
            all.push(format!("{work}: asked for {count}, made {by_uid:?}"));
        }
    }
    all
}

#[cfg(test)]
mod tests;
