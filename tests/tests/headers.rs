//! What becomes of the headers of a request and of its answer. The upstream is played by the test.
//!
//! No control plane is needed here.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code, helpers included")]

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use shoal_tests::scripted::client::{self, Http, Reader, Wire};
use shoal_tests::scripted::peer::Peer;
use shoal_tests::scripted::pods::namespaces;
use shoal_tests::scripted::{Exchange, PING, STREAMS, Stage};
use shoal_tests::soon;

const BOTH: [Http; 2] = [Http::One, Http::Two];
const TARGET: &str = "/api/v1/namespaces/default/configmaps/it";
/// What a client may say, several times where it may.
const SAID: [(&str, &str); 19] = [
    ("authorization", "Bearer a.b-c"),
    ("impersonate-user", "system:serviceaccount:a:b"),
    ("impersonate-group", "system:masters"),
    ("impersonate-group", "a, b"),
    ("impersonate-group", "c"),
    ("impersonate-uid", "1"),
    ("impersonate-extra-scopes", "view"),
    ("impersonate-extra-scopes", "edit"),
    ("impersonate-extra-acme%2fproject", "x"),
    ("impersonate_user", "is no impersonation"),
    (
        "accept",
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList, application/json;q=0.5",
    ),
    ("accept-encoding", "gzip"),
    ("accept-language", "de"),
    ("audit-id", "given"),
    ("if-none-match", "\"etag\""),
    ("cookie", "a=b; c=d"),
    ("x-anything", "inner   spaces stay"),
    ("x-utf8", "gr\u{fc}n"),
    ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
];
/// What it may not.
const CLAIMED: [&str; 12] = [
    "x-remote-user",
    "X-Remote-Group",
    "x-remote-uid",
    "x-remote-extra-scopes",
    "x_remote_user",
    "X_Remote-Group",
    "x-remote_extra_scopes",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-real-ip",
    "x-original-url",
    "forwarded",
];

