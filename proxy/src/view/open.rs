//! Watches that begin.

use std::sync::Arc;

use http::{HeaderMap, header};

use super::{
    Seat, Spliced, View,
    fetch::Ask,
    splice::{Rest, Splice, Start},
    watching::{Parts, Watching},
};
use crate::{
    filter::{Encoding, Scanner, Shape, TableRows, body::Meter, event},
    ownership::lens::ShardLens,
    request::{path::Target, query::Query},
};

/// A watch whose answer has begun.
pub struct Opening {
    /// The cluster's name.
    pub cluster: Arc<str>,
    /// Whose watch it is, by [`client`].
    pub client: String,
    /// What it shows.
    pub lens: ShardLens,
    /// The query of its request.
    pub query: String,
    /// How its initial events are asked for once more.
    pub ask: Ask,
    /// How the answer is written.
    pub encoding: Encoding,
    /// How tables are shown, if it may hold any.
    pub tables: Option<TableRows>,
}

/// What the client gets.
pub enum Opened<B, M> {
    /// The watch.
    Watch(Box<Spliced<B, M>>),
    /// It resumes at a version from before a change that it was not told of: the one event that says so.
    Expired(bytes::Bytes),
}

/// What tells one client's lists and watches from others'. Two that are alike are taken for one, and then the worse counts.
pub fn client(path: &str, target: &Target, headers: &HeaderMap) -> String {
    let agent = headers.get(header::USER_AGENT).map(|agent| String::from_utf8_lossy(agent.as_bytes()));
    format!("{path}?{}&{} {}", target.label_selector, target.field_selector, agent.unwrap_or_default())
}

// === impl View ===

impl View {
    /// Opens a watch: from now on it is told of changes.
    pub fn open<B, M: Meter>(self: &Arc<Self>, opening: Opening, upstream: B, meter: M) -> Opened<B, M> {
        let (start, wants_bookmarks) = beginning(&opening.query);
        let Opening { cluster, client, lens, ask, encoding, tables, .. } = opening;
        let mut sight = self.sight.lock();
        let (own, frozen) = (sight.own, sight.frozen);
        let past = sight.past(&cluster);
        let seen = past.seen();
        let rest = if let Start::At(version) = start {
            if let Some(floor) = past.is_too_old(&client, version) {
                let message = format!("too old resource version: {version} ({})", floor + 1);
                self.metrics.view.forced_relists.inc();
                return Opened::Expired(event::expired(encoding, &message));
            }
            past.take(&client)
        } else {
            Rest::default()
        };
        let splice = Splice::new(encoding, start, own, frozen, rest);
        let takes_bursts = wants_bookmarks && tables.is_none();
        let parts = Parts { client, cluster, lens, encoding, takes_bursts, ask };
        let watching = Arc::new(Watching::new(parts, splice, seen, self.metrics.clone()));
        let number = sight.next;
        sight.next += 1;
        sight.watches.insert(number, watching.clone());
        drop(sight);
        let scanner = |watching| {
            let scanner = Scanner::new(encoding, Shape::Watch, watching);
            match tables {
                Some(rows) => scanner.with_tables(rows),
                None => scanner,
            }
        };
        let seat = Seat { view: self.clone(), number, watching };
        Opened::Watch(Box::new(Spliced::new(upstream, scanner, seat, meter)))
    }
}

/// Where a watch begins, and whether it asked for bookmarks.
fn beginning(query: &str) -> (Start, bool) {
    let query = Query::new(Some(query));
    let is_set = |key| {
        // As Go reads a bool (apimachinery `pkg/runtime/converter.go`): absent, "0" and "false" are no.
        query.get(key).ok().flatten().is_some_and(|value| !matches!(&*value, "0" | "false"))
    };
    let version = query.get("resourceVersion").ok().flatten().unwrap_or_default();
    let start = match version.parse() {
        _ if is_set("sendInitialEvents") && is_set("allowWatchBookmarks") => Start::Initial,
        Ok(version) if version > 0 => Start::At(version),
        _ => Start::Unmarked,
    };
    (start, is_set("allowWatchBookmarks"))
}
