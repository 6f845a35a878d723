//! Answers that are no tunnel: they pass, and the client's connection ends with them (CVE-2018-1002105).

use shoal_tests::scripted::pods::namespaces;

use crate::fixture::{SWITCHES, asked, exec, forgotten, soon, stage, websocket};

/// What a client sends on before it is answered: a request for whoever reads it as one.
const BEHIND: &str =
    "DELETE /api/v1/namespaces/default/pods/hidden HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";

#[tokio::test]
async fn any_other_answer_passes_and_ends_the_connection() {
    let stage = stage("upgrade_answers").await;
    for (answer, heard) in [
        (
            "403 Forbidden\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
            "content-type: application/json",
        ),
        (
            "200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\nKeep-Alive: 5\r\n\r\n{}",
            "content-length: 2",
        ),
        ("200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", "transfer-encoding: chunked"),
        (
            "301 Moved Permanently\r\nLocation: https://10.0.0.1/x\r\nContent-Length: 0\r\n\r\n",
            "location: https://10.0.0.1/x",
        ),
        ("302 Found\r\nLocation: /y\r\nContent-Length: 0\r\n\r\n", "location: /y"),
        ("307 Temporary Redirect\r\nLocation: /z\r\nContent-Length: 0\r\n\r\n", "location: /z"),
        (
            "500 Internal Server Error\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nContent-Length: 0\r\n\r\n",
            "content-length: 0",
        ),
    ] {
        let head = websocket(&exec(true)) + BEHIND;
        let (mut client, mut server, _) = asked(&stage, &head).await;
        server.say(format!("HTTP/1.1 {answer}")).await.unwrap();
        let got = soon("the proxy to close", client.rest()).await.unwrap();
        let got = String::from_utf8(got).unwrap();
        let code = &answer[..3];
        assert!(got.starts_with(&format!("HTTP/1.1 {code} ")), "{answer}: {got}");
        assert!(got.contains(&format!("\r\n{heard}\r\n")), "{answer}: {got}");
        assert!(got.contains("\r\nconnection: close\r\n") && !got.contains("keep-alive"), "{answer}: {got}");
        assert!(!got.contains("\r\nupgrade"), "{answer}: {got}");
        assert_eq!(got.matches("HTTP/1.1 ").count(), 1, "{answer}: {got}");
        assert_eq!(soon("the upstream's end", server.rest()).await.unwrap(), b"", "{answer}");
    }
    forgotten(&stage).await;
    assert!(stage.upstream.seen().requests.is_empty(), "{:?}", stage.upstream.seen().requests);
}

/// A server that ignores the upgrade answers what it answers to anybody: the filter holds.
#[tokio::test]
async fn a_list_that_asks_for_an_upgrade_is_filtered_all_the_same() {
    let stage = stage("upgrade_list").await;
    let (own, foreign) = (namespaces(true).next().unwrap(), namespaces(false).next().unwrap());
    let item =
        |namespace: &str| format!(r#"{{"metadata":{{"name":"{namespace}","namespace":"{namespace}"}}}}"#);
    let list = format!(
        r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{}},"items":[{},{}]}}"#,
        item(&own),
        item(&foreign)
    );
    let (mut client, mut server, _) = asked(&stage, &websocket("/api/v1/pods")).await;
    let length = list.len();
    server
        .say(format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{list}"
        ))
        .await
        .unwrap();
    let got = String::from_utf8(soon("the list", client.rest()).await.unwrap()).unwrap();
    assert!(got.contains(&own) && !got.contains(&foreign), "{got}");
    // And one that obeys it says what nobody can read.
    let (mut client, mut server, _) = asked(&stage, &websocket("/api/v1/pods")).await;
    server.say(format!("{SWITCHES}{list}")).await.unwrap();
    let got = String::from_utf8(soon("a refusal", client.rest()).await.unwrap()).unwrap();
    assert!(got.starts_with("HTTP/1.1 502 ") && !got.contains(&own), "{got}");
}

#[tokio::test]
async fn another_protocol_than_was_asked_for_is_no_tunnel() {
    let stage = stage("upgrade_other_protocol").await;
    for lines in [
        "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n",
        "Connection: Upgrade\r\nUpgrade: h2c\r\n",
        "Connection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c\r\n",
        "Connection: Upgrade\r\n",
        "",
    ] {
        let (mut client, mut server, _) = asked(&stage, &websocket(&exec(true))).await;
        server.say(format!("HTTP/1.1 101 Switching Protocols\r\n{lines}\r\nhello")).await.unwrap();
        let got = String::from_utf8(soon("a refusal", client.rest()).await.unwrap()).unwrap();
        assert!(got.starts_with("HTTP/1.1 502 Bad Gateway\r\n"), "{lines}: {got}");
        assert!(got.contains(r#""kind":"Status""#) && !got.contains("hello"), "{lines}: {got}");
        assert_eq!(soon("the upstream's end", server.rest()).await.unwrap(), b"", "{lines}");
    }
    forgotten(&stage).await;
}

/// No command may run twice: whether it has begun is not known.
#[tokio::test]
async fn an_upgrade_that_is_cut_before_its_answer_is_not_sent_again() {
    let stage = stage("upgrade_cut").await;
    for begun in ["", "HTTP/1.1 101 Swit"] {
        let (mut client, mut server, _) = asked(&stage, &websocket(&exec(true))).await;
        server.say(begun).await.unwrap();
        drop(server);
        let got = String::from_utf8(soon("a refusal", client.rest()).await.unwrap()).unwrap();
        assert!(got.starts_with("HTTP/1.1 502 ") && got.contains("may have been done"), "{got}");
        assert!(!got.contains("retry-after"), "{got}");
    }
    forgotten(&stage).await;
}
