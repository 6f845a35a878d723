//! What the gate asks for beyond the head of a request: the name of a new object, the uid of an existing one.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, Uri, header, request::Parts};
use http_body::Body as HttpBody;
use http_body_util::{BodyExt, Limited};
use serde_json::Value;

use super::{Cluster, Stack, fence, intake::Onward, reading};
use crate::{
    body::{self, Body, BodyError},
    filter::object::demand::{self, Carrier, Demand},
    ownership::{Gate, Passage, Ring},
    request::{
        KubeRequest,
        accept::{BodyType, StatusEncoding},
        path::{Target, Verb},
        query::Query,
        upgrade::Protocol,
    },
    respond::Refusal,
    upstream::{Received, Traffic, user_agent, user_agent::Claim},
};

/// The API server stores no object larger than this, and its metadata are less.
const METADATA_BYTES: usize = 3 << 20;
const METADATA_LIST: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
/// What the subprotocol begins with that is a token.
const BEARER_PROTOCOL: &str = "base64url.bearer.authorization.k8s.io.";

/// Why a request goes no further.
pub(super) enum Stop {
    /// The proxy refuses it.
    Refused(Refusal),
    /// The API server answered it already: the object is not there, or the client may not even look at it.
    Answered(Response<Body>),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl Stack {
    /// The claim of a write; none where no slot is asked for.
    pub(super) async fn pass_gate(
        &self,
        ring: &Ring,
        cluster: &Cluster,
        request: &KubeRequest,
        onward: &mut Onward,
    ) -> Result<Option<Claim>, Stop> {
        let Some(gate) = Gate::of(ring, &cluster.name, request) else { return Ok(None) };
        let passage = match gate.check()? {
            Passage::Unnamed => gate.named(&name(gate, request, onward).await?)?,
            Passage::Unidentified => {
                if let Some(uid) = self.identify(ring, cluster, request, onward).await? {
                    gate.identified(&uid)?
                } else {
                    self.create_only(request, onward).await?;
                    Passage::Free
                }
            }
            decided => decided,
        };
        match passage {
            Passage::Claimed(claim) => Ok(Some(claim)),
            Passage::Free | Passage::Unnamed | Passage::Unidentified => Ok(None),
        }
    }

    /// The uid of the object that a write is about; none if there is no object and the write is to create it.
    ///
    /// A delete or an eviction is bound to that uid, so that it cannot meet another object of the same name.
    async fn identify(
        &self,
        ring: &Ring,
        cluster: &Cluster,
        request: &KubeRequest,
        onward: &mut Onward,
    ) -> Result<Option<String>, Stop> {
        let deletes = request.info.verb == Verb::Delete || is_eviction(request);
        if deletes && let Some(uid) = onward.demanded(request).await?.unwrap_or_default().uid {
            // If it stands in the query, it has to move into the body.
            onward.demand(request, &Demand { uid: Some(uid.clone()), version: None }).await?;
            return Ok(Some(uid));
        }
        let response = self.look_up(cluster, question(request, &onward.parts, &ring.agent)?).await?;
        match response.status() {
            StatusCode::NOT_FOUND if is_apply(request) => return Ok(None),
            status if status.is_success() => {}
            _ => return Err(Stop::Answered(response.map(|body| body.map_err(Into::into).boxed_unsync()))),
        }
        let uid = demand_in(response).await?.uid.unwrap_or_default();
        if deletes {
            onward.demand(request, &Demand { uid: Some(uid.clone()), version: None }).await?;
        }
        Ok(Some(uid))
    }

    /// An apply that is to create its object must not meet one that appears meanwhile: that would be any shard's.
    async fn create_only(&self, request: &KubeRequest, onward: &mut Onward) -> Result<(), Refusal> {
        let own = onward.demanded(request).await?.unwrap_or_default();
        if self.live.is_some() && own.version.is_none() {
            let never = Demand { uid: None, version: Some(fence::NEVER.to_owned()) };
            onward.demand(request, &never).await?;
        }
        Ok(())
    }

    /// Sends the question, with the client's own credential.
    pub(super) async fn look_up(
        &self,
        cluster: &Cluster,
        mut question: Parts,
    ) -> Result<Response<Received>, Refusal> {
        self.authorize(cluster, &mut question.headers)?;
        let sent = cluster.upstream.send(question, body::empty(), Traffic::Call).await;
        sent.map_err(|error| error.refusal(&cluster.name, true))
    }
}

/// The name of a new object: its own, or one that is drawn where it leaves the choice.
async fn name(gate: Gate<'_>, request: &KubeRequest, onward: &mut Onward) -> Result<String, Refusal> {
    let given = onward.names(request).await?;
    if !given.name.is_empty() || given.generate_name.is_empty() {
        return Ok(given.name);
    }
    let drawn = gate.draw(&given.generate_name)?;
    onward.give_name(request, &drawn).await?;
    Ok(drawn)
}

/// Asks for the metadata of a write's object: under the same path and identity, and without anything that is about the
/// write.
pub(super) fn question(request: &KubeRequest, write: &Parts, agent: &str) -> Result<Parts, Refusal> {
    let (mut parts, ()) = http::Request::new(()).into_parts();
    let name = request.target().and_then(|target| target.name_in_path.clone());
    let path = name.and_then(|name| write.uri.path().get(..name.end)).unwrap_or_default();
    parts.uri = path.parse::<Uri>().map_err(|error| reading::bad_request(&error))?;
    parts.headers = identity(&write.headers);
    parts.headers.insert(header::ACCEPT, HeaderValue::from_static(accept(request.status)));
    let agent = user_agent::extend(write.headers.get(header::USER_AGENT), agent, None);
    parts.headers.insert(header::USER_AGENT, agent);
    Ok(parts)
}

/// The same question as a list of that one name; none where the path has no name. The server reads such a list as it does
/// the object alone (apiserver `pkg/registry/generic/registry/store.go`, `MatchesSingle`).
pub(super) fn list_question(request: &KubeRequest, question: &Parts) -> Option<Parts> {
    let target = request.target()?;
    let path = question.uri.path().get(..target.name_in_path.clone()?.start.checked_sub(1)?)?;
    let mut query = Query::new(None);
    query.append("fieldSelector", &format!("metadata.name={}", target.name));
    let mut list = question.clone();
    list.uri = query.path_and_query(path).ok()?.into();
    list.headers.insert(header::ACCEPT, HeaderValue::from_static(METADATA_LIST));
    Some(list)
}

/// The headers that say who asks. A token that came as a subprotocol is one that the server would take there only.
fn identity(headers: &HeaderMap) -> HeaderMap {
    let says_who = |name: &str| name == "authorization" || name.starts_with("impersonate-");
    let told = headers.iter().filter(|(name, _)| says_who(name.as_str()));
    let mut told: HeaderMap = told.map(|(name, value)| (name.clone(), value.clone())).collect();
    if !told.contains_key(header::AUTHORIZATION)
        && let Some(bearer) = bearer_in_protocols(headers)
    {
        told.insert(header::AUTHORIZATION, bearer);
    }
    told
}

/// The token that a WebSocket client brings as a subprotocol, as a header (apiserver
/// `pkg/authentication/request/websocket/protocol.go`); none where the server would take none.
fn bearer_in_protocols(headers: &HeaderMap) -> Option<HeaderValue> {
    if Protocol::asked(headers) != Ok(Some(Protocol::WebSocket)) {
        return None;
    }
    let lines = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).into_iter();
    let protocols = lines.filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(','));
    let mut tokens = protocols.filter_map(|protocol| protocol.trim().strip_prefix(BEARER_PROTOCOL));
    let (Some(token), None) = (tokens.next(), tokens.next()) else { return None };
    let token =
        String::from_utf8(URL_SAFE_NO_PAD.decode(token).ok()?).ok().filter(|token| !token.is_empty())?;
    let mut bearer = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
    bearer.set_sensitive(true);
    Some(bearer)
}

