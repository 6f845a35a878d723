//! Watches of a second: every form, with and without initial events, of a collection and of one object.

use super::Kind;
use crate::conformance::form::Form;
use crate::conformance::ground::Ground;
use crate::conformance::pair::{About, Ask, Pair, Rule};

const VERB: &str = "watch";
const BOUND: &str = "timeoutSeconds=1";
const INITIAL: &str = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";

/// In one form by turns. `NAME` is an object's.
const QUERIES: [&str; 14] = [
    "resourceVersion=0",
    "resourceVersion=0&allowWatchBookmarks=true",
    "",
    "resourceVersion=1",
    "resourceVersion=nonsense",
    "resourceVersion=0&labelSelector=app%3Dx",
    "resourceVersion=0&labelSelector=tenant%3Dother",
    "resourceVersion=0&fieldSelector=metadata.name%3DNAME",
    "resourceVersion=0&fieldSelector=metadata.namespace%3DNS",
    "sendInitialEvents=true",
    "sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=0",
    "sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=0",
    "limit=1&resourceVersion=0",
    "resourceVersion=0&includeObject=Metadata",
];

pub(super) fn pairs(ground: &Ground, kind: &Kind<'_>) -> Vec<Pair> {
    if !kind.resource.has("watch") {
        return Vec::new();
    }
    let mut all = Vec::new();
    for about in kind.collections(ground) {
        let path = kind.resource.collection(&about.namespace);
        collection(kind, &about, &path, &mut all);
        // The legacy form: `/api/v1/watch/...`.
        let legacy = path.replacen(&kind.resource.root(), &format!("{}/watch", kind.resource.root()), 1);
        if let Some(form) = kind.pick(&Form::MAIN, 0) {
            let ask = Ask::new("GET", legacy, form).query(BOUND).query("resourceVersion=0");
            all.push(Pair::same("watch, by its path", form, ask).by(about, Rule::Watch));
        }
    }
    for about in &kind.existing {
        one(kind, about, &mut all);
    }
    all
}

fn collection(kind: &Kind<'_>, about: &About, path: &str, all: &mut Vec<Pair>) {
    let mut add = |form, query: &str| {
        let ask = Ask::new("GET", path, form).query("watch=true").query(BOUND).query(query);
        all.push(Pair::same(VERB, form, ask).by(about.clone(), Rule::Watch));
    };
    if about.namespace.is_empty() {
        for form in Form::ALL {
            add(form, &format!("{INITIAL}&allowWatchBookmarks=true"));
        }
    }
    let object = kind.existing.last().cloned().unwrap_or_default();
    for (step, query) in QUERIES.iter().enumerate() {
        // A namespace of each side has a third of them.
        if !about.namespace.is_empty() && !(kind.turn + step).is_multiple_of(3) {
            continue;
        }
        let query = query.replace("NAME", &object.name).replace("NS", &object.namespace);
        if let Some(form) = kind.pick(&Form::MAIN, step) {
            add(form, &query);
        }
    }
}

/// A watch of one object by its path; by the parameter there is none, the server answers with the object.
fn one(kind: &Kind<'_>, about: &About, all: &mut Vec<Pair>) {
    let path = kind.path(about);
    let legacy = path.replacen(&kind.resource.root(), &format!("{}/watch", kind.resource.root()), 1);
    if let Some(form) = kind.pick(&Form::MAIN, 0) {
        let ask = Ask::new("GET", legacy, form).query(BOUND).query("resourceVersion=0");
        all.push(Pair::same("watch, by its path", form, ask).by(about.clone(), Rule::Watch));
    }
    if let Some(form) = kind.pick(&Form::MAIN, 1) {
        let ask = Ask::new("GET", path, form).query("watch=true").query(BOUND).query("resourceVersion=0");
        all.push(Pair::same("get", form, ask));
    }
}
