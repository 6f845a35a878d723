//! A client that sends exactly what it is told, and shows what came back: for requests that no well-behaved client
//! makes, and for both versions of HTTP and both encodings.
//!
//! Each request has a connection of its own, so none can be told by what went before.

mod kept;

use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::uri::Authority;
use http::{HeaderMap, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

pub use self::kept::Kept;
use crate::live::Pod;
use crate::protobuf::{self, ObjectMeta};
use crate::{ControlPlane, HarnessError, Proxy, User};

/// No answer that a test reads whole is longer.
const ANSWER_BYTES: usize = 16 << 20;

/// A version of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Http {
    /// HTTP/1.1
    One,
    /// HTTP/2
    Two,
}

/// How objects are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// `application/json`
    Json,
    /// `application/vnd.kubernetes.protobuf`
    Protobuf,
}

/// Whom to ask, and as whom.
#[derive(Clone)]
pub struct RawClient {
    authority: Authority,
    token: Option<String>,
    one: TlsConnector,
    two: TlsConnector,
}

/// A whole answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The HTTP status.
    pub code: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// A watch that is read event by event.
#[derive(Debug)]
pub struct Watch {
    encoding: Encoding,
    body: Incoming,
    held: BytesMut,
}

// === impl Http ===

impl Http {
    /// Both.
    pub const ALL: [Self; 2] = [Self::One, Self::Two];

    fn alpn(self) -> &'static [u8] {
        match self {
            Self::One => b"http/1.1",
            Self::Two => b"h2",
        }
    }
}

// === impl Encoding ===

impl Encoding {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Json, Self::Protobuf];

    /// For Accept and Content-Type.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }

    /// By a Content-Type; none if it is another one.
    pub fn of(content_type: &str) -> Option<Self> {
        let name = content_type.split(';').next().unwrap_or_default();
        Self::ALL.into_iter().find(|encoding| encoding.media_type() == name)
    }
}

// === impl RawClient ===

impl RawClient {
    /// A client of a proxy.
    pub fn of_proxy(proxy: &Proxy, plane: &ControlPlane, user: &User) -> Result<Self, HarnessError> {
        Self::new(proxy.url(), proxy.ca(), plane.token(user)?)
    }

    /// A client of a Pod's proxy.
    pub fn of_pod(pod: &Pod, plane: &ControlPlane, user: &User) -> Result<Self, HarnessError> {
        Self::new(&pod.url(), pod.ca(), plane.token(user)?)
    }

    /// A client of the API server itself.
    pub fn direct(plane: &ControlPlane, user: &User) -> Result<Self, HarnessError> {
        Self::new(plane.url(), &plane.pki().ca, plane.token(user)?)
    }

    fn new(url: &str, ca: &Path, token: &str) -> Result<Self, HarnessError> {
        let authority = url.parse::<Uri>().ok().and_then(|uri| uri.authority().cloned());
        let authority = authority.ok_or_else(|| failed(url, &"it names no host"))?;
        let connector = |http| connector(ca, http).map_err(|error| failed(url, &error));
        Ok(Self {
            authority,
            token: Some(token.to_owned()),
            one: connector(Http::One)?,
            two: connector(Http::Two)?,
        })
    }

    /// The same without an identity.
    #[must_use]
    pub fn anonymous(self) -> Self {
        Self { token: None, ..self }
    }

    /// Sends a request over HTTP/2 and reads the whole answer. The token is added unless there is an Authorization.
    pub async fn send(&self, request: Request<Vec<u8>>) -> Result<Answer, HarnessError> {
        self.send_over(Http::Two, request).await
    }

    /// The same over a chosen version of HTTP.
    pub async fn send_over(&self, http: Http, request: Request<Vec<u8>>) -> Result<Answer, HarnessError> {
        self.answer(http, request.map(Full::from)).await
    }

