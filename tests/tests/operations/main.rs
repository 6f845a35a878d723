//! What operators do to a proxy: several clusters behind one, a listener without TLS, its own identity upstream, and
//! files that change while it runs.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code, helpers included")]

mod members;
mod own;
mod reload;

use std::time::Duration;

use http::{Method, Request, StatusCode, header};
use http_body_util::Full;
use shoal_tests::scripted::client::{Http, Reader, Wire};
use shoal_tests::{ControlPlane, Proxy, soon};

const DEADLINE: Duration = Duration::from_mins(2);

/// Who the API server says that a client with this token is; else what it was answered.
async fn whoami(wire: &Wire, token: &str) -> Result<String, (StatusCode, String)> {
    let mut request = wire.request("/apis/authentication.k8s.io/v1/selfsubjectreviews");
    *request.method_mut() = Method::POST;
    *request.body_mut() =
        Full::from(r#"{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}"#);
    let (status, body) = ask(wire, request, token).await;
    let review: serde_json::Value = serde_json::from_str(&body).unwrap_or_default();
    match review["status"]["userInfo"]["username"].as_str() {
        Some(user) if status == StatusCode::CREATED => Ok(user.to_owned()),
        _ => Err((status, body)),
    }
}

async fn ask(wire: &Wire, mut request: Request<Full<bytes::Bytes>>, token: &str) -> (StatusCode, String) {
    let headers = request.headers_mut();
    headers.insert(header::AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
    headers.insert(header::CONTENT_TYPE, "application/json".parse().unwrap());
    headers.insert(header::ACCEPT, "application/json".parse().unwrap());
    let response = soon("an answer", wire.send(request)).await.unwrap();
    let status = response.status();
    let body = soon("its body", Reader::new(response).rest()).await.unwrap();
    (status, String::from_utf8(body).unwrap())
}

async fn wire(proxy: &Proxy, http: Http) -> Wire {
    Wire::connect(proxy, http).await.unwrap()
}

/// What a proxy has logged so far.
fn log(proxy: &Proxy) -> String {
    std::fs::read_to_string(proxy.process().log_path()).unwrap()
}

fn no_credential_in(log: &str, plane: &ControlPlane, users: &[&shoal_tests::User]) {
    for user in users {
        assert!(!log.contains(plane.token(user).unwrap()), "the log shows the token of {}", user.name);
    }
}
