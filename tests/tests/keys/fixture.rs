//! Three shards over two clusters: one whose API server cuts lists by uid, and one that does not.

use std::path::{Path, PathBuf};

use http::{Request, StatusCode};
use serde_json::{Value, json};
use shoal_judge::{Case, Judge, slot_of, slot_of_uid};
use shoal_tests::protobuf::ObjectMeta;
use shoal_tests::raw::{Answer, Encoding, RawClient};
use shoal_tests::ring::{self, HUB};
use shoal_tests::{ControlPlane, Options, Proxy, ProxyArgs, User, evidence, widgets};

/// A kind for each mode, with and without namespaces, built in and not. Nothing else is any shard's.
pub(crate) const RING: &str = r#"
apiVersion: mesh.shoal.dev/v1alpha1
kind: ShardedController
metadata: {name: kcm, namespace: kube-system}
spec:
  shards: 3
  resources:
  - {groups: [""], resources: [configmaps], mode: Sharded, key: name}
  - {groups: [rbac.authorization.k8s.io], resources: [clusterroles], mode: Sharded, key: name}
  - {groups: [""], resources: [secrets], mode: Sharded, key: cluster}
  - {groups: [apps, scheduling.k8s.io, test.shoal.dev], resources: ["*"], mode: Sharded, key: uid}
  - {groups: [apiextensions.k8s.io, apiregistration.k8s.io], resources: ["*"], mode: Sharded, key: uid}
  - {groups: ["*"], resources: ["*"], mode: Unsharded}
"#;

/// With answers, so that the judge sees every uid.
const AUDIT_POLICY: &str = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\n\
                            rules: [{level: RequestResponse, verbs: [create, update, patch, delete, deletecollection]}]\n";

/// Does in this test what no shard does; not the ring's user, so that the judge tells them apart.
const BESIDE: User = User::SINGLETONS;

/// One API server, and the ways to it.
pub(crate) struct Cluster {
    pub(crate) name: &'static str,
    pub(crate) plane: ControlPlane,
    pub(crate) direct: RawClient,
    /// Through each shard's proxy.
    pub(crate) views: Vec<RawClient>,
    /// In front of each path there.
    pub(crate) prefix: &'static str,
    /// Whether it heeds `shardSelector`.
    pub(crate) cuts: bool,
}

/// All that a test needs.
pub(crate) struct Fixture {
    pub(crate) clusters: Vec<Cluster>,
    pub(crate) proxies: Vec<Proxy>,
    config: PathBuf,
}

/// A kind of object: its version, its name and where it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) api_version: &'static str,
    pub(crate) name: &'static str,
    pub(crate) path: &'static str,
}

// === impl Fixture ===

impl Fixture {
    pub(crate) async fn start(dir: &Path) -> Self {
        let config = ring::changed(dir, |_| RING.to_owned()).unwrap();
        let mut planes = Vec::new();
        for (name, gate) in [(HUB, "true"), ("old", "false")] {
            let options = Options {
                name: name.to_owned(),
                feature_gates: vec![format!("ShardedListAndWatch={gate}")],
                audit_policy: AUDIT_POLICY.to_owned(),
                ..Options::default()
            };
            let plane = ControlPlane::start(dir, options).await.unwrap();
            widgets::install(&plane.client(&BESIDE).await.unwrap()).await.unwrap();
            planes.push((name, plane, gate == "true"));
        }
        let upstreams: Vec<(&str, PathBuf)> =
            planes.iter().map(|(name, plane, _)| (*name, plane.kubeconfig(&User::ADMIN).unwrap())).collect();
        let mut proxies = Vec::new();
        for shard in ["kcm-0", "kcm-1", "kcm-2"] {
            let args = ProxyArgs { shard, config: &config, upstreams: &upstreams, dir };
            proxies.push(Proxy::start(args).await.unwrap());
        }
        let clusters = planes.into_iter().map(|(name, plane, cuts)| Cluster {
            name,
            direct: RawClient::direct(&plane, &BESIDE).unwrap(),
            views: proxies
                .iter()
                .map(|proxy| RawClient::of_proxy(proxy, &plane, &User::ADMIN).unwrap())
                .collect(),
            prefix: if name == HUB { "" } else { "/clusters/old" },
            plane,
            cuts,
        });
        Self { clusters: clusters.collect(), proxies, config }
    }

    pub(crate) fn hub(&self) -> &Cluster {
        &self.clusters[0]
    }

    /// How many foreign objects the proxies had to leave out so far.
    pub(crate) async fn hidden(&self) -> f64 {
        let mut hidden = 0.0;
        for proxy in &self.proxies {
            hidden += proxy.metrics().await.unwrap().sum("shoal_hidden_objects_total", &[]);
        }
        hidden
    }

    /// Nothing was written past its owner; of the objects that their uid gives an owner, `created` came into being.
    pub(crate) fn judge(&self, created: u64) {
        let text = |file: &str| std::fs::read_to_string(self.config.join(file)).unwrap();
        let ring = shoal_judge::Ring::parse(&text("ring.yaml")).unwrap();
        let owners = evidence::owners(&self.config).unwrap();
        let writers = vec![User::ADMIN.name.to_owned()];
        let mut judge =
            Judge::new(Case { ring, owners, writers, asked: None, orphan_budget: None, adopted: false });
        for cluster in &self.clusters {
            judge.read(cluster.name, evidence::snapshot(&cluster.plane.audit_log()).unwrap().as_slice());
        }
        let report = judge.finish();
        assert!(report.is_clean(), "{report}");
        assert_eq!(report.unproved, created, "{report}");
        assert!(report.judged > 50, "{report}");
    }
}

