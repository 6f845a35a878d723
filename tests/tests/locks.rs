//! Each shard leads a lock of its own behind the name that the controller knows: of every kind, in every verb, patch
//! type and encoding, whole or metadata only, and without a way to the original lock or to a sister's.
#![allow(clippy::unwrap_used, reason = "test code, helpers included")]

use http::{Request, StatusCode};
use serde_json::json;
use shoal_tests::protobuf::{ObjectMeta, message, pack};
use shoal_tests::raw::{Answer, Encoding, RawClient};
use shoal_tests::ring::{self, HUB};
use shoal_tests::shards::Shards;
use shoal_tests::{ControlPlane, Options, RunDir, User};

const LOCK: &str = "kube-controller-manager";
/// Where client-go kept the record in a ConfigMap.
const ANNOTATION: &str = "control-plane.alpha.kubernetes.io/leader";
/// Every way to patch a Lease; LOCK and HOLDER are put in.
const LEASE_PATCHES: [(&str, &str); 5] = [
    ("application/merge-patch+json", r#"{"metadata":{"name":"LOCK"},"spec":{"holderIdentity":"HOLDER"}}"#),
    ("application/strategic-merge-patch+json", r#"{"spec":{"holderIdentity":"HOLDER"}}"#),
    (
        "application/json-patch+json",
        r#"[{"op":"test","path":"/metadata/name","value":"LOCK"},{"op":"replace","path":"/spec/holderIdentity","value":"HOLDER"}]"#,
    ),
    (
        "application/apply-patch+yaml",
        r#"{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"LOCK"},"spec":{"holderIdentity":"HOLDER"}}"#,
    ),
    (
        "application/apply-patch+yaml",
        "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata:\n  name: LOCK\nspec:\n  holderIdentity: HOLDER\n",
    ),
];
/// The same of a ConfigMap, whose record names the lock too: only the object's own name may change.
const CONFIG_MAP_PATCHES: [(&str, &str); 5] = [
    (
        "application/merge-patch+json",
        r#"{"metadata":{"name":"LOCK","annotations":{"control-plane.alpha.kubernetes.io/leader":"HOLDER"}}}"#,
    ),
    ("application/strategic-merge-patch+json", r#"{"data":{"lock":"LOCK","holder":"HOLDER"}}"#),
    (
        "application/json-patch+json",
        r#"[{"op":"test","path":"/metadata/name","value":"LOCK"},{"op":"replace","path":"/metadata/annotations/control-plane.alpha.kubernetes.io~1leader","value":"HOLDER"}]"#,
    ),
    (
        "application/apply-patch+yaml",
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"LOCK"},"data":{"holder":"HOLDER"}}"#,
    ),
    (
        "application/apply-patch+yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: LOCK\ndata:\n  holder: HOLDER\n",
    ),
];

/// A kind of object that can be a lock.
#[derive(Debug)]
struct Kind {
    api_version: &'static str,
    name: &'static str,
    resource: &'static str,
    /// In front of `/namespaces` or of the resource.
    root: &'static str,
    patches: &'static [(&'static str, &'static str)],
}

const KINDS: [Kind; 2] = [
    Kind {
        api_version: "coordination.k8s.io/v1",
        name: "Lease",
        resource: "leases",
        root: "/apis/coordination.k8s.io/v1",
        patches: &LEASE_PATCHES,
    },
    Kind {
        api_version: "v1",
        name: "ConfigMap",
        resource: "configmaps",
        root: "/api/v1",
        patches: &CONFIG_MAP_PATCHES,
    },
];

/// How a client writes and wants answers.
#[derive(Debug, Clone, Copy)]
struct Dialect {
    kind: &'static Kind,
    content: Encoding,
    accept: Encoding,
    metadata_only: bool,
}

/// One shard's client, and what it must not know.
struct Shard {
    client: RawClient,
    own: String,
}

#[tokio::test]
async fn each_shard_leads_its_own_lock_under_the_known_name() {
    let dir = RunDir::for_test("locks").unwrap();
    let plane = ControlPlane::start(dir.path(), Options::default()).await.unwrap();
    let kubeconfig = plane.kubeconfig(&User::CONTROLLER_MANAGER).unwrap();
    let config = ring::changed(dir.path(), with_both_locks).unwrap();
    let upstreams = [kubeconfig.clone(), kubeconfig.clone(), kubeconfig];
    let proxies = Shards::start_with(&plane, &config, &upstreams).await.unwrap().proxies;
    let direct = RawClient::direct(&plane, &User::ADMIN).unwrap();
    let shard = |proxy: &shoal_tests::Proxy| Shard {
        client: RawClient::of_proxy(proxy, &plane, &User::ADMIN).unwrap(),
        own: format!("{LOCK}-{}", proxy.shard()),
    };
    let shards: Vec<Shard> = proxies.iter().map(shard).collect();
    for kind in &KINDS {
        one_kind(kind, &shards, &direct).await;
    }
    for shard in &shards {
        other_config_maps_are_nobodys_lock(shard).await;
    }
}

/// A ConfigMap of the same name is a lock as well.
fn with_both_locks(example: &str) -> String {
    let lease = "    - resource: leases\n";
    let both = format!("    - {{resource: configmaps, namespace: kube-system, name: {LOCK}}}\n{lease}");
    assert!(example.contains(lease));
    example.replace(lease, &both)
}

async fn one_kind(kind: &'static Kind, shards: &[Shard], direct: &RawClient) {
    // The sister's lock is there all along.
    let sister = &shards[1];
    let answer = sister.create(LOCK, kind.json()).await;
    assert_eq!(answer.code, StatusCode::CREATED, "{answer:?}");
    let sisters = lock(direct, kind, &sister.own).await;
    for dialect in kind.dialects() {
        life(&shards[0], direct, dialect).await;
        assert_eq!(lock(direct, kind, &sister.own).await, sisters, "{dialect:?}");
    }
    for shard in shards {
        for dialect in kind.dialects() {
            other_locks_are_out_of_reach(shard, shards, dialect).await;
        }
        a_name_in_two_readings_reaches_no_lock(shard, kind).await;
    }
    assert_eq!(lock(direct, kind, &sister.own).await, sisters);
    let left = names(&request(direct, "GET", &kind.path(), kind.json(), None).await);
    assert!(!left.contains(&LOCK.to_owned()) && !left.contains(&shards[2].own), "{left:?}");
}

/// Beside the locks the ordinary gate decides, and what passes is not touched.
async fn other_config_maps_are_nobodys_lock(shard: &Shard) {
    let kind = &KINDS[1];
    let owned = shard.own.ends_with(owner_of_kube_system());
    let name = format!("{LOCK}-kcm-x");
    for dialect in kind.dialects() {
        let created = shard.create(&name, dialect).await;
        if !owned {
            assert_eq!(created.code, StatusCode::SERVICE_UNAVAILABLE, "{created:?}");
            let causes = created.status().unwrap().details.unwrap().causes.unwrap();
            assert_eq!(causes[0].reason.as_deref(), Some("ForeignSlot"));
            continue;
        }
        assert_eq!(created.code, StatusCode::CREATED, "{dialect:?} {created:?}");
        assert_eq!(created.metadata().unwrap().name, name);
        let path = format!("{}/{name}", kind.path());
        assert_eq!(shard.request("DELETE", &path, dialect, None).await.code, StatusCode::OK);
    }
}

/// By the judge's own hash, as the example's map has it.
fn owner_of_kube_system() -> &'static str {
    match shoal_judge::slot_of(HUB, "kube-system") {
        0..=85 => "kcm-0",
        86..=170 => "kcm-1",
        171.. => "kcm-2",
    }
}

