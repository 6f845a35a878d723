//! A listener for each cluster.

use shoal_tests::scripted::peer::Peer;
use shoal_tests::soon;
use tokio::net::TcpStream;

use crate::{EAST, Stand, named};

/// What a listener without TLS answers.
async fn heard(address: &str, target: &str) -> String {
    let tcp = soon("a connection", TcpStream::connect(address.trim_start_matches("http://"))).await.unwrap();
    let mut peer = Peer::new(tcp);
    peer.say(format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")).await.unwrap();
    String::from_utf8(soon("an answer", peer.rest()).await.unwrap()).unwrap()
}

#[tokio::test]
async fn each_cluster_has_a_listener_of_its_own() {
    let line = r#"exec "$@" --listen=http://127.0.0.1:0 --listen=east=http://127.0.0.1:0"#;
    let stand = Stand::start("member_listeners", line, |exchange| named(exchange, EAST)).await;
    let (status, page) = stand.proxy.page("/configz").await.unwrap();
    assert_eq!(status, 200);
    let page: serde_json::Value = serde_json::from_str(&page).unwrap();
    let listeners: Vec<(String, String)> = serde_json::from_value(page["listeners"].clone()).unwrap();
    let [(hub, hub_url), (east, east_url)] = &listeners[..] else { panic!("{listeners:?}") };
    assert_eq!((hub.as_str(), east.as_str(), hub_url.as_str()), ("hub", EAST, stand.proxy.url()));

    let get = "/api/v1/namespaces/default/configmaps/it";
    for (url, target, said) in [
        (hub_url, get.to_owned(), r#""name":"hub""#),
        (east_url, get.to_owned(), r#""name":"east""#),
        (hub_url, format!("/clusters/east{get}"), r#""name":"east""#),
        (hub_url, format!("/clusters/hub{get}"), r#""name":"hub""#),
        (east_url, format!("/clusters/hub{get}"), r#""code":404"#),
        (east_url, format!("/clusters/east{get}"), r#""code":404"#),
    ] {
        let heard = heard(url, &target).await;
        assert!(heard.contains(said), "{url}{target}: {heard}");
    }
    assert_eq!((stand.hub.seen().count(get), stand.east.seen().count(get)), (2, 2));
    let log = std::fs::read_to_string(stand.proxy.process().log_path()).unwrap();
    assert!(log.contains(east_url.as_str()), "{log}");
}
