//! Edits of a request, and its limits.

use http::Request;
use http_body_util::Full;
use serde_json::json;
use shoal_api::{Lock, LockResource};
use shoal_sharding::Slot;
use tokio::time::{Instant, Interval, interval};

use super::*;
use crate::election::{Locks, Touch};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";

fn locks() -> Locks {
    let lock =
        Lock { resource: LockResource::Leases, namespace: "kube-system".into(), name: "manager".into() };
    Locks::new(&[lock], "kcm", "kcm-1")
}

fn onward(
    method: &str,
    target: &str,
    content_type: &str,
    body: &str,
) -> (KubeRequest, Result<Onward, Refusal>) {
    let request = Request::builder().method(method).uri(target).header("content-type", content_type);
    let (parts, body) = request.body(Full::new(Bytes::from(body.to_owned()))).unwrap().into_parts();
    let request = KubeRequest::parse(&parts.method, &parts.uri, &parts.headers).unwrap();
    let onward = Onward::new(&request, parts, body);
    (request, onward)
}

/// The target and the body after the lock was renamed.
async fn renamed(method: &str, target: &str, content_type: &str, body: &str) -> (String, String) {
    let (request, onward) = onward(method, target, content_type, body);
    let (mut onward, locks) = (onward.unwrap(), locks());
    let lock = match locks.touch(&request.info.verb, request.target().unwrap(), request.is_write()).unwrap() {
        Touch::Lock(lock) => lock.clone(),
        Touch::Create => {
            let name = onward.names(&request).await.unwrap().name;
            let Touch::Lock(lock) = locks.create(request.target().unwrap(), &name).unwrap() else {
                panic!("{name}")
            };
            lock.clone()
        }
        touch => panic!("{touch:?}"),
    };
    onward.rename(&request, &lock).await.unwrap();
    let text = String::from_utf8(onward.read().await.unwrap().to_vec()).unwrap();
    if !text.is_empty() {
        assert_eq!(onward.parts.headers[header::CONTENT_LENGTH], text.len().to_string());
    }
    (onward.parts.uri.to_string(), text)
}

#[tokio::test]
async fn the_lock_is_renamed_in_path_and_body_by_every_write() {
    let object =
        |name: &str| format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{{"holderIdentity":"manager"}}}}"#);
    let (ours, theirs) = (object("manager"), object("manager-kcm-1"));
    let path = format!("{LEASES}/manager");
    for (method, target, content_type) in [
        ("POST", LEASES, "application/json"),
        ("PUT", &path, "application/json"),
        ("PATCH", &path, "application/merge-patch+json"),
        ("PATCH", &path, "application/strategic-merge-patch+json"),
        ("PATCH", &path, "application/apply-patch+yaml"),
    ] {
        let (target_out, body) = renamed(method, target, content_type, &ours).await;
        assert_eq!(target_out, target.replace("leases/manager", "leases/manager-kcm-1"), "{method}");
        assert_eq!(body, theirs, "{method} {content_type}");
    }
    let steps = r#"[{"op":"test","path":"/metadata/name","value":"manager"}]"#;
    let (_, body) = renamed("PATCH", &path, "application/json-patch+json", steps).await;
    assert_eq!(body, steps.replace("manager", "manager-kcm-1"));
}

#[tokio::test]
async fn reads_and_deletes_of_the_lock_are_renamed_in_the_path_only() {
    for method in ["GET", "DELETE"] {
        let (target, body) =
            renamed(method, &format!("{LEASES}/manager?pretty=%20x"), "application/json", "").await;
        assert_eq!((target, body), (format!("{LEASES}/manager-kcm-1?pretty=%20x"), String::new()));
    }
}

#[tokio::test]
async fn a_lock_in_a_form_that_cannot_be_read_is_refused() {
    let (request, onward) = onward("PUT", &format!("{LEASES}/manager"), "application/cbor", "x");
    let locks = locks();
    let Touch::Lock(lock) = locks.touch(&request.info.verb, request.target().unwrap(), true).unwrap() else {
        panic!()
    };
    assert_eq!(onward.unwrap().rename(&request, lock).await.unwrap_err().code, 415);
}

#[test]
fn a_selector_is_mapped_and_the_rest_of_the_query_stays() {
    let query = "?limit=5&fieldSelector=metadata.namespace%3Da%2Cmetadata.name%3Dmanager&watch=1";
    let (_, onward) = onward("GET", &format!("{LEASES}{query}"), "", "");
    let mut onward = onward.unwrap();
    onward.select(|name| (name == "manager").then(|| "manager-kcm-1".to_owned())).unwrap();
    let target = onward.parts.uri.to_string();
    assert_eq!(target, format!("{LEASES}{}", query.replace("manager", "manager-kcm-1")));
    onward.select(|_| None).unwrap();
    assert_eq!(onward.parts.uri.to_string(), target);
}

