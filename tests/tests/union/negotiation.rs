//! Forms that the filter cannot read are not asked for, or refused.

use http::{StatusCode, header};
use serde_json::Value;

use crate::Ground;
use crate::forms::Form;
use crate::load::{PODS, WIDGETS};
use crate::stream::{get, get_gzip};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
/// What kubectl sends.
const KUBECTL: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";

/// A table of a filtered kind becomes a plain list, or nothing where the client takes nothing else.
pub(crate) async fn forms_that_cannot_be_filtered(ground: &Ground) {
    let (view, one) = (&ground.views[0], format!("{}/web-0", PODS.within("team-00")));
    for path in [PODS.path, WIDGETS.path] {
        let list: Value = serde_json::from_slice(&get(view, path, KUBECTL).await.body).unwrap();
        assert!(list["kind"].as_str().unwrap().ends_with("List"), "{path}: {}", list["kind"]);
    }
    // A kind that is not filtered, and an object by its name.
    for path in ["/api/v1/events", &one] {
        let table: Value = serde_json::from_slice(&get(view, path, KUBECTL).await.body).unwrap();
        assert_eq!(table["kind"], "Table", "{path}");
    }
    for accept in ["application/cbor", "application/yaml", TABLE, "text/html"] {
        for target in [PODS.path.to_owned(), format!("{}?watch=true", PODS.path)] {
            let refused = get(view, &target, accept).await;
            assert_eq!(refused.code, StatusCode::NOT_ACCEPTABLE, "{target} {accept}");
            let status = refused.status().unwrap();
            assert_eq!(status.reason.as_deref(), Some("NotAcceptable"), "{target} {accept}");
        }
    }
}

/// The API server compresses what is over 128 KiB; a filtered list comes as it is.
pub(crate) async fn nothing_is_compressed(ground: &Ground) {
    for form in Form::ALL {
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
