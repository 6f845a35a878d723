//! Another name for a new object, where the one that was drawn here is taken.
//!
//! The API server does the same for names that it draws (apiserver `pkg/registry/generic/registry/store.go`,
//! `RetryGenerateName`). A name that the client chose is never changed.

use http::{Response, StatusCode};
use http_body_util::{BodyExt, Limited};

use super::{
    Cluster, Stack,
    fence::{Answer, Fenced},
    intake::Onward,
    reading,
    reading::Reading,
};
use crate::{
    body::{self, Body, BodyError},
    filter::object,
    ownership::{Gate, Passage, Ring},
    request::KubeRequest,
    respond::Refusal,
    upstream::user_agent::Claim,
};

/// How often a name is drawn in all, as by the server (`maxNameGenerationCreateAttempts`).
const ATTEMPTS: usize = 8;
/// A Status is small.
const STATUS_BYTES: usize = 1 << 20;

impl Stack {
    /// The answer to a create whose object was named here, after more draws if the name is taken. `again` is the request that
    /// was answered so.
    pub(super) async fn redraw(
        &self,
        ring: &Ring,
        cluster: &Cluster,
        request: &KubeRequest,
        mut again: Option<Onward>,
        answer: Response<Body>,
    ) -> Result<Response<Body>, Refusal> {
        let mut answer = answer;
        for _ in 1..ATTEMPTS {
            let Some(mut onward) = again.filter(|_| answer.status() == StatusCode::CONFLICT) else {
                return Ok(answer);
            };
            let (is_taken, read) = is_taken(answer).await?;
            answer = read;
            if !is_taken {
                return Ok(answer);
            }
            let claim = name_anew(ring, cluster, request, &mut onward).await?;
            again = onward.again();
            answer = match claim {
                Some(claim) => {
                    let fenced = Fenced { ring, cluster, request, claim };
                    match self.send_claimed(&fenced, onward).await? {
                        Answer::Coming(sent) => Reading::Whole.apply(sent, &self.metrics, None).await?,
                        Answer::Read(read) => read,
                    }
                }
                None => {
                    Reading::Whole
                        .apply(self.send(cluster, request, onward).await?, &self.metrics, None)
                        .await?
                }
            };
        }
        Ok(answer)
    }
}

/// Gives the object another name, about which the gate is asked.
async fn name_anew(
    ring: &Ring,
    cluster: &Cluster,
    request: &KubeRequest,
    onward: &mut Onward,
) -> Result<Option<Claim>, Refusal> {
    let Some(gate) = Gate::of(ring, &cluster.name, request) else { return Ok(None) };
    let name = gate.draw(&onward.names(request).await?.generate_name)?;
    onward.give_name(request, &name).await?;
    Ok(match gate.named(&name)? {
        Passage::Claimed(claim) => Some(claim),
        Passage::Free | Passage::Unnamed | Passage::Unidentified => None,
    })
}

/// Whether a conflict says that there is an object of that name already, and the same answer. In a form that cannot be read
/// here it says nothing.
async fn is_taken(answer: Response<Body>) -> Result<(bool, Response<Body>), Refusal> {
    let (parts, body) = answer.into_parts();
    let broken = |error: BodyError| reading::unreadable(&format!("a conflict that broke off ({error})"));
    #[allow(clippy::disallowed_methods, reason = "bounded")]
    let bytes = bounded(body).collect().await.map_err(broken)?.to_bytes();
    let encoding = reading::readable(&parts.headers).ok();
    let reason = encoding.and_then(|encoding| object::status_reason(&bytes, encoding).ok());
    Ok((reason.as_deref() == Some("AlreadyExists"), Response::from_parts(parts, body::full(bytes))))
}

fn bounded(body: Body) -> Body {
    Limited::new(body, STATUS_BYTES).boxed_unsync()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_a_name_that_is_taken_is_drawn_again() {
        // A Status in protobuf: the envelope, its type, and in it the reason (field 4).
        let status = |reason: &str| {
            let raw = [&[0x22, u8::try_from(reason.len()).unwrap()], reason.as_bytes()].concat();
            [&b"k8s\0\x12"[..], &[u8::try_from(raw.len()).unwrap()], &raw].concat()
        };
        let json = |reason: &str| format!(r#"{{"kind":"Status","reason":"{reason}"}}"#).into_bytes();
        for (content_type, bytes, wanted) in [
            ("application/json", json("AlreadyExists"), true),
            ("application/json", json("Conflict"), false),
            ("application/json", b"{".to_vec(), false),
            ("application/vnd.kubernetes.protobuf", status("AlreadyExists"), true),
            ("application/vnd.kubernetes.protobuf", status("Conflict"), false),
            ("text/plain", b"AlreadyExists".to_vec(), false),
        ] {
            let answer = Response::builder().status(409).header("content-type", content_type);
            let answer = answer.body(body::full(bytes.clone())).unwrap();
            let (is_taken, answer) = is_taken(answer).await.ok().unwrap();
            assert_eq!(is_taken, wanted, "{content_type} {bytes:?}");
            assert_eq!(answer.status(), 409);
            let whole = answer.into_body().frame().await.unwrap().unwrap();
            assert_eq!(whole.into_data().unwrap(), bytes);
        }
    }
}
