//! Requests that a well-behaved client never makes: each ends at the proxy with a Status, over both versions of HTTP,
//! and what a client says of itself is not believed.
#![allow(clippy::unwrap_used, reason = "test code, helpers included")]

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::request::Builder;
use http::{Request, StatusCode, header};
use hyper::body::{Body, Frame, SizeHint};
use serde_json::Value;
use shoal_tests::load::names_in_slot;
use shoal_tests::raw::{Answer, Encoding, Http, RawClient};
use shoal_tests::shards::Shards;
use shoal_tests::{ControlPlane, Options, RunDir, User, evidence};

/// Has no rights.
const NOBODY: User = User::plain("nobody");

/// What a request is told apart by in the audit log if it must not be there.
const STOPPED: &str = "stopped-client";
/// The same for one that is on its way when it proves too long.
const CUT: &str = "cut-client";
/// And for one that must be there.
const PASSED: &str = "passed-client";

/// Targets that two servers could read in two ways.
const UNCLEAR: [&str; 13] = [
    "/api/v1/namespaces/NS//pods",
    "/api/v1//namespaces/NS/pods",
    "/api/v1/namespaces//pods/web",
    "/api/v1/namespaces/NS%2Fpods",
    "/api/v1/namespaces/NS/pods/a%2fb",
    "/api/v1/namespaces/other/../NS/pods/web",
    "/api/v1/namespaces/NS/./pods",
    "/api/v1/namespaces/%2e%2e/pods",
    "/api/v1/namespaces/NS/pods/%2E",
    "/api/v1/namespaces/NS/pods?watch=0;watch=1",
    "/api/v1/namespaces/NS/pods/web?dryRun=All;x=1",
    "/api/v1/namespaces/NS/pods/%zz",
    "/api/v1/namespaces/NS/pods/a%00b",
];

#[tokio::test]
async fn odd_requests_end_at_the_proxy_and_claims_are_not_believed() {
    let dir = RunDir::for_test("odd_requests").unwrap();
    let options = Options { users: vec![NOBODY], ..Options::default() };
    let plane = ControlPlane::start(dir.path(), options).await.unwrap();
    let shards =
        Shards::start(&plane, &[plane.kubeconfig(&User::CONTROLLER_MANAGER).unwrap()]).await.unwrap();
    let proxy = &shards.proxies[0];
    let client = RawClient::of_proxy(proxy, &plane, &User::ADMIN).unwrap();
    let nobody = RawClient::of_proxy(proxy, &plane, &NOBODY).unwrap();
    // Of the first shard's slots.
    let namespace = names_in_slot(0).next().unwrap();

    for http in Http::ALL {
        unclear_targets(&client, http, &namespace).await;
        too_large(&client, http, &namespace).await;
        large_and_foreign(&client, http).await;
        claims(&client, &nobody, http, &namespace).await;
    }
    upgrades(&client, &namespace).await;
    let direct = RawClient::direct(&plane, &User::ADMIN).unwrap();
    refused_by_the_server(&client, &direct, &namespace).await;
    what_arrived(&plane);
}

async fn unclear_targets(client: &RawClient, http: Http, namespace: &str) {
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
        for (target, accept) in UNCLEAR.iter().flat_map(|target| Encoding::ALL.map(|accept| (target, accept)))
        {
            let request =
                stopped(method, &target.replace("NS", namespace)).header("accept", accept.media_type());
            let answer = client.send_over(http, request.body(Vec::new()).unwrap()).await.unwrap();
            assert_status(
                &answer,
                StatusCode::BAD_REQUEST,
                "BadRequest",
                &format!("{http:?} {method} {target}"),
            );
            assert_eq!(answer.encoding(), Some(accept), "{target}");
        }
    }
}

