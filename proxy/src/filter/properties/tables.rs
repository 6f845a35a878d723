//! Tables against `serde_json`.

use super::json::{Members, Raw, any_value, array, item, kept, object, other_key, space};
use super::lens;
use crate::filter::testing::feed;
use crate::filter::{Encoding, Scanner, Shape, TableRows};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

/// A row with an object and, at times, cells.
fn row() -> impl Strategy<Value = String> {
    let cells = prop::option::of(any_value().prop_map(|value| ("\"cells\"".to_owned(), value)));
    let others = vec((other_key(&["object", "cells"]), any_value()), 0..3);
    (others, cells, item()).prop_flat_map(|(mut members, cells, item)| {
        members.extend(cells);
        members.push(("\"object\"".to_owned(), item));
        Just(members).prop_shuffle().prop_flat_map(object)
    })
}

fn table() -> impl Strategy<Value = String> {
    let columns = prop_oneof![Just("null".to_owned()), any_value()];
    let rows = prop_oneof![8 => vec(row(), 0..5).prop_flat_map(array), 1 => Just("null".to_owned())];
    (columns, rows, vec((other_key(&["kind", "apiVersion", "rows", "items", "metadata"]), any_value()), 0..2))
        .prop_flat_map(|(columns, rows, mut members)| {
            let text = |key: &str, value: &str| (format!("\"{key}\""), value.to_owned());
            members.extend([
                text("kind", "\"Table\""),
                text("rows", &rows),
                text("apiVersion", "\"meta.k8s.io/v1\""),
                text("columnDefinitions", &columns),
            ]);
            Just(members).prop_shuffle().prop_flat_map(object)
        })
}

/// The rows of a table as text, all of them and those that are shown.
fn rows(table: &str, seed: u64) -> (usize, Vec<String>) {
    let root: Members = serde_json::from_str(table).unwrap();
    let rows: Option<Vec<Raw>> = serde_json::from_str(root["rows"].get()).unwrap();
    let rows = rows.unwrap_or_default();
    let shown = rows.iter().filter(|row| {
        let row: Members = serde_json::from_str(row.get()).unwrap();
        kept(seed, row["object"].get())
    });
    (rows.len(), shown.map(|row| row.get().to_owned()).collect())
}

/// All members but the rows and the columns, which may be filled in.
fn others(table: &str) -> Vec<(String, String)> {
    let root: Members = serde_json::from_str(table).unwrap();
    let kept = root.into_iter().filter(|(key, _)| !matches!(key.as_str(), "rows" | "columnDefinitions"));
    kept.map(|(key, value)| (key, value.get().to_owned())).collect()
}

proptest! {
    #[test]
    fn a_filtered_table_equals_the_reference(text in table(), sizes in vec(1_usize..40, 1..6), seed: u64) {
        let scan = Scanner::new(Encoding::Json, Shape::List, lens(seed)).with_tables(TableRows::WithObject);
        let (passed, end) = feed(scan, text.as_bytes(), &sizes);
        prop_assert!(end.is_ok(), "{end:?} {text}");
        let passed = String::from_utf8(passed).unwrap();
        let (count, shown) = rows(&passed, seed);
        prop_assert_eq!(count, shown.len());
        prop_assert_eq!(shown, rows(&text, seed).1);
        prop_assert_eq!(others(&passed), others(&text));
        let columns = |text: &str| serde_json::from_str::<Value>(text).unwrap()["columnDefinitions"].clone();
        prop_assert_eq!(columns(&passed), columns(&text));
    }

    #[test]
    fn a_filtered_watch_of_tables_equals_the_reference(
        tables in vec((table(), space(), prop_oneof![Just("ADDED"), Just("BOOKMARK")]), 0..4),
        sizes in vec(1_usize..40, 1..6),
        seed: u64,
    ) {
        let event = |(table, space, kind): &(String, String, &str)| format!("{{\"type\":\"{kind}\",{space}\"object\":{table}}}");
        let text: String = tables.iter().map(event).collect();
        let scan = Scanner::new(Encoding::Json, Shape::Watch, lens(seed)).with_tables(TableRows::WithObject);
        let (passed, end) = feed(scan, text.as_bytes(), &sizes);
        prop_assert!(end.is_ok(), "{end:?} {text}");
        let mut wanted = tables.iter().filter_map(|(table, _, kind)| {
            let table = table.replace(['\n', '\r'], " ");
            let (count, shown) = rows(&table, seed);
            let all = if *kind == "BOOKMARK" { rows_of(&table) } else { shown };
            (count == 0 || !all.is_empty()).then_some((all, others(&table)))
        });
        for line in std::str::from_utf8(&passed).unwrap().lines() {
            let event: Members = serde_json::from_str(line).unwrap();
            let table = event["object"].get();
            prop_assert_eq!(Some((rows_of(table), others(table))), wanted.next());
        }
        prop_assert_eq!(wanted.next(), None);
    }
}

fn rows_of(table: &str) -> Vec<String> {
    let root: Members = serde_json::from_str(table).unwrap();
    let rows: Option<Vec<Raw>> = serde_json::from_str(root["rows"].get()).unwrap();
    rows.unwrap_or_default().iter().map(|row| row.get().to_owned()).collect()
}
