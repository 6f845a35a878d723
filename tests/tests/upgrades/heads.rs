//! The heads of an upgrade, both ways.

use shoal_tests::scripted::pods::namespaces;

use crate::fixture::{asked, asking, exec, soon, stage};

/// What is lost on the way ends at each hop, and what is new is the proxy's own; the rest is as it came.
#[tokio::test]
async fn every_header_of_an_upgrade_arrives_but_those_of_the_hop() {
    let stage = stage("upgrade_heads").await;
    let target = format!("{}?command=sh&command=-c&command=a%20b&stdin=true", exec(true));
    let lines = "connection: keep-alive, Upgrade\r\nupgrade: spdy/3.1\r\ncontent-length: 0\r\n\
        authorization: Bearer a\r\nx-stream-protocol-version: v4.channel.k8s.io\r\n\
        x-stream-protocol-version: v3.channel.k8s.io\r\nkeep-alive: 5\r\nte: trailers\r\nx-remote-user: root\r\n\
        user-agent: kubectl/v1\r\naudit-id: given\r\n";
    let (mut client, mut server, head) = asked(&stage, &asking("POST", &target, lines)).await;
    let mut arrived: Vec<_> = head.trim_end().split("\r\n").collect();
    assert_eq!(arrived.remove(0), format!("POST {target} HTTP/1.1"));
    arrived.sort_unstable();
    let agent = arrived.pop().unwrap();
    assert_eq!(agent.split(" :").next(), Some("x-stream-protocol-version: v4.channel.k8s.io"));
    let host = arrived.iter().position(|line| line.starts_with("host: 127.0.0.1:")).unwrap();
    arrived.remove(host);
    let agent = arrived.iter().position(|line| line.starts_with("user-agent: ")).unwrap();
    let agent = arrived.remove(agent);
    let claim = agent.strip_prefix("user-agent: kubectl/v1 shoal/kcm/kcm-0@1 :").unwrap();
    let slot = shoal_judge::slot_of("hub", &namespaces(true).next().unwrap());
    assert_eq!(claim, format!("{slot}.1"));
    assert_eq!(
        arrived,
        [
            "accept: application/json",
            "audit-id: given",
            "authorization: Bearer a",
            "connection: Upgrade",
            "content-length: 0",
            "upgrade: SPDY/3.1",
            "x-stream-protocol-version: v3.channel.k8s.io",
        ]
    );
    let lines = [
        "connection: Upgrade",
        "upgrade: SPDY/3.1",
        "x-stream-protocol-version: v4.channel.k8s.io",
        "x-a: b",
    ];
    server.say(format!("HTTP/1.1 101 Switching Protocols\r\n{}\r\n\r\n", lines.join("\r\n"))).await.unwrap();
    let head = soon("the 101", client.head()).await.unwrap();
    let mut passed: Vec<_> =
        head.trim_end().split("\r\n").skip(1).filter(|line| !line.starts_with("date: ")).collect();
    passed.sort_unstable();
    let mut lines = lines.to_vec();
    lines.sort_unstable();
    assert_eq!(passed, lines);
}

/// A browser has no other place for its token.
#[tokio::test]
async fn a_websocket_brings_its_token_and_no_log_shows_it() {
    let stage = stage("upgrade_token").await;
    let protocols = "base64url.bearer.authorization.k8s.io.c2VjcmV0LXRva2Vu, v5.channel.k8s.io";
    let lines = format!(
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: {protocols}\r\n"
    );
    let (mut client, mut server, head) = asked(&stage, &asking("GET", &exec(true), &lines)).await;
    for line in [
        "sec-websocket-version: 13".to_owned(),
        "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==".to_owned(),
        format!("sec-websocket-protocol: {protocols}"),
    ] {
        assert!(head.contains(&line), "{head}");
    }
    server
        .say(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n",
        )
        .await
        .unwrap();
    let head = soon("the 101", client.head()).await.unwrap();
    assert!(head.contains("sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
    assert!(head.contains("sec-websocket-protocol: v5.channel.k8s.io"), "{head}");
    let log = std::fs::read_to_string(stage.proxy.process().log_path()).unwrap();
    assert!(!log.contains("c2VjcmV0"), "{log}");
}