#[test]
fn an_upgrade_has_no_body() {
    let code = |body| {
        let request = Request::post("/api/v1/namespaces/a/pods/b/exec").header("connection", "upgrade");
        let (parts, ()) = request.header("upgrade", "SPDY/3.1").body(()).unwrap().into_parts();
        let request = KubeRequest::parse(&parts.method, &parts.uri, &parts.headers).unwrap();
        Onward::new(&request, parts, body).err().map(|refusal| refusal.code.as_u16())
    };
    assert_eq!((code(body::empty()), code(body::full("a"))), (None, Some(400)));
}

#[tokio::test]
async fn a_body_that_has_to_be_read_is_not_unpacked() {
    for (coding, code) in [("gzip", 415), ("br", 415), ("gzip, gzip", 415), ("identity", 0)] {
        let request = Request::post("/api/v1/namespaces").header("content-type", "application/json");
        let (parts, ()) = request.header("content-encoding", coding).body(()).unwrap().into_parts();
        let request = KubeRequest::parse(&parts.method, &parts.uri, &parts.headers).unwrap();
        let mut onward =
            Onward::new(&request, parts, body::full(r#"{"metadata":{"name":"a"}}"#)).ok().unwrap();
        let read = onward.read().await;
        assert_eq!(read.map_or_else(|refusal| refusal.code.as_u16(), |_| 0), code, "{coding}");
    }
}

#[test]
fn a_body_in_an_unknown_coding_has_no_way_through() {
    let code = |codings: &[&str]| {
        let request = codings.iter().fold(Request::post("/api/v1/namespaces/a/pods"), |request, coding| {
            request.header("transfer-encoding", *coding)
        });
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let request = KubeRequest::parse(&parts.method, &parts.uri, &parts.headers).unwrap();
        Onward::new(&request, parts, body::empty()).map_or_else(|refusal| refusal.code.as_u16(), |_| 200)
    };
    for understood in [&[][..], &["chunked"], &["Chunked"]] {
        assert_eq!(code(understood), 200, "{understood:?}");
    }
    for unknown in
        [&["gzip, chunked"][..], &["chunked, chunked"], &["chunked", "chunked"], &["gzip", "chunked"], &[""]]
    {
        assert_eq!(code(unknown), 400, "{unknown:?}");
    }
}

#[tokio::test]
async fn many_small_frames_go_on_as_few() {
    let (request, small) = onward("POST", "/api/v1/namespaces", "application/json", "x");
    let mut onward = Onward::new(&request, small.unwrap().parts, Drops(1000)).unwrap();
    let frame = onward.body.frame().await.unwrap().unwrap();
    assert_eq!(frame.into_data().unwrap().len(), 1000);
    assert!(onward.body.frame().await.is_none());
}

/// So many frames of one byte.
struct Drops(usize);

impl HttpBody for Drops {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, BodyError>>> {
        let Some(left) = self.0.checked_sub(1) else { return std::task::Poll::Ready(None) };
        self.0 = left;
        std::task::Poll::Ready(Some(Ok(http_body::Frame::data(Bytes::from_static(b"x")))))
    }
}

#[tokio::test]
async fn a_body_is_bounded_whether_it_tells_its_length_or_not() {
    let large = "x".repeat(BODY_BYTES + 1);
    let (_, told) = onward("POST", "/api/v1/namespaces", "application/json", &large);
    assert_eq!(told.err().unwrap().code, 413);
    let (request, small) = onward("POST", "/api/v1/namespaces", "application/json", "x");
    // A mapped body does not tell its length.
    let untold = Full::new(Bytes::from(large)).map_frame(|frame| frame);
    assert_eq!(untold.size_hint().lower(), 0);
    let mut onward = Onward::new(&request, small.unwrap().parts, untold).unwrap();
    assert_eq!(onward.names(&request).await.unwrap_err().code, 413);
}

/// Most bodies are read by the connection upstream only.
#[tokio::test]
async fn a_body_that_fails_on_its_way_tells_why() {
    let (request, whole) = onward("PUT", "/api/v1/namespaces/a/pods/b", "application/json", "x");
    let mut whole = whole.unwrap();
    assert!(whole.body.frame().await.unwrap().is_ok());
    assert_eq!(whole.cut.refusal(), None);
    let untold = Full::new(Bytes::from("x".repeat(BODY_BYTES + 1))).map_frame(|frame| frame);
    let mut large = Onward::new(&request, whole.parts, untold).unwrap();
    assert!(large.body.frame().await.unwrap().is_err());
    assert_eq!(large.cut.refusal().unwrap().code, 413);
}

#[tokio::test]
async fn the_body_of_a_refused_request_is_read_but_not_for_ever() {
    let (_, small) = onward("PUT", "/api/v1/namespaces/a/pods/b", "application/json", "{}");
    let mut small = small.unwrap();
    small.discard().await;
    assert!(small.body.frame().await.is_none());
    // A proxied body has no limit of its own, and this one no end.
    let (request, proxied) = onward("POST", "/api/v1/namespaces/a/services/b/proxy/c", "text/plain", "x");
    let mut endless = Onward::new(&request, proxied.unwrap().parts, Endless).unwrap();
    endless.discard().await;
    assert!(endless.body.frame().await.is_some());
}

/// A body that never ends.
struct Endless;

impl HttpBody for Endless {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, BodyError>>> {
        std::task::Poll::Ready(Some(Ok(http_body::Frame::data(Bytes::from(vec![0; 1 << 20])))))
    }
}

const POD: &str = "/api/v1/namespaces/a/pods/b";
const SECOND: Duration = Duration::from_secs(1);

/// A request whose body comes a byte at a time.
fn slow(target: &str, pause: Duration) -> (KubeRequest, Onward) {
    let (request, whole) = onward("POST", target, "application/json", "x");
    let slow = Onward::new(&request, whole.unwrap().parts, Slow(interval(pause))).unwrap();
    (request, slow)
}

/// A body without an end, one byte after each pause.
struct Slow(Interval);

impl HttpBody for Slow {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, BodyError>>> {
        self.0.poll_tick(cx).map(|_| Some(Ok(http_body::Frame::data(Bytes::from_static(b"x")))))
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_stalls_ends_after_its_pause() {
    for target in [POD, "/api/v1/namespaces/a/services/b/proxy/c"] {
        let (_, mut patient) = slow(target, BODY_PAUSE / 2);
        for _ in 0..100 {
            assert!(patient.body.frame().await.unwrap().is_ok(), "{target}");
        }
        let (_, mut stalled) = slow(target, BODY_PAUSE * 100);
        assert!(stalled.body.frame().await.unwrap().is_ok(), "{target}");
        let begun = Instant::now();
        assert!(stalled.body.frame().await.unwrap().is_err(), "{target}");
        assert_eq!(begun.elapsed(), BODY_PAUSE, "{target}");
        assert_eq!(stalled.cut.refusal().unwrap().code, 400, "{target}");
    }
}

/// A byte now and then is no pause, and would hold the client's place for hours.
#[tokio::test(start_paused = true)]
async fn a_body_that_is_read_here_has_a_deadline() {
    for (pause, time) in [(BODY_PAUSE / 2, READ_TIME), (BODY_PAUSE * 100, BODY_PAUSE)] {
        let (request, mut slow) = slow("/api/v1/namespaces", pause);
        let begun = Instant::now();
        assert_eq!(slow.names(&request).await.unwrap_err().code, 400, "{pause:?}");
        assert_eq!(begun.elapsed(), time, "{pause:?}");
        // Nothing is left that could be waited for again.
        slow.discard().await;
        assert_eq!(begun.elapsed(), time, "{pause:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_body_of_a_refused_request_is_not_waited_for_long() {
    for pause in [SECOND, DISCARD_TIME * 2, BODY_PAUSE * 100] {
        let begun = Instant::now();
        slow(POD, pause).1.discard().await;
        assert_eq!(begun.elapsed(), DISCARD_TIME, "{pause:?}");
    }
    // Nor is one that was never taken over.
    let begun = Instant::now();
    discard(&mut Slow(interval(SECOND))).await;
    assert_eq!(begun.elapsed(), DISCARD_TIME);
    discard(&mut Endless).await;
}

#[test]
fn a_request_is_signed() {
    let (_, onward) = onward("PUT", "/api/v1/namespaces/a/pods/b", "", "");
    let mut onward = onward.unwrap();
    onward.sign("kcm/kcm-0@1", Some(Claim { slot: Slot(3), epoch: 2 }));
    assert_eq!(onward.parts.headers[header::USER_AGENT], "/ shoal/kcm/kcm-0@1 :3.2");
}

fn uid() -> Demand {
    Demand { uid: Some("u".into()), version: None }
}

#[tokio::test]
async fn a_delete_with_a_body_keeps_it() {
    let body = r#"{"kind":"DeleteOptions","preconditions":{"uid":"own"}}"#;
    let (request, given) = onward("DELETE", "/api/v1/nodes/n", "application/json", body);
    assert_eq!(given.unwrap().demanded(&request).await.unwrap().unwrap().uid.as_deref(), Some("own"));
    let (request, given) = onward("DELETE", "/api/v1/nodes/n?dryRun=All", "application/json", "{}");
    let mut given = given.unwrap();
    given.demand(&request, &uid()).await.unwrap();
    assert_eq!(given.read().await.unwrap(), r#"{"preconditions":{"uid":"u"}}"#);
    let (request, given) = onward("DELETE", "/api/v1/nodes/n", "application/yaml", "gracePeriodSeconds: 1");
    let mut given = given.unwrap();
    given.demand(&request, &uid()).await.unwrap();
    assert_eq!(given.read().await.unwrap(), r#"{"gracePeriodSeconds":1,"preconditions":{"uid":"u"}}"#);
    let (request, given) = onward("DELETE", "/api/v1/nodes/n", "application/cbor", "{}");
    assert_eq!(given.unwrap().demand(&request, &uid()).await.unwrap_err().code, 415);
}

#[tokio::test]
async fn a_delete_gets_its_demand_in_a_body() {
    for (query, demanded, wanted) in [("?dryRun=All", None, "u"), ("?dryRun=All&uid=own", Some("own"), "own")]
    {
        let target = format!("/api/v1/namespaces/x/pods/web{query}");
        let (request, onward) = onward("DELETE", &target, "text/plain", "");
        let mut onward = onward.unwrap();
        let own = onward.demanded(&request).await.unwrap().unwrap().uid;
        assert_eq!(own.as_deref(), demanded);
        let uid = own.or(Some("u".to_owned()));
        onward.demand(&request, &Demand { uid, version: None }).await.unwrap();
        assert_eq!(onward.parts.headers[header::CONTENT_TYPE], "application/json");
        let body: serde_json::Value = serde_json::from_slice(&onward.read().await.unwrap()).unwrap();
        let wanted = json!({"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"],
            "preconditions": {"uid": wanted}});
        assert_eq!(body, wanted, "{query}");
    }
}

#[tokio::test]
async fn an_eviction_gets_its_demand_too() {
    let path = "/api/v1/namespaces/x/pods/web/eviction?dryRun=All";
    for (body, wanted) in [
        (
            r#"{"metadata":{"name":"web"}}"#,
            r#"{"deleteOptions":{"preconditions":{"uid":"u"}},"metadata":{"name":"web"}}"#,
        ),
        ("", ""),
    ] {
        let (request, onward) = onward("POST", path, "application/json", body);
        let mut onward = onward.unwrap();
        assert_eq!(onward.demanded(&request).await.unwrap().unwrap().uid, None);
        onward.demand(&request, &uid()).await.unwrap();
        assert_eq!(onward.read().await.unwrap(), wanted);
    }
}

#[tokio::test]
async fn an_object_in_yaml_goes_on_in_json() {
    let path = "/api/v1/namespaces";
    let yaml = "metadata:\n  generateName: web-\ndata: {n: 1}\n";
    let (request, given) = onward("POST", path, "application/yaml", yaml);
    let mut given = given.unwrap();
    assert_eq!(given.names(&request).await.unwrap().generate_name, "web-");
    given.give_name(&request, "web-b").await.unwrap();
    assert_eq!(given.parts.headers[header::CONTENT_TYPE], "application/json");
    let body: serde_json::Value = serde_json::from_slice(&given.read().await.unwrap()).unwrap();
    assert_eq!(body, json!({"metadata": {"generateName": "web-", "name": "web-b"}, "data": {"n": 1}}));
    for (content_type, body) in
        [("application/yaml", "- a"), ("application/yaml", "a: ["), ("application/cbor", "x")]
    {
        let (request, bad) = onward("POST", path, content_type, body);
        assert_eq!(bad.unwrap().names(&request).await.unwrap_err().code, 415, "{body}");
    }
}

#[tokio::test]
async fn a_request_can_be_sent_again_under_another_name() {
    let (request, given) =
        onward("POST", "/api/v1/namespaces", "application/json", r#"{"metadata":{"name":"a"}}"#);
    let mut given = given.unwrap();
    given.names(&request).await.unwrap();
    assert!(given.again().is_none());
    let body = r#"{"metadata":{"generateName":"w-"}}"#;
    let (request, given) = onward("POST", "/api/v1/namespaces", "application/json", body);
    let mut given = given.unwrap();
    for name in ["w-b", "w-longer"] {
        given.give_name(&request, name).await.unwrap();
        let wanted = format!(r#"{{"metadata":{{"name":"{name}","generateName":"w-"}}}}"#);
        assert_eq!(given.read().await.unwrap(), wanted);
        assert_eq!(given.parts.headers[header::CONTENT_LENGTH], wanted.len().to_string());
        given = given.again().unwrap();
        assert_eq!(given.body.frame().await.unwrap().unwrap().into_data().unwrap(), wanted);
    }
}
