//! Connections are file handles. The proxy takes fewer of them than the process may have, so that it can still reach
//! its API servers when its clients are many.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Handles for everything but clients: listeners, log, API servers, scrapes.
const OWN: u64 = 32;

/// How many connections each of `listeners` may have when `wanted` are wished for. Raises the process's soft limit to its hard one
/// first, as Go's runtime does (`os/rlimit.go`).
pub fn connections(wanted: u16, listeners: usize) -> usize {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = Rlimit { current: limit.maximum, ..limit };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::warn!(%error, "cannot raise the limit of open files");
        }
    }
    let fit = fitting(wanted, listeners, getrlimit(Resource::Nofile).current);
    if fit < usize::from(wanted) {
        tracing::warn!(
            wanted,
            connections = fit,
            "fewer connections, since the process may open few files: see ulimit -n"
        );
    }
    fit
}

fn fitting(wanted: u16, listeners: usize, files: Option<u64>) -> usize {
    let fit = files.map_or(u64::MAX, |files| files.saturating_sub(OWN));
    let fit = usize::try_from(fit).unwrap_or(usize::MAX) / listeners.max(1);
    fit.clamp(1, wanted.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_files_are_left_for_the_proxy_itself() {
        assert_eq!(fitting(1000, 1, None), 1000);
        assert_eq!(fitting(1000, 1, Some(1_048_576)), 1000);
        assert_eq!(fitting(1000, 1, Some(64)), 32);
        assert_eq!(fitting(1000, 1, Some(8)), 1);
        assert_eq!(fitting(1000, 3, Some(332)), 100);
    }
}
