//! Lists: every form, every selector, pages, versions.

use super::Kind;
use crate::conformance::form::Form;
use crate::conformance::ground::Ground;
use crate::conformance::pair::{About, Ask, Guide, Pair, Rule};

const VERB: &str = "list";

/// In every collection of the kind, in one form by turns. `NAME` and `NS` are an object's.
const QUERIES: [&str; 27] = [
    "labelSelector=app%3Dx",
    "labelSelector=app%3D%3Dx,tenant!%3Dtwo",
    "labelSelector=app%20in%20(x,y)",
    "labelSelector=app%20notin%20(x)",
    "labelSelector=!app",
    "labelSelector=app",
    "labelSelector=",
    "labelSelector=%20",
    "labelSelector=tenant%3Dother",
    "labelSelector=app%3Dx&labelSelector=app%3Dy",
    "labelSelector=app%3Dy&labelSelector=app%3Dx",
    "labelSelector=app=x",
    "labelSelector=a%20b",
    "fieldSelector=metadata.name%3DNAME",
    "fieldSelector=metadata.namespace%3DNS",
    "fieldSelector=metadata.name%3DNAME,metadata.namespace%3DNS",
    "fieldSelector=metadata.name!%3DNAME",
    "fieldSelector=nothing%3Dx",
    "labelSelector=app%3Dx&fieldSelector=metadata.name%3DNAME",
    "resourceVersion=0",
    "resourceVersion=0&resourceVersionMatch=NotOlderThan",
    "resourceVersionMatch=Exact",
    "resourceVersion=0&resourceVersionMatch=Exact",
    "resourceVersion=nonsense",
    "continue=nonsense",
    "pretty=true",
    "timeoutSeconds=30&unknown=1&bare",
];

/// With all pages that follow.
const PAGES: [&str; 5] =
    ["limit=1", "limit=2", "limit=500", "limit=3&labelSelector=app%3Dx", "limit=2&resourceVersion=0"];

pub(super) fn pairs(ground: &Ground, kind: &Kind<'_>) -> Vec<Pair> {
    if !kind.resource.has("list") {
        return Vec::new();
    }
    let mut all = Vec::new();
    for about in kind.collections(ground) {
        forms(kind, &about, &mut all);
        if about.namespace.is_empty() || kind.turn.is_multiple_of(3) {
            queries(kind, &about, &mut all);
        }
    }
    all
}

fn forms(kind: &Kind<'_>, about: &About, all: &mut Vec<Pair>) {
    // A namespace has the main ones: the rest is decided before anybody looks at what is in it.
    let forms: &[Form] = if about.namespace.is_empty() { &Form::ALL } else { &Form::MAIN };
    for &form in forms {
        all.push(pair(kind, about, form, ""));
    }
    for include in ["None", "Metadata", "Object", "Nonsense"] {
        all.push(pair(kind, about, Form::Table, &format!("includeObject={include}")));
    }
    for form in [Form::Json, Form::Protobuf] {
        all.push(zipped(pair(kind, about, form, "")));
    }
    let mut one = pair(kind, about, Form::Json, "");
    one.ask.http = crate::raw::Http::One;
    all.push(one);
    let mut head = pair(kind, about, Form::Json, "");
    (head.verb, head.ask.method, head.rule) = ("HEAD", "HEAD", Rule::Same);
    all.push(head);
}

fn queries(kind: &Kind<'_>, about: &About, all: &mut Vec<Pair>) {
    let object = kind.existing.last().cloned().unwrap_or_default();
    for (step, query) in QUERIES.iter().enumerate() {
        let query = query.replace("NAME", &object.name).replace("NS", &object.namespace);
        let Some(form) = kind.pick(&Form::MAIN, step) else { continue };
        all.push(pair(kind, about, form, &query));
    }
    for (step, query) in PAGES.iter().enumerate() {
        let Some(form) = kind.pick(&Form::MAIN, step) else { continue };
        all.push(Pair { paged: true, verb: "list, page by page", ..pair(kind, about, form, query) });
    }
}

fn pair(kind: &Kind<'_>, about: &About, form: Form, query: &str) -> Pair {
    let ask = Ask::new("GET", kind.resource.collection(&about.namespace), form).query(query);
    let guide = match form {
        Form::Yaml => Guide::Json(ask.clone().in_form(Form::Json)),
        _ if query == "includeObject=None" => {
            let target = ask.target.replace("includeObject=None", "includeObject=Metadata");
            Guide::Rows(Ask { target, ..ask.clone() })
        }
        _ => Guide::None,
    };
    Pair::same(VERB, form, ask).by(about.clone(), Rule::List(guide))
}

/// The same of a client that takes gzip; what a small list comes to is compared like any other.
fn zipped(pair: Pair) -> Pair {
    let guide = Guide::Plain(pair.ask.clone());
    let ask = pair.ask.clone().with("accept-encoding", "gzip");
    Pair { verb: "list, gzip", ask, rule: Rule::List(guide), ..pair }
}
