//! Writes in a dry run: on own objects they are what they are directly, on others' they are refused.

use serde_json::{Value, json};

use super::Kind;
use crate::HarnessError;
use crate::conformance::form::Form;
use crate::conformance::ground::Ground;
use crate::conformance::pair::{About, Ask, Pair, Rule};
use crate::conformance::seeds::Seeds;

const DRY: &str = "dryRun=All";
/// The answers that a refusal can have, and a table for the rest.
const FORMS: [Form; 3] = [Form::Json, Form::Protobuf, Form::Table];
const ANNOTATION: &str = r#"{"metadata":{"annotations":{"conformance":"1"}}}"#;
const JSON_PATCH: &str = r#"[{"op":"add","path":"/metadata/annotations","value":{"conformance":"1"}}]"#;
const TEST_FAILS: &str = r#"[{"op":"test","path":"/metadata/name","value":"another"}]"#;

pub(super) async fn pairs(ground: &Ground, kind: &Kind<'_>) -> Result<Vec<Pair>, HarnessError> {
    let mut all = Vec::new();
    if kind.resource.has("create") {
        creates(ground, kind, &mut all);
    }
    for about in &kind.existing {
        updates(ground, kind, about, &mut all).await?;
        patches(kind, about, &mut all);
        deletes(kind, about, &mut all);
        subresources(ground, kind, about, &mut all).await?;
    }
    Ok(all)
}

fn creates(ground: &Ground, kind: &Kind<'_>, all: &mut Vec<Pair>) {
    let seed = ground.seeds.of_any(kind.resource);
    for side in [&ground.own, &ground.foreign] {
        let Some(name) = side.get(1) else { continue };
        let namespace = if kind.resource.namespaced { name.as_str() } else { "" };
        // Of a kind outside namespaces the name decides whose it is.
        let object = Seeds::object(&seed, namespace, &format!("{name}-new"));
        let about = About { new_name: format!("{name}-new"), ..About::collection(kind.resource, namespace) };
        let mut add = |form, content_type: &str, body: String| {
            let ask = Ask::new("POST", kind.resource.collection(namespace), form).query(DRY);
            let pair = Pair::same("create", form, ask.carrying(content_type, body));
            all.push(pair.by(about.clone(), Rule::DryCreate));
        };
        for form in FORMS {
            add(form, "application/json", object.to_string());
        }
        if kind.resource.namespaced {
            let yaml = serde_saphyr::to_string(&object).unwrap_or_default();
            add(Form::Json, "application/yaml", yaml);
        }
    }
}

async fn updates(
    ground: &Ground,
    kind: &Kind<'_>,
    about: &About,
    all: &mut Vec<Pair>,
) -> Result<(), HarnessError> {
    if !kind.resource.has("update") {
        return Ok(());
    }
    let path = kind.path(about);
    for (written, form) in
        [(Form::Json, Form::Json), (Form::Json, Form::Protobuf), (Form::Protobuf, Form::Json)]
    {
        let now = ground.direct.send(&Ask::new("GET", &path, written), false).await?;
        let Some(content_type) = written.accept().filter(|_| now.code.is_success()) else { continue };
        let ask = Ask::new("PUT", &path, form).query(DRY).carrying(content_type, now.body.to_vec());
        all.push(Pair::same("update", form, ask).by(about.clone(), Rule::Write));
    }
    let stale = json!({"apiVersion": kind.resource.api_version(), "kind": kind.resource.kind,
        "metadata": {"name": about.name, "resourceVersion": "1"}});
    let ask = Ask::new("PUT", &path, Form::Json).query(DRY).carrying("application/json", stale.to_string());
    all.push(Pair::same("update", Form::Json, ask).by(about.clone(), Rule::Write));
    Ok(())
}

