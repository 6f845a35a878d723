//! What is no resource: discovery, schemas, health; and paths that look like one and are not.

use serde_json::Value;

use crate::HarnessError;
use crate::conformance::discovery::AGGREGATED;
use crate::conformance::form::Form;
use crate::conformance::ground::Ground;
use crate::conformance::pair::{About, Ask, Guide, Pair, Rule};

/// Asked for in every form.
const PAGES: [&str; 12] = [
    "/api",
    "/apis",
    "/api/v1",
    "/version",
    "/healthz",
    "/livez",
    "/readyz",
    "/healthz/ping",
    "/.well-known/openid-configuration",
    "/openid/v1/jwks",
    "/openapi/v3",
    "/",
];

/// Asked for once; the server knows best what they mean.
const ODD: [&str; 19] = [
    "/readyz?verbose",
    "/livez?verbose&exclude=etcd",
    "/healthz/nonsense",
    "/nonsense",
    "/logs",
    "/debug/pprof/cmdline",
    "/API/v1/pods",
    "/api/V1/pods",
    "/Api/v1/namespaces/default/pods",
    "/api/v2/pods",
    "/api/v1/nonsense",
    "/api/v1/namespaces/default/nonsense/x",
    "/api/",
    "/apis/",
    "/apis/apps",
    "/apis/apps/",
    "/apis/apps/v1",
    "/apis/nonsense.example.org/v1/x",
    "/api/v1/namespaces/default/pods/x/y/z",
];

/// They name a collection all the same: its resource and its namespace.
const LISTS: [(&str, &str, &str); 3] = [
    ("/api/v1/pods/", "pods", ""),
    ("/api/v1/namespaces/", "namespaces", ""),
    ("/api/v1/namespaces/%64efault/configmaps", "configmaps", "default"),
];

/// The proxy refuses them.
const UNCLEAR: [&str; 15] = [
    "/api/v1/namespaces/default/../kube-system/secrets",
    "/api/v1/./pods",
    "//api/v1/pods",
    "/api//v1/pods",
    "/api/v1//pods",
    "/api/v1/namespaces//pods",
    "/api/v1/namespaces/%2e%2e/pods",
    "/api/v1/namespaces/default/pods/a%2fb",
    "/api/v1/namespaces/default%2Fpods",
    "/api/v1/namespaces/default/pods/%00",
    "/api/v1/namespaces/default/pods/a%0ab",
    "/api/v1/namespaces/default/pods/%ff",
    "/api/v1/pods?watch=0;watch=1",
    "/api/v1/watch",
    "/apis/apps/v1/watch",
];

pub(super) async fn pairs(ground: &Ground) -> Result<Vec<Pair>, HarnessError> {
    let mut all = Vec::new();
    for path in PAGES {
        for form in Form::ALL {
            all.push(Pair::same("discovery", form, Ask::new("GET", path, form)));
        }
    }
    for target in ODD {
        all.push(Pair::same("other path", Form::Json, Ask::new("GET", target, Form::Json)));
    }
    for (target, resource, namespace) in LISTS {
        let (resource, namespace) = (resource.to_owned(), namespace.to_owned());
        let about = About { resource, namespace, ..About::default() };
        let pair = Pair::same("other path", Form::Json, Ask::new("GET", target, Form::Json));
        all.push(pair.by(about, Rule::List(Guide::None)));
    }
    for target in UNCLEAR {
        for method in ["GET", "DELETE"] {
            let pair = Pair::same("unclear path", Form::Json, Ask::new(method, target, Form::Json));
            all.push(Pair { rule: Rule::Unclear, ..pair });
        }
    }
    for method in ["OPTIONS", "HEAD", "TRACE", "PURGE"] {
        all.push(Pair::same("other method", Form::Json, Ask::new(method, "/version", Form::Json)));
        all.push(Pair::same("other method", Form::Json, Ask::new(method, "/api", Form::Json)));
    }
    all.push(Pair {
        rule: Rule::Code,
        ..Pair::same("metrics", Form::None, Ask::new("GET", "/metrics", Form::None))
    });
    groups(ground, &mut all);
    schemas(ground, &mut all).await?;
    Ok(all)
}

fn groups(ground: &Ground, all: &mut Vec<Pair>) {
    for path in ["/api", "/apis"] {
        for accept in [
            AGGREGATED,
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer",
        ] {
            let ask = Ask::new("GET", path, Form::None).with("accept", accept);
            all.push(Pair::same("discovery", Form::None, ask));
        }
    }
    let mut roots: Vec<String> =
        ground.resources.iter().map(super::super::discovery::Resource::root).collect();
    roots.dedup();
    for (index, root) in roots.iter().enumerate() {
        for form in [Form::Json, Form::MAIN.get(index % Form::MAIN.len()).copied().unwrap_or(Form::Json)] {
            all.push(Pair::same("discovery", form, Ask::new("GET", root, form)));
        }
    }
}

/// Each schema, and again by its `ETag`, which is answered 304.
async fn schemas(ground: &Ground, all: &mut Vec<Pair>) -> Result<(), HarnessError> {
    let index = ground.get("/openapi/v3").await?;
    let index: Value = serde_json::from_slice(&index.body).unwrap_or_default();
    let paths = index["paths"].as_object().into_iter().flatten();
    let mut targets: Vec<String> =
        paths.filter_map(|(_, path)| path["serverRelativeURL"].as_str().map(str::to_owned)).collect();
    targets.extend(["/openapi/v3".to_owned(), "/openapi/v2".to_owned()]);
    for (index, target) in targets.iter().enumerate() {
        // Most are large; the rest of them differ in nothing that a proxy could see.
        if index % 6 != 0 && !target.starts_with("/openapi/v2") && target != "/openapi/v3" {
            continue;
        }
        let ask = Ask::new("GET", target, Form::Json);
        let answer = ground.direct.send(&ask, false).await?;
        all.push(Pair::same("schema", Form::Json, ask.clone()));
        all.push(Pair::same("schema, gzip", Form::Json, ask.clone().with("accept-encoding", "gzip")));
        all.push(Pair::same("schema", Form::Protobuf, ask.clone().in_form(Form::Protobuf)));
        if let Some(tag) = answer.headers.get("etag").and_then(|tag| tag.to_str().ok()) {
            all.push(Pair::same("schema, by its ETag", Form::Json, ask.with("if-none-match", tag)));
        }
    }
    Ok(())
}
