//! Three config maps of the shard that is asked, among many of another.

use http::{Request, StatusCode};
use serde_json::{Value, json};
use shoal_tests::load::names_in_slot;
use shoal_tests::raw::{Answer, RawClient};
use shoal_tests::{ControlPlane, Options, RunDir, Shards, User};

/// Of the other shard.
pub(crate) const MANY: usize = 40;
pub(crate) const OWN: usize = 3;
/// Told apart by it in the audit log.
pub(crate) const AGENT: &str = "isolation/1";

pub(crate) struct Ground {
    // Dropped in this order: clients before the API server.
    pub(crate) view: RawClient,
    pub(crate) direct: RawClient,
    _shards: Shards,
    pub(crate) plane: ControlPlane,
    pub(crate) own: String,
    /// Before and behind the own one in the order of a list, so that pages begin and end without own objects.
    pub(crate) foreign: [String; 2],
}

// === impl Ground ===

impl Ground {
    pub(crate) async fn start(dir: &RunDir) -> Self {
        let plane = ControlPlane::start(dir.path(), Options::default()).await.unwrap();
        let shards = Shards::start(&plane, &[plane.kubeconfig(&User::ADMIN).unwrap()]).await.unwrap();
        let direct = RawClient::direct(&plane, &User::ADMIN).unwrap();
        let view = RawClient::of_proxy(&shards.proxies[0], &plane, &User::ADMIN).unwrap();
        // Slot 0 is the first shard's, slot 255 the last one's.
        let own = names_in_slot(0).next().unwrap();
        let before = names_in_slot(255).find(|name| *name < own).unwrap();
        let behind = names_in_slot(255).find(|name| *name > own).unwrap();
        let ground = Self { view, direct, _shards: shards, plane, own, foreign: [before, behind] };
        ground.fill().await;
        ground
    }

    async fn fill(&self) {
        for namespace in self.foreign.iter().chain([&self.own]) {
            let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            assert_eq!(self.post("/api/v1/namespaces", &object).await.code, StatusCode::CREATED);
            let count = if *namespace == self.own { OWN } else { MANY / 2 };
            for number in 0..count {
                self.config_map(namespace, &format!("cm-{number:02}")).await;
            }
        }
    }

    /// Straight at the API server.
    pub(crate) async fn config_map(&self, namespace: &str, name: &str) -> Answer {
        let metadata = json!({"name": name, "labels": {"tenant": "one"}});
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        let answer = self.post(&format!("/api/v1/namespaces/{namespace}/configmaps"), &object).await;
        assert_eq!(answer.code, StatusCode::CREATED, "{answer:?}");
        answer
    }

    async fn post(&self, path: &str, object: &Value) -> Answer {
        let request = Request::post(path).header("content-type", "application/json");
        self.direct.send(request.body(object.to_string().into_bytes()).unwrap()).await.unwrap()
    }

    /// The same request straight and through the shard.
    pub(crate) async fn both(&self, method: &str, target: &str, headers: &[(&str, &str)]) -> [Answer; 2] {
        let request = || {
            let mut request = Request::builder().method(method).uri(target).header("user-agent", AGENT);
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            request.body(Vec::new()).unwrap()
        };
        [self.direct.send(request()).await.unwrap(), self.view.send(request()).await.unwrap()]
    }

    pub(crate) async fn see(&self, method: &str, target: &str) -> Answer {
        let request = Request::builder().method(method).uri(target).header("user-agent", AGENT);
        self.view.send(request.body(Vec::new()).unwrap()).await.unwrap()
    }
}

/// The body, which is JSON.
pub(crate) fn json_of(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).unwrap()
}