/// From create to delete, in one dialect.
async fn life(shard: &Shard, direct: &RawClient, dialect: Dialect) {
    let path = format!("{}/{LOCK}", dialect.kind.path());
    assert_absent(&shard.request("GET", &path, dialect, None).await, dialect);
    let created = shard.create(LOCK, dialect).await;
    assert_shown(&created, StatusCode::CREATED, dialect);
    let real = lock(direct, dialect.kind, &shard.own).await.unwrap();
    assert_eq!(real.uid, created.metadata().unwrap().uid, "{dialect:?}");
    let again = shard.create(LOCK, dialect).await;
    assert_named(&again, StatusCode::CONFLICT, "AlreadyExists", dialect);

    let got = shard.request("GET", &path, dialect, None).await;
    assert_shown(&got, StatusCode::OK, dialect);
    let body = dialect.object(LOCK, "second", &real.resource_version);
    let updated =
        shard.request("PUT", &path, dialect, Some((dialect.content.media_type(), body.clone()))).await;
    assert_shown(&updated, StatusCode::OK, dialect);
    // The version that was just replaced.
    let stale = shard.request("PUT", &path, dialect, Some((dialect.content.media_type(), body))).await;
    assert_named(&stale, StatusCode::CONFLICT, "Conflict", dialect);
    for (index, (content_type, body)) in dialect.kind.patches.iter().enumerate() {
        let (target, holder) = (format!("{path}?fieldManager=test"), format!("holder-{index}"));
        let target = if content_type.contains("apply") { format!("{target}&force=true") } else { target };
        let body = body.replace("LOCK", LOCK).replace("HOLDER", &holder);
        let before = lock(direct, dialect.kind, &shard.own).await.unwrap();
        let patched =
            shard.request("PATCH", &target, dialect, Some((*content_type, body.into_bytes()))).await;
        assert_shown(&patched, StatusCode::OK, dialect);
        assert_ne!(
            lock(direct, dialect.kind, &shard.own).await.unwrap().resource_version,
            before.resource_version,
            "{content_type}"
        );
    }
    collections(shard, dialect).await;
    let deleted = shard.request("DELETE", &path, dialect, None).await;
    assert_eq!(deleted.code, StatusCode::OK, "{dialect:?}: {deleted:?}");
    assert!(!text(&deleted).contains(&shard.own), "{dialect:?}: {deleted:?}");
    assert_eq!(lock(direct, dialect.kind, &shard.own).await, None);
    assert_absent(&shard.request("GET", &path, dialect, None).await, dialect);
}

