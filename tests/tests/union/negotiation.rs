//! Forms that the filter cannot read are not asked for, and the server's word about others is passed on.

use http::{StatusCode, header};
use serde_json::Value;

use crate::Ground;
use crate::forms::{Form, TABLE};
use crate::load::{PODS, WIDGETS};
use crate::stream::{Stream, get, get_gzip};

/// What kubectl sends.
const KUBECTL: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
const YAML: &str = "application/yaml";

/// What the server answers is what the client gets, in the server's words.
pub(crate) async fn forms_that_cannot_be_filtered(ground: &Ground) {
    let view = &ground.views[0];
    for accept in ["application/cbor", "text/html", "application/json;as=Table;v=v2;g=meta.k8s.io"] {
        for target in [PODS.path.to_owned(), format!("{}?watch=true", PODS.path)] {
            let (told, refused) =
                (get(&ground.direct, &target, accept).await, get(view, &target, accept).await);
            assert_eq!(told.code, StatusCode::NOT_ACCEPTABLE, "{target} {accept}");
            assert!(told.code == refused.code && told.body == refused.body, "{target} {accept}");
        }
    }
    let target = format!("{}?includeObject=Some", PODS.path);
    let (told, refused) = (get(&ground.direct, &target, TABLE).await, get(view, &target, TABLE).await);
    assert_eq!((told.code, told.body), (StatusCode::BAD_REQUEST, refused.body));
}

/// JSON under the name of YAML, and what the server says of a watch.
pub(crate) async fn yaml_is_served(ground: &Ground) {
    for view in &ground.views {
        let yaml = get(view, PODS.path, YAML).await;
        assert_eq!(
            (yaml.code, &yaml.headers[header::CONTENT_TYPE]),
            (StatusCode::OK, &YAML.parse().unwrap())
        );
        let items = |body: &[u8]| serde_saphyr::from_slice::<Value>(body).unwrap()["items"].clone();
        assert_eq!(items(&yaml.body), items(&get(view, PODS.path, "application/json").await.body));
        let target = format!("{}?fieldSelector=no", PODS.path);
        let (told, refused) = (get(&ground.direct, &target, YAML).await, get(view, &target, YAML).await);
        assert_eq!((told.code, refused.code), (StatusCode::BAD_REQUEST, StatusCode::BAD_REQUEST));
        assert_eq!(refused.headers[header::CONTENT_TYPE], told.headers[header::CONTENT_TYPE]);
        let status = |body: &[u8]| serde_saphyr::from_slice::<Value>(body).unwrap();
        assert_eq!(status(&refused.body), status(&told.body));
        let watch = format!("{}?watch=true", PODS.path);
        let (told, refused) = (get(&ground.direct, &watch, YAML).await, get(view, &watch, YAML).await);
        assert!(told.code == StatusCode::NOT_ACCEPTABLE && told.body == refused.body);
    }
}

/// What kubectl asks for, and rows without objects: the server says whose they are to the proxy only.
pub(crate) async fn tables_are_served(ground: &Ground) {
    let rows =
        |body: &[u8]| serde_json::from_slice::<Value>(body).unwrap()["rows"].as_array().unwrap().clone();
    for path in [PODS.path, WIDGETS.path] {
        let target = format!(
            "{path}?includeObject=None&resourceVersion={}&resourceVersionMatch=Exact",
            ground.version
        );
        let whole = rows(&get(&ground.direct, &target, KUBECTL).await.body);
        let mut seen = Vec::new();
        for view in &ground.views {
            let answer = get(view, &target, KUBECTL).await;
            let text = String::from_utf8(answer.body.to_vec()).unwrap();
            assert_eq!(text.matches("\"object\":null}").count(), rows(&answer.body).len(), "{text}");
            seen.extend(rows(&answer.body));
        }
        let names = |rows: &[Value]| {
            let mut names: Vec<_> =
                rows.iter().map(|row| (row["cells"][0].to_string(), row["object"].clone())).collect();
            names.sort_by(|one, other| one.0.cmp(&other.0));
            names
        };
        assert!(whole.iter().all(|row| row["object"].is_null()) && names(&whole) == names(&seen), "{path}");
        columns_come_once(ground, path).await;
    }
}

/// Also where the first event, which has them, is another shard's.
async fn columns_come_once(ground: &Ground, path: &str) {
    let target = format!("{path}?watch=true&resourceVersion=0");
    for view in std::iter::once(&ground.direct).chain(&ground.views) {
        let mut stream = Stream::open(view, &target, TABLE).await;
        for has_columns in [true, false] {
            let event: Value = serde_json::from_slice(&stream.line().await).unwrap();
            assert_eq!(event["object"]["columnDefinitions"].is_array(), has_columns, "{path}: {event}");
        }
    }
}

/// The API server compresses what is over 128 KiB; a filtered list comes as it is.
pub(crate) async fn nothing_is_compressed(ground: &Ground) {
    for form in Form::OBJECTS {
        let target = format!("{}?resourceVersion={}&resourceVersionMatch=Exact", PODS.path, ground.version);
        let whole = get_gzip(&ground.direct, &target, form.of_list()).await;
        assert_eq!(whole.headers.get(header::CONTENT_ENCODING).unwrap(), "gzip", "{form:?}");
        for view in &ground.views {
            let seen = get_gzip(view, &target, form.of_list()).await;
            assert_eq!(seen.headers.get(header::CONTENT_ENCODING), None, "{form:?}");
            let plain = get(view, &target, form.of_list()).await;
            assert!(!seen.body.is_empty() && seen.body == plain.body, "{form:?}");
        }
    }
}
