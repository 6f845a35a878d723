//! Requests that are wrong: the client gets to see the server's own words.

use super::Kind;
use crate::conformance::form::Form;
use crate::conformance::ground::Ground;
use crate::conformance::pair::{About, Ask, Guide, Pair, Rule};
use crate::conformance::seeds::Seeds;

const VERB: &str = "bad request";

/// Parameters that the server cannot use.
const QUERIES: [&str; 7] = [
    "limit=x",
    "limit=-1",
    "watch=maybe&timeoutSeconds=1",
    "labelSelector=a%3D%3D%3Db",
    "fieldSelector=%3D",
    "resourceVersionMatch=Nonsense&resourceVersion=1",
    "sendInitialEvents=true",
];

/// Bodies that it cannot use, with their types.
const BODIES: [(&str, &str); 7] = [
    ("application/json", ""),
    ("application/json", "{"),
    ("application/json", "[]"),
    ("application/json", r#"{"kind":"Nonsense","apiVersion":"v1","metadata":{"name":"x"}}"#),
    ("application/json", r#"{"metadata":{"name":"x","namespace":"kube-public"}}"#),
    ("application/nonsense", "x"),
    ("application/vnd.kubernetes.protobuf", "k8s\0x"),
];

pub(super) fn pairs(ground: &Ground, kind: &Kind<'_>) -> Vec<Pair> {
    let mut all = Vec::new();
    methods(ground, kind, &mut all);
    let about = About::collection(kind.resource, "");
    if kind.resource.has("list") {
        for (step, query) in QUERIES.iter().enumerate() {
            let Some(form) = kind.pick(&[Form::Json, Form::Protobuf, Form::Yaml, Form::Table], step) else {
                continue;
            };
            let ask = Ask::new("GET", kind.resource.collection(""), form).query(query);
            let guide =
                if form == Form::Yaml { Guide::Json(ask.clone().in_form(Form::Json)) } else { Guide::None };
            let rule = if query.starts_with("watch=") { Rule::Watch } else { Rule::List(guide) };
            all.push(Pair::same(VERB, form, ask).by(about.clone(), rule));
        }
    }
    bodies(ground, kind, &mut all);
    all
}

/// In an own namespace only: elsewhere the gate comes first. A cluster-scoped create is read by the proxy itself.
fn bodies(ground: &Ground, kind: &Kind<'_>, all: &mut Vec<Pair>) {
    let Some(namespace) =
        ground.own.first().filter(|_| kind.resource.namespaced && kind.resource.has("create"))
    else {
        return;
    };
    for (content_type, body) in BODIES {
        let ask = Ask::new("POST", kind.resource.collection(namespace), Form::Json).query("dryRun=All");
        all.push(Pair::same(VERB, Form::Json, ask.carrying(content_type, body)));
    }
    for query in ["dryRun=Nonsense", "dryRun=All&fieldValidation=Nonsense", "dryRun=All&fieldManager=%00"] {
        let ask = Ask::new("POST", kind.resource.collection(namespace), Form::Json).query(query);
        let object = Seeds::object(&ground.seeds.of_any(kind.resource), namespace, "Not_A_Name");
        all.push(Pair::same(VERB, Form::Json, ask.carrying("application/json", object.to_string())));
    }
}

/// Methods that a collection or an object does not have, whatever its verbs; and those that no resource has.
fn methods(ground: &Ground, kind: &Kind<'_>, all: &mut Vec<Pair>) {
    let namespace =
        ground.own.first().map(String::as_str).filter(|_| kind.resource.namespaced).unwrap_or_default();
    let collection = kind.resource.collection(namespace);
    let own =
        kind.existing.first().filter(|about| ground.views.iter().all(|view| view.shard.owns(about.key())));
    let mut targets = vec![];
    if kind.resource.namespaced {
        targets.extend(["PUT", "PATCH"].map(|method| (method, collection.clone())));
    }
    if let Some(about) = own {
        targets.push(("POST", kind.path(about)));
    }
    for method in ["OPTIONS", "TRACE"] {
        targets.push((method, collection.clone()));
    }
    for (method, target) in targets {
        let ask = Ask::new(method, target, Form::Json);
        let ask = if method == "PATCH" { ask.carrying("application/merge-patch+json", "{}") } else { ask };
        all.push(Pair::same("other method", Form::Json, ask));
    }
}
