//! Each shard leads a lock of its own behind the name that the controller knows: in every verb, patch type and
//! encoding, whole or metadata only, and without a way to the original lock or to a sister's.
#![allow(clippy::unwrap_used, reason = "test code, helpers included")]

use http::{Request, StatusCode};
use shoal_tests::protobuf::{ObjectMeta, message, pack};
use shoal_tests::raw::{Answer, Encoding, RawClient};
use shoal_tests::shards::Shards;
use shoal_tests::{ControlPlane, Options, RunDir, User};

const LOCK: &str = "kube-controller-manager";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
/// Every way to patch; LOCK and HOLDER are put in.
const PATCHES: [(&str, &str); 5] = [
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

/// How a client writes and wants answers.
#[derive(Debug, Clone, Copy)]
struct Dialect {
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
    let proxies =
        Shards::start(&plane, &[kubeconfig.clone(), kubeconfig.clone(), kubeconfig]).await.unwrap().proxies;
    let direct = RawClient::direct(&plane, &User::ADMIN).unwrap();
    let shard = |proxy: &shoal_tests::Proxy| Shard {
        client: RawClient::of_proxy(proxy, &plane, &User::ADMIN).unwrap(),
        own: format!("{LOCK}-{}", proxy.shard()),
    };
    let shards: Vec<Shard> = proxies.iter().map(shard).collect();

    // The sister's lock is there all along.
    let sister = &shards[1];
    let answer = sister.create(LOCK, Dialect::json()).await;
    assert_eq!(answer.code, StatusCode::CREATED, "{answer:?}");
    let sisters = lease(&direct, &sister.own).await;
    for dialect in Dialect::all() {
        life(&shards[0], &direct, dialect).await;
        assert_eq!(lease(&direct, &sister.own).await, sisters, "{dialect:?}");
    }
    for shard in &shards {
        for dialect in Dialect::all() {
            other_locks_are_out_of_reach(shard, &shards, dialect).await;
        }
        a_name_in_two_readings_reaches_no_lock(shard).await;
    }
    assert_eq!(lease(&direct, &sister.own).await, sisters);
    let left = names(&request(&direct, "GET", LEASES, Dialect::json(), None).await);
    assert!(!left.contains(&LOCK.to_owned()) && !left.contains(&shards[2].own), "{left:?}");
}

/// From create to delete, in one dialect.
async fn life(shard: &Shard, direct: &RawClient, dialect: Dialect) {
    let path = format!("{LEASES}/{LOCK}");
    assert_absent(&shard.request("GET", &path, dialect, None).await, dialect);
    let created = shard.create(LOCK, dialect).await;
    assert_shown(&created, StatusCode::CREATED, dialect);
    let real = lease(direct, &shard.own).await.unwrap();
    assert_eq!(real.uid, created.metadata().unwrap().uid, "{dialect:?}");
    let again = shard.create(LOCK, dialect).await;
    assert_named(&again, StatusCode::CONFLICT, "AlreadyExists", dialect);

    let got = shard.request("GET", &path, dialect, None).await;
    assert_shown(&got, StatusCode::OK, dialect);
    let body = dialect.lease(LOCK, "second", &real.resource_version);
    let updated =
        shard.request("PUT", &path, dialect, Some((dialect.content.media_type(), body.clone()))).await;
    assert_shown(&updated, StatusCode::OK, dialect);
    // The version that was just replaced.
    let stale = shard.request("PUT", &path, dialect, Some((dialect.content.media_type(), body))).await;
    assert_named(&stale, StatusCode::CONFLICT, "Conflict", dialect);
    for (index, (content_type, body)) in PATCHES.into_iter().enumerate() {
        let (target, holder) = (format!("{path}?fieldManager=test"), format!("holder-{index}"));
        let target = if content_type.contains("apply") { format!("{target}&force=true") } else { target };
        let body = body.replace("LOCK", LOCK).replace("HOLDER", &holder);
        let before = lease(direct, &shard.own).await.unwrap();
        let patched = shard.request("PATCH", &target, dialect, Some((content_type, body.into_bytes()))).await;
        assert_shown(&patched, StatusCode::OK, dialect);
        assert_ne!(
            lease(direct, &shard.own).await.unwrap().resource_version,
            before.resource_version,
            "{content_type}"
        );
    }
    collections(shard, dialect).await;
    let deleted = shard.request("DELETE", &path, dialect, None).await;
    assert_eq!(deleted.code, StatusCode::OK, "{dialect:?}: {deleted:?}");
    assert!(!text(&deleted).contains(&shard.own), "{dialect:?}: {deleted:?}");
    assert_eq!(lease(direct, &shard.own).await, None);
    assert_absent(&shard.request("GET", &path, dialect, None).await, dialect);
}

/// A list and a watch hold the own lock once, and none of the others.
async fn collections(shard: &Shard, dialect: Dialect) {
    let selector = format!("fieldSelector=metadata.name%3D{LOCK}");
    let watch =
        "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let everywhere = "/apis/coordination.k8s.io/v1/leases?limit=500";
    for (target, only) in
        [(LEASES.to_owned(), false), (format!("{LEASES}?{selector}"), true), (everywhere.to_owned(), false)]
    {
        let answer = shard.request("GET", &target, dialect, None).await;
        assert_eq!(answer.code, StatusCode::OK, "{target}: {answer:?}");
        assert_eq!(answer.encoding(), Some(dialect.accept), "{target}");
        assert_only_own(&names(&answer), only, &target);
    }
    for (target, only) in
        [(format!("{LEASES}?{watch}"), false), (format!("{LEASES}?{watch}&{selector}"), true)]
    {
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
    let content_type = dialect.content.media_type();
    for name in shards.iter().map(|shard| &shard.own) {
        let (path, body) = (format!("{LEASES}/{name}"), dialect.lease(name, "thief", "1"));
        let merge = br#"{"spec":{"holderIdentity":"thief"}}"#.to_vec();
        for answer in [
            shard.request("PUT", &path, dialect, Some((content_type, body))).await,
            shard.request("PATCH", &path, dialect, Some((PATCHES[0].0, merge))).await,
            shard.request("DELETE", &path, dialect, None).await,
            shard.request("DELETE", &format!("{path}?dryRun=All"), dialect, None).await,
        ] {
            assert_foreign(&answer, StatusCode::CONFLICT, "Conflict", Some(name));
        }
        let created = shard.create(name, dialect).await;
        assert_foreign(&created, StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", Some(name));
    }
    for target in [LEASES.to_owned(), format!("{LEASES}?fieldSelector=metadata.name%3D{}", shards[1].own)] {
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
async fn a_name_in_two_readings_reaches_no_lock(shard: &Shard) {
    for name in [LOCK, &format!("{LOCK}-kcm-2")] {
        for second in ["{}", "null"] {
            let body = format!(r#"{{"metadata":{{"name":"{name}"}},"metadata":{second}}}"#).into_bytes();
            let answer =
                shard.request("POST", LEASES, Dialect::json(), Some(("application/json", body))).await;
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

/// The Lease as it really is.
async fn lease(direct: &RawClient, name: &str) -> Option<ObjectMeta> {
    let answer = request(direct, "GET", &format!("{LEASES}/{name}"), Dialect::json(), None).await;
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
    let is_list = method == "GET" && !target.contains("/leases/");
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
        let body = Some((dialect.content.media_type(), dialect.lease(name, "first", "")));
        self.request("POST", LEASES, dialect, body).await
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

// === impl Dialect ===

impl Dialect {
    fn json() -> Self {
        Self { content: Encoding::Json, accept: Encoding::Json, metadata_only: false }
    }

    fn all() -> impl Iterator<Item = Self> {
        let pairs =
            Encoding::ALL.into_iter().flat_map(|content| Encoding::ALL.map(|accept| (content, accept)));
        pairs.flat_map(|(content, accept)| {
            [false, true].map(|metadata_only| Self { content, accept, metadata_only })
        })
    }

    /// The form of `kind`, `PartialObjectMetadata` or its list, if only that is wanted.
    fn accept_header(self, kind: &str) -> String {
        let media_type = self.accept.media_type();
        if self.metadata_only {
            format!("{media_type};as={kind};g=meta.k8s.io;v=v1")
        } else {
            media_type.to_owned()
        }
    }

    /// A Lease: metadata 1 (name 1, resourceVersion 6), spec 2 (holderIdentity 1).
    fn lease(self, name: &str, holder: &str, version: &str) -> Vec<u8> {
        match self.content {
            Encoding::Json => format!(
                r#"{{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{{"name":"{name}","resourceVersion":"{version}"}},"spec":{{"holderIdentity":"{holder}"}}}}"#
            )
            .into_bytes(),
            Encoding::Protobuf => {
                let metadata = message(&[(1, name.as_bytes()), (6, version.as_bytes())]);
                let spec = message(&[(1, holder.as_bytes())]);
                pack("coordination.k8s.io/v1", "Lease", message(&[(1, &metadata), (2, &spec)]))
            }
        }
    }
}
