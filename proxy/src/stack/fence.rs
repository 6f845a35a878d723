//! What makes a late write of a past owner fail: each write of a live ring is counted while it is under way, is bounded in
//! time, and demands the uid and the version of its object.
//!
//! ```text
//! gate says slot ─▶ body read ─▶ look-up, if it demands too little ─▶ enter (counted) ─▶ demand ─▶ connection ─▶ still?
//!                                                                         ▲                                       │
//!                                                                         └─ conflict of our making, twice ◀─ send, bounded
//! ```
//!
//! The version that a write demands is read before the write is let in. At that moment this shard owned the slot, so the
//! version is older than any write of the next owner: if that one has written the object, the API server refuses this write,
//! however long it was on its way. A controller's own demands stay as they are.

mod look;

use std::sync::Arc;

use http::{Response, StatusCode, request::Parts};
use http_body_util::{BodyExt, Limited};
use shoal_api::FenceMode;
use shoal_sharding::{
    shard::{Shut, Ticket},
    times,
};

use self::look::Looked;
use super::{Cluster, Stack, intake::Onward, reading};
use crate::{
    body::{self, Body},
    filter::object::{self, demand::Demand},
    ownership::{Gate, Ring, live::Entered},
    request::{KubeRequest, accept::BodyType, path::Verb},
    respond::Refusal,
    upstream::{Received, UpstreamError, user_agent::Claim},
};

/// How often a write is sent again whose conflict is of our making.
const RETRIES: usize = 2;
/// A Status is small.
const STATUS_BYTES: usize = 1 << 20;
/// No object has it: etcd's first revision is its own. A write that demands it creates an object that is not there, and fails
/// where there is one.
pub(super) const NEVER: &str = "1";

/// What a write of this shard's own is about.
#[derive(Clone, Copy)]
pub(super) struct Fenced<'a> {
    pub(super) ring: &'a Ring,
    pub(super) cluster: &'a Cluster,
    pub(super) request: &'a KubeRequest,
    pub(super) claim: Claim,
}

/// The answer to a write.
pub(super) enum Answer {
    /// As it comes.
    Coming(Response<Received>),
    /// It was read, and is whole.
    Read(Response<Body>),
}

impl Stack {
    /// Sends a write of this shard's own: as it is in a ring of files, else once it is let in and demands what it has to.
    pub(super) async fn send_claimed(
        &self,
        fenced: &Fenced<'_>,
        mut onward: Onward,
    ) -> Result<Answer, Refusal> {
        let Fenced { ring, cluster, request, claim } = *fenced;
        let Some(live) = self.live.as_ref() else {
            onward.sign(&ring.agent, Some(claim));
            return self.send(cluster, request, onward).await.map(Answer::Coming);
        };
        // Before anything is asked upstream.
        if let Err(shut) = live.may_enter(claim.slot) {
            onward.discard().await;
            return Err(fenced.refuse(shut));
        }
        let mut added = Demand::default();
        if !request.is_long_running() {
            // Nothing of it is still to come from the client while it is counted.
            onward.whole().await?;
            added = match self.missing(fenced, &mut onward).await? {
                Ok(missing) => missing,
                Err(answer) => return Ok(Answer::Coming(answer)),
            };
            onward.bound(times::WRITE)?;
        }
        let entered = live.enter(claim.slot).map_err(|shut| fenced.refuse(shut))?;
        let Ticket { slot, epoch } = entered.ticket();
        // The ring as it is now: the proxy may have become another shard since the request came.
        onward.sign(&self.ring.load().agent, Some(Claim { slot, epoch }));
        if request.is_long_running() {
            return self.begin(fenced, entered, onward).await.map(Answer::Coming);
        }
        if added != Demand::default() {
            onward.demand(request, &added).await?;
        }
        self.send_until_settled(fenced, entered, onward, added).await
    }

    /// A write that goes on for long, such as exec, is not counted: it writes no object, and would hold its slot for as long
    /// as the client likes.
    async fn begin(
        &self,
        fenced: &Fenced<'_>,
        entered: Entered,
        onward: Onward,
    ) -> Result<Response<Received>, Refusal> {
        drop(entered);
        self.send(fenced.cluster, fenced.request, onward).await
    }

    /// Sends a write, and again where its conflict is caused only by what was added to it here.
    async fn send_until_settled(
        &self,
        fenced: &Fenced<'_>,
        mut entered: Entered,
        mut onward: Onward,
        mut added: Demand,
    ) -> Result<Answer, Refusal> {
        let mut retries = if added.version.is_some() { RETRIES } else { 0 };
        loop {
            let again = if retries > 0 { onward.copy() } else { None };
            let (response, back) = self.send_counted(fenced, entered, onward).await?;
            let Some(again) = again.filter(|_| response.status() == StatusCode::CONFLICT) else {
                return Ok(Answer::Coming(response));
            };
            let (is_plain, answer) = read_conflict(response).await?;
            let now = if is_plain { self.look(fenced, &again.parts).await? } else { Looked::Absent(None) };
            let Some(newer) = newer(&added, now) else { return Ok(Answer::Read(answer)) };
            self.metrics.fence_retries.inc();
            (entered, onward, added, retries) = (back, again, newer, retries - 1);
            onward.demand(fenced.request, &added).await?;
        }
    }

