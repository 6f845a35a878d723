//! What is asked: one API server with an object of each kind in several namespaces, and two proxies in front of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use super::discovery::{self, Resource};
use super::form::Form;
use super::owner::Shard;
use super::pair::{About, Ask};
use super::seeds::Seeds;
use crate::raw::{Answer, Http, Kept, RawClient};
use crate::ring::{self, HUB};
use crate::{ControlPlane, HarnessError, Options, Proxy, ProxyArgs, User, wait_for};

const DEADLINE: Duration = Duration::from_mins(2);
/// Namespaces of each side.
const NAMESPACES: usize = 2;
/// From 128 KiB on the API server compresses; two of these are more.
const LARGE: usize = 90 << 10;
/// Stands for an answer that never came whole; no server sends it.
pub(super) const NO_ANSWER: StatusCode = StatusCode::HTTP_VERSION_NOT_SUPPORTED;
/// What the first object of each kind is called.
const NAME: &str = "conf";

/// The shard of a ring of one: it owns everything, so that nothing is foreign.
const WHOLE: Shard = Shard { name: "kcm-0", slots: 0..=255 };
/// The second shard of the ring of three in `examples/`.
const THIRD: Shard = Shard { name: "kcm-1", slots: 86..=170 };

/// A way to the API server. Calls and watches have connections of their own, so that neither waits for the other.
#[derive(Debug, Clone)]
pub(super) struct Way {
    pub(super) client: RawClient,
    calls: Kept,
    watches: Kept,
}

/// One proxy under test.
#[derive(Debug)]
pub(super) struct View {
    /// As failures name it.
    pub(super) title: &'static str,
    pub(super) shard: Shard,
    pub(super) way: Way,
    _proxy: Proxy,
}

/// Everything that is asked.
#[derive(Debug)]
pub(super) struct Ground {
    // Dropped in this order: clients before the API server.
    pub(super) views: [View; 2],
    pub(super) direct: Way,
    pub(super) resources: Vec<Resource>,
    pub(super) seeds: Seeds,
    /// Of the second view's shard, then of others.
    pub(super) own: Vec<String>,
    pub(super) foreign: Vec<String>,
    pub(super) plane: ControlPlane,
}

// === impl Way ===

impl Way {
    async fn new(client: RawClient) -> Result<Self, HarnessError> {
        let (calls, watches) = (client.keep().await?, client.keep().await?);
        Ok(Self { client, calls, watches })
    }

    /// Sends a request and reads the whole answer; a watch ends by its own time.
    ///
    /// That there is no whole answer is something to compare like any other.
    pub(super) async fn send(&self, ask: &Ask, is_watch: bool) -> Result<Answer, HarnessError> {
        let request = ask.request()?;
        let answer = match ask.http {
            Http::One => self.client.send_over(ask.http, request).await,
            Http::Two if is_watch => self.watches.send(request).await,
            Http::Two => self.calls.send(request).await,
        };
        Ok(answer.unwrap_or_else(|error| broken(&error)))
    }
}

// === impl View ===

impl View {
    async fn start(
        title: &'static str,
        plane: &ControlPlane,
        shard: Shard,
        config: &Path,
    ) -> Result<Self, HarnessError> {
        let dir = plane.dir().join(title);
        fs::create_dir_all(&dir).map_err(HarnessError::io("make", &dir))?;
        let upstreams = [(HUB, plane.kubeconfig(&User::ADMIN)?)];
        let args = ProxyArgs { shard: shard.name, config, upstreams: &upstreams, dir: &dir };
        let proxy = Proxy::start(args).await?;
        let way = Way::new(RawClient::of_proxy(&proxy, plane, &User::ADMIN)?).await?;
        Ok(Self { title, shard, way, _proxy: proxy })
    }
}

// === impl Ground ===

impl Ground {
    /// Starts everything in `dir` and creates the objects.
    pub(super) async fn start(dir: &Path) -> Result<Self, HarnessError> {
        // Pods need no service account then.
        let flags = vec!["--disable-admission-plugins=ServiceAccount".to_owned()];
        let plane = ControlPlane::start(dir, Options { flags, ..Options::default() }).await?;
        let views = [
            View::start("ring-of-one", &plane, WHOLE, &whole(plane.dir())?).await?,
            View::start("ring-of-three", &plane, THIRD, &ring::example()).await?,
        ];
        let direct = Way::new(RawClient::direct(&plane, &User::ADMIN)?).await?;
        let seeds = Seeds::read()?;
        let namespaces = |own: bool| {
            let names = (0..).map(|number| format!("conf-{number}"));
            names.filter(|name| THIRD.owns(name) == own).take(NAMESPACES).collect::<Vec<_>>()
        };
        let (own, foreign) = (namespaces(true), namespaces(false));
        let mut ground = Self { views, direct, resources: Vec::new(), seeds, own, foreign, plane };
        ground.define().await?;
        ground.resources = discovery::resources(&ground.direct.calls).await?;
        ground.fill().await?;
        Ok(ground)
    }

