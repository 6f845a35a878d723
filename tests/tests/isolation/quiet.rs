//! Watches in which everything belongs to others: they still move on.

use http::Request;
use shoal_tests::raw::{Encoding, Watch};
use shoal_tests::soon;

use crate::ground::{Ground, json_of};

const FOREIGN_EVENTS: usize = 50;

/// Exactly one bookmark ends the initial events, at the version of the server's own.
pub(crate) async fn nothing_but_the_end_of_the_initial_events(ground: &Ground) {
    let initial =
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1";
    for encoding in Encoding::ALL {
        let target = format!("/api/v1/namespaces/{}/configmaps?watch=true&{initial}", ground.foreign[0]);
        let last = ground.config_map(&ground.foreign[0], &format!("last-{encoding:?}").to_lowercase()).await;
        let (events, bookmarks) = events(ground, &target, encoding).await;
        assert_eq!(events, Vec::<String>::new(), "{encoding:?}");
        let version: u64 = last.metadata().unwrap().resource_version.parse().unwrap();
        assert!(bookmarks.first() >= Some(&version), "{encoding:?}: {bookmarks:?}, written at {version}");
        assert!(bookmarks.is_sorted(), "{encoding:?}: {bookmarks:?}");
    }
}

/// After any number of events of others the next own one comes, and nothing of them before it.
pub(crate) async fn foreign_events_hold_nothing_up(ground: &Ground) {
    for encoding in Encoding::ALL {
        let list = json_of(&ground.see("GET", "/api/v1/configmaps?limit=1").await);
        let from = list["metadata"]["resourceVersion"].as_str().unwrap();
        let target = format!("/api/v1/configmaps?watch=true&resourceVersion={from}");
        let request = Request::get(target).header("accept", encoding.media_type());
        let mut watch = ground.view.watch(request.body(Vec::new()).unwrap()).await.unwrap();
        let name = |number: usize| format!("quiet-{encoding:?}-{number}").to_lowercase();
        for number in 0..FOREIGN_EVENTS {
            ground.config_map(&ground.foreign[number % 2], &name(number)).await;
        }
        let own = ground.config_map(&ground.own, &name(FOREIGN_EVENTS)).await.metadata().unwrap();
        let (kind, shown) = soon("the own event", watch.next()).await.unwrap().unwrap();
        assert_eq!((kind.as_str(), shown), ("ADDED", own), "{encoding:?}");
    }
}

/// Watches, one an encoding, of a namespace that belongs to others, in which something is written meanwhile; and the
/// version of the last of it.
pub(crate) async fn watches_of_others(ground: &Ground) -> (Vec<Watch>, u64) {
    let foreign = &ground.foreign[1];
    let target = format!("/api/v1/namespaces/{foreign}/configmaps?watch=true&allowWatchBookmarks=true");
    let mut watches = Vec::new();
    for encoding in Encoding::ALL {
        let request = Request::get(&target).header("accept", encoding.media_type());
        watches.push(ground.view.watch(request.body(Vec::new()).unwrap()).await.unwrap());
    }
    for number in 0..FOREIGN_EVENTS {
        ground.config_map(foreign, &format!("unseen-{number}")).await;
    }
    let last = ground.config_map(foreign, "unseen-last").await.metadata().unwrap();
    (watches, last.resource_version.parse().unwrap())
}

/// The server sends a bookmark about once a minute, and that is all that comes: the client's version goes on with it.
pub(crate) async fn bookmarks_go_on((watches, written): (Vec<Watch>, u64)) {
    for mut watch in watches {
        let mut version = 0;
        while version < written {
            let (kind, metadata) = soon("a bookmark", watch.next()).await.unwrap().unwrap();
            assert_eq!(kind, "BOOKMARK");
            version = metadata.resource_version.parse().unwrap();
        }
    }
}

/// What a watch shows until it ends by itself: events that are no bookmarks, and the versions of those that are.
async fn events(ground: &Ground, target: &str, encoding: Encoding) -> (Vec<String>, Vec<u64>) {
    let request = Request::get(target).header("accept", encoding.media_type());
    let mut watch = ground.view.watch(request.body(Vec::new()).unwrap()).await.unwrap();
    let (mut events, mut bookmarks) = (Vec::new(), Vec::new());
    while let Some((kind, metadata)) = watch.next().await.unwrap() {
        if kind == "BOOKMARK" {
            bookmarks.push(metadata.resource_version.parse().unwrap());
        } else {
            events.push(format!("{kind} {}/{}", metadata.namespace, metadata.name));
        }
    }
    (events, bookmarks)
}
