//! 200 requests a second through a proxy, each answer of which is read to its end and checked.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, StatusCode, header};
use http_body_util::Full;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use shoal_tests::scripted::client::{Http, Reader, Wire};
use shoal_tests::scripted::pods::{Form, namespaces};
use shoal_tests::{ControlPlane, Proxy, User, protobuf, soon};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::interval;

use crate::JSON;

/// Between two requests.
const PACE: Duration = Duration::from_millis(5);
/// Objects in the collection.
pub(crate) const OBJECTS: usize = 20;
/// Of as many requests one changes an object.
const CHANGES: usize = 20;

/// A load under way.
pub(crate) struct Load {
    tally: watch::Receiver<Tally>,
    sending: JoinHandle<()>,
    stop: watch::Sender<bool>,
}

/// What became of the requests.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Tally {
    /// Answered with a success and all of its body.
    pub(crate) whole: usize,
    /// Answered with a success whose body ended well before it was all there.
    pub(crate) truncated: usize,
    /// Answered with another status.
    pub(crate) refused: usize,
    /// Not answered, or broken off: the client knows.
    pub(crate) failed: usize,
}

/// One sort of request.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Get,
    List(Form),
    Patch,
}

/// The namespace's `ConfigMaps`; shard `kcm-0` owns it.
pub(crate) fn collection() -> String {
    format!("/api/v1/namespaces/{}/configmaps", namespaces(true).next().unwrap())
}

/// Makes the objects.
pub(crate) async fn prepare(plane: &ControlPlane) {
    let client = plane.client(&User::ADMIN).await.unwrap();
    let name = namespaces(true).next().unwrap();
    let metadata = |name: String| ObjectMeta { name: Some(name), ..ObjectMeta::default() };
    let namespace = Namespace { metadata: metadata(name.clone()), ..Namespace::default() };
    Api::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
    let objects: Api<ConfigMap> = Api::namespaced(client, &name);
    for number in 0..OBJECTS {
        let object = ConfigMap { metadata: metadata(format!("object-{number}")), ..ConfigMap::default() };
        objects.create(&PostParams::default(), &object).await.unwrap();
    }
}

// === impl Load ===

impl Load {
    pub(crate) async fn start(plane: &ControlPlane, proxy: &Proxy) -> Self {
        let token = format!("Bearer {}", plane.token(&User::ADMIN).unwrap());
        let (count, tally) = watch::channel(Tally::default());
        let (stop, stopped) = watch::channel(false);
        let wires = [
            Wire::connect(proxy, Http::Two).await.unwrap(),
            Wire::connect(proxy, Http::Two).await.unwrap(),
            Wire::connect(proxy, Http::Two).await.unwrap(),
        ];
        let sending = tokio::spawn(send(wires, token, Arc::new(count), stopped));
        Self { tally, sending, stop }
    }

    /// Waits until so many answers have come whole.
    pub(crate) async fn until(&mut self, whole: usize) {
        soon("the load", self.tally.wait_for(|tally| tally.whole >= whole)).await.unwrap();
    }

    /// Sends no more, and waits for what is under way.
    pub(crate) async fn finish(self) -> Tally {
        self.stop.send_replace(true);
        soon("the last answers", self.sending).await.unwrap();
        *self.tally.borrow()
    }
}

async fn send(
    wires: [Wire; 3],
    token: String,
    count: Arc<watch::Sender<Tally>>,
    stop: watch::Receiver<bool>,
) {
    let (mut pace, mut under_way, mut number) = (interval(PACE), JoinSet::new(), 0_usize);
    while !*stop.borrow() {
        pace.tick().await;
        let wire = wires[number % wires.len()].clone();
        let kind = Kind::of(number);
        let request = kind.request(&wire, number, &token);
        let count = count.clone();
        under_way.spawn(async move {
            let became = ask(&wire, request, kind).await;
            count.send_modify(|tally| *tally.of(became) += 1);
        });
        number += 1;
        while under_way.try_join_next().is_some() {}
    }
    under_way.join_all().await;
}

/// Whether the answer was all there; its status if it was no success; none if there was no whole answer.
async fn ask(
    wire: &Wire,
    request: Request<Full<bytes::Bytes>>,
    kind: Kind,
) -> Option<Result<bool, StatusCode>> {
    let response = wire.send(request).await.ok()?;
    let status = response.status();
    let body = Reader::new(response).rest().await.ok()?;
    Some(if status.is_success() { Ok(kind.is_whole(&body)) } else { Err(status) })
}

// === impl Tally ===

impl Tally {
    fn of(&mut self, became: Option<Result<bool, StatusCode>>) -> &mut usize {
        match became {
            Some(Ok(true)) => &mut self.whole,
            Some(Ok(false)) => &mut self.truncated,
            Some(Err(_)) => &mut self.refused,
            None => &mut self.failed,
        }
    }
}

// === impl Kind ===

impl Kind {
    fn of(number: usize) -> Self {
        match number % CHANGES {
            0 => Self::Patch,
            n if n % 4 == 1 => Self::List(Form::ALL[n / 4 % 2]),
            _ => Self::Get,
        }
    }

    fn request(self, wire: &Wire, number: usize, token: &str) -> Request<Full<bytes::Bytes>> {
        let one = || format!("{}/object-{}", collection(), number / CHANGES % OBJECTS);
        let mut request = match self {
            Self::List(_) => wire.request(&collection()),
            Self::Get | Self::Patch => wire.request(&one()),
        };
        let accept = if let Self::List(form) = self { form.of_list() } else { JSON };
        let headers = request.headers_mut();
        headers.insert(header::AUTHORIZATION, token.parse().unwrap());
        headers.insert(header::ACCEPT, accept.parse().unwrap());
        if let Self::Patch = self {
            headers.insert(header::CONTENT_TYPE, "application/merge-patch+json".parse().unwrap());
            *request.method_mut() = Method::PATCH;
            *request.body_mut() = format!(r#"{{"data":{{"number":"{number}"}}}}"#).into();
        }
        request
    }

    fn is_whole(self, body: &[u8]) -> bool {
        let json = || serde_json::from_slice::<serde_json::Value>(body).ok();
        match self {
            Self::Get | Self::Patch => json().is_some(),
            Self::List(Form::Json) => {
                json().and_then(|list| Some(list["items"].as_array()?.len())) == Some(OBJECTS)
            }
            Self::List(Form::Protobuf) => protobuf::items(body).is_some_and(|items| items.len() == OBJECTS),
        }
    }
}
