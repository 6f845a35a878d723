//! Readiness of a program over HTTP.

use std::path::Path;
use std::time::Duration;

use http::Request;

use crate::{HarnessError, Process, kubeconfig, wait_for};

/// Time for a program to become ready; a shared, loaded machine needs most of it.
pub const READY_DEADLINE: Duration = Duration::from_mins(2);

/// Where a program tells that it is ready.
#[derive(Debug)]
pub(crate) struct Probe<'a> {
    /// Its base URL.
    pub(crate) url: &'a str,
    /// What an `https://` URL is verified against.
    pub(crate) ca: Option<&'a Path>,
    /// The path that answers 200.
    pub(crate) path: &'a str,
    pub(crate) deadline: Duration,
}

// === impl Probe ===

impl Probe<'_> {
    /// Polls until the program is ready; fails at once if it ends.
    pub(crate) async fn ready(&self, process: &Process) -> Result<(), HarnessError> {
        tokio::select! {
            code = process.wait() => Err(self.exited(process, code)),
            seen = self.poll() => seen.map_err(|error| self.explain(process, error)),
        }
    }

    async fn poll(&self) -> Result<(), HarnessError> {
        let client = kubeconfig::anonymous(self.url, self.ca).await?;
        let look = || async {
            let request = Request::get(self.path).body(Vec::new()).map_err(|error| error.to_string())?;
            client.request_text(request).await.map(drop).map_err(|error| error.to_string())
        };
        wait_for(self.path, self.deadline, look).await
    }

    fn awaited(&self) -> String {
        format!("{}{} answered 200", self.url, self.path)
    }

    fn exited(&self, process: &Process, code: i32) -> HarnessError {
        HarnessError::Exited {
            program: process.name().to_owned(),
            code,
            awaited: self.awaited(),
            log: process.log_path().to_owned(),
        }
    }

    fn explain(&self, process: &Process, error: HarnessError) -> HarnessError {
        match error {
            HarnessError::Timeout { waited, last, .. } => HarnessError::NotReady {
                program: process.name().to_owned(),
                waited,
                awaited: self.awaited(),
                last,
                log: process.log_path().to_owned(),
            },
            other => other,
        }
    }
}
