//! What a shard is to answer, from what the API server answered: the same bytes without what belongs to others.

mod json;
mod proto;

use super::owner::Shard;
use super::pair::About;
use crate::raw::{Answer, Encoding};

pub(super) use self::json::Owners;

/// One event of a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    /// `ADDED` and so on.
    pub(super) kind: String,
    namespace: String,
    name: String,
    /// It ends the initial events of a `WatchList`.
    is_end: bool,
    /// All of it, as it came.
    pub(super) bytes: Vec<u8>,
}

/// The body of a list without the items of other shards; none if it cannot be read. `owners` says whose the rows of a
/// table are that holds no objects.
pub(super) fn list(
    answer: &Answer,
    shard: &Shard,
    about: &About,
    owners: Option<&Owners>,
) -> Option<Vec<u8>> {
    let shows = |namespace: &str, name: &str| shard.shows(about, namespace, name);
    match answer.encoding()? {
        Encoding::Json => json::list(&answer.body, shows, owners),
        Encoding::Protobuf => proto::list(&answer.body, shows),
    }
}

/// Whose the rows of a table are.
pub(super) fn owners(table: &Answer) -> Option<Owners> {
    json::owners(&table.body)
}

/// Whether a list has null for its items.
pub(super) fn is_null(answer: &Answer) -> bool {
    answer.encoding() == Some(Encoding::Json) && json::is_null(&answer.body)
}

/// JSON without the blanks between its values.
pub(super) fn unblanked(body: &[u8]) -> Option<String> {
    Some(serde_json::from_slice::<serde_json::Value>(body).ok()?.to_string())
}

/// How many items a list holds.
pub(super) fn count(answer: &Answer) -> usize {
    match answer.encoding() {
        Some(Encoding::Json) => json::count(&answer.body),
        Some(Encoding::Protobuf) => answer.items().map_or(0, |items| items.len()),
        None => 0,
    }
}

/// `metadata.continue` of a list; empty at its end.
pub(super) fn next_page(answer: &Answer) -> String {
    match answer.encoding() {
        Some(Encoding::Json) => json::next_page(&answer.body),
        Some(Encoding::Protobuf) => proto::next_page(&answer.body).unwrap_or_default(),
        None => String::new(),
    }
}

/// Whether a list says how many items are left.
pub(super) fn says_remaining(answer: &Answer) -> bool {
    match answer.encoding() {
        Some(Encoding::Json) => json::says_remaining(&answer.body),
        Some(Encoding::Protobuf) => proto::says_remaining(&answer.body),
        None => false,
    }
}

/// The events of a watch, in order; none if they cannot be read.
pub(super) fn events(answer: &Answer) -> Option<Vec<Event>> {
    match answer.encoding()? {
        Encoding::Json => json::events(&answer.body),
        Encoding::Protobuf => proto::events(&answer.body),
    }
}

// === impl Event ===

impl Event {
    /// The bookmarks that the server sends when it likes.
    pub(super) fn is_progress(&self) -> bool {
        self.kind == "BOOKMARK" && !self.is_end
    }

    /// Of a watched table only the first event says what the columns are.
    pub(super) fn take_columns_of(&mut self, opening: &Self) -> bool {
        let moved = json::with_columns(&self.bytes, &opening.bytes);
        moved.map(|bytes| self.bytes = bytes).is_some()
    }

    pub(super) fn is_shown(&self, shard: &Shard, about: &About) -> bool {
        matches!(self.kind.as_str(), "BOOKMARK" | "ERROR") || shard.shows(about, &self.namespace, &self.name)
    }
}