// === impl Cluster ===

impl Cluster {
    /// A list as each shard sees it is what the shard owns of the whole, in the same order; `owner` knows whose an object
    /// is. The same of the initial events of a watch. Returns how many objects there are.
    pub(crate) async fn is_divided(
        &self,
        path: &str,
        accept: Encoding,
        owner: impl Fn(&ObjectMeta) -> usize,
    ) -> usize {
        let watch =
            "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
        let (list, watch) = (format!("{path}?limit=1000"), format!("{path}?{watch}"));
        let (listed, watched) =
            (self.list(None, &list, accept).await, self.watch(None, &watch, accept).await);
        assert_eq!(listed.len(), watched.len(), "{path}");
        for shard in 0..self.views.len() {
            let own = |all: &[ObjectMeta]| -> Vec<ObjectMeta> {
                all.iter().filter(|object| owner(object) == shard).cloned().collect()
            };
            let what = format!("kcm-{shard} in {} {accept:?} {path}", self.name);
            assert_eq!(self.list(Some(shard), &list, accept).await, own(&listed), "{what}");
            assert_eq!(self.watch(Some(shard), &watch, accept).await, own(&watched), "{what}, watch");
        }
        listed.len()
    }

    /// The items of a list, by a shard or directly.
    pub(crate) async fn list(&self, shard: Option<usize>, path: &str, accept: Encoding) -> Vec<ObjectMeta> {
        let answer = self.request(shard, "GET", path, accept, None).await;
        assert_eq!(answer.code, StatusCode::OK, "{path}: {answer:?}");
        answer.items().unwrap()
    }

    async fn watch(&self, shard: Option<usize>, path: &str, accept: Encoding) -> Vec<ObjectMeta> {
        let (client, path) = self.way(shard, path);
        let request = Request::get(path).header("accept", accept.media_type()).body(Vec::new()).unwrap();
        let (mut watch, mut objects) = (client.watch(request).await.unwrap(), Vec::new());
        loop {
            match watch.next().await.unwrap().unwrap() {
                (kind, object) if kind == "ADDED" => objects.push(object),
                (kind, _) => {
                    assert_eq!(kind, "BOOKMARK");
                    return objects;
                }
            }
        }
    }

    /// Any request, by a shard or directly; a body comes with its type.
    pub(crate) async fn request(
        &self,
        shard: Option<usize>,
        method: &str,
        path: &str,
        accept: Encoding,
        body: Option<(&str, Vec<u8>)>,
    ) -> Answer {
        let (client, path) = self.way(shard, path);
        let request = Request::builder().method(method).uri(path).header("accept", accept.media_type());
        let (request, body) = match body {
            Some((content_type, body)) => (request.header("content-type", content_type), body),
            None => (request, Vec::new()),
        };
        client.send(request.body(body).unwrap()).await.unwrap()
    }

    /// The same in JSON.
    pub(crate) async fn json(&self, shard: usize, method: &str, path: &str, body: &Value) -> Answer {
        let content_type = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let body = Some((content_type, body.to_string().into_bytes()));
        self.request(Some(shard), method, path, Encoding::Json, body).await
    }

    fn way(&self, shard: Option<usize>, path: &str) -> (&RawClient, String) {
        match shard {
            Some(shard) => (&self.views[shard], format!("{}{path}", self.prefix)),
            None => (&self.direct, path.to_owned()),
        }
    }
}

// === impl Kind ===

impl Kind {
    /// An object of the kind; what it needs beside its metadata the API server takes as it is given here.
    pub(crate) fn object(&self, metadata: Value) -> Value {
        let mut object = match self.name {
            "Deployment" => {
                let labels = json!({"app": "a"});
                let pod = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "c:1"}]}});
                json!({"spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": pod}})
            }
            "PriorityClass" => json!({"value": 7}),
            _ => json!({}),
        };
        object["apiVersion"] = self.api_version.into();
        object["kind"] = self.name.into();
        object["metadata"] = metadata;
        object
    }
}

/// The number of the shard that owns a slot under the example's map.
pub(crate) fn owner(slot: u8) -> usize {
    match slot {
        0..=85 => 0,
        86..=170 => 1,
        171.. => 2,
    }
}

pub(crate) fn owner_of_name(cluster: &Cluster, name: &str) -> usize {
    owner(slot_of(cluster.name, name))
}

pub(crate) fn owner_of_uid(object: &ObjectMeta) -> usize {
    owner(slot_of_uid(&object.uid))
}

/// The refusal of what another shard owns.
pub(crate) fn assert_foreign(answer: &Answer, code: u16, field: &str, what: &str) {
    assert_refused(answer, code, "ForeignSlot", Some(field), what);
}

pub(crate) fn assert_refused(answer: &Answer, code: u16, reason: &str, field: Option<&str>, what: &str) {
    assert_eq!(answer.code, code, "{what}: {answer:?}");
    assert!(!answer.headers.contains_key("retry-after"), "{what}: {answer:?}");
    let causes = answer.status().unwrap().details.unwrap().causes.unwrap_or_default();
    let cause = causes.first().unwrap_or_else(|| panic!("{what}: {answer:?}"));
    assert_eq!((cause.reason.as_deref(), cause.field.as_deref()), (Some(reason), field), "{what}");
}
