//! Mode `Credential`: gets the token that writes carry, and keeps it fresh for as long as the term lasts.
//!
//! ```text
//! term begins ─▶ Secret shoal-<shard>-<term> ─▶ TokenRequest bound to it ─▶ writes carry the token ─▶ renewed at 80 %
//! deposed     ─▶ the coordinator deletes the Secret ─▶ the API server refuses the token, once its cache has forgotten it
//! ```
//!
//! The Secret is made once a term and never anew: a token of a term that is over is of no use, as its gate is shut.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use http::HeaderValue;
use k8s_openapi::api::{
    authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec},
    core::v1::{Secret, ServiceAccount},
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, ObjectMeta, PostParams},
};
use shoal_api::{FenceMode, ShardedController, names};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, sleep_until},
};

use super::hub::in_time;
use crate::ownership::TermToken;

/// How long a token holds; the API server may give it less.
const TOKEN: Duration = Duration::from_hours(1);
/// When it is renewed, in percent of that.
const RENEW_PERCENT: u32 = 80;
/// How long to wait after the hub gave none.
const PAUSE: Duration = Duration::from_secs(1);

/// Gets tokens while this proxy holds a shard.
#[derive(Debug, Default)]
pub(super) struct Keeper {
    term: Option<(String, i64)>,
    task: Option<JoinHandle<()>>,
}

/// What it takes to get the token of a term.
struct Issuer {
    client: Client,
    controller: ShardedController,
    shard: String,
    term: i64,
}

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
enum CredentialError {
    /// The ring says the mode, and not whose tokens.
    #[error("spec.fence.serviceAccount is not set: name the service account that writes are made with")]
    NoServiceAccount,
    /// The hub refused, or cannot be reached.
    #[error("the hub: {0}")]
    Hub(#[from] kube::Error),
    /// It took too long.
    #[error("the hub took too long")]
    Late,
    /// It gave none that can be sent.
    #[error("the hub answered without a usable token")]
    NoToken,
}

// === impl Keeper ===

impl Keeper {
    /// Follows the identity: a new term has a token of its own, and without one there is none.
    pub(super) fn follow(
        &mut self,
        held: Option<(&str, i64)>,
        controller: &ShardedController,
        client: &Client,
        token: &Arc<TermToken>,
    ) {
        let held = held.filter(|_| controller.spec.fence.mode == FenceMode::Credential);
        let same = match (&self.term, held) {
            (Some((shard, term)), Some(held)) => (shard.as_str(), *term) == held,
            (None, None) => true,
            _ => false,
        };
        if same {
            return;
        }
        self.end();
        token.set(None);
        self.term = held.map(|(shard, term)| (shard.to_owned(), term));
        self.task = self.term.clone().map(|(shard, term)| {
            let issuer = Issuer { client: client.clone(), controller: controller.clone(), shard, term };
            tokio::spawn(issuer.keep(token.clone()))
        });
    }

    fn end(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.end();
    }
}

// === impl Issuer ===

impl Issuer {
    /// Ends with its task.
    async fn keep(self, token: Arc<TermToken>) {
        let secret = loop {
            match in_time(self.secret()).await.unwrap_or(Err(CredentialError::Late)) {
                Ok(secret) => break secret,
                Err(error) => self.failed(&error).await,
            }
        };
        loop {
            match in_time(self.issue(&secret)).await.unwrap_or(Err(CredentialError::Late)) {
                Ok((authorization, renewal)) => {
                    token.set(Some(authorization));
                    sleep_until(renewal).await;
                }
                Err(error) => self.failed(&error).await,
            }
        }
    }

    async fn failed(&self, error: &CredentialError) {
        let (shard, term) = (&self.shard, self.term);
        tracing::warn!(shard, term, %error, "no token for this term; writes wait for one");
        sleep(PAUSE).await;
    }

    /// The Secret of this term; that of the one before goes.
    async fn secret(&self) -> Result<Secret, CredentialError> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace());
        let _ =
            secrets.delete(&names::term_secret(&self.shard, self.term - 1), &DeleteParams::default()).await;
        let secret = self.new_secret();
        match secrets.create(&PostParams::default(), &secret).await {
            // The answer to an earlier try was lost.
            Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {
                Ok(secrets.get(&secret.name_any()).await?)
            }
            created => Ok(created?),
        }
    }

    fn new_secret(&self) -> Secret {
        let metadata = ObjectMeta {
            name: Some(names::term_secret(&self.shard, self.term)),
            labels: Some(BTreeMap::from([(names::RING_LABEL.to_owned(), self.controller.name_any())])),
            owner_references: self.controller.owner_ref(&()).map(|ring| vec![ring]),
            ..ObjectMeta::default()
        };
        Secret { metadata, immutable: Some(true), ..Secret::default() }
    }

    /// A token that is bound to the Secret, and when to ask for the next.
    async fn issue(&self, secret: &Secret) -> Result<(HeaderValue, Instant), CredentialError> {
        let account = self.controller.spec.fence.service_account.as_deref();
        let account = account.ok_or(CredentialError::NoServiceAccount)?;
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), &self.namespace());
        let asked = Instant::now();
        let answer = accounts.create_token_request(account, &PostParams::default(), &request(secret)).await?;
        let seconds = answer.spec.and_then(|spec| spec.expiration_seconds);
        let lifetime =
            seconds.and_then(|seconds| u64::try_from(seconds).ok()).map_or(TOKEN, Duration::from_secs);
        let token = answer.status.and_then(|status| status.token).ok_or(CredentialError::NoToken)?;
        let header = HeaderValue::try_from(format!("Bearer {token}"));
        let mut header = header.map_err(|_| CredentialError::NoToken)?;
        header.set_sensitive(true);
        Ok((header, asked + lifetime * RENEW_PERCENT / 100))
    }

    fn namespace(&self) -> String {
        self.controller.namespace().unwrap_or_default()
    }
}

fn request(secret: &Secret) -> TokenRequest {
    let bound = BoundObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Secret".to_owned()),
        name: Some(secret.name_any()),
        uid: secret.uid(),
    };
    let expiration_seconds = i64::try_from(TOKEN.as_secs()).ok();
    let spec =
        TokenRequestSpec { bound_object_ref: Some(bound), expiration_seconds, ..TokenRequestSpec::default() };
    TokenRequest { spec: Some(spec), ..TokenRequest::default() }
}