fn patches(kind: &Kind<'_>, about: &About, all: &mut Vec<Pair>) {
    if !kind.resource.has("patch") {
        return;
    }
    let applied = json!({"apiVersion": kind.resource.api_version(), "kind": kind.resource.kind,
        "metadata": {"name": about.name, "labels": {"conformance": "1"}}});
    for (content_type, body) in [
        ("application/merge-patch+json", ANNOTATION),
        ("application/strategic-merge-patch+json", ANNOTATION),
        ("application/json-patch+json", JSON_PATCH),
        ("application/json-patch+json", TEST_FAILS),
        ("application/apply-patch+yaml", &applied.to_string()),
        ("application/apply-patch+cbor", "x"),
        ("application/nonsense", ANNOTATION),
    ] {
        let forms: &[Form] = if content_type.contains("merge") { &FORMS } else { &[Form::Json] };
        for &form in forms {
            let ask = Ask::new("PATCH", kind.path(about), form).query(DRY).query("fieldManager=conformance");
            let ask = ask.carrying(content_type, body);
            all.push(Pair::same("patch", form, ask).by(about.clone(), Rule::Write));
        }
    }
}

fn deletes(kind: &Kind<'_>, about: &About, all: &mut Vec<Pair>) {
    if kind.resource.has("delete") {
        for form in [Form::Json, Form::Protobuf] {
            let ask = Ask::new("DELETE", kind.path(about), form).query(DRY);
            all.push(Pair::same("delete", form, ask.clone()).by(about.clone(), Rule::Write));
            let uid =
                r#"{"kind":"DeleteOptions","apiVersion":"v1","dryRun":["All"],"preconditions":{"uid":"x"}}"#;
            let ask = ask.carrying("application/json", uid);
            all.push(Pair::same("delete", form, ask).by(about.clone(), Rule::Write));
        }
    }
    if kind.resource.has("deletecollection") {
        let path = kind.resource.collection(&about.namespace);
        for query in ["", "labelSelector=app%3Dx", &format!("fieldSelector=metadata.name%3D{}", about.name)] {
            let selected = if query.starts_with("field") { about.name.clone() } else { String::new() };
            let about = About { name: String::new(), selected, ..about.clone() };
            let ask = Ask::new("DELETE", &path, Form::Json).query(DRY).query(query);
            all.push(Pair::same("deletecollection", Form::Json, ask).by(about, Rule::Write));
        }
    }
}

async fn subresources(
    ground: &Ground,
    kind: &Kind<'_>,
    about: &About,
    all: &mut Vec<Pair>,
) -> Result<(), HarnessError> {
    for subresource in &kind.resource.subresources {
        let path = format!("{}/{}", kind.path(about), subresource.name);
        let ask = |method, form| Ask::new(method, &path, form).query(DRY);
        let mut add = |form, ask, rule| {
            all.push(Pair::same("write subresource", form, ask).by(about.clone(), rule));
        };
        if subresource.has("update") {
            let now = ground.get(&path).await?;
            let body: Value = serde_json::from_slice(&now.body).unwrap_or_default();
            add(
                Form::Json,
                ask("PUT", Form::Json).carrying("application/json", body.to_string()),
                Rule::Write,
            );
        }
        if subresource.has("patch") {
            for form in FORMS {
                let ask = ask("PATCH", form).carrying("application/merge-patch+json", ANNOTATION);
                add(form, ask, Rule::Write);
            }
        }
        if subresource.has("create") {
            // The token of a service account is new each time; in JSON it can be told from the rest.
            let forms: &[Form] =
                if subresource.name == "token" { &[Form::Json] } else { &[Form::Json, Form::Protobuf] };
            for &form in forms {
                add(
                    form,
                    ask("POST", form).carrying("application/json", body_of(&subresource.name, about)),
                    Rule::DryCreate,
                );
            }
        }
        if subresource.has("delete") {
            add(Form::Json, ask("DELETE", Form::Json), Rule::Write);
        }
    }
    Ok(())
}

/// What is created at a subresource is of another kind than what it is of.
fn body_of(subresource: &str, about: &About) -> String {
    let metadata = json!({"name": about.name, "namespace": about.namespace});
    let object = match subresource {
        "binding" => {
            json!({"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": {"name": "conf"}})
        }
        "eviction" => json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}),
        "token" => {
            json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}})
        }
        _ => json!({}),
    };
    object.to_string()
}
