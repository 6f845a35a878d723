//! Lists, as the view was when their answer began.

use std::sync::Arc;

use super::{View, past::Client, token};
use crate::{
    filter::{Lens, Verdict, View as Object},
    ownership::lens::ShardLens,
};

/// What a list shows.
pub struct ListLens {
    view: Arc<View>,
    cluster: Arc<str>,
    client: Client,
    lens: ShardLens,
    generation: u64,
    /// Whether it is the first page, or all.
    is_first: bool,
}

// === impl View ===

impl View {
    /// The lens of a list whose answer has begun: what it holds is settled, so a change from now on is none of it.
    pub fn list(
        self: &Arc<Self>,
        cluster: &Arc<str>,
        client: String,
        lens: ShardLens,
        is_first: bool,
    ) -> ListLens {
        let sight = self.sight.lock();
        let lens = lens.showing(sight.own.union(&sight.frozen));
        let (view, cluster, generation) = (self.clone(), cluster.clone(), sight.generation);
        ListLens { view, cluster, client, lens, generation, is_first }
    }

    /// The server's page token in place of the client's; none if the view has changed since the first page.
    pub fn page<'t>(&self, token: &'t str) -> Option<&'t str> {
        token::unwrap(self.sight.lock().generation, token)
    }
}

// === impl ListLens ===

impl Lens for ListLens {
    const FOLLOWS: bool = true;

    fn verdict(&self, view: Object<'_>) -> Verdict<'_> {
        self.lens.verdict(view)
    }

    fn listed(&self, version: &str) {
        let Ok(version) = version.parse() else { return };
        let mut sight = self.view.sight.lock();
        let is_new = sight.generation == self.generation;
        if self.is_first || !is_new {
            sight.past(&self.cluster).listed(&self.client, version, is_new);
        }
    }

    fn token(&self, token: &str) -> Option<String> {
        Some(token::wrap(self.generation, token))
    }
}
