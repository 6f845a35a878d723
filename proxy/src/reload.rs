//! Files that change while the proxy runs: where the API servers are, whom to trust there, tokens.

use std::{error::Error, sync::Arc, time::Duration};

use tokio::{
    task::{JoinError, spawn_blocking},
    time::sleep,
};

use crate::{
    listen::token::{ListenToken, TokenError},
    stack::{Credentials, Stack},
    upstream::Upstream,
};

/// How often files are looked at. A kubelet takes up to a minute to bring a rotated one.
const PERIOD: Duration = Duration::from_secs(5);

/// Looks for changes for as long as the proxy runs, at each cluster apart: a file on a disk that hangs, or an API
/// server that does, delays nobody else. What cannot be used leaves the last good in force.
pub fn spawn(stack: &Stack) {
    for cluster in stack.clusters.iter() {
        let upstream: Arc<Upstream> = cluster.upstream.clone();
        tokio::spawn(stay_current(cluster.name.to_string(), move || {
            let upstream = upstream.clone();
            async move { upstream.reload().await }
        }));
    }
    if let Credentials::Own(token) = &stack.credentials {
        let token = token.clone();
        tokio::spawn(stay_current("listen-token".to_owned(), move || reread(token.clone())));
    }
}

async fn stay_current<E, F>(what: String, reload: impl Fn() -> F)
where
    E: Error,
    F: Future<Output = Result<bool, E>>,
{
    let mut failing = None;
    loop {
        sleep(PERIOD).await;
        match reload().await {
            Ok(changed) => {
                if failing.take().is_some() || changed {
                    tracing::info!(what, changed, "the files can be used and are in force");
                }
            }
            Err(error) => {
                let error = error.to_string();
                // Once, not every five seconds.
                if failing.as_ref() != Some(&error) {
                    tracing::warn!(what, error, "changed files cannot be used; the last good stay in force");
                }
                failing = Some(error);
            }
        }
    }
}

async fn reread(token: Arc<ListenToken>) -> Result<bool, TokenError> {
    let unread = |error: JoinError| Err(TokenError::Unread(error.to_string()));
    spawn_blocking(move || token.reload()).await.unwrap_or_else(unread)
}
