//! A proxy whose upstream answers upgrades by hand.

use shoal_tests::scripted::client::{self, Http};
use shoal_tests::scripted::peer::{Client, Peer, Server};
use shoal_tests::scripted::pods::namespaces;
use shoal_tests::scripted::{STREAMS, Stage};
pub(crate) use shoal_tests::soon;

/// What an API server answers to a WebSocket.
pub(crate) const SWITCHES: &str =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";

pub(crate) async fn stage(test: &str) -> Stage {
    Stage::start(test, STREAMS).await.unwrap()
}

/// exec in a Pod that the shard owns, or does not.
pub(crate) fn exec(owned: bool) -> String {
    format!("/api/v1/namespaces/{}/pods/web/exec", namespaces(owned).next().unwrap())
}

/// The head of a WebSocket's request.
pub(crate) fn websocket(target: &str) -> String {
    asking("GET", target, "Connection: Upgrade\r\nUpgrade: websocket\r\n")
}

/// A head with these lines.
pub(crate) fn asking(method: &str, target: &str, lines: &str) -> String {
    format!("{method} {target} HTTP/1.1\r\nHost: a\r\nAccept: application/json\r\n{lines}\r\n")
}

/// A connection to the proxy.
pub(crate) async fn client(stage: &Stage) -> Client {
    Peer::new(soon("TLS", client::secure(&stage.proxy, Http::One)).await.unwrap())
}

/// A client that has sent this head, the upstream that got it, and the head that it got.
pub(crate) async fn asked(stage: &Stage, head: &str) -> (Client, Server, String) {
    let mut client = client(stage).await;
    client.say(head).await.unwrap();
    let mut server = soon("a connection upstream", stage.upstream.http1()).await.unwrap();
    let head = soon("a head upstream", server.head()).await.unwrap();
    (client, server, head)
}

/// Both ends of a tunnel.
pub(crate) async fn tunnel(stage: &Stage) -> (Client, Server) {
    let (mut client, mut server, _) = asked(stage, &websocket(&exec(true))).await;
    server.say(SWITCHES).await.unwrap();
    let head = soon("the 101", client.head()).await.unwrap();
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    (client, server)
}

/// What a client that has sent this is answered until the proxy closes.
pub(crate) async fn answered(stage: &Stage, head: &str) -> String {
    let mut client = client(stage).await;
    client.say(head).await.unwrap();
    let text = soon("the proxy to close", client.rest()).await.unwrap();
    String::from_utf8(text).unwrap()
}

/// Waits until nothing of a tunnel is left in the proxy.
pub(crate) async fn forgotten(stage: &Stage) {
    let left = || async {
        let metrics = stage.proxy.metrics().await.map_err(|error| error.to_string())?;
        let streams = metrics.sum("shoal_streams", &[]);
        let tunnels = metrics.sum("shoal_upstream_connections", &[r#"traffic="tunnel""#]);
        let clients = metrics.sum("shoal_connections", &[]);
        let left = format!("{streams} streams, {tunnels} connections upstream, {clients} clients");
        if streams + tunnels + clients == 0.0 { Ok(()) } else { Err(left) }
    };
    shoal_tests::wait_for("nothing to be left", std::time::Duration::from_mins(1), left).await.unwrap();
}