fn request(wire: &Wire, target: &str, lines: &[(&str, &str)]) -> Request<Full<Bytes>> {
    let mut request = wire.request(target);
    for (name, value) in lines {
        let name: HeaderName = name.parse().unwrap();
        request.headers_mut().append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    request
}

/// Sends a request, answers it by `answer`, and returns the head that arrived upstream, and the answer.
async fn passed(
    stage: &mut Stage,
    wire: &Wire,
    request: Request<Full<Bytes>>,
    answer: Response<()>,
) -> (http::request::Parts, Response<hyper::body::Incoming>) {
    let wire = wire.clone();
    let asked = tokio::spawn(async move { wire.send(request).await });
    let exchange: Exchange = soon("it upstream", stage.next()).await.unwrap();
    let head = exchange.request.clone();
    exchange.head(answer).unwrap().end().unwrap();
    (head, soon("its answer", asked).await.unwrap().unwrap())
}

fn lines(headers: &HeaderMap) -> Vec<(String, Vec<u8>)> {
    let line = |(name, value): (&HeaderName, &HeaderValue)| (name.to_string(), value.as_bytes().to_vec());
    let mut lines: Vec<_> = headers.iter().map(line).collect();
    // Lines of one name keep their order.
    lines.sort_by(|(one, _), (other, _)| one.cmp(other));
    lines
}

#[tokio::test]
async fn every_header_passes_byte_by_byte_and_no_claim_does() {
    let mut stage = Stage::start("headers_pass", STREAMS).await.unwrap();
    for http in BOTH {
        let wire = stage.client(http).await.unwrap();
        let mut sent = request(&wire, TARGET, &SAID);
        for name in CLAIMED {
            sent.headers_mut().append(name.parse::<HeaderName>().unwrap(), HeaderValue::from_static("root"));
        }
        if http == Http::One {
            // What is named, and is nobody's but this hop's, ends here.
            sent.headers_mut()
                .append(header::CONNECTION, HeaderValue::from_static("X-Private, keep-alive, te"));
            sent.headers_mut().append("x-private", HeaderValue::from_static("1"));
        }
        let (head, _) = passed(&mut stage, &wire, sent, Response::new(())).await;
        let mut arrived = head.headers;
        assert_eq!(arrived.remove("user-agent").unwrap(), "/ shoal/kcm/kcm-0@1", "{http:?}");
        let mut said = request(&wire, TARGET, &SAID).headers().clone();
        said.remove(header::HOST);
        assert_eq!(lines(&arrived), lines(&said), "{http:?}");
    }
}

/// Whoever has a credential end here would be somebody else upstream.
#[tokio::test]
async fn connection_may_not_name_what_the_server_must_see() {
    let stage = Stage::start("headers_connection", STREAMS).await.unwrap();
    let mut refused = 0.0;
    for name in ["Authorization", "impersonate-user", "Accept", "content-type", "user-agent", "AUDIT-ID"] {
        for (method, upgrade) in [("GET", ""), ("DELETE", ""), ("GET", "Upgrade: websocket\r\n")] {
            let said = format!(
                "{method} {TARGET} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer a\r\nConnection: close, Upgrade, \
                 {name}\r\n{upgrade}\r\n"
            );
            let mut peer = Peer::new(client::secure(&stage.proxy, Http::One).await.unwrap());
            peer.say(&said).await.unwrap();
            let heard = String::from_utf8(soon("an answer", peer.rest()).await.unwrap()).unwrap();
            assert!(
                heard.starts_with("HTTP/1.1 400 ") && heard.contains("Connection names"),
                "{said}: {heard}"
            );
            refused += 1.0;
        }
    }
    assert!(stage.upstream.seen().requests.is_empty());
    let metrics = stage.proxy.metrics().await.unwrap();
    let counted = metrics.sum("shoal_refused_requests_total", &[r#"reason="Hop""#]);
    assert!((counted - refused).abs() < 0.5, "{counted} of {refused}");
}

#[tokio::test]
async fn a_request_has_one_audit_id_on_both_sides() {
    let mut stage = Stage::start("headers_audit_id", STREAMS).await.unwrap();
    let mut made = Vec::new();
    for http in BOTH {
        let wire = stage.client(http).await.unwrap();
        let (head, _) = passed(&mut stage, &wire, request(&wire, TARGET, &[]), Response::new(())).await;
        made.push(text(&head.headers, "audit-id"));
        // A server sends back what it got; the proxy changes nothing in that.
        let echo = Response::builder().header("audit-id", "mine").body(()).unwrap();
        let asked = request(&wire, TARGET, &[("audit-id", "mine")]);
        let (head, answer) = passed(&mut stage, &wire, asked, echo).await;
        assert_eq!(
            (text(&head.headers, "audit-id"), text(answer.headers(), "audit-id")),
            ("mine".into(), "mine".into())
        );
    }
    assert!(made[0] != made[1] && made.iter().all(|id| id.len() == 36), "{made:?}");

    let foreign = format!("/api/v1/namespaces/{}/configmaps/it", namespaces(false).next().unwrap());
    for http in BOTH {
        let wire = stage.client(http).await.unwrap();
        for (lines, target, code) in [
            (&[("audit-id", "from-the-client")][..], foreign.as_str(), 409),
            (&[], foreign.as_str(), 409),
            (&[("audit-id", "unclear")], "/api/v1/namespaces/%zz", 400),
            (&[], "/clusters/nowhere/api", 404),
        ] {
            let mut asked = request(&wire, target, lines);
            *asked.method_mut() = Method::DELETE;
            let answer = soon("a refusal", wire.send(asked)).await.unwrap();
            assert_eq!(answer.status(), code, "{target}");
            let id = text(answer.headers(), "audit-id");
            match lines {
                [(_, given)] => assert_eq!(id, *given),
                _ => assert_eq!(id.len(), 36),
            }
            let log = std::fs::read_to_string(stage.proxy.process().log_path()).unwrap();
            assert!(code != 409 || log.contains(&format!(r#""audit_id":"{id}""#)), "{log}");
        }
    }
    // Read by the one that made it: nothing of these went upstream.
    assert_eq!(stage.upstream.seen().requests.iter().filter(|request| request.target != PING).count(), 4);
}

fn text(headers: &HeaderMap, name: &str) -> String {
    headers.get(name).map_or("", |value| value.to_str().unwrap()).to_owned()
}

#[tokio::test]
async fn an_answers_headers_arrive_as_they_came() {
    let mut stage = Stage::start("headers_answers", STREAMS).await.unwrap();
    for http in BOTH {
        let wire = stage.client(http).await.unwrap();
        let warnings = [r#"299 - "one""#, r#"299 - "two, with a comma""#, r#"299 - "one""#];
        let answer =
            warnings.iter().fold(Response::builder(), |answer, warning| answer.header("warning", *warning));
        let answer =
            answer.header("x-kubernetes-pf-flowschema-uid", "a").header("cache-control", "no-cache, private");
        let (_, answer) =
            passed(&mut stage, &wire, request(&wire, TARGET, &[]), answer.body(()).unwrap()).await;
        let warned: Vec<_> = answer.headers().get_all("warning").iter().collect();
        assert_eq!(warned, warnings, "{http:?}");
        assert_eq!(text(answer.headers(), "x-kubernetes-pf-flowschema-uid"), "a");

        for target in ["/openapi/v3", "/openapi/v3/apis/apps/v1?hash=1", "/apis", "/api", "/openapi/v2"] {
            let unchanged = Response::builder().status(304).header("etag", "\"1\"").header("vary", "Accept");
            let asked = request(&wire, target, &[("if-none-match", "\"1\""), ("accept-encoding", "gzip")]);
            let (head, answer) = passed(&mut stage, &wire, asked, unchanged.body(()).unwrap()).await;
            assert_eq!(text(&head.headers, "if-none-match"), "\"1\"", "{target}");
            assert_eq!(text(&head.headers, "accept-encoding"), "gzip", "{target}");
            assert_eq!(
                (answer.status(), text(answer.headers(), "etag")),
                (StatusCode::NOT_MODIFIED, "\"1\"".into())
            );
            assert_eq!(soon("no body", Reader::new(answer).rest()).await.unwrap(), b"", "{target}");
        }
    }
}

/// What is small on the wire may be large: nothing is unpacked here, and what need not be read passes as bytes.
#[tokio::test]
async fn a_packed_body_passes_as_bytes_or_not_at_all() {
    let mut stage = Stage::start("headers_packed", STREAMS).await.unwrap();
    let packed = &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0][..];
    let gzip = [("content-encoding", "gzip"), ("content-type", "application/json")];
    let owned = format!("/api/v1/namespaces/{}/configmaps", namespaces(true).next().unwrap());
    for http in BOTH {
        let wire = stage.client(http).await.unwrap();
        let packed = |target: &str| {
            let mut asked = request(&wire, target, &gzip);
            *asked.method_mut() = Method::POST;
            *asked.body_mut() = Full::from(packed);
            asked
        };
        for target in ["/api/v1/namespaces", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"] {
            let answer = soon("a refusal", wire.send(packed(target))).await.unwrap();
            assert_eq!(answer.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE, "{target}");
        }
        let (client, asked) = (wire.clone(), packed(&owned));
        let asked = tokio::spawn(async move { client.send(asked).await });
        let mut exchange = soon("it upstream", stage.next()).await.unwrap();
        assert_eq!(text(&exchange.request.headers, "content-encoding"), "gzip");
        assert_eq!(soon("its body", exchange.read()).await.unwrap(), &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0][..]);
        exchange.answer(415, "application/json", "{}").await.unwrap();
        assert_eq!(soon("its answer", asked).await.unwrap().unwrap().status(), 415);
    }
}