    /// The same with any body.
    pub async fn answer<B>(&self, http: Http, request: Request<B>) -> Result<Answer, HarnessError>
    where
        B: hyper::body::Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let url = request.uri().to_string();
        let (parts, body) = self.open(http, request).await?.into_parts();
        #[allow(clippy::disallowed_methods, reason = "bounded")]
        let body = Limited::new(body, ANSWER_BYTES).collect().await.map_err(|error| failed(&url, &error))?;
        Ok(Answer { code: parts.status, headers: parts.headers, body: body.to_bytes() })
    }

    /// Returns when the head of the response is there; the body is read byte by byte.
    pub async fn open<B>(&self, http: Http, request: Request<B>) -> Result<Response<Incoming>, HarnessError>
    where
        B: hyper::body::Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let url = request.uri().to_string();
        let stream = self.connect(http).await.map_err(|error| failed(&url, &error))?;
        let sent = match http {
            Http::One => send_one(stream, self.address_one(request)).await,
            Http::Two => send_two(stream, self.address_two(request)?).await,
        };
        sent.map_err(|error| failed(&url, &format!("{error:?}")))
    }

    /// Opens a watch; an answer other than 200 is an error.
    pub async fn watch(&self, request: Request<Vec<u8>>) -> Result<Watch, HarnessError> {
        let url = request.uri().to_string();
        let response = self.open(Http::Two, request.map(Full::from)).await?;
        let encoding = content_type(response.headers()).and_then(Encoding::of);
        match encoding.filter(|_| response.status() == StatusCode::OK) {
            Some(encoding) => Ok(Watch { encoding, body: response.into_body(), held: BytesMut::new() }),
            None => Err(failed(&url, &format!("{:?}", response.map(drop)))),
        }
    }

    async fn connect(&self, http: Http) -> std::io::Result<TokioIo<TlsStream<TcpStream>>> {
        let connector = if http == Http::One { &self.one } else { &self.two };
        let host = ServerName::try_from(self.authority.host().to_owned()).map_err(std::io::Error::other)?;
        let tcp = TcpStream::connect(self.authority.as_str()).await?;
        tcp.set_nodelay(true)?;
        Ok(TokioIo::new(connector.connect(host, tcp).await?))
    }

    /// In HTTP/1.1 the target is a path, and the host a header.
    fn address_one<B>(&self, mut request: Request<B>) -> Request<B> {
        self.authorize(request.headers_mut());
        let host = request.headers_mut().entry(header::HOST);
        if let (http::header::Entry::Vacant(host), Ok(value)) = (host, self.authority.as_str().parse()) {
            host.insert(value);
        }
        request
    }

    fn address_two<B>(&self, mut request: Request<B>) -> Result<Request<B>, HarnessError> {
        self.authorize(request.headers_mut());
        let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
        let url = format!("https://{}{target}", self.authority);
        *request.uri_mut() = url.parse().map_err(|error| failed(&url, &error))?;
        *request.version_mut() = http::Version::HTTP_2;
        Ok(request)
    }

    fn authorize(&self, headers: &mut HeaderMap) {
        let value = self.token.as_ref().map(|token| format!("Bearer {token}").parse());
        if let Some(Ok(value)) = value {
            headers.entry(header::AUTHORIZATION).or_insert(value);
        }
    }
}

impl Debug for RawClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RawClient").field(&self.authority).finish()
    }
}

// === impl Answer ===

impl Answer {
    /// How the body is written.
    pub fn encoding(&self) -> Option<Encoding> {
        content_type(&self.headers).and_then(Encoding::of)
    }

    /// The Status in the body; none if it is anything else.
    pub fn status(&self) -> Option<Status> {
        match self.encoding()? {
            Encoding::Json => {
                let value: Value = serde_json::from_slice(&self.body).ok()?;
                serde_json::from_value(value).ok()
            }
            Encoding::Protobuf => protobuf::status(&self.body),
        }
    }