/// A list and a watch hold the own lock once, and none of the others.
async fn collections(shard: &Shard, dialect: Dialect) {
    let selector = format!("fieldSelector=metadata.name%3D{LOCK}");
    let watch =
        "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let path = dialect.kind.path();
    let everywhere = format!("{}/{}?limit=500", dialect.kind.root, dialect.kind.resource);
    for (target, only) in [(path.clone(), false), (format!("{path}?{selector}"), true), (everywhere, false)] {
        let answer = shard.request("GET", &target, dialect, None).await;
        assert_eq!(answer.code, StatusCode::OK, "{target}: {answer:?}");
        assert_eq!(answer.encoding(), Some(dialect.accept), "{target}");
        assert_only_own(&names(&answer), only, &target);
    }
    for (target, only) in [(format!("{path}?{watch}"), false), (format!("{path}?{watch}&{selector}"), true)] {
        assert_only_own(&shard.watched(&target, dialect).await, only, &target);
    }
}

fn assert_only_own(names: &[String], only: bool, target: &str) {
    let locks: Vec<_> = names.iter().filter(|name| name.starts_with(LOCK)).collect();
    assert_eq!(locks, [LOCK], "{target}: {names:?}");
    assert!(!only || names.len() == 1, "{target}: {names:?}");
}

