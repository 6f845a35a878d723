//! The golden table of the API server's own answers, and what hangs on more than the request line.

use std::collections::BTreeSet;

use http::HeaderValue;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// What the API server's own code answers; see requests.txt for how to make it anew.
const GOLDEN: &str = include_str!("testdata/requestinfo.golden.jsonl");
/// The lines that we refuse although Go reads them, each with the reason.
const REFUSED: &str = include_str!("testdata/refused.txt");

fn parse_line(line: &str) -> Result<RequestInfo, String> {
    let (method, target) = line.split_once(' ').unwrap();
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let uri: Uri = target.parse().map_err(|_| "Uri".to_owned())?;
    RequestInfo::parse(&method, &uri).map_err(|error| format!("{error:?}"))
}

/// The same JSON that the Go program prints.
fn as_go_prints(info: &RequestInfo) -> Value {
    let target = info.target.as_ref();
    let text = |field: fn(&Target) -> &str| target.map(field).unwrap_or_default();
    json!({
        "isResourceRequest": target.is_some(),
        "path": info.path,
        "verb": info.verb.as_str(),
        "apiPrefix": info.api_prefix,
        "apiGroup": text(|target| &target.resource.group),
        "apiVersion": text(|target| &target.resource.version),
        "namespace": text(|target| &target.namespace),
        "resource": text(|target| &target.resource.resource),
        "subresource": text(|target| &target.subresource),
        "name": text(|target| &target.name),
        "parts": target.map(Target::parts).unwrap_or_default(),
        "fieldSelector": text(|target| &target.field_selector),
        "labelSelector": text(|target| &target.label_selector),
    })
}

fn golden() -> impl Iterator<Item = (String, Value)> {
    GOLDEN.lines().map(|line| {
        let answer: Value = serde_json::from_str(line).unwrap();
        (answer["request"].as_str().unwrap().to_owned(), answer)
    })
}

fn request(method: &str, target: &str, headers: &[(HeaderName, &str)]) -> KubeRequest {
    let headers = headers.iter().map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap()));
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    KubeRequest::parse(&method, &target.parse().unwrap(), &headers.collect()).unwrap()
}

#[test]
fn equals_go_or_refuses() {
    let mut refused = BTreeSet::new();
    for (line, answer) in golden() {
        match (parse_line(&line), answer.get("info")) {
            (Ok(info), Some(theirs)) => assert_eq!(&as_go_prints(&info), theirs, "{line}"),
            (Ok(_), None) => panic!("Go refuses what we read: {line}"),
            (Err(reason), Some(_)) => assert!(refused.insert(format!("{reason} {line}"))),
            (Err(_), None) => {}
        }
    }
    let listed = REFUSED.lines().filter(|line| !line.is_empty() && !line.starts_with("# "));
    let listed: BTreeSet<_> = listed.map(str::to_owned).collect();
    let new: Vec<_> = refused.difference(&listed).collect();
    let gone: Vec<_> = listed.difference(&refused).collect();
    assert!(new.is_empty() && gone.is_empty(), "not in refused.txt: {new:#?}\nno longer refused: {gone:#?}");
}

#[test]
fn the_golden_table_is_of_these_requests() {
    let requests = include_str!("testdata/requests.txt").lines();
    let requests: Vec<_> = requests.filter(|line| !line.is_empty() && !line.starts_with("# ")).collect();
    assert!(requests.len() >= 300, "{}", requests.len());
    assert!(golden().map(|(line, _)| line).eq(requests), "make the golden table anew; requests.txt says how");
}

#[test]
fn the_name_is_found_in_the_raw_path() {
    let mut found = 0;
    for (line, _) in golden() {
        let Ok(RequestInfo { target: Some(target), .. }) = parse_line(&line) else { continue };
        let uri: Uri = line.split_once(' ').unwrap().1.parse().unwrap();
        let raw = target.name_in_path.clone().map(|range| &uri.path()[range]);
        let decoded = raw.map(|raw| percent_encoding::percent_decode_str(raw).decode_utf8().unwrap());
        match target.parts().get(1) {
            Some(part) => assert_eq!(decoded.as_deref(), Some(part.as_str()), "{line}"),
            None => assert_eq!(decoded, None, "{line}"),
        }
        found += usize::from(raw.is_some());
    }
    assert!(found > 100, "{found}");
}

#[test]
fn control_characters_and_broken_utf8_are_refused_in_what_decides() {
    let refusal = |target: &str| parse_line(&format!("GET {target}")).unwrap_err();
    assert_eq!(refusal("/api/v1/pods?labelSelector=a%00"), "ControlCharacter");
    assert_eq!(refusal("/api/v1/pods/%C3"), "NotUtf8");
    assert_eq!(refusal(&format!("/api/v1/pods?{}", "&".repeat(10_000))), "TooManyParameters");
    assert!(parse_line(&format!("GET /api/v1/pods?{}", "&".repeat(9_999))).is_ok());
    assert!(parse_line("GET /api/v1/pods?other=%ff%00").is_ok());
}

