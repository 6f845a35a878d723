//! The forms of request that a controller makes, what a healthy server answers, and what of that the shard is shown.

use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::Full;
use shoal_tests::scripted::client::Wire;
use shoal_tests::scripted::pods::{Form as Coding, namespaces};
use shoal_tests::scripted::{Exchange, Gone, Sending};

const JSON: &str = "application/json";
const OBJECT: &str =
    r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","uid":"1","resourceVersion":"7"}}"#;

/// A form of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Get,
    List(Coding),
    Watch(Coding),
    Post,
    Put,
    Patch,
    Delete,
}

/// A whole answer, in two parts that a fault can come between.
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) content_type: &'static str,
    pub(crate) halves: [Bytes; 2],
    /// What the shard is shown of it.
    pub(crate) shown: Vec<u8>,
}

// === impl Form ===

impl Form {
    pub(crate) const ALL: [Self; 9] = [
        Self::Get,
        Self::List(Coding::Json),
        Self::List(Coding::Protobuf),
        Self::Watch(Coding::Json),
        Self::Watch(Coding::Protobuf),
        Self::Post,
        Self::Put,
        Self::Patch,
        Self::Delete,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::List(Coding::Json) => "LIST json",
            Self::List(Coding::Protobuf) => "LIST protobuf",
            Self::Watch(Coding::Json) => "WATCH json",
            Self::Watch(Coding::Protobuf) => "WATCH protobuf",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// How the caller wants objects written, and so a Status.
    pub(crate) fn coding(self) -> Coding {
        match self {
            Self::List(coding) | Self::Watch(coding) => coding,
            _ => Coding::Json,
        }
    }

    /// Whether the bytes are the first events of the shard's watch, all of them whole.
    pub(crate) fn has_events(self, body: &[u8]) -> bool {
        let Self::Watch(coding) = self else { return false };
        let [own, _] = events(coding);
        !body.is_empty() && self.answer().shown.starts_with(body) && body.len().is_multiple_of(own.len())
    }

    /// A request that the shard may make, with a target of its own for each number.
    pub(crate) fn request(self, client: &Wire, number: usize) -> Request<Full<Bytes>> {
        let namespace = namespaces(true).nth(number).unwrap();
        let collection = format!("/api/v1/namespaces/{namespace}/configmaps");
        let (method, target) = match self {
            Self::Get => (Method::GET, format!("{collection}/a")),
            Self::List(_) => (Method::GET, format!("/api/v1/pods?resourceVersion={number}")),
            Self::Watch(_) => (Method::GET, format!("/api/v1/pods?watch=1&resourceVersion={number}")),
            Self::Post => (Method::POST, collection),
            Self::Put => (Method::PUT, format!("{collection}/a")),
            Self::Patch => (Method::PATCH, format!("{collection}/a")),
            Self::Delete => (Method::DELETE, format!("{collection}/a")),
        };
        let mut request = client.request(&target);
        let content_type = if self == Self::Patch { "application/merge-patch+json" } else { JSON };
        request.headers_mut().insert(header::ACCEPT, self.coding().of_list().parse().unwrap());
        // A delete has no body that could be missing the second time: one that is sent twice arrives twice.
        if matches!(self, Self::Post | Self::Put | Self::Patch) {
            request.headers_mut().insert(header::CONTENT_TYPE, content_type.parse().unwrap());
            *request.body_mut() = Full::from(OBJECT);
        }
        *request.method_mut() = method;
        request
    }

    /// The answer of a healthy server: of objects in lists and watches the second is another shard's.
    pub(crate) fn answer(self) -> Answer {
        let code = if self == Self::Post { 201 } else { 200 };
        let (content_type, body, half, shown) = match self {
            Self::List(coding) => {
                let [own, foreign] = pods(coding);
                let body = coding.list(&[own.clone(), foreign, own.clone()]);
                let half = body.len() - own.len() / 2;
                (coding.of_list(), body, half, coding.list(&[own.clone(), own]))
            }
            Self::Watch(coding) => {
                let [own, foreign] = events(coding);
                let body = [&own[..], &foreign, &own].concat();
                let half = body.len() - own.len() / 2;
                (coding.of_watch(), body, half, [&own[..], &own].concat())
            }
            _ => (JSON, OBJECT.as_bytes().to_vec(), OBJECT.len() / 2, OBJECT.as_bytes().to_vec()),
        };
        let mut first = Bytes::from(body);
        let second = first.split_off(half);
        Answer { code, content_type, halves: [first, second], shown }
    }
}

// === impl Answer ===

impl Answer {
    pub(crate) fn whole(&self) -> Bytes {
        self.halves.concat().into()
    }

    pub(crate) async fn send(self, exchange: Exchange) -> Result<(), Gone> {
        exchange.answer(self.code, self.content_type, self.whole()).await
    }

    /// Sends the head and the first half; returns when both have left.
    pub(crate) async fn begin(&self, exchange: Exchange) -> Result<Sending, Gone> {
        self.begin_with(exchange, None).await
    }

    /// The same with a length in the head.
    pub(crate) async fn begin_with(
        &self,
        exchange: Exchange,
        length: Option<usize>,
    ) -> Result<Sending, Gone> {
        let mut head = http::Response::builder().status(self.code).header("content-type", self.content_type);
        if let Some(length) = length {
            head = head.header("content-length", length);
        }
        let line = exchange.line().clone();
        let mut sending = exchange.head(head.body(()).unwrap())?;
        sending.send(self.halves[0].clone()).await?;
        line.flush().await;
        Ok(sending)
    }
}

/// One of the shard, one of another, of the same size.
fn pods(coding: Coding) -> [Vec<u8>; 2] {
    [true, false].map(|owned| coding.item(&coding.pod(&namespaces(owned).next().unwrap(), 1, 4096)))
}

fn events(coding: Coding) -> [Vec<u8>; 2] {
    [true, false].map(|owned| coding.event("ADDED", &coding.pod(&namespaces(owned).next().unwrap(), 1, 4096)))
}
