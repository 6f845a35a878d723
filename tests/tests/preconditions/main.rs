//! What the API server makes of the demands that the proxy adds to writes: a late one fails, whatever its form.
//!
//! The bodies are written by the proxy's own code and go to the API server as they are.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code, helpers included")]

mod forms;

use bytes::Bytes;
use http::{Request, StatusCode};
use serde_json::json;
use shoal_proxy::filter::object::demand::Demand;
use shoal_tests::raw::{Answer, Encoding, RawClient};
use shoal_tests::{ControlPlane, Options, RunDir, User, widgets};

use crate::forms::{CONFIG_MAP, DEPLOYMENT, ENDPOINTS, EVENT, Form, Kind, LEASE, POD, ROLE, WIDGET};

/// Each kind, its subresource, and the forms that are sent there.
const WRITES: &[(Kind, &str, &[Form])] = &[
    (
        CONFIG_MAP,
        "",
        &[
            Form::Put,
            Form::PutProtobuf,
            Form::Merge,
            Form::Strategic,
            Form::JsonPatch,
            Form::Apply,
            Form::ApplyYaml,
            Form::Delete,
        ],
    ),
    (WIDGET, "", &[Form::Put, Form::Merge, Form::JsonPatch, Form::Apply, Form::ApplyYaml, Form::Delete]),
    (ENDPOINTS, "", &[Form::Put]),
    (EVENT, "", &[Form::Put]),
    (LEASE, "", &[Form::Put, Form::Apply]),
    (ROLE, "", &[Form::Put]),
    (DEPLOYMENT, "status", &[Form::Put, Form::Merge, Form::JsonPatch]),
    (DEPLOYMENT, "scale", &[Form::Put, Form::Merge, Form::JsonPatch, Form::Apply]),
    (POD, "eviction", &[Form::Evict]),
    (POD, "binding", &[Form::Bind]),
    (POD, "ephemeralcontainers", &[Form::Merge, Form::Strategic]),
];

/// One write, sent to objects of its own.
struct Write<'a> {
    client: &'a RawClient,
    kind: &'a Kind,
    subresource: &'a str,
    form: Form,
    name: String,
}

// === impl Write ===

impl Write<'_> {
    fn path(&self) -> String {
        format!("{}/{}", self.kind.collection, self.name)
    }

    async fn send(&self, method: &str, path: &str, content_type: &str, body: Bytes) -> Answer {
        let request = Request::builder().method(method).uri(path).header("content-type", content_type);
        self.client.send(request.body(body.to_vec()).unwrap()).await.unwrap()
    }

    async fn read(&self, encoding: Encoding) -> Answer {
        let request = Request::get(self.path()).header("accept", encoding.media_type());
        self.client.send(request.body(Vec::new()).unwrap()).await.unwrap()
    }

    /// A new object in place of any of that name.
    async fn create(&self) -> Demand {
        self.delete().await;
        let object = Bytes::from(self.kind.object(&self.name).to_string());
        let created = self.send("POST", self.kind.collection, "application/json", object).await;
        assert_eq!(created.code, StatusCode::CREATED, "{created:?}");
        now(&created)
    }

    async fn delete(&self) {
        let path = format!("{}?gracePeriodSeconds=0", self.path());
        self.send("DELETE", &path, "application/json", Bytes::new()).await;
    }

    /// Another owner's write.
    async fn touch(&self) -> Demand {
        let patch = Bytes::from(json!({"metadata": {"annotations": {"by": "another"}}}).to_string());
        let touched = self.send("PATCH", &self.path(), "application/merge-patch+json", patch).await;
        assert_eq!(touched.code, StatusCode::OK, "{touched:?}");
        now(&touched)
    }

    /// The write under test.
    async fn write(&self, demand: &Demand, read: &Bytes) -> StatusCode {
        let body = self.form.body(self.kind, self.subresource, &self.name, read);
        let body = self.form.demanding(&body, demand);
        let slash = if self.subresource.is_empty() { "" } else { "/" };
        let is_apply = matches!(self.form, Form::Apply | Form::ApplyYaml);
        let query = if is_apply { "?fieldManager=it&force=true" } else { "" };
        let path = format!("{}{slash}{}{query}", self.path(), self.subresource);
        let method = self.form.method();
        self.send(method.as_str(), &path, self.form.content_type(), body).await.code
    }

    async fn is_there(&self) -> bool {
        self.read(Encoding::Json).await.code == StatusCode::OK
    }

    async fn whole(&self) -> Bytes {
        let encoding = if self.form == Form::PutProtobuf { Encoding::Protobuf } else { Encoding::Json };
        self.read(encoding).await.body
    }
}