    /// Sends a write that was let in. It goes on to its answer though the client leaves, so that its outcome is known.
    async fn send_counted(
        &self,
        fenced: &Fenced<'_>,
        mut entered: Entered,
        onward: Onward,
    ) -> Result<(Response<Received>, Entered), Refusal> {
        let (upstream, Onward { mut parts, body, .. }) = (fenced.cluster.upstream.clone(), onward);
        self.bear_term(fenced, &mut parts)?;
        let sending = tokio::spawn(async move {
            let mut shut = None;
            let may = || match entered.begin() {
                Ok(()) => true,
                Err(why) => {
                    shut = Some(why);
                    false
                }
            };
            let sent = upstream.send_bounded(parts, body, may).await;
            if is_settled(&sent) {
                entered.known();
            }
            (sent, entered, shut)
        });
        let (sent, entered, shut) = sending.await.map_err(|error| reading::unreadable(&error.to_string()))?;
        if let Some(shut) = shut {
            return Err(fenced.refuse(shut));
        }
        let response = sent.map_err(|error| error.refusal(&fenced.cluster.name, false))?;
        self.metrics.writes.with_label_values(&[super::verb_label(fenced.request)]).inc();
        Ok((response, entered))
    }

    /// In mode `Credential` the write carries the token of this term in place of the client's credential. The hub made it, and
    /// no other cluster knows it.
    fn bear_term(&self, fenced: &Fenced<'_>, parts: &mut Parts) -> Result<(), Refusal> {
        if self.ring.load().fence != FenceMode::Credential {
            return Ok(());
        }
        let is_hub = Arc::ptr_eq(&fenced.cluster.upstream, self.clusters.hub());
        if is_hub && self.term_token.bear(&mut parts.headers) {
            return Ok(());
        }
        Err(fenced.refuse(Shut::NoLease))
    }

    /// What the write has to demand beside its own demands; the server's answer where that cannot be told.
    async fn missing(
        &self,
        fenced: &Fenced<'_>,
        onward: &mut Onward,
    ) -> Result<Result<Demand, Response<Received>>, Refusal> {
        let Some(own) = onward.demanded(fenced.request).await? else { return Ok(Ok(Demand::default())) };
        let creates = creates(fenced.request);
        if !own.is_partial(creates) {
            return Ok(Ok(Demand::default()));
        }
        if let Some(gate) = fenced.gate().filter(|gate| gate.is_binding()) {
            return Err(gate.unfenced_binding());
        }
        match self.look(fenced, &onward.parts).await? {
            Looked::At(now) => Ok(Ok(own.completed_by(now))),
            Looked::Absent(_) if creates => {
                Ok(Ok(own.completed_by(Demand { uid: None, version: Some(NEVER.to_owned()) })))
            }
            // By the time that the write came there, another owner's could be.
            Looked::Absent(Some(answer)) | Looked::Answered(answer) => Ok(Err(answer)),
            Looked::Absent(None) => Err(look::not_found(fenced.request)),
        }
    }
}

// === impl Fenced ===

impl Fenced<'_> {
    fn gate(&self) -> Option<Gate<'_>> {
        Gate::of(self.ring, &self.cluster.name, self.request)
    }

    fn refuse(&self, shut: Shut) -> Refusal {
        self.gate().map_or_else(|| reading::unreadable("no gate"), |gate| gate.shut(self.claim.slot, shut))
    }
}

/// What the write demands when it is sent again; none if it must not be: the object is gone, is another one, or has not
/// changed.
fn newer(added: &Demand, now: Looked) -> Option<Demand> {
    let Looked::At(now) = now else { return None };
    let is_same = added.uid.is_none() || added.uid == now.uid;
    (is_same && now.version != added.version).then(|| Demand { uid: added.uid.clone(), version: now.version })
}

/// Whether a write creates its object where there is none: an apply does, and for some kinds a replacement.
fn creates(request: &KubeRequest) -> bool {
    let on_object = request.target().is_some_and(|target| target.subresource.is_empty());
    on_object && (request.info.verb == Verb::Update || request.body == BodyType::ApplyYaml)
}

/// Whether it is known what became of a write: the server refused it or did it, or never got it. Other failures of the
/// server may hide one that etcd did.
fn is_settled(sent: &Result<Response<Received>, UpstreamError>) -> bool {
    match sent {
        Ok(response) => {
            !response.status().is_server_error() || response.status() == StatusCode::SERVICE_UNAVAILABLE
        }
        Err(UpstreamError::Broken(_) | UpstreamError::Timeout(_)) => false,
        Err(_) => true,
    }
}

/// Whether a conflict says nothing but that the object has changed, and the same answer. One with causes is about who
/// manages which field.
async fn read_conflict(response: Response<Received>) -> Result<(bool, Response<Body>), Refusal> {
    let (parts, body) = response.into_parts();
    #[allow(clippy::disallowed_methods, reason = "bounded")]
    let bytes = Limited::new(body, STATUS_BYTES).collect().await;
    let bytes =
        bytes.map_err(|error| reading::unreadable(&format!("a conflict that broke off ({error})")))?;
    let bytes = bytes.to_bytes();
    let encoding = reading::readable(&parts.headers).ok();
    let is_plain = encoding.is_some_and(|encoding| object::is_plain_conflict(&bytes, encoding));
    Ok((is_plain, Response::from_parts(parts, body::full(bytes))))
}