    /// The metadata of the object in the body.
    pub fn metadata(&self) -> Option<ObjectMeta> {
        metadata(self.encoding()?, &self.body)
    }

    /// The metadata of the items of the list in the body.
    pub fn items(&self) -> Option<Vec<ObjectMeta>> {
        match self.encoding()? {
            Encoding::Json => {
                let list: Value = serde_json::from_slice(&self.body).ok()?;
                Some(list.get("items")?.as_array()?.iter().map(|item| of_json(&item["metadata"])).collect())
            }
            Encoding::Protobuf => protobuf::items(&self.body),
        }
    }
}

// === impl Watch ===

impl Watch {
    /// The type of the next event and the metadata of its object; none at the end of the stream.
    pub async fn next(&mut self) -> Result<Option<(String, ObjectMeta)>, HarnessError> {
        loop {
            if let Some(frame) = self.frame() {
                let event = self.decode(&frame);
                return event.map(Some).ok_or_else(|| failed("watch", &format!("unreadable {frame:?}")));
            }
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            let frame = frame.map_err(|error| failed("watch", &error))?;
            self.held.extend_from_slice(frame.data_ref().map_or(&[], |data| &data[..]));
        }
    }

    /// JSON events end with the line, protobuf ones follow their length in four bytes.
    fn frame(&mut self) -> Option<BytesMut> {
        match self.encoding {
            Encoding::Json => {
                let end = self.held.iter().position(|byte| *byte == b'\n')?;
                Some(self.held.split_to(end + 1))
            }
            Encoding::Protobuf => {
                let length = u32::from_be_bytes(*self.held.first_chunk()?) as usize;
                let whole = (self.held.len() >= length + 4).then(|| self.held.split_to(length + 4));
                whole.map(|mut whole| whole.split_off(4))
            }
        }
    }

    fn decode(&self, frame: &[u8]) -> Option<(String, ObjectMeta)> {
        match self.encoding {
            Encoding::Json => {
                let event: Value = serde_json::from_slice(frame).ok()?;
                Some((event["type"].as_str()?.to_owned(), of_json(&event["object"]["metadata"])))
            }
            Encoding::Protobuf => {
                let (kind, object) = protobuf::event(frame)?;
                Some((kind, protobuf::metadata(&object).unwrap_or_default()))
            }
        }
    }
}

fn metadata(encoding: Encoding, bytes: &[u8]) -> Option<ObjectMeta> {
    match encoding {
        Encoding::Json => {
            let object: Value = serde_json::from_slice(bytes).ok()?;
            object.get("metadata").map(of_json)
        }
        Encoding::Protobuf => protobuf::metadata(bytes),
    }
}

fn of_json(metadata: &Value) -> ObjectMeta {
    let text = |key: &str| metadata[key].as_str().unwrap_or_default().to_owned();
    ObjectMeta {
        name: text("name"),
        generate_name: text("generateName"),
        namespace: text("namespace"),
        uid: text("uid"),
        resource_version: text("resourceVersion"),
    }
}

fn content_type(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::CONTENT_TYPE)?.to_str().ok()
}

async fn send_one<B>(
    stream: TokioIo<TlsStream<TcpStream>>,
    request: Request<B>,
) -> hyper::Result<Response<Incoming>>
where
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await?;
    tokio::spawn(connection);
    sender.send_request(request).await
}

async fn send_two<B>(
    stream: TokioIo<TlsStream<TcpStream>>,
    request: Request<B>,
) -> hyper::Result<Response<Incoming>>
where
    B: hyper::body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await?;
    tokio::spawn(connection);
    sender.send_request(request).await
}

fn connector(ca: &Path, http: Http) -> Result<TlsConnector, Box<dyn std::error::Error>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(ca)?)?;
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![http.alpn().to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

fn failed(url: &str, reason: &dyn std::fmt::Display) -> HarnessError {
    HarnessError::Answer { url: url.to_owned(), reason: reason.to_string() }
}
