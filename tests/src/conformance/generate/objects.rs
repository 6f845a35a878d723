//! Reads of one object, its subresources included. They pass at every shard, whosever it is.

use super::Kind;
use crate::conformance::form::Form;
use crate::conformance::ground::Ground;
use crate::conformance::pair::{About, Ask, Pair};

/// Of subresources.
const FORMS: [Form; 4] = [Form::Json, Form::Protobuf, Form::Yaml, Form::Table];

pub(super) fn pairs(ground: &Ground, kind: &Kind<'_>) -> Vec<Pair> {
    let mut all = Vec::new();
    if kind.resource.has("get") {
        for about in &kind.existing {
            object(kind, about, &mut all);
        }
        for about in missing(ground, kind) {
            let forms = [0, 1].into_iter().filter_map(|step| kind.pick(&Form::ALL, step));
            all.extend(forms.map(|form| Pair::same("get", form, Ask::new("GET", kind.path(&about), form))));
        }
    }
    for about in &kind.existing {
        subresources(kind, about, &mut all);
    }
    all
}

/// An object that there is not, on each side.
fn missing(ground: &Ground, kind: &Kind<'_>) -> Vec<About> {
    let sides = [&ground.own, &ground.foreign].into_iter().filter_map(|side| side.first());
    let within =
        |namespace: &String| if kind.resource.namespaced { namespace.as_str() } else { "" }.to_owned();
    sides.map(|namespace| About::object(kind.resource, &within(namespace), "missing")).collect()
}

fn object(kind: &Kind<'_>, about: &About, all: &mut Vec<Pair>) {
    let path = kind.path(about);
    for form in Form::ALL {
        all.push(Pair::same("get", form, Ask::new("GET", &path, form)));
    }
    for query in ["resourceVersion=0", "pretty=true", "includeObject=Object", "resourceVersion=nonsense"] {
        let Some(form) = kind.pick(&Form::MAIN, query.len()) else { continue };
        all.push(Pair::same("get", form, Ask::new("GET", &path, form).query(query)));
    }
    all.push(Pair::same("HEAD", Form::Json, Ask::new("HEAD", &path, Form::Json)));
    let zipped = Ask::new("GET", &path, Form::Json).with("accept-encoding", "gzip");
    all.push(Pair::same("get, gzip", Form::Json, zipped));
}

fn subresources(kind: &Kind<'_>, about: &About, all: &mut Vec<Pair>) {
    for subresource in kind.resource.subresources.iter().filter(|subresource| subresource.has("get")) {
        let path = format!("{}/{}", kind.path(about), subresource.name);
        for form in FORMS {
            all.push(Pair::same("get subresource", form, Ask::new("GET", &path, form)));
        }
    }
    let nonsense = format!("{}/nonsense", kind.path(about));
    all.push(Pair::same("get subresource", Form::Json, Ask::new("GET", nonsense, Form::Json)));
}
