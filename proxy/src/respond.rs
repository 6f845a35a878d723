//! Room 9: what the proxy answers by itself, as a `metav1.Status` in the caller's encoding.

mod protobuf;

use std::fmt;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Status, StatusCause, StatusDetails};

use crate::{
    body::{self, Body},
    request::{accept::StatusEncoding, path::Target},
};

/// A request that ends at the proxy: what the caller is told, and whether it may try again.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// The HTTP status code.
    pub code: StatusCode,
    /// Kubernetes' machine-readable reason (apimachinery `StatusReason`); empty where it has none.
    pub reason: &'static str,
    /// What was expected, what was found, and what to do next.
    pub message: String,
    /// What the refusal is about; none outside resources.
    pub subject: Option<Subject>,
    /// Why, in words that a program can match: `(reason, field, message)`.
    pub cause: Option<Cause>,
    /// Whole seconds after which the caller may try again; none where it must not by itself.
    pub retry_after: Option<u32>,
}

/// The object that a refusal is about.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The API group.
    pub group: String,
    /// The resource; apimachinery puts it where the field is called `kind`.
    pub resource: String,
    /// The object's name; empty for a collection.
    pub name: String,
}

/// The cause of a refusal, for programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// A stable word.
    pub reason: &'static str,
    /// The field that decided.
    pub field: &'static str,
    /// The sentence for people.
    pub message: String,
}

// === impl Refusal ===

impl Refusal {
    /// A refusal without a subject, a cause or leave to retry.
    pub fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), subject: None, cause: None, retry_after: None }
    }

    /// The same, about an object.
    #[must_use]
    pub fn about(self, subject: Subject) -> Self {
        Self { subject: Some(subject), ..self }
    }

    /// The same, with a cause that a program can match.
    #[must_use]
    pub fn because(self, reason: &'static str, field: &'static str, message: impl Into<String>) -> Self {
        Self { cause: Some(Cause { reason, field, message: message.into() }), ..self }
    }

    /// The same, with leave to try again. client-go understands whole seconds only.
    #[must_use]
    pub fn retry_after(self, seconds: u32) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    /// The whole response.
    pub fn into_response(self, encoding: StatusEncoding) -> Response<Body> {
        let status = self.status();
        let (content_type, bytes) = encode(&status, encoding);
        let mut response = Response::new(body::full(bytes));
        *response.status_mut() = self.code;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }

    fn status(&self) -> Status {
        Status {
            status: Some("Failure".to_owned()),
            message: Some(self.message.clone()),
            reason: (!self.reason.is_empty()).then(|| self.reason.to_owned()),
            details: self.details(),
            code: Some(i32::from(self.code.as_u16())),
            ..Status::default()
        }
    }

    fn details(&self) -> Option<StatusDetails> {
        if self.subject.is_none() && self.cause.is_none() && self.retry_after.is_none() {
            return None;
        }
        let subject = self.subject.as_ref();
        let text = |get: fn(&Subject) -> &String| subject.map(get).filter(|text| !text.is_empty()).cloned();
        Some(StatusDetails {
            name: text(|s| &s.name),
            group: text(|s| &s.group),
            kind: text(|s| &s.resource),
            causes: self.cause.as_ref().map(|cause| vec![cause.to_status_cause()]),
            retry_after_seconds: self.retry_after.and_then(|seconds| i32::try_from(seconds).ok()),
            ..StatusDetails::default()
        })
    }
}

// === impl Subject ===

impl Subject {
    /// What a request is about.
    pub fn of(target: &Target) -> Self {
        let resource = &target.resource;
        Self { group: resource.group.clone(), resource: resource.resource.clone(), name: target.name.clone() }
    }
}

impl fmt::Display for Subject {
    /// As apimachinery names an object in its errors: `deployments.apps "web"`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dot = if self.group.is_empty() { "" } else { "." };
        write!(f, "{}{dot}{}", self.resource, self.group)?;
        if self.name.is_empty() { Ok(()) } else { write!(f, " {:?}", self.name) }
    }
}

// === impl Cause ===

impl Cause {
    fn to_status_cause(&self) -> StatusCause {
        StatusCause {
            reason: Some(self.reason.to_owned()),
            field: Some(self.field.to_owned()),
            message: Some(self.message.clone()),
        }
    }
}

fn encode(status: &Status, encoding: StatusEncoding) -> (&'static str, Bytes) {
    match encoding {
        StatusEncoding::Protobuf => ("application/vnd.kubernetes.protobuf", protobuf::status(status).into()),
        // A Status always has a JSON form; an empty body would still carry the code.
        StatusEncoding::Json => ("application/json", serde_json::to_vec(status).unwrap_or_default().into()),
        StatusEncoding::Yaml => ("application/yaml", serde_json::to_vec(status).unwrap_or_default().into()),
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    fn refusal() -> Refusal {
        let (group, resource, name) = ("apps".into(), "deployments".into(), "web".into());
        Refusal::new(StatusCode::CONFLICT, "Conflict", "not mine")
            .about(Subject { group, resource, name })
            .because("ForeignSlot", "metadata.namespace", "slot 3")
    }

    async fn body_of(response: Response<Body>) -> Bytes {
        #[allow(clippy::disallowed_methods, reason = "a body made in this test")]
        response.into_body().collect().await.unwrap().to_bytes()
    }

    #[tokio::test]
    async fn a_status_is_what_a_client_expects() {
        let response = refusal().into_response(StatusEncoding::Json);
        assert_eq!(response.status(), 409);
        assert_eq!(response.headers()["content-type"], "application/json");
        assert!(!response.headers().contains_key("retry-after"));
        let status: serde_json::Value = serde_json::from_slice(&body_of(response).await).unwrap();
        let expected = serde_json::json!({
            "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "code": 409,
            "reason": "Conflict", "message": "not mine",
            "details": {"name": "web", "group": "apps", "kind": "deployments",
                "causes": [{"reason": "ForeignSlot", "message": "slot 3", "field": "metadata.namespace"}]},
        });
        assert_eq!(status, expected);
    }

    #[tokio::test]
    async fn leave_to_retry_is_in_the_header_and_in_the_body() {
        let response =
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", "later").retry_after(1);
        let response = response.into_response(StatusEncoding::Json);
        assert_eq!(response.headers()["retry-after"], "1");
        let status: serde_json::Value = serde_json::from_slice(&body_of(response).await).unwrap();
        assert_eq!(status["details"]["retryAfterSeconds"], 1);
    }
}
