//! What the uid and the version of a write's object are now, by the client's own right.
//!
//! Who may not `get` an object may `list` it: the stock controller of `ReplicaSet` lists, patches and deletes Pods but may
//! not get one (kubernetes `plugin/pkg/auth/authorizer/rbac/bootstrappolicy/controller_policy.go`).

use http::{Response, StatusCode, request::Parts};
use tokio::time::Instant;

use super::Fenced;
use crate::{
    filter::object::demand::Demand,
    request::KubeRequest,
    respond::{Refusal, Subject},
    stack::{Stack, gate},
    upstream::Received,
};

/// What the API server says of an object that is to be written.
pub(super) enum Looked {
    /// It is there.
    At(Demand),
    /// It is not; the server's own words, if it was asked for the object.
    Absent(Option<Response<Received>>),
    /// The client may not look, or the server is in trouble: its answer.
    Answered(Response<Received>),
}

impl Stack {
    /// Asks for the object; where the client may not get it, for a list of it. Both are consistent reads.
    pub(super) async fn look(&self, fenced: &Fenced<'_>, write: &Parts) -> Result<Looked, Refusal> {
        self.metrics.fence_lookups.inc();
        let target = fenced.request.target();
        let question = gate::question(fenced.request, write, &fenced.ring.agent)?;
        let list = || gate::list_question(fenced.request, &question);
        let lists = target.is_some_and(|target| fenced.cluster.listed.holds(target, Instant::now()));
        if lists && let Some(looked) = self.look_in_list(fenced, list()).await? {
            return Ok(looked);
        }
        let response = self.look_up(fenced.cluster, question.clone()).await?;
        match response.status() {
            StatusCode::NOT_FOUND => Ok(Looked::Absent(Some(response))),
            status if status.is_success() => gate::demand_in(response).await.map(Looked::At),
            StatusCode::FORBIDDEN if !lists => {
                target.inspect(|target| fenced.cluster.listed.note(target, Instant::now()));
                Ok(self.look_in_list(fenced, list()).await?.unwrap_or(Looked::Answered(response)))
            }
            _ => Ok(Looked::Answered(response)),
        }
    }

    /// None if the client may not list either.
    async fn look_in_list(
        &self,
        fenced: &Fenced<'_>,
        list: Option<Parts>,
    ) -> Result<Option<Looked>, Refusal> {
        let Some(list) = list else { return Ok(None) };
        let response = self.look_up(fenced.cluster, list).await?;
        match response.status() {
            StatusCode::FORBIDDEN => Ok(None),
            status if status.is_success() => {
                Ok(Some(gate::demand_in_list(response).await?.map_or(Looked::Absent(None), Looked::At)))
            }
            _ => Ok(Some(Looked::Answered(response))),
        }
    }
}

/// What the API server says of an object that is not there.
pub(super) fn not_found(request: &KubeRequest) -> Refusal {
    let subject = request.target().map(Subject::of).unwrap_or_default();
    Refusal::new(StatusCode::NOT_FOUND, "NotFound", format!("{subject} not found")).about(subject)
}
