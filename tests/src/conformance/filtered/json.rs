//! JSON: lists, tables and lines of a watch, taken apart by serde into ranges of the body.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::Event;

/// Namespace and name of each row, in order.
pub(in crate::conformance) type Owners = Vec<(String, String)>;

const REMAINING: &[u8] = br#","remainingItemCount":"#;
/// As it is written, and asked for by `pretty`.
const NULL: [&[u8]; 2] = [br#""items":null"#, br#""items": null"#];
const NO_COLUMNS: &[u8] = br#""columnDefinitions":null"#;
const INITIAL_END: &str = "k8s.io/initial-events-end";

#[derive(Deserialize)]
struct List<'a> {
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    rows: Option<Vec<&'a RawValue>>,
    #[serde(default)]
    metadata: Value,
}

#[derive(Deserialize)]
struct Line<'a> {
    r#type: String,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Table<'a> {
    #[serde(borrow)]
    column_definitions: Option<&'a RawValue>,
}

/// An item of a list or a row of a table.
#[derive(Deserialize)]
struct Item {
    metadata: Option<Metadata>,
    object: Option<Object>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Object {
    kind: String,
    metadata: Option<Metadata>,
    rows: Vec<Row>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Row {
    object: Option<Box<Object>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    namespace: String,
    name: String,
    annotations: Option<std::collections::BTreeMap<String, String>>,
}

/// The server writes lists without blanks, so what is left is joined by commas alone.
pub(super) fn list(
    body: &[u8],
    shows: impl Fn(&str, &str) -> bool,
    owners: Option<&Owners>,
) -> Option<Vec<u8>> {
    let list: List<'_> = serde_json::from_slice(body).ok()?;
    let items = list.items.or(list.rows).unwrap_or_default();
    let (Some(begin), Some(close)) = (items.first(), items.last()) else {
        return Some(fill_null(&cut_remaining(body)));
    };
    let start = offset(body, begin)?;
    let end = offset(body, close)? + close.get().len();
    let kept: Option<Vec<&[u8]>> = items
        .iter()
        .enumerate()
        .map(|(index, item)| {
            let (namespace, name) = owner(item, owners.and_then(|owners| owners.get(index)))?;
            Some(shows(&namespace, &name).then_some(item.get().as_bytes()))
        })
        .collect::<Option<Vec<_>>>()
        .map(|kept| kept.into_iter().flatten().collect());
    Some([&cut_remaining(body.get(..start)?), &*kept?.join(&b','), &cut_remaining(body.get(end..)?)].concat())
}

pub(super) fn owners(body: &[u8]) -> Option<Owners> {
    let list: List<'_> = serde_json::from_slice(body).ok()?;
    list.rows?.iter().map(|row| owner(row, None)).collect()
}

pub(super) fn is_null(body: &[u8]) -> bool {
    NULL.iter().any(|null| body.windows(null.len()).any(|bytes| bytes == *null))
}

/// Of a list without items, hence without anything in which this could be text.
fn fill_null(body: &[u8]) -> Vec<u8> {
    for null in NULL {
        let at = body.windows(null.len()).position(|bytes| bytes == null);
        if let Some((before, rest)) = at.and_then(|at| body.split_at_checked(at)) {
            return [before, br#""items":[]"#, rest.get(null.len()..).unwrap_or_default()].concat();
        }
    }
    body.to_vec()
}

pub(super) fn count(body: &[u8]) -> usize {
    let list: Option<List<'_>> = serde_json::from_slice(body).ok();
    list.and_then(|list| list.items.or(list.rows)).map_or(0, |items| items.len())
}

pub(super) fn next_page(body: &[u8]) -> String {
    let list: Option<List<'_>> = serde_json::from_slice(body).ok();
    list.and_then(|list| list.metadata["continue"].as_str().map(str::to_owned)).unwrap_or_default()
}

pub(super) fn says_remaining(body: &[u8]) -> bool {
    let list: Option<List<'_>> = serde_json::from_slice(body).ok();
    list.is_some_and(|list| list.metadata.get("remainingItemCount").is_some())
}

pub(super) fn events(body: &[u8]) -> Option<Vec<Event>> {
    body.split_inclusive(|byte| *byte == b'\n').map(event).collect()
}

/// A line whose table has no columns, with those of another line; none if it has some or the other has none.
pub(super) fn with_columns(line: &[u8], of: &[u8]) -> Option<Vec<u8>> {
    let opening: Line<'_> = serde_json::from_slice(of).ok()?;
    let table: Table<'_> = serde_json::from_str(opening.object.get()).ok()?;
    let columns = table.column_definitions?;
    let at = line.windows(NO_COLUMNS.len()).position(|bytes| bytes == NO_COLUMNS)?;
    let (before, rest) = line.split_at_checked(at)?;
    let rest = rest.get(NO_COLUMNS.len()..)?;
    Some([before, br#""columnDefinitions":"#, columns.get().as_bytes(), rest].concat())
}

fn event(line: &[u8]) -> Option<Event> {
    let parsed: Line<'_> = serde_json::from_slice(line).ok()?;
    let object: Object = serde_json::from_str(parsed.object.get()).ok()?;
    let metadata = object.into_metadata();
    let is_end = metadata.annotations.is_some_and(|all| all.contains_key(INITIAL_END));
    let Metadata { namespace, name, .. } = metadata;
    Some(Event { kind: parsed.r#type, namespace, name, is_end, bytes: line.to_vec() })
}

/// Whose an item is, or a row: of itself, or as another answer says.
fn owner(item: &RawValue, told: Option<&(String, String)>) -> Option<(String, String)> {
    if let Some(told) = told {
        return Some(told.clone());
    }
    let item: Item = serde_json::from_str(item.get()).ok()?;
    let metadata = item.metadata.or(item.object.and_then(|object| object.metadata))?;
    Some((metadata.namespace, metadata.name))
}

fn offset(body: &[u8], part: &RawValue) -> Option<usize> {
    (part.get().as_ptr() as usize).checked_sub(body.as_ptr() as usize)
}

fn cut_remaining(part: &[u8]) -> Vec<u8> {
    let at = part.windows(REMAINING.len()).position(|bytes| bytes == REMAINING);
    let Some((before, rest)) = at.and_then(|at| part.split_at_checked(at)) else { return part.to_vec() };
    let rest = rest.get(REMAINING.len()..).unwrap_or_default();
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    [before, rest.get(digits..).unwrap_or_default()].concat()
}

// === impl Object ===

impl Object {
    /// Of a table, the metadata of what is in its one row.
    fn into_metadata(self) -> Metadata {
        let row = self.rows.into_iter().next().and_then(|row| row.object);
        match row {
            Some(object) if self.kind == "Table" => object.into_metadata(),
            _ => self.metadata.unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"{"kind":"L","metadata":{"resourceVersion":"7","continue":"x","remainingItemCount":12},"items":[{"metadata":{"namespace":"a","name":"1"},"v":"}],"},{"metadata":{"namespace":"b","name":"2"}},{"metadata":{"namespace":"a","name":"3"}}]}"#;

    #[test]
    fn what_is_left_is_as_it_was() {
        let left = list(LIST.as_bytes(), |namespace, _| namespace == "a", None).unwrap();
        let expected = r#"{"kind":"L","metadata":{"resourceVersion":"7","continue":"x"},"items":[{"metadata":{"namespace":"a","name":"1"},"v":"}],"},{"metadata":{"namespace":"a","name":"3"}}]}"#;
        assert_eq!(String::from_utf8(left).unwrap(), expected);
        let none = list(LIST.as_bytes(), |_, _| false, None).unwrap();
        assert!(none.ends_with(br#""continue":"x"},"items":[]}"#));
        assert_eq!((count(LIST.as_bytes()), next_page(LIST.as_bytes())), (3, "x".to_owned()));
        assert!(says_remaining(LIST.as_bytes()) && !says_remaining(&none));
    }

    #[test]
    fn rows_belong_to_their_object_or_to_whom_another_table_says() {
        let table = |object: &str| {
            format!(r#"{{"kind":"Table","metadata":{{}},"rows":[{{"cells":[1],"object":{object}}}]}}"#)
        };
        let told = owners(table(r#"{"metadata":{"namespace":"a","name":"1"}}"#).as_bytes()).unwrap();
        assert_eq!(told, [("a".to_owned(), "1".to_owned())]);
        let bare = table("null");
        assert!(list(bare.as_bytes(), |_, _| true, None).is_none(), "nobody knows whose it is");
        let hidden = list(bare.as_bytes(), |namespace, _| namespace != "a", Some(&told)).unwrap();
        assert!(hidden.ends_with(br#""rows":[]}"#));
    }

    #[test]
    fn events_are_read_line_by_line_and_through_tables() {
        let lines = concat!(
            r#"{"type":"ADDED","object":{"metadata":{"namespace":"a","name":"1"}}}"#,
            "\n",
            r#"{"type":"ADDED","object":{"kind":"Table","metadata":{},"rows":[{"object":{"metadata":{"namespace":"b","name":"2"}}}]}}"#,
            "\n",
            r#"{"type":"BOOKMARK","object":{"metadata":{"annotations":{"k8s.io/initial-events-end":"true"}}}}"#,
            "\n",
        );
        let events = events(lines.as_bytes()).unwrap();
        let seen: Vec<_> =
            events.iter().map(|event| (&*event.kind, &*event.namespace, event.is_end)).collect();
        assert_eq!(seen, [("ADDED", "a", false), ("ADDED", "b", false), ("BOOKMARK", "", true)]);
        assert!(events[2].bytes.ends_with(b"\n"));
    }
}
