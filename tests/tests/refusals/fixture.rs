//! The same objects twice: of the shard that is asked, and of a sister.

use http::{Request, StatusCode};
use serde_json::{Value, json};
use shoal_tests::load::names_in_slot;
use shoal_tests::protobuf::{ObjectMeta, message, pack};
use shoal_tests::raw::{Answer, Encoding, RawClient};
use shoal_tests::{ControlPlane, User, widgets};

use crate::Attempt;
use crate::forms::{At, Content};

/// A kind of object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) resource: &'static str,
    /// As its objects say it, `Pod`.
    pub(crate) type_name: &'static str,
    pub(crate) namespaced: bool,
}

/// Objects that belong to one shard.
#[derive(Debug)]
pub(crate) struct Side {
    /// Their namespace, and the name of those that are in none.
    pub(crate) key: String,
    /// A second such key, for creates.
    pub(crate) other: String,
}

/// Both sides and the way to the API server.
pub(crate) struct Fixture {
    pub(crate) direct: RawClient,
    pub(crate) own: Side,
    pub(crate) foreign: Side,
}

/// Name of the namespaced objects.
const NAME: &str = "web";

const fn kind(
    group: &'static str,
    resource: &'static str,
    type_name: &'static str,
    namespaced: bool,
) -> Kind {
    Kind { group, version: "v1", resource, type_name, namespaced }
}

/// In an order in which they can be created.
pub(crate) const KINDS: [Kind; 8] = [
    kind("", "namespaces", "Namespace", false),
    kind("", "nodes", "Node", false),
    kind("rbac.authorization.k8s.io", "clusterroles", "ClusterRole", false),
    kind("", "serviceaccounts", "ServiceAccount", true),
    kind("", "configmaps", "ConfigMap", true),
    kind("", "pods", "Pod", true),
    kind("apps", "deployments", "Deployment", true),
    kind("test.shoal.dev", "widgets", "Widget", true),
];

// === impl Kind ===

impl Kind {
    pub(crate) fn is_custom(&self) -> bool {
        self.resource == "widgets"
    }

    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The path of its collection; the namespace is left out where it has none.
    pub(crate) fn collection(&self, namespace: &str) -> String {
        let root = if self.group.is_empty() { "/api" } else { "/apis" };
        let (version, resource) = (self.api_version(), self.resource);
        if self.namespaced {
            format!("{root}/{version}/namespaces/{namespace}/{resource}")
        } else {
            format!("{root}/{version}/{resource}")
        }
    }

    pub(crate) fn object(&self, side: &Side) -> String {
        format!("{}/{}", self.collection(&side.key), self.name(side))
    }

    pub(crate) fn name<'a>(&self, side: &'a Side) -> &'a str {
        if self.namespaced { NAME } else { &side.key }
    }

    /// An object that the API server takes.
    fn example(&self, name: &str) -> Value {
        let pod = json!({"serviceAccountName": NAME, "containers": [{"name": "c", "image": "c:1"}]});
        let labels = json!({"app": name});
        let template = json!({"metadata": {"labels": labels}, "spec": pod});
        let mut object = match self.resource {
            "pods" => json!({"spec": pod}),
            "deployments" => json!({"spec": {"selector": {"matchLabels": labels}, "template": template}}),
            "widgets" => widgets::widget(name, "v"),
            _ => json!({}),
        };
        object["apiVersion"] = self.api_version().into();
        object["kind"] = self.type_name.into();
        object["metadata"] = json!({"name": name});
        object
    }
}

// === impl Side ===

impl Side {
    fn in_slot(slot: u8) -> Self {
        let mut names = names_in_slot(slot);
        Self { key: names.next().unwrap(), other: names.next().unwrap() }
    }
}

// === impl Fixture ===

impl Fixture {
    /// Slot 0 is the first shard's and slot 255 the last one's.
    pub(crate) async fn create(plane: &ControlPlane) -> Self {
        widgets::install(&plane.client(&User::ADMIN).await.unwrap()).await.unwrap();
        let direct = RawClient::direct(plane, &User::ADMIN).unwrap();
        let fixture = Self { direct, own: Side::in_slot(0), foreign: Side::in_slot(255) };
        for side in [&fixture.own, &fixture.foreign] {
            for kind in &KINDS {
                let body = kind.example(kind.name(side)).to_string();
                let request =
                    Request::post(kind.collection(&side.key)).header("content-type", "application/json");
                let answer = fixture.direct.send(request.body(body.into_bytes()).unwrap()).await.unwrap();
                assert_eq!(answer.code, StatusCode::CREATED, "{}: {answer:?}", kind.resource);
            }
        }
        fixture
    }

    /// The body of an attempt, real for the API server wherever it serves the kind in that encoding.
    pub(crate) async fn body(&self, attempt: &Attempt<'_>) -> Vec<u8> {
        let Attempt { kind, form, side, content: encoding, dry_run, .. } = *attempt;
        if let Some(written) = form.written(kind, side, encoding, dry_run) {
            return written;
        }
        if encoding == Encoding::Protobuf && kind.is_custom() {
            let metadata = message(&[(1, kind.name(side).as_bytes())]);
            return pack(&kind.api_version(), kind.type_name, message(&[(1, &metadata)]));
        }
        let answer = match form.content {
            Content::New => self.try_create(kind, side, encoding).await,
            // Only a scale is another object than its owner.
            _ if form.at == At::Sub("scale") => {
                get(&self.direct, &form.target(kind, side, false), encoding).await
            }
            _ => get(&self.direct, &kind.object(side), encoding).await,
        };
        assert!(answer.code.is_success(), "{form:?} of {}: {answer:?}", kind.resource);
        answer.body.to_vec()
    }

    /// A create in a dry run shows the object in the encoding that is asked for.
    async fn try_create(&self, kind: &Kind, side: &Side, encoding: Encoding) -> Answer {
        let name = if kind.namespaced { "new" } else { &side.other };
        let request = Request::post(format!("{}?dryRun=All", kind.collection(&side.key)))
            .header("content-type", "application/json")
            .header("accept", encoding.media_type());
        let body = kind.example(name).to_string().into_bytes();
        self.direct.send(request.body(body).unwrap()).await.unwrap()
    }

    /// Names, uids and versions of all objects of a side, and of whatever else is in its collections.
    pub(crate) async fn snapshot(&self, side: &Side) -> Vec<ObjectMeta> {
        let mut all = Vec::new();
        for kind in &KINDS {
            let answer = get(&self.direct, &kind.collection(&side.key), Encoding::Json).await;
            let is_ours =
                |item: &ObjectMeta| kind.namespaced || [&side.key, &side.other].contains(&&item.name);
            all.extend(answer.items().unwrap().into_iter().filter(is_ours));
        }
        all
    }
}

/// A GET in an encoding.
pub(crate) async fn get(client: &RawClient, target: &str, accept: Encoding) -> Answer {
    let request = Request::get(target).header("accept", accept.media_type());
    client.send(request.body(Vec::new()).unwrap()).await.unwrap()
}
