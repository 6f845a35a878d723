//! Several API servers behind one proxy.

use http::{Method, StatusCode};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{ListParams, ObjectMeta, PostParams};
use kube::{Api, Client};
use shoal_judge::slot_of;
use shoal_tests::ring::{HUB, example};
use shoal_tests::scripted::client::Wire;
use shoal_tests::{ControlPlane, Options, Proxy, ProxyArgs, RunDir, User, kubeconfig};

/// The member's name.
const EAST: &str = "east";
/// The last slot of shard `kcm-0` in the example ring.
const LAST_OWNED: u8 = 85;

/// A cluster's API server, straight and through the proxy.
struct Cluster {
    direct: Client,
    through: Client,
    /// For what kube's client would ask again.
    wire: Wire,
    prefix: &'static str,
    token: String,
}

#[tokio::test]
async fn a_member_is_reached_by_its_name_which_decides_who_owns() {
    let dir = RunDir::for_test("operations_members").unwrap();
    let start =
        |name: &str| ControlPlane::start(dir.path(), Options { name: name.to_owned(), ..Options::default() });
    let (hub, east) = tokio::join!(start(HUB), start(EAST));
    let (hub, east) = (hub.unwrap(), east.unwrap());
    let upstreams =
        [(HUB, hub.kubeconfig(&User::ADMIN).unwrap()), (EAST, east.kubeconfig(&User::ADMIN).unwrap())];
    let config = example();
    let args = ProxyArgs { shard: "kcm-0", config: &config, upstreams: &upstreams, dir: dir.path() };
    let proxy = Proxy::start(args).await.unwrap();
    let hub = Cluster::new(&hub, &proxy, "").await;
    let east = Cluster::new(&east, &proxy, "/clusters/east").await;

    // A namespace that the shard owns in one cluster only, and one that it owns in the other only.
    let (in_hub, in_east) = (owned_in(HUB, EAST), owned_in(EAST, HUB));
    for (cluster, own, foreign) in [(&hub, &in_hub, &in_east), (&east, &in_east, &in_hub)] {
        for namespace in [own, foreign] {
            cluster.create_namespace(namespace).await;
        }
        assert_eq!(cluster.create_through(own).await, 201);
        assert_eq!(cluster.create_through(foreign).await, 503);
        cluster.create(foreign).await;
    }
    assert_eq!(hub.seen().await, [in_hub]);
    assert_eq!(east.seen().await, [in_east]);
    unknown_is_named(&proxy).await;
}

async fn unknown_is_named(proxy: &Proxy) {
    let wire = crate::wire(proxy, crate::Http::Two).await;
    let (status, body) = crate::ask(&wire, wire.request("/clusters/west/api/v1/pods"), "any").await;
    assert_eq!(status, 404);
    assert!(body.contains("hub, east"), "{body}");
}

fn owned_in(one: &str, other: &str) -> String {
    let mut names = (0..1000).map(|number| format!("team-{number}"));
    names.find(|name| slot_of(one, name) <= LAST_OWNED && slot_of(other, name) > LAST_OWNED).unwrap()
}

// === impl Cluster ===

impl Cluster {
    async fn new(plane: &ControlPlane, proxy: &Proxy, prefix: &'static str) -> Self {
        let server = format!("{}{prefix}", proxy.url());
        let through = plane.kubeconfig_via("through", &User::ADMIN, &server, proxy.ca()).unwrap();
        let direct = plane.client(&User::ADMIN).await.unwrap();
        let through = kubeconfig::client(&through).await.unwrap();
        let wire = crate::wire(proxy, crate::Http::Two).await;
        Self { direct, through, wire, prefix, token: plane.token(&User::ADMIN).unwrap().to_owned() }
    }

    async fn create_namespace(&self, name: &str) {
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        Api::all(self.direct.clone()).create(&PostParams::default(), &namespace).await.unwrap();
    }

    async fn create(&self, namespace: &str) {
        let metadata = ObjectMeta { name: Some("it".to_owned()), ..ObjectMeta::default() };
        let object = ConfigMap { metadata, ..ConfigMap::default() };
        let objects = Api::namespaced(self.direct.clone(), namespace);
        objects.create(&PostParams::default(), &object).await.unwrap();
    }

    async fn create_through(&self, namespace: &str) -> StatusCode {
        let path = format!("{}/api/v1/namespaces/{namespace}/configmaps", self.prefix);
        let mut request = self.wire.request(&path);
        *request.method_mut() = Method::POST;
        *request.body_mut() = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"it"}}"#.into();
        crate::ask(&self.wire, request, &self.token).await.0
    }

    /// The namespaces of the objects that the shard is shown, those of the cluster's own apart.
    async fn seen(&self) -> Vec<String> {
        let all: Api<ConfigMap> = Api::all(self.through.clone());
        let list = all.list(&ListParams::default()).await.unwrap();
        let namespaces = list.items.into_iter().filter_map(|object| object.metadata.namespace);
        namespaces.filter(|name| !name.starts_with("kube-")).collect()
    }
}
