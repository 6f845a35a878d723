//! Servers that do not do with a selector what they should.

use bytes::Bytes;
use http_body_util::BodyExt;
use shoal_judge::slot_of_uid;
use shoal_tests::scripted::client::{Http, Wire};
use shoal_tests::scripted::{DIRECTLY, Exchange, STREAMS, Scripted};
use shoal_tests::{RunDir, ring};

use crate::fixture::{RING, owner};

const SELECTOR: &str = "shardSelector=";

/// A list with an echo that is a lie: it holds objects of every shard.
fn list() -> String {
    let items: Vec<String> =
        (0..9).map(|n| format!(r#"{{"metadata":{{"name":"of-{n}","uid":"{n}-uid"}}}}"#)).collect();
    let echo = "shardRange(object.metadata.uid, '0x0000000000000000', '0x5600000000000000')";
    let metadata = format!(r#"{{"resourceVersion":"7","shardInfo":{{"selector":"{echo}"}}}}"#);
    format!(r#"{{"kind":"L","apiVersion":"v1","metadata":{metadata},"items":[{}]}}"#, items.join(","))
}

/// The code with which a path wants a selector to be answered: the name of its namespace.
async fn script(exchange: Exchange) {
    let target = exchange.target().to_owned();
    let code = target.split('/').nth(5).and_then(|namespace| namespace.strip_prefix("code-"));
    let code = code.and_then(|code| code.parse().ok()).filter(|_| target.contains(SELECTOR)).unwrap_or(200);
    let status = r#"{"kind":"Status","apiVersion":"v1","status":"Failure"}"#.to_owned();
    let body = if code == 200 { list() } else { status };
    let _ = exchange.answer(code, "application/json", Bytes::from(body)).await;
}

#[tokio::test]
async fn a_server_that_refuses_the_selector_is_asked_without_from_then_on_and_one_that_lies_is_not_believed()
{
    let dir = RunDir::for_test("keys_refusing").unwrap();
    let config = ring::changed(dir.path(), |_| RING.to_owned()).unwrap();
    let upstream = Scripted::start(dir.path(), STREAMS, script).await.unwrap();
    let proxy = upstream.proxy_of(DIRECTLY, &config, dir.path()).await.unwrap();
    let client = Wire::connect(&proxy, Http::Two).await.unwrap();
    for (code, wanted, requests) in [
        (200, 200, 1),
        (400, 200, 2),
        (422, 200, 2),
        (500, 200, 2),
        (501, 200, 2),
        // These say something else, and a second question would hide it.
        (401, 401, 1),
        (403, 403, 1),
        (410, 410, 1),
        (429, 429, 1),
    ] {
        let before = upstream.seen().requests.len();
        let target = format!("/apis/apps/v1/namespaces/code-{code}/things-{code}?limit=5");
        let response = client.get(&target, "application/json").await.unwrap();
        assert_eq!(response.status(), wanted, "{code}");
        #[allow(clippy::disallowed_methods, reason = "a body of this test")]
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let seen = upstream.seen().requests;
        let targets: Vec<&str> = seen[before..].iter().map(|request| request.target.as_str()).collect();
        assert_eq!(targets.len(), requests, "{code}: {targets:?}");
        assert!(targets[0].starts_with(&format!("{target}&{SELECTOR}")), "{targets:?}");
        assert!(targets.get(1).is_none_or(|second| *second == target), "{targets:?}");
        if wanted == 200 {
            let text = String::from_utf8(body.to_vec()).unwrap();
            let own = (0..9).filter(|n| owner(slot_of_uid(&format!("{n}-uid"))) == 0).count();
            assert!(own > 0 && own < 9);
            assert_eq!(text.matches("\"uid\"").count(), own, "{code}: {text}");
        }
        // Who has refused is not asked so again, and who has not is.
        let before = upstream.seen().requests.len();
        let again = format!("/apis/apps/v1/namespaces/code-200/things-{code}");
        assert_eq!(client.get(&again, "application/json").await.unwrap().status(), 200);
        let seen = upstream.seen().requests;
        let targets: Vec<&str> = seen[before..].iter().map(|request| request.target.as_str()).collect();
        assert_eq!(targets.len(), 1, "{code}: {targets:?}");
        assert_eq!(targets[0].contains(SELECTOR), requests == 1, "{code}: {targets:?}");
    }
}
