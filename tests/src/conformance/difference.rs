//! The differences that users are told of: `docs/conformance.md` has the same table.

/// A way in which the answer through a proxy may differ from the direct one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Difference {
    Items,
    Remaining,
    Length,
    Identity,
    Yaml,
    Null,
    Blanks,
    Columns,
    Bookmarks,
    Foreign,
    Broad,
    Unclear,
    Lost,
    Uid,
    Twin,
    Changing,
    Agent,
}

// === impl Difference ===

impl Difference {
    /// In the order of the document.
    pub(super) const ALL: [Self; 17] = [
        Self::Items,
        Self::Remaining,
        Self::Length,
        Self::Identity,
        Self::Yaml,
        Self::Null,
        Self::Blanks,
        Self::Columns,
        Self::Bookmarks,
        Self::Foreign,
        Self::Broad,
        Self::Unclear,
        Self::Lost,
        Self::Uid,
        Self::Twin,
        Self::Changing,
        Self::Agent,
    ];

    /// What differs, and the exact form that is checked.
    pub(super) fn row(self) -> (&'static str, &'static str) {
        match self {
            Self::Items => (
                "items of a filtered list, rows of a table, events of a watch",
                "those of other shards are left out; the rest is the same bytes in the same order",
            ),
            Self::Remaining => ("`remainingItemCount` of a filtered list", "absent"),
            Self::Length => ("`Content-Length` of a filtered list", "absent, the body ends with its stream"),
            Self::Identity => (
                "`Content-Encoding: gzip` of a filtered list",
                "absent, with its `Vary`; the body is what the server sends uncompressed",
            ),
            Self::Yaml => (
                "a filtered list in YAML, and an error about it",
                "written as JSON, which is YAML, under `application/yaml`",
            ),
            Self::Null => ("`items: null` of a filtered list", "`items: []`"),
            Self::Blanks => (
                "blanks between the items of a filtered list asked for by `pretty`",
                "not kept; the items are",
            ),
            Self::Columns => (
                "the columns of a watched table whose first event is hidden",
                "come with the first event that is shown",
            ),
            Self::Bookmarks => (
                "bookmarks of a watch",
                "not compared, because the server sends them when it likes; the one that ends the initial events is",
            ),
            Self::Foreign => (
                "a write of what another shard owns",
                "409 Conflict, a create 503 ServiceUnavailable without `Retry-After`; cause `ForeignSlot`",
            ),
            Self::Broad => (
                "a deletecollection that is another shard's or everybody's, a nameless cluster-scoped create",
                "403 Forbidden; cause `ForeignSlot`, `NotNarrowed` or `NoName`",
            ),
            Self::Unclear => (
                "a URL that two servers could read in two ways",
                "400 BadRequest, whatever the server would say; a slash at the end is no such thing",
            ),
            Self::Lost => (
                "a write whose answer the server breaks off",
                "502 InternalError without `Retry-After`, not a broken stream",
            ),
            Self::Uid => ("the uid or token that a create in a dry run invents", "masked in both answers"),
            Self::Twin => (
                "uid, resourceVersion and times of an object that is really created twice",
                "masked in both answers",
            ),
            Self::Changing => (
                "`/metrics`, and lists of component statuses, whose order is new each time",
                "only the status is compared",
            ),
            Self::Agent => (
                "`User-Agent` in the audit log",
                "ends with ` shoal/RING/SHARD@TERM`, of a write that a slot decided with ` :SLOT.EPOCH` as well",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_the_same_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/conformance.md");
        let document = std::fs::read_to_string(path).unwrap();
        let table: Vec<String> =
            document.lines().filter(|line| line.starts_with("| ")).map(str::to_owned).collect();
        let rows = Difference::ALL.map(|difference| {
            let (what, form) = difference.row();
            format!("| {what} | {form} |")
        });
        assert_eq!(table[1..], rows);
    }
}