    /// The custom resources, until they are served and discovered.
    async fn define(&self) -> Result<(), HarnessError> {
        for crd in &self.seeds.crds {
            self.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd).await?;
        }
        wait_for("the API server to serve the custom resources", DEADLINE, || async {
            let served = discovery::resources(&self.direct.calls).await.map_err(|error| error.to_string())?;
            let custom = served.iter().filter(|resource| resource.group == "conformance.shoal.dev").count();
            if custom == 3 { Ok(()) } else { Err(format!("{custom} of 3 are served")) }
        })
        .await?;
        let gadgets = Ask::new("GET", "/apis/conformance.shoal.dev/v1/gadgets", Form::Json);
        let fleets = Ask::new("GET", "/apis/conformance.shoal.dev/v1/fleets", Form::Json);
        wait_for("the custom resources to be listed", DEADLINE, || async {
            for ask in [&gadgets, &fleets] {
                let answer = self.direct.send(ask, false).await.map_err(|error| error.to_string())?;
                if answer.code != StatusCode::OK {
                    return Err(answer.code.to_string());
                }
            }
            Ok(())
        })
        .await
    }

    async fn fill(&self) -> Result<(), HarnessError> {
        for namespace in self.own.iter().chain(&self.foreign) {
            let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": {"app": "x"}}});
            self.create("/api/v1/namespaces", &object).await?;
        }
        for resource in
            self.resources.iter().filter(|resource| resource.has("list") && resource.has("create"))
        {
            let Some(seed) = self.seeds.of(resource) else { continue };
            if !resource.namespaced {
                self.seed(resource, seed, "", NAME).await?;
                continue;
            }
            for namespace in self.own.iter().chain(&self.foreign) {
                self.seed(resource, seed, namespace, NAME).await?;
                self.seed(resource, seed, namespace, "conf-2").await?;
            }
        }
        for namespace in [&self.own, &self.foreign].into_iter().filter_map(|names| names.first()) {
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large"}, "data": {"x": "x".repeat(LARGE)}});
            self.create(&format!("/api/v1/namespaces/{namespace}/configmaps"), &object).await?;
        }
        Ok(())
    }

    /// Another version of the same kind may have created it before.
    async fn seed(
        &self,
        resource: &Resource,
        seed: &Value,
        namespace: &str,
        name: &str,
    ) -> Result<(), HarnessError> {
        let object = Seeds::object(seed, namespace, name);
        let answer = self.post(&resource.collection(namespace), &object).await?;
        match answer.code {
            StatusCode::CREATED | StatusCode::CONFLICT => Ok(()),
            _ => Err(unexpected(&resource.collection(namespace), &answer)),
        }
    }

    async fn create(&self, path: &str, object: &Value) -> Result<(), HarnessError> {
        let answer = self.post(path, object).await?;
        if answer.code == StatusCode::CREATED { Ok(()) } else { Err(unexpected(path, &answer)) }
    }

    async fn post(&self, path: &str, object: &Value) -> Result<Answer, HarnessError> {
        let ask = Ask::new("POST", path, Form::Json).without("user-agent");
        self.direct.send(&ask.carrying("application/json", object.to_string()), false).await
    }

    /// What is there of a kind, as the server lists it: an object of the second shard and one that is not.
    pub(super) async fn existing(&self, resource: &Resource) -> Result<Vec<About>, HarnessError> {
        let answer = self.get(&resource.collection("")).await?;
        let [_, view] = &self.views;
        let mut found: Vec<About> = Vec::new();
        for item in answer.items().unwrap_or_default() {
            let about = About::object(resource, &item.namespace, &item.name);
            let is_new = |one: &About| view.shard.owns(one.key()) != view.shard.owns(about.key());
            if found.len() < 2 && found.iter().all(is_new) {
                found.push(about);
            }
        }
        Ok(found)
    }

    /// A JSON answer of the API server itself.
    pub(super) async fn get(&self, path: &str) -> Result<Answer, HarnessError> {
        self.direct.send(&Ask::new("GET", path, Form::Json), false).await
    }
}

// === impl About ===

impl About {
    /// An object by its name.
    pub(super) fn object(resource: &Resource, namespace: &str, name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::collection(resource, namespace) }
    }

    /// A collection.
    pub(super) fn collection(resource: &Resource, namespace: &str) -> Self {
        Self {
            group: resource.group.clone(),
            resource: resource.plural.clone(),
            namespace: namespace.to_owned(),
            ..Self::default()
        }
    }
}

/// The ring of `examples/` with one shard that owns every slot.
fn whole(dir: &Path) -> Result<PathBuf, HarnessError> {
    let example = ring::example().join("ring.yaml");
    let text = fs::read_to_string(&example).map_err(HarnessError::io("read", &example))?;
    let text = text.replace("shards: 3", "shards: 1");
    let map = "---\napiVersion: mesh.shoal.dev/v1alpha1\nkind: ShardMap\nmetadata: {name: kcm, namespace: kube-system}\n\
               spec:\n  version: 1\n  keying: {algorithm: XXH3-64, slots: 256}\n  slots:\n  \
               - {first: 0, last: 255, owner: kcm-0, epoch: 1, state: Owned}\n";
    let path = dir.join("ring-of-one.yaml");
    fs::write(&path, text + map).map_err(HarnessError::io("write", &path))?;
    Ok(path)
}

/// The numbers of streams differ each time.
fn broken(error: &HarnessError) -> Answer {
    let text: String = error.to_string().chars().filter(|letter| !letter.is_ascii_digit()).collect();
    Answer { code: NO_ANSWER, headers: HeaderMap::new(), body: text.into() }
}

fn unexpected(path: &str, answer: &Answer) -> HarnessError {
    HarnessError::Answer { url: path.to_owned(), reason: super::compare::brief(answer) }
}
