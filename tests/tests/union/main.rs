//! What the shards of a ring see together is what the API server has: nothing twice, nothing missing, no byte changed.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code, helpers included")]

mod forms;
mod load;
mod negotiation;
mod stream;
mod whole;

use std::time::Duration;

use futures_util::future::join_all;
use http::StatusCode;
use shoal_tests::raw::RawClient;
use shoal_tests::{ControlPlane, Options, RunDir, Shards, User, wait_for};

use crate::forms::{Event, Form, Item, List};
use crate::load::{DEPLOYMENTS, Kind, NAMESPACES, PODS, WIDGETS};
use crate::stream::{Stream, get};

const DEADLINE: Duration = Duration::from_mins(2);
/// A page that cuts through namespaces.
const PAGE: usize = 7;

/// Three shards, the API server itself, and what is in it.
struct Ground {
    shards: Shards,
    plane: ControlPlane,
    direct: RawClient,
    /// One for each shard, in order.
    views: Vec<RawClient>,
    /// Of the API server, when everything was there.
    version: String,
}

#[tokio::test]
async fn the_union_of_what_shards_see_is_what_the_server_has() {
    let dir = RunDir::for_test("union").unwrap();
    let ground = Ground::start(&dir).await;
    for kind in [PODS, DEPLOYMENTS, WIDGETS, NAMESPACES] {
        for &form in kind.forms {
            ground.lists(kind, form).await;
            ground.pages(kind, form).await;
            ground.watch_lists(kind, form).await;
        }
    }
    for kind in [PODS, DEPLOYMENTS, WIDGETS] {
        ground.watches(kind).await;
        ground.foreign_namespaces_are_empty(kind).await;
    }
    whole::kinds_that_all_shards_see(&ground).await;
    negotiation::forms_that_cannot_be_filtered(&ground).await;
    negotiation::yaml_is_served(&ground).await;
    negotiation::tables_are_served(&ground).await;
    negotiation::nothing_is_compressed(&ground).await;
}

// === impl Ground ===

impl Ground {
    async fn start(dir: &RunDir) -> Self {
        // Pods need no service account then.
        let flags = vec!["--disable-admission-plugins=ServiceAccount".to_owned()];
        let plane = ControlPlane::start(dir.path(), Options { flags, ..Options::default() }).await.unwrap();
        load::create(&plane).await;
        let upstream = plane.kubeconfig(&User::ADMIN).unwrap();
        let shards = Shards::start(&plane, &[upstream.clone(), upstream.clone(), upstream]).await.unwrap();
        let direct = RawClient::direct(&plane, &User::ADMIN).unwrap();
        let view = |proxy| RawClient::of_proxy(proxy, &plane, &User::ADMIN).unwrap();
        let views = shards.proxies.iter().map(view).collect();
        let version = version(&direct).await;
        Self { shards, plane, direct, views, version }
    }

    /// The whole list at one version.
    async fn lists(&self, kind: Kind, form: Form) {
        let target = format!("{}?resourceVersion={}&resourceVersionMatch=Exact", kind.path, self.version);
        let whole = list(&self.direct, &target, form).await;
        let parts = self.each(|view| list(view, &target, form)).await;
        assert!(parts.iter().all(|part| part.envelope == whole.envelope), "{target} {form:?}");
        self.is_divided(
            &whole.items,
            parts.into_iter().map(|part| part.items),
            &format!("{target} {form:?}"),
        );
    }

    /// Page by page; each page of a shard is what it owns of the server's, with the same way on.
    async fn pages(&self, kind: Kind, form: Form) {
        let mut next = String::new();
        loop {
            let from = match next.as_str() {
                "" => format!("resourceVersion={}&resourceVersionMatch=Exact", self.version),
                next => format!("continue={next}"),
            };
            let target = format!("{}?limit={PAGE}&{from}", kind.path);
            let whole = list(&self.direct, &target, form).await;
            let parts = self.each(|view| list(view, &target, form)).await;
            for part in &parts {
                assert_eq!((&part.envelope, &part.next), (&whole.envelope, &whole.next), "{target} {form:?}");
                assert_eq!(part.remaining, None, "{target} {form:?}: remainingItemCount counts foreign ones");
            }
            // Else its absence above says nothing.
            assert_eq!(whole.remaining.is_some(), !whole.next.is_empty(), "{target}");
            let what = format!("{target} {form:?}");
            self.is_divided(&whole.items, parts.into_iter().map(|part| part.items), &what);
            if whole.next.is_empty() {
                return;
            }
            next = whole.next;
        }
    }

    /// The initial events of a `WatchList`, up to the bookmark that ends them.
    async fn watch_lists(&self, kind: Kind, form: Form) {
        let target = format!(
            "{}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
            kind.path
        );
        let whole = initial(&self.direct, &target, form).await;
        let parts = self.each(|view| initial(view, &target, form)).await;
        self.is_divided(&whole, parts.into_iter(), &format!("{target} {form:?}"));
    }