/// Under the real name of any shard's lock, its own included, nothing is written.
async fn other_locks_are_out_of_reach(shard: &Shard, shards: &[Shard], dialect: Dialect) {
    let (content_type, collection) = (dialect.content.media_type(), dialect.kind.path());
    for name in shards.iter().map(|shard| &shard.own) {
        let (path, body) = (format!("{collection}/{name}"), dialect.object(name, "thief", "1"));
        let merge = br#"{"metadata":{"annotations":{"holder":"thief"}}}"#.to_vec();
        for answer in [
            shard.request("PUT", &path, dialect, Some((content_type, body))).await,
            shard.request("PATCH", &path, dialect, Some(("application/merge-patch+json", merge))).await,
            shard.request("DELETE", &path, dialect, None).await,
            shard.request("DELETE", &format!("{path}?dryRun=All"), dialect, None).await,
        ] {
            assert_foreign(&answer, StatusCode::CONFLICT, "Conflict", Some(name));
        }
        let created = shard.create(name, dialect).await;
        assert_foreign(&created, StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", Some(name));
    }
    for target in
        [collection.clone(), format!("{collection}?fieldSelector=metadata.name%3D{}", shards[1].own)]
    {
        let answer = shard.request("DELETE", &target, dialect, None).await;
        assert_eq!(answer.code, StatusCode::FORBIDDEN, "{target}: {answer:?}");
        assert_eq!(answer.status().unwrap().reason.as_deref(), Some("Forbidden"));
    }
}

fn assert_foreign(answer: &Answer, code: StatusCode, reason: &str, name: Option<&String>) {
    assert_eq!(answer.code, code, "{answer:?}");
    assert!(!answer.headers.contains_key("retry-after"), "{answer:?}");
    let status = answer.status().unwrap();
    assert_eq!(status.reason.as_deref(), Some(reason));
    let details = status.details.unwrap();
    assert_eq!(details.name.as_ref(), name, "{answer:?}");
    assert_eq!(details.causes.unwrap()[0].reason.as_deref(), Some("ForeignLock"));
}

/// Go keeps the first name here; another reader sees none.
async fn a_name_in_two_readings_reaches_no_lock(shard: &Shard, kind: &'static Kind) {
    for name in [LOCK, &format!("{LOCK}-kcm-2")] {
        for second in ["{}", "null"] {
            let body = format!(r#"{{"metadata":{{"name":"{name}"}},"metadata":{second}}}"#).into_bytes();
            let answer =
                shard.request("POST", &kind.path(), kind.json(), Some(("application/json", body))).await;
            assert_eq!(answer.code, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{name} {second}: {answer:?}");
        }
    }
}

fn assert_shown(answer: &Answer, code: StatusCode, dialect: Dialect) {
    assert_eq!(answer.code, code, "{dialect:?}: {answer:?}");
    assert_eq!(answer.encoding(), Some(dialect.accept), "{dialect:?}");
    assert_eq!(answer.metadata().unwrap().name, LOCK, "{dialect:?}");
    let partial = text(answer).contains("PartialObjectMetadata");
    assert_eq!(partial, dialect.metadata_only, "{dialect:?}: {answer:?}");
}

fn assert_absent(answer: &Answer, dialect: Dialect) {
    assert_named(answer, StatusCode::NOT_FOUND, "NotFound", dialect);
}

/// The API server's own refusal, in which the known name stands wherever the real one stood.
fn assert_named(answer: &Answer, code: StatusCode, reason: &str, dialect: Dialect) {
    assert_eq!(answer.code, code, "{dialect:?}: {answer:?}");
    let status = answer.status().unwrap();
    assert_eq!(status.reason.as_deref(), Some(reason), "{dialect:?}");
    assert_eq!(status.details.unwrap().name.as_deref(), Some(LOCK), "{dialect:?}");
    let message = status.message.unwrap();
    assert!(message.contains(&format!("\"{LOCK}\"")) && !message.contains("-kcm-"), "{dialect:?}: {message}");
}

/// The lock as it really is.
async fn lock(direct: &RawClient, kind: &'static Kind, name: &str) -> Option<ObjectMeta> {
    let answer = request(direct, "GET", &format!("{}/{name}", kind.path()), kind.json(), None).await;
    answer.metadata().filter(|_| answer.code == StatusCode::OK)
}

fn names(answer: &Answer) -> Vec<String> {
    answer.items().unwrap().into_iter().map(|item| item.name).collect()
}

fn text(answer: &Answer) -> String {
    String::from_utf8_lossy(&answer.body).into_owned()
}

async fn request(
    client: &RawClient,
    method: &str,
    target: &str,
    dialect: Dialect,
    body: Option<(&str, Vec<u8>)>,
) -> Answer {
    let is_list = method == "GET" && !target.contains(&format!("/{}/", dialect.kind.resource));
    let kind = if is_list { "PartialObjectMetadataList" } else { "PartialObjectMetadata" };
    let request = Request::builder().method(method).uri(target).header("accept", dialect.accept_header(kind));
    let (request, body) = match body {
        Some((content_type, body)) => (request.header("content-type", content_type), body),
        None => (request, Vec::new()),
    };
    client.send(request.body(body).unwrap()).await.unwrap()
}

// === impl Shard ===

impl Shard {
    async fn request(
        &self,
        method: &str,
        target: &str,
        dialect: Dialect,
        body: Option<(&str, Vec<u8>)>,
    ) -> Answer {
        request(&self.client, method, target, dialect, body).await
    }

    async fn create(&self, name: &str, dialect: Dialect) -> Answer {
        let body = Some((dialect.content.media_type(), dialect.object(name, "first", "")));
        self.request("POST", &dialect.kind.path(), dialect, body).await
    }

    /// The names in a watch up to the end of its initial events.
    async fn watched(&self, target: &str, dialect: Dialect) -> Vec<String> {
        let request = Request::get(target).header("accept", dialect.accept_header("PartialObjectMetadata"));
        let mut watch = self.client.watch(request.body(Vec::new()).unwrap()).await.unwrap();
        let mut names = Vec::new();
        while let Some((kind, metadata)) = watch.next().await.unwrap() {
            match kind.as_str() {
                "ADDED" => names.push(metadata.name),
                "BOOKMARK" => return names,
                other => assert_eq!(other, "ADDED or BOOKMARK"),
            }
        }
        assert!(names.is_empty(), "the watch ended before its bookmark");
        names
    }
}

// === impl Kind ===

impl Kind {
    fn path(&self) -> String {
        format!("{}/namespaces/kube-system/{}", self.root, self.resource)
    }

    fn json(&'static self) -> Dialect {
        Dialect { kind: self, content: Encoding::Json, accept: Encoding::Json, metadata_only: false }
    }

    fn dialects(&'static self) -> impl Iterator<Item = Dialect> {
        let pairs =
            Encoding::ALL.into_iter().flat_map(|content| Encoding::ALL.map(|accept| (content, accept)));
        pairs.flat_map(move |(content, accept)| {
            [false, true].map(|metadata_only| Dialect { kind: self, content, accept, metadata_only })
        })
    }
}

// === impl Dialect ===

impl Dialect {
    /// The form of `kind`, `PartialObjectMetadata` or its list, if only that is wanted.
    fn accept_header(self, kind: &str) -> String {
        let media_type = self.accept.media_type();
        if self.metadata_only {
            format!("{media_type};as={kind};g=meta.k8s.io;v=v1")
        } else {
            media_type.to_owned()
        }
    }

    /// A Lease with its holder in field 2, `spec`, or a ConfigMap with its record in an annotation; both have
    /// metadata in field 1 (name 1, resourceVersion 6, annotations 12).
    fn object(self, name: &str, holder: &str, version: &str) -> Vec<u8> {
        let Kind { api_version, name: kind, .. } = self.kind;
        let is_lease = *kind == "Lease";
        let record = format!("{holder} of {LOCK}");
        if self.content == Encoding::Json {
            let mut object = json!({
                "apiVersion": api_version, "kind": kind,
                "metadata": {"name": name, "resourceVersion": version},
            });
            let (pointer, value) = if is_lease {
                ("spec", json!({"holderIdentity": holder}))
            } else {
                object["metadata"]["annotations"] = json!({ANNOTATION: record});
                ("data", json!({"name": LOCK}))
            };
            object[pointer] = value;
            return object.to_string().into_bytes();
        }
        let annotation = message(&[(1, ANNOTATION.as_bytes()), (2, record.as_bytes())]);
        let mut metadata = vec![(1, name.as_bytes()), (6, version.as_bytes())];
        if !is_lease {
            metadata.push((12, &annotation));
        }
        let (metadata, spec) = (message(&metadata), message(&[(1, holder.as_bytes())]));
        let mut fields = vec![(1, metadata.as_slice())];
        if is_lease {
            fields.push((2, &spec));
        }
        pack(api_version, kind, message(&fields))
    }
}
