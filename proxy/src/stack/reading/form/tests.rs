//! What the server is asked for, and what is made of its answer.

use http::{Method, Request};

use super::*;
use crate::body;

const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";

/// The head of a request as it goes upstream, with the form that it was given.
fn asked(target: &str, accept: &str) -> (Form, Parts) {
    let request = Request::builder().method(Method::GET).uri(target).header("accept", accept);
    let mut parts = request.body(()).unwrap().into_parts().0;
    let request = KubeRequest::parse(&parts.method, &parts.uri, &parts.headers).unwrap();
    let form = Form::of(&request, parts.uri.query());
    form.ask(&mut parts).unwrap();
    (form, parts)
}

fn headers(content_type: &'static str) -> HeaderMap {
    HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(content_type))])
}

#[test]
fn metadata_is_asked_for_where_the_client_wants_rows_without_objects() {
    let (form, parts) = asked("/api/v1/pods?a=b&includeObject=%4Eone&includeObject=Object", TABLE);
    assert_eq!(parts.uri.to_string(), "/api/v1/pods?a=b&includeObject=Metadata");
    assert_eq!(form.tables(), Some(TableRows::WithoutObject));
    for (target, accept, rows) in [
        ("/api/v1/pods?includeObject=Object", TABLE, Some(TableRows::WithObject)),
        ("/api/v1/pods?includeObject=none", TABLE, Some(TableRows::WithObject)),
        ("/api/v1/pods?includeObject=None", "application/json", None),
    ] {
        let (form, parts) = asked(target, accept);
        assert_eq!((parts.uri.to_string().as_str(), form.tables()), (target, rows));
        assert_eq!(parts.headers[header::ACCEPT_ENCODING], "identity");
    }
}

#[test]
fn where_nothing_can_be_read_the_server_says_what_it_has() {
    let (form, parts) = asked("/api/v1/pods", "application/cbor");
    assert_eq!(parts.headers[header::ACCEPT], "application/cbor");
    assert!(form.check().is_err_and(|refusal| refusal.code == StatusCode::NOT_ACCEPTABLE));
    let unread = |form: &Form, content_type| form.readable(&headers(content_type)).unwrap_err().code;
    assert_eq!(unread(&form, "application/cbor"), StatusCode::NOT_ACCEPTABLE);
    assert_eq!(form.readable(&headers("application/json")), Ok(Encoding::Json));
    let (form, _) = asked("/api/v1/pods", "application/json");
    assert_eq!(unread(&form, "application/cbor"), StatusCode::BAD_GATEWAY);
}

#[test]
fn json_is_called_yaml_for_who_takes_nothing_else() {
    for (target, accept, content_type, label) in [
        ("/api/v1/pods", "application/yaml", "application/json", "application/yaml"),
        ("/api/v1/pods", "application/yaml", "text/plain", "text/plain"),
        ("/api/v1/pods", "application/yaml,application/json", "application/json", "application/json"),
        ("/api/v1/pods?watch=1", "application/yaml", "application/json", "application/json"),
    ] {
        let (form, mut headers) = (asked(target, accept).0, headers(content_type));
        form.relabel(&mut headers);
        assert_eq!(headers[header::CONTENT_TYPE], label, "{target} {accept}");
    }
}

#[test]
fn gzip_comes_out_and_other_codings_are_refused() {
    let response = |coding: &'static str| {
        let mut response = Response::new(body::full("x"));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("1"));
        headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        decoded(response)
    };
    for coding in ["gzip", "GZIP"] {
        let decoded = response(coding).unwrap();
        let names: Vec<_> = decoded.headers().keys().map(header::HeaderName::as_str).collect();
        assert_eq!(names, ["vary"]);
    }
    assert_eq!(response("identity").unwrap().headers().len(), 3);
    for coding in ["zstd", "br", "deflate", "gzip, gzip"] {
        assert_eq!(response(coding).err().unwrap().code, StatusCode::BAD_GATEWAY, "{coding}");
    }
}