fn now(answer: &Answer) -> Demand {
    let metadata = answer.metadata().unwrap();
    Demand { uid: Some(metadata.uid), version: Some(metadata.resource_version) }
}

fn never() -> Demand {
    Demand { uid: None, version: Some("1".to_owned()) }
}

/// Shows one form in every situation that a late write can meet.
async fn late_write_fails(write: &Write<'_>) {
    let what = format!("{:?} {} {}", write.form, write.kind.name, write.subresource);
    let shown = write.create().await;
    let read = write.whole().await;
    write.touch().await;
    assert_eq!(write.write(&shown, &read).await, 409, "{what}: changed by another owner");
    write.create().await;
    assert_eq!(write.write(&shown, &read).await, 409, "{what}: made anew by another owner");
    assert_eq!(write.write(&never(), &read).await, 409, "{what}: there, and should not be");
    write.delete().await;
    let absent = write.write(&shown, &read).await;
    assert!(absent == 404 || absent == 409, "{what}: deleted by another owner: {absent}");
    assert!(!write.is_there().await, "{what}: a late write brought it back");
    let creates = write.form.creates(write.kind, write.subresource);
    let answer = write.write(&never(), &read).await;
    assert_eq!(answer, if creates { StatusCode::CREATED } else { StatusCode::NOT_FOUND }, "{what}: absent");
    let shown = write.create().await;
    let read = write.whole().await;
    let answer = write.write(&shown, &read).await;
    assert!(answer.is_success(), "{what}: nobody else wrote it: {answer}");
}

#[tokio::test]
async fn a_late_write_fails_in_every_form() {
    let dir = RunDir::for_test("late_write_fails").unwrap();
    let plane = ControlPlane::start(dir.path(), Options::default()).await.unwrap();
    widgets::install(&plane.client(&User::ADMIN).await.unwrap()).await.unwrap();
    let client = RawClient::direct(&plane, &User::ADMIN).unwrap();
    let account = r#"{"metadata":{"name":"default"}}"#;
    let account = Request::post("/api/v1/namespaces/default/serviceaccounts")
        .header("content-type", "application/json")
        .body(account.into());
    client.send(account.unwrap()).await.unwrap();
    for (index, (kind, subresource, forms)) in WRITES.iter().enumerate() {
        for form in *forms {
            let name = format!("{}-{index}", format!("{form:?}").to_lowercase());
            late_write_fails(&Write { client: &client, kind, subresource, form: *form, name }).await;
        }
    }
}

/// Why a version alone is not enough where a write creates what is not there.
#[tokio::test]
async fn only_the_uid_keeps_a_late_write_from_bringing_an_object_back() {
    let dir = RunDir::for_test("uid_keeps_it_away").unwrap();
    let plane = ControlPlane::start(dir.path(), Options::default()).await.unwrap();
    let client = RawClient::direct(&plane, &User::ADMIN).unwrap();
    for (kind, form) in [(LEASE, Form::Put), (ROLE, Form::Put), (CONFIG_MAP, Form::Apply)] {
        let write = Write { client: &client, kind: &kind, subresource: "", form, name: "it".to_owned() };
        let shown = write.create().await;
        write.delete().await;
        assert_eq!(write.write(&shown, &Bytes::new()).await, 409, "{form:?} {}", kind.name);
        let version_only = Demand { uid: None, ..shown };
        assert_eq!(write.write(&version_only, &Bytes::new()).await, 201, "{form:?} {}", kind.name);
    }
}
