//! Connections are file handles. The proxy takes fewer of them than the process may have, so that it can still reach
//! its API servers when its clients are many.

use crate::upstream;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Handles for everything but connections to clients and API servers: listeners, log, scrapes.
const OWN: u64 = 32;

/// How many connections each of `listeners` may have when `wanted` are wished for, in front of so many `clusters`.
/// Raises the process's soft limit to its hard one first, as Go's runtime does (`os/rlimit.go`).
pub fn connections(wanted: u16, listeners: usize, clusters: usize) -> usize {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = Rlimit { current: limit.maximum, ..limit };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::warn!(%error, "cannot raise the limit of open files");
        }
    }
    let fit = fitting(wanted, listeners, clusters, getrlimit(Resource::Nofile).current);
    if fit < usize::from(wanted) {
        tracing::warn!(
            wanted,
            connections = fit,
            "fewer connections, since the process may open few files: see ulimit -n"
        );
    }
    fit
}

/// Each client takes two handles, since it may upgrade and then has a connection upstream to itself. What all share to
/// the API servers has its handles apart; where there are few, the half.
fn fitting(wanted: u16, listeners: usize, clusters: usize, files: Option<u64>) -> usize {
    let files = files.map_or(u64::MAX, |files| files.saturating_sub(OWN));
    let files = usize::try_from(files).unwrap_or(usize::MAX);
    let shared = upstream::CONNECTIONS.saturating_mul(clusters).min(files / 2);
    let fit = (files - shared) / 2 / listeners.max(1);
    fit.clamp(1, wanted.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_files_are_left_for_the_proxy_itself_and_for_its_connections_upstream() {
        assert_eq!(fitting(1000, 1, 1, None), 1000);
        assert_eq!(fitting(1000, 1, 1, Some(1_048_576)), 1000);
        // 32 own, 256 shared, and two for each.
        assert_eq!(fitting(1000, 1, 1, Some(1024)), 368);
        assert_eq!(fitting(1000, 1, 1, Some(32 + 256 + 2000)), 1000);
        assert_eq!(fitting(1000, 1, 1, Some(32 + 256 + 1998)), 999);
        assert_eq!(fitting(1000, 3, 3, Some(32 + 3 * 256 + 600 * 2)), 200);
        // Half of the few there are.
        assert_eq!(fitting(1000, 1, 1, Some(64)), 8);
        assert_eq!(fitting(1000, 3, 3, Some(332)), 25);
        for files in [0, 8, 32, 33, 35] {
            assert_eq!(fitting(1000, 1, 1, Some(files)), 1, "{files}");
        }
    }

    #[test]
    fn whatever_is_given_out_can_be_opened() {
        for files in (40..5000).step_by(7) {
            for (listeners, clusters) in [(1, 1), (1, 4), (3, 3)] {
                let seats = fitting(u16::MAX, listeners, clusters, Some(files)) * listeners;
                let shared = (256 * clusters).min(usize::try_from(files - OWN).unwrap() / 2);
                let opened = OWN + u64::try_from(2 * seats + shared).unwrap();
                assert!(opened <= files || seats == listeners, "{files}: {opened}");
            }
        }
    }
}