async fn too_large(client: &RawClient, http: Http, namespace: &str) {
    let target = format!("/api/v1/namespaces/{namespace}/configmaps");
    // Refused by the length that it says, before it comes; and without one, at the first byte too many.
    let told = stopped("POST", &target).body(Stalled { promised: Some(4 << 20), left: 0 });
    let untold = cut("POST", &target).body(Stalled { promised: None, left: (3 << 20) + 1 });
    for request in [told.unwrap(), untold.unwrap()] {
        let what = format!("{http:?} {request:?}");
        let answer = client.answer(http, request).await.unwrap();
        assert_status(&answer, StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", &what);
    }

    let request = stopped("GET", "/api/v1/nodes").header("x-long", "x".repeat(100 << 10));
    let answer = client.send_over(http, request.body(Vec::new()).unwrap()).await.unwrap();
    assert_eq!(answer.code, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "{http:?} {answer:?}");
}

/// A refused client that is still sending gets to see why.
async fn large_and_foreign(client: &RawClient, http: Http) {
    let foreign = names_in_slot(255).next().unwrap();
    let target = format!("/api/v1/namespaces/{foreign}/configmaps/large");
    for _ in 0..10 {
        let request = stopped("PUT", &target).header("content-type", "application/json");
        let answer = client.send_over(http, request.body(vec![b' '; 2 << 20]).unwrap()).await.unwrap();
        assert_status(&answer, StatusCode::CONFLICT, "Conflict", &format!("{http:?} {target}"));
    }
}

/// HTTP/1.1 only; in HTTP/2 such headers are malformed. What is tunnelled is in `upgrades`.
async fn upgrades(client: &RawClient, namespace: &str) {
    let pod = format!("/api/v1/namespaces/{namespace}/pods/web");
    for (method, target, protocol) in [
        ("GET", format!("{pod}/exec?command=sh"), "h2c"),
        ("POST", format!("{pod}/attach"), "h2c"),
        ("GET", format!("{pod}/portforward"), "websocket, SPDY/3.1"),
        ("GET", "/api/v1/pods?watch=true".to_owned(), "websocket"),
        ("GET", "/api/v1/pods?watch=true".to_owned(), "SPDY/3.1"),
    ] {
        let request = stopped(method, &target).header("connection", "Upgrade").header("upgrade", protocol);
        let answer = client.send_over(Http::One, request.body(Vec::new()).unwrap()).await.unwrap();
        assert_status(&answer, StatusCode::BAD_REQUEST, "BadRequest", &target);
        assert!(answer.status().unwrap().message.unwrap().contains("pgrade"), "{target}");
    }
}

/// What the API server says of an upgrade that it does not make.
async fn refused_by_the_server(client: &RawClient, direct: &RawClient, namespace: &str) {
    let (pod, key) = (format!("/api/v1/namespaces/{namespace}/pods/web"), "dGhlIHNhbXBsZSBub25jZQ==");
    for (method, target, protocol) in [
        ("GET", format!("{pod}/exec?command=sh&stdout=true"), "websocket"),
        ("POST", format!("{pod}/exec?command=sh&stdout=true"), "SPDY/3.1"),
        ("POST", format!("{pod}/attach?stdout=true"), "SPDY/3.1"),
        ("GET", format!("{pod}/portforward?ports=80"), "websocket"),
        ("GET", format!("/api/v1/namespaces/{namespace}/services/web/proxy/a"), "websocket"),
        ("GET", format!("{pod}/nothing"), "SPDY/3.1"),
    ] {
        let ask = async |client: &RawClient| {
            let request =
                Request::builder().method(method).uri(&target).header("user-agent", "upgrading-client");
            let request = request.header("connection", "Upgrade").header("upgrade", protocol);
            let request = request.header("sec-websocket-key", key).header("sec-websocket-version", "13");
            client.send_over(Http::One, request.body(Vec::new()).unwrap()).await.unwrap()
        };
        let (through, straight) = (ask(client).await, ask(direct).await);
        assert!(straight.code.as_u16() >= 400, "{target}: {straight:?}");
        assert_eq!((through.code, &through.body), (straight.code, &straight.body), "{target}");
    }
}

/// Only the token says who it is, and only the proxy by what right.
async fn claims(client: &RawClient, nobody: &RawClient, http: Http, namespace: &str) {
    let secrets = format!("/api/v1/namespaces/{namespace}/secrets");
    let claimed = |agent: &str| {
        Request::get(&secrets)
            .header("user-agent", agent)
            .header("x-remote-user", "admin")
            .header("x-remote-group", "system:masters")
            .header("x-remote-extra-scopes", "all")
            .header("accept", "application/json")
            .body(Vec::new())
            .unwrap()
    };
    let agent = format!("{PASSED} shoal/kcm/kcm-1@9 :5.1");
    let passed = client.send_over(http, claimed(&agent)).await.unwrap();
    assert_eq!(passed.code, StatusCode::OK, "{http:?}: {passed:?}");
    let refused = nobody.send_over(http, claimed(PASSED)).await.unwrap();
    assert_status(&refused, StatusCode::FORBIDDEN, "Forbidden", &format!("{http:?}"));
    // The credential in the proxy's own kubeconfig is for nobody else.
    let unknown = client.clone().anonymous().send_over(http, claimed(PASSED)).await.unwrap();
    assert_status(&unknown, StatusCode::FORBIDDEN, "Forbidden", &format!("{http:?}"));
    assert!(unknown.status().unwrap().message.unwrap().contains("system:anonymous"));
}

fn what_arrived(plane: &ControlPlane) {
    let log = String::from_utf8(evidence::snapshot(&plane.audit_log()).unwrap()).unwrap();
    assert_eq!(log.lines().find(|line| line.contains(STOPPED)), None);
    let of = |agent: &str| -> Vec<Value> {
        let lines = log.lines().filter(|line| line.contains(agent));
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    assert!(
        of(CUT).iter().all(|event| event["responseStatus"]["code"].as_u64() >= Some(400)),
        "{:?}",
        of(CUT)
    );
    let events = of(PASSED);
    let users: Vec<_> = events.iter().map(|event| event["user"]["username"].as_str().unwrap()).collect();
    let each = ["admin", "nobody", "system:anonymous"];
    assert_eq!(users, [each, each].concat());
    for agent in events.iter().map(|event| event["userAgent"].as_str().unwrap()) {
        assert!(agent.ends_with(" shoal/kcm/kcm-0@1"), "{agent}");
        assert_eq!(agent.matches("shoal/").count(), 1, "{agent}");
    }
}

fn assert_status(answer: &Answer, code: StatusCode, reason: &str, what: &str) {
    assert_eq!(answer.code, code, "{what}: {answer:?}");
    let status = answer.status().unwrap();
    assert_eq!(status.reason.as_deref(), Some(reason), "{what}");
    assert_eq!(status.code, Some(i32::from(code.as_u16())), "{what}");
    assert!(!answer.headers.contains_key(header::RETRY_AFTER), "{what}");
}

fn stopped(method: &str, target: &str) -> Builder {
    from(STOPPED, method, target)
}

fn cut(method: &str, target: &str) -> Builder {
    from(CUT, method, target)
}

fn from(agent: &str, method: &str, target: &str) -> Builder {
    let request = Request::builder().method(method).uri(target);
    request.header("user-agent", agent).header("content-type", "application/json")
}

/// A body that sends so many bytes and then waits for the answer.
#[derive(Debug)]
struct Stalled {
    /// The length that is said before.
    promised: Option<u64>,
    left: usize,
}

// === impl Stalled ===

impl Body for Stalled {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let size = self.left.min(64 << 10);
        self.left -= size;
        if size == 0 { Poll::Pending } else { Poll::Ready(Some(Ok(Frame::data(vec![b' '; size].into())))) }
    }

    fn size_hint(&self) -> SizeHint {
        self.promised.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
