//! What can go wrong in the harness, said so that the next step is clear.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// Lines of a program's log that an error shows.
const TAIL_LINES: usize = 15;

/// A failure of the harness or of a program that it runs, never of the code under test.
#[derive(Debug, thiserror::Error)]
pub enum HarnessError {
    /// A program has not been built.
    #[error("{program} is not there: expected it at {}; run `{remedy}`", path.display())]
    MissingProgram {
        /// The program's file name.
        program: String,
        /// Where it was looked for.
        path: PathBuf,
        /// The command that builds it.
        remedy: &'static str,
    },
    /// A program answered what it should not.
    #[error("{url}: {reason}")]
    Answer {
        /// What was asked.
        url: String,
        /// What is wrong with the answer.
        reason: String,
    },
    /// A program ended although it was to go on.
    #[error("{program} exited with code {code} before {awaited}; its log {} ends:\n{}", log.display(), tail(log))]
    Exited {
        /// The program's name in this run.
        program: String,
        /// Its exit code; 128 + n when signal n ended it.
        code: i32,
        /// What it was expected to reach.
        awaited: String,
        /// Its log.
        log: PathBuf,
    },
    /// A program runs, but does not become ready.
    #[error(
        "{program} was not ready after {} s: {awaited}, last answer: {last}; its log {} ends:\n{}",
        waited.as_secs(), log.display(), tail(log)
    )]
    NotReady {
        /// The program's name in this run.
        program: String,
        /// The deadline that passed.
        waited: Duration,
        /// What it was expected to reach.
        awaited: String,
        /// The last answer or error.
        last: String,
        /// Its log.
        log: PathBuf,
    },
    /// A condition on a running cluster was not reached.
    #[error("waited {} s for {what}; last seen: {last}", waited.as_secs())]
    Timeout {
        /// The condition.
        what: String,
        /// The deadline that passed.
        waited: Duration,
        /// What the last look showed.
        last: String,
    },
    /// The judge cannot use what it is given.
    #[error("the judge cannot use its input: {0}")]
    Judge(#[from] shoal_judge::InputError),
    /// A user that this control plane was not started with.
    #[error("the control plane has no user {0}: name it in Options::users")]
    UnknownUser(String),
    /// A real node was asked for where none can run.
    #[error("a real node needs namespaces of its own: run the test by `make test-node`")]
    NoBox,
    /// Every port of the harness' range is taken.
    #[error("no free port between {first} and {last} on 127.0.0.1: end what listens there")]
    NoPort {
        /// First port that was tried.
        first: u16,
        /// Last port that was tried.
        last: u16,
    },
    /// A file or a process could not be handled.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The verb.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// A certificate or key could not be made.
    #[error("cannot make a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    /// A request of the harness itself failed.
    #[error("a request of the harness to the API server failed: {0}")]
    Api(#[source] Box<kube::Error>),
    /// A kubeconfig that the harness wrote cannot be read back.
    #[error("kubeconfig {}: {reason}", path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// What the reader said.
        reason: String,
    },
}

// === impl HarnessError ===

impl HarnessError {
    /// For `map_err` on file and process calls.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }
}

impl From<kube::Error> for HarnessError {
    fn from(error: kube::Error) -> Self {
        Self::Api(Box::new(error))
    }
}

/// The last lines of a log, or why there are none.
fn tail(log: &Path) -> String {
    let text = match std::fs::read(log) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => return format!("(unreadable: {error})"),
    };
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(TAIL_LINES);
    lines.get(from..).unwrap_or_default().join("\n")
}