#[test]
fn writes_are_told_by_the_method() {
    let pod = "/api/v1/namespaces/a/pods/p";
    for method in ["POST", "PUT", "PATCH", "DELETE", "FOO", "get"] {
        assert!(request(method, pod, &[]).is_write(), "{method}");
    }
    for method in ["GET", "HEAD", "OPTIONS", "TRACE"] {
        assert!(!request(method, pod, &[]).is_write(), "{method}");
    }
}

#[test]
fn long_running_requests() {
    for target in [
        "/api/v1/pods?watch=1",
        "/api/v1/watch/pods",
        "/api/v1/proxy/nodes/n",
        "/api/v1/namespaces/a/pods/p/log",
        "/api/v1/namespaces/a/pods/p/exec",
        "/api/v1/namespaces/a/pods/p/attach",
        "/api/v1/namespaces/a/pods/p/portforward",
        "/api/v1/nodes/n/proxy/metrics",
        "/debug/pprof/profile",
    ] {
        assert!(request("GET", target, &[]).is_long_running(), "{target}");
    }
    for target in ["/api/v1/pods", "/api/v1/namespaces/a/pods/log", "/healthz", "/debug/pprof", "/exec"] {
        assert!(!request("GET", target, &[]).is_long_running(), "{target}");
    }
}

#[test]
fn headers_are_read_once() {
    let got = request(
        "PATCH",
        "/api/v1/namespaces/a/pods/p",
        &[
            (ACCEPT, "application/vnd.kubernetes.protobuf, */*"),
            (CONTENT_TYPE, "application/apply-patch+yaml"),
        ],
    );
    assert_eq!(got.accept.as_deref(), Some("application/vnd.kubernetes.protobuf, */*"));
    assert_eq!((got.body, got.status), (BodyType::ApplyYaml, StatusEncoding::Protobuf));

    let mut lines = HeaderMap::new();
    lines.append(ACCEPT, HeaderValue::from_static("application/json"));
    lines.append(ACCEPT, HeaderValue::from_static("application/vnd.kubernetes.protobuf"));
    let first = KubeRequest::parse(&Method::GET, &Uri::from_static("/api/v1/pods"), &lines).unwrap();
    assert_eq!((first.accept.as_deref(), first.status), (Some("application/json"), StatusEncoding::Json));

    lines.insert(ACCEPT, HeaderValue::from_bytes(b"\xff").unwrap());
    let refused = KubeRequest::parse(&Method::GET, &Uri::from_static("/api/v1/pods"), &lines);
    assert_eq!(refused, Err(RequestError::Header));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(
        method in "[A-Za-z]{1,8}", target in proptest::collection::vec(any::<u8>(), 0..64), accept in any::<Vec<u8>>(),
    ) {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let headers = HeaderValue::from_bytes(&accept).map(|value| HeaderMap::from_iter([(ACCEPT, value)]));
        if let Ok(uri) = Uri::try_from(target) {
            let _ = KubeRequest::parse(&method, &uri, &headers.unwrap_or_default());
        }
    }

    #[test]
    fn paths_made_of_hard_pieces_are_read_or_refused(
        pieces in proptest::collection::vec(proptest::sample::select(vec![
            "/", "api", "apis", "v1", "namespaces", "watch", "proxy", "status", "pods", "%2F", "%", "..", ".", "?",
            "&", "=", ";", "+", "watch=", "fieldSelector=", "metadata.name=", "%5C", ",", "%ff", "%00", "ä", "a",
        ]), 0..24),
    ) {
        let uri = format!("/{}", pieces.concat()).parse::<Uri>();
        let info = uri.as_ref().ok().and_then(|uri| RequestInfo::parse(&Method::GET, uri).ok());
        if let (Ok(uri), Some(target)) = (uri, info.and_then(|info| info.target)) {
            prop_assert!(target.name_in_path.is_none_or(|range| uri.path().get(range).is_some()));
        }
    }
}

#[test]
fn get_and_post_are_upgraded_and_what_is_proxied() {
    let headers: HeaderMap = [
        (http::header::CONNECTION, HeaderValue::from_static("Upgrade")),
        (http::header::UPGRADE, HeaderValue::from_static("websocket")),
    ]
    .into_iter()
    .collect();
    let pod = "/api/v1/namespaces/a/pods/b";
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "X"] {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let upgrade = |target: &str| {
            let read = KubeRequest::parse(&method, &target.parse().unwrap(), &headers);
            read.map(|request| request.upgrade)
        };
        let usual = matches!(method, Method::GET | Method::POST);
        let wanted = if usual { Ok(Some(Protocol::WebSocket)) } else { Err(RequestError::UpgradeMethod) };
        for target in [pod, &format!("{pod}/exec"), &format!("{pod}/eviction"), "/api/v1/pods", "/healthz"] {
            assert_eq!(upgrade(target), wanted, "{method} {target}");
        }
        assert_eq!(upgrade(&format!("{pod}/proxy/x")), Ok(Some(Protocol::WebSocket)), "{method}");
    }
}