/// Metadata are enough; a server that cannot cut them out sends the object. A refusal must suit the client.
fn accept(encoding: StatusEncoding) -> &'static str {
    match encoding {
        StatusEncoding::Json | StatusEncoding::Yaml => {
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
        }
        StatusEncoding::Protobuf => {
            "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,\
             application/vnd.kubernetes.protobuf,\
             application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
        }
    }
}

/// Whether a write creates an object that is not there. A PUT does for a few kinds, but it would also overwrite an object
/// that appears in between, so it is answered as for all others.
fn is_apply(request: &KubeRequest) -> bool {
    let on_object = request.target().is_some_and(|target: &Target| target.subresource.is_empty());
    let is_patch = request.info.verb == Verb::Patch;
    is_patch && on_object && matches!(request.body, BodyType::ApplyYaml | BodyType::ApplyCbor)
}

/// Whether a write is the eviction of a Pod, which deletes it.
fn is_eviction(request: &KubeRequest) -> bool {
    let of_pod = |target: &Target| {
        let Target { resource, subresource, .. } = target;
        resource.group.is_empty() && resource.resource == "pods" && subresource == "eviction"
    };
    request.info.verb == Verb::Create && request.target().is_some_and(of_pod)
}

/// The uid and the version of the one object in a list; none if it is empty.
pub(super) async fn demand_in_list<B>(response: Response<B>) -> Result<Option<Demand>, Refusal>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<BodyError>,
{
    let response = reading::decoded(response)?;
    #[allow(clippy::disallowed_methods, reason = "bounded")]
    let bytes = Limited::new(response.into_body(), METADATA_BYTES).collect().await;
    let bytes = bytes.map_err(|error| reading::unreadable(&format!("a list that broke off ({error})")))?;
    let list: Value = serde_json::from_slice(&bytes.to_bytes())
        .map_err(|error| reading::unreadable(&format!("a list that is no JSON ({error})")))?;
    let text = |field: &str| {
        let text = list.pointer(&format!("/items/0/metadata/{field}")).and_then(Value::as_str);
        text.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let demand = Demand { uid: text("uid"), version: text("resourceVersion") };
    Ok(Some(demand).filter(|demand| *demand != Demand::default()))
}

/// The uid and the version of the object in an answer.
pub(super) async fn demand_in<B>(response: Response<B>) -> Result<Demand, Refusal>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<BodyError>,
{
    let response = reading::decoded(response)?;
    let encoding = reading::readable(response.headers())?;
    #[allow(clippy::disallowed_methods, reason = "bounded")]
    let bytes = Limited::new(response.into_body(), METADATA_BYTES).collect().await;
    let bytes = bytes.map_err(|error| reading::unreadable(&format!("an object that broke off ({error})")))?;
    let demand = demand::demanded(&bytes.to_bytes(), encoding, Carrier::Object);
    demand.map_err(|error| reading::unreadable(&error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};
    use http::Method;

    use super::*;

    #[tokio::test]
    async fn an_object_that_is_packed_tells_its_uid_too() {
        let object = br#"{"metadata":{"uid":"u"}}"#;
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(object).unwrap();
        for (coding, bytes, uid) in [
            ("identity", object.to_vec(), Some("u")),
            ("gzip", packed.finish().unwrap(), Some("u")),
            ("br", object.to_vec(), None),
        ] {
            let response = Response::builder().header("content-type", "application/json");
            let response = response.header("content-encoding", coding).body(body::full(bytes)).unwrap();
            assert_eq!(
                demand_in(response).await.ok().and_then(|demand| demand.uid).as_deref(),
                uid,
                "{coding}"
            );
        }
    }

    #[test]
    fn a_token_that_is_a_subprotocol_goes_with_the_question() {
        let bearer = |upgrade: &str, lines: &[&str]| {
            let mut request =
                http::Request::get("/").header("connection", "Upgrade").header("upgrade", upgrade);
            for line in lines {
                request = request.header("sec-websocket-protocol", *line);
            }
            let headers = request.body(()).unwrap().into_parts().0.headers;
            let told = identity(&headers).remove("authorization");
            assert!(told.as_ref().is_none_or(HeaderValue::is_sensitive));
            told.map(|value| value.to_str().unwrap().to_owned())
        };
        // "a_token?" without padding.
        let token = "base64url.bearer.authorization.k8s.io.YV90b2tlbj8";
        let both = format!("v5.channel.k8s.io, {token}");
        for lines in [&[both.as_str()][..], &["v5.channel.k8s.io", token]] {
            assert_eq!(bearer("websocket", lines).as_deref(), Some("Bearer a_token?"), "{lines:?}");
            assert_eq!(bearer("SPDY/3.1", lines), None);
        }
        let padded = format!("{token}=");
        let nothing = "base64url.bearer.authorization.k8s.io.";
        for lines in [&[token, token][..], &[&padded], &[nothing], &["v5.channel.k8s.io"], &[]] {
            assert_eq!(bearer("websocket", lines), None, "{lines:?}");
        }
        let mut headers = HeaderMap::new();
        headers.insert("authorization", HeaderValue::from_static("Bearer own"));
        headers.insert("connection", HeaderValue::from_static("upgrade"));
        headers.insert("upgrade", HeaderValue::from_static("websocket"));
        headers.insert("sec-websocket-protocol", HeaderValue::from_str(&both).unwrap());
        assert_eq!(identity(&headers)["authorization"], "Bearer own");
    }

    #[test]
    fn only_the_eviction_of_a_pod_is_a_delete() {
        for (method, path, is) in [
            (Method::POST, "/api/v1/namespaces/a/pods/web/eviction", true),
            (Method::POST, "/api/v1/namespaces/a/pods/web/binding", false),
            (Method::PUT, "/api/v1/namespaces/a/pods/web/eviction", false),
            (Method::POST, "/apis/example.com/v1/namespaces/a/pods/web/eviction", false),
        ] {
            let request = KubeRequest::parse(&method, &path.parse().unwrap(), &HeaderMap::new()).unwrap();
            assert_eq!(is_eviction(&request), is, "{method} {path}");
        }
    }

    #[test]
    fn an_object_is_looked_up_under_its_own_path_and_by_the_same_identity() {
        for (target, path) in [
            ("/api/v1/namespaces/a/pods/web/eviction?dryRun=All", "/api/v1/namespaces/a/pods/web"),
            ("/api/v1/namespaces/a/finalize", "/api/v1/namespaces/a"),
            (
                "/apis/rbac.authorization.k8s.io/v1/clusterroles/a%3Ab?x=1",
                "/apis/rbac.authorization.k8s.io/v1/clusterroles/a%3Ab",
            ),
        ] {
            let write = http::Request::put(target)
                .header("authorization", "Bearer t")
                .header("impersonate-extra-a", "b")
                .header("content-type", "application/json")
                .header("content-length", "7")
                .header("audit-id", "1")
                .header("accept", "application/vnd.kubernetes.protobuf");
            let write = write.body(()).unwrap().into_parts().0;
            let request = KubeRequest::parse(&write.method, &write.uri, &write.headers).unwrap();
            let asked = question(&request, &write, "kcm/kcm-0@1").unwrap();
            assert_eq!((asked.method, asked.uri.to_string().as_str()), (Method::GET, path));
            let mut names: Vec<_> = asked.headers.keys().map(ToString::to_string).collect();
            names.sort();
            assert_eq!(names, ["accept", "authorization", "impersonate-extra-a", "user-agent"]);
            let accept = asked.headers[header::ACCEPT].to_str().unwrap();
            assert!(accept.starts_with("application/vnd.kubernetes.protobuf;as=PartialObjectMetadata"));
        }
    }

    #[tokio::test]
    async fn who_may_not_get_an_object_asks_for_a_list_of_it() {
        for (target, list) in [
            (
                "/api/v1/namespaces/a/pods/web/status?x=1",
                "/api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Dweb",
            ),
            ("/api/v1/namespaces/a/finalize", "/api/v1/namespaces?fieldSelector=metadata.name%3Da"),
        ] {
            let write = http::Request::put(target).header("authorization", "Bearer t").body(()).unwrap();
            let write = write.into_parts().0;
            let request = KubeRequest::parse(&write.method, &write.uri, &write.headers).unwrap();
            let asked = question(&request, &write, "kcm/kcm-0@1").unwrap();
            let asked = list_question(&request, &asked).unwrap();
            assert_eq!(asked.uri, list);
            assert_eq!(asked.headers["authorization"], "Bearer t");
        }
        for (items, wanted) in
            [("[]", None), (r#"[{"metadata":{"uid":"u","resourceVersion":"7"}}]"#, Some(("u", "7")))]
        {
            let response = Response::new(body::full(format!("{{\"items\":{items}}}")));
            let found = demand_in_list(response).await.ok().unwrap();
            let found = found.as_ref().map(|found| {
                (found.uid.as_deref().unwrap_or_default(), found.version.as_deref().unwrap_or_default())
            });
            assert_eq!(found, wanted);
        }
    }

    #[test]
    fn only_an_apply_creates_what_is_not_there() {
        let is_apply = |method: &str, target: &str, content_type: &str| {
            let write =
                http::Request::builder().method(method).uri(target).header("content-type", content_type);
            let write = write.body(()).unwrap().into_parts().0;
            is_apply(&KubeRequest::parse(&write.method, &write.uri, &write.headers).unwrap())
        };
        let (pod, yaml) = ("/api/v1/namespaces/a/pods/web", "application/apply-patch+yaml");
        assert!(is_apply("PATCH", pod, yaml));
        assert!(!is_apply("PATCH", &format!("{pod}/status"), yaml));
        assert!(!is_apply("PUT", pod, yaml));
        assert!(!is_apply("PATCH", pod, "application/merge-patch+json"));
    }
}
