//! What the API server's audit log tells of the clients.

use std::collections::BTreeMap;
use std::io::BufReader;

use shoal_judge::Event;
use shoal_tests::{ControlPlane, User};

use crate::caches::{LISTING, LISTING_KUBE, STREAMING_KUBE, WATCHLIST};
use crate::readers::READER;

/// Caches of client-go that list: whole and metadata only, of two kinds, in three shards.
const LISTING_STORES: usize = 12;

/// How clients asked for their state.
#[derive(Debug, Default)]
struct Asked {
    /// By user and way.
    requests: BTreeMap<(String, &'static str), usize>,
    /// Pages that were refused because what they continue is gone.
    expired: usize,
}

// === impl Asked ===

impl Asked {
    fn note(&mut self, event: &Event) {
        let uri = &event.request_uri;
        if !uri.contains("/configmaps?") && !uri.contains("/widgets?") {
            return;
        }
        let how = match event.verb.as_str() {
            "watch" if uri.contains("sendInitialEvents=true") => "streaming",
            "watch" => "watch",
            "list" => "list",
            _ => return,
        };
        let user = &event.user.username;
        *self.requests.entry((user.clone(), how)).or_default() += 1;
        let code = event.response_status.as_ref().map(|status| status.code);
        self.expired += usize::from(user == READER.name && code == Some(410));
    }

    fn count(&self, user: &User, how: &'static str) -> usize {
        self.requests.get(&(user.name.to_owned(), how)).copied().unwrap_or_default()
    }
}

/// Each client got its state the way it is here for, and a page was refused by the API server itself.
pub(crate) fn asked_as_they_should(plane: &ControlPlane) {
    let mut asked = Asked::default();
    let log = std::fs::File::open(plane.audit_log()).unwrap();
    for event in shoal_judge::read_events(BufReader::new(log)) {
        asked.note(&event.unwrap());
    }
    println!("{asked:?}");
    // client-go lists once where a WatchList breaks off before its bookmark (reflector.go, ListAndWatchWithContext).
    assert!(asked.count(&WATCHLIST, "streaming") > asked.count(&WATCHLIST, "list"), "{asked:?}");
    assert!(asked.count(&STREAMING_KUBE, "streaming") > 0, "{asked:?}");
    assert_eq!(asked.count(&STREAMING_KUBE, "list"), 0, "{asked:?}");
    for user in [LISTING, LISTING_KUBE] {
        assert!(asked.count(&user, "list") > 0 && asked.count(&user, "watch") > 0, "{asked:?}");
        assert_eq!(asked.count(&user, "streaming"), 0, "{asked:?}");
    }
    assert_eq!(asked.expired, 1, "{asked:?}");
    // A list at the start, one after the 410; a cut costs none, wherever it comes, as on a direct connection.
    assert!(asked.count(&LISTING, "list") < 3 * LISTING_STORES, "{asked:?}");
}