    /// A watch from version 0: what there is, then a new object of each shard, in every form at once.
    async fn watches(&self, kind: Kind) {
        let target = format!("{}?watch=true&resourceVersion=0", kind.path);
        let clients = || std::iter::once(&self.direct).chain(&self.views);
        let mut open = Vec::new();
        for &form in kind.forms {
            let streams = clients().map(|client| Stream::open(client, &target, form.of_watch()));
            open.push((form, join_all(streams).await));
        }
        let marks = load::mark(&self.plane, &self.shards, kind, "web-new").await;
        for (form, streams) in &mut open {
            let mut seen = Vec::new();
            for (index, stream) in streams.iter_mut().enumerate() {
                // The direct one comes first and sees the marks of all.
                let mut left = if index == 0 { marks.clone() } else { vec![marks[index - 1].clone()] };
                let is_last = |event: &Event| {
                    left.retain(|mark| {
                        (mark.as_str(), "web-new") != (&*event.item.namespace, &*event.item.name)
                    });
                    left.is_empty()
                };
                seen.push(added(stream, *form, is_last).await);
            }
            let whole = seen.remove(0);
            self.is_divided(&whole, seen.into_iter(), &format!("{target} {form:?}"));
        }
    }

    /// Another shard's namespace looks as one in which there is nothing.
    async fn foreign_namespaces_are_empty(&self, kind: Kind) {
        for namespace in load::namespaces() {
            let target = kind.within(&namespace);
            for (proxy, view) in self.shards.proxies.iter().zip(&self.views) {
                let is_own = self.shards.owner(&namespace) == proxy.shard();
                let body = get(view, &target, Form::Json.of_list()).await.body;
                let is_empty = body.windows(10).any(|bytes| bytes == b"\"items\":[]");
                assert_eq!(is_empty, !is_own, "{} {target}", proxy.shard());
            }
        }
    }

    /// The same of every shard.
    async fn each<'a, F: Future>(&'a self, ask: impl Fn(&'a RawClient) -> F) -> Vec<F::Output> {
        join_all(self.views.iter().map(ask)).await
    }

    /// Each part is exactly what its shard owns of the whole, in the same order, byte for byte.
    fn is_divided(&self, whole: &[Item], parts: impl Iterator<Item = Vec<Item>>, what: &str) {
        for (proxy, part) in self.shards.proxies.iter().zip(parts) {
            let key = |item: &Item| {
                if item.namespace.is_empty() { item.name.clone() } else { item.namespace.clone() }
            };
            let is_own = |item: &&Item| self.shards.owner(&key(item)) == proxy.shard();
            let own: Vec<&Item> = whole.iter().filter(is_own).collect();
            let names = |items: &[&Item]| -> Vec<String> {
                items.iter().map(|item| format!("{}/{}", item.namespace, item.name)).collect()
            };
            let part: Vec<&Item> = part.iter().collect();
            assert_eq!(names(&part), names(&own), "{} {what}", proxy.shard());
            assert!(part == own, "{} {what}: bytes differ", proxy.shard());
        }
    }
}

/// The version of the API server's state.
async fn version(direct: &RawClient) -> String {
    let everything_is_there = || async {
        let body = get(direct, NAMESPACES.path, Form::Json.of_list()).await.body;
        let list: serde_json::Value = serde_json::from_slice(&body).unwrap();
        // The API server makes its own ones some time after its start.
        let count = list["items"].as_array().map_or(0, Vec::len);
        let version = list["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
        if count == load::namespaces().len() + 4 { Ok(version) } else { Err(format!("{count} namespaces")) }
    };
    wait_for("all namespaces", DEADLINE, everything_is_there).await.unwrap()
}

async fn list(client: &RawClient, target: &str, form: Form) -> List {
    let answer = get(client, target, form.of_list()).await;
    assert_eq!(answer.code, StatusCode::OK, "{target} {form:?}: {:?}", answer.status());
    form.list(&answer.body)
}

/// The initial events of a `WatchList`.
async fn initial(client: &RawClient, target: &str, form: Form) -> Vec<Item> {
    let mut stream = Stream::open(client, target, form.of_watch()).await;
    added(&mut stream, form, |event| event.ends_initial).await
}

/// The events of a stream, all of them ADDED, up to the last one; a bookmark is none of them.
async fn added(stream: &mut Stream, form: Form, mut is_last: impl FnMut(&Event) -> bool) -> Vec<Item> {
    let mut items = Vec::new();
    loop {
        let event = form.event(stream).await;
        let ends = is_last(&event);
        match event.kind.as_str() {
            "ADDED" => items.push(event.item),
            kind => assert!(kind == "BOOKMARK" && ends, "{event:?}"),
        }
        if ends {
            return items;
        }
    }
}
