//! Readers straight at the proxies, whose requests must not fail.

use futures_util::future::join_all;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Error;
use kube::api::{Api, ListParams, WatchParams};
use shoal_tests::{ControlPlane, Shards, User};

use crate::caches::whoever;

pub(crate) const READER: User = whoever("reader");

/// Requests of each sort a round and proxy. With a GOAWAY for one in fifty, fifty rounds see about two dozen of
/// watches and as many of calls.
const REQUESTS: usize = 8;
/// Fewer than there are.
const PAGE: u32 = 5;

/// One reader a proxy.
pub(crate) struct Readers(Vec<Api<ConfigMap>>);

/// What of a list comes after its first page.
pub(crate) struct Rest(String);

// === impl Readers ===

impl Readers {
    pub(crate) async fn start(plane: &ControlPlane, shards: &Shards) -> Self {
        let mut readers = Vec::new();
        for proxy in &shards.proxies {
            readers.push(Api::all(proxy.client(plane, &READER).await.unwrap()));
        }
        Self(readers)
    }

    /// Opens watches and closes them again, and lists, at all proxies: each is answered, whatever the API server says
    /// about the connection.
    pub(crate) async fn read(&self) {
        join_all(self.0.iter().map(|api| async move {
            let (watch, page) = (WatchParams::default(), ListParams::default().limit(PAGE));
            for _ in 0..REQUESTS {
                drop(api.watch(&watch, "0").await.unwrap());
                api.list(&page).await.unwrap();
            }
        }))
        .await;
    }

    /// The first page of a list through the first proxy.
    pub(crate) async fn first_page(&self) -> Rest {
        let page = self.0[0].list(&ListParams::default().limit(PAGE)).await.unwrap();
        Rest(page.metadata.continue_.unwrap())
    }

    /// What the next page is refused with, if it is.
    pub(crate) async fn next_page(&self, rest: &Rest) -> Option<u16> {
        let page = ListParams::default().limit(PAGE).continue_token(&rest.0);
        match self.0[0].list(&page).await {
            Ok(_) => None,
            Err(Error::Api(status)) => Some(status.code),
            Err(error) => panic!("{error}"),
        }
    }
}
