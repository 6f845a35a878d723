//! Which API server a request is for: that of the listener it came through, or a member under `/clusters/<name>` of the
//! hub's.

use std::sync::Arc;

use http::{StatusCode, Uri};

use super::refused::Refused;
use crate::{respond::Refusal, upstream::Upstream};

/// In front of the path of a request to a member cluster.
const PREFIX: &str = "/clusters/";

/// The API servers of a ring.
pub struct Clusters {
    hub: Cluster,
    members: Vec<Cluster>,
}

/// The cluster that a listener stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Home {
    /// The hub; the others are reached through it too.
    #[default]
    Hub,
    /// A member and no other, by its number.
    Member(usize),
}

/// One API server and its name, which is hashed into the keys of its objects.
pub struct Cluster {
    /// The cluster's name in the ring.
    pub name: Arc<str>,
    /// The connections to it.
    pub upstream: Arc<Upstream>,
    /// What it is not asked to leave out.
    pub(super) refused: Refused,
    /// What its clients may list, but of late might not get.
    pub(super) listed: Refused,
}

// === impl Clusters ===

impl Clusters {
    /// The hub and the member clusters.
    pub fn new(hub: Arc<Upstream>, members: Vec<Arc<Upstream>>) -> Self {
        let cluster = |upstream: Arc<Upstream>| Cluster {
            name: upstream.name().into(),
            upstream,
            refused: Refused::default(),
            listed: Refused::default(),
        };
        Self { hub: cluster(hub), members: members.into_iter().map(cluster).collect() }
    }

    /// The API server that requests without a cluster in their path go to.
    pub fn hub(&self) -> &Arc<Upstream> {
        &self.hub.upstream
    }

    /// Every cluster, the hub first.
    pub fn iter(&self) -> impl Iterator<Item = &Cluster> {
        std::iter::once(&self.hub).chain(&self.members)
    }

    /// The listener's cluster of that name; none if there is no such cluster.
    pub fn home(&self, name: &str) -> Option<Home> {
        if *self.hub.name == *name {
            return Some(Home::Hub);
        }
        self.members.iter().position(|member| *member.name == *name).map(Home::Member)
    }

    /// The cluster that a request is for, and the request's target without the prefix if it had one.
    pub fn route(&self, home: Home, uri: &Uri) -> Result<(&Cluster, Option<Uri>), Refusal> {
        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        let rest = target.strip_prefix(PREFIX);
        let rest = match (home, rest) {
            (Home::Hub, Some(rest)) => rest,
            (Home::Hub, None) => return Ok((&self.hub, None)),
            (Home::Member(number), None) => {
                return self.members.get(number).map(|member| (member, None)).ok_or_else(not_here);
            }
            (Home::Member(_), Some(_)) => return Err(not_here()),
        };
        let (name, tail) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let cluster = self.iter().find(|cluster| *cluster.name == *name).ok_or_else(|| self.unknown(name))?;
        let tail = if tail.starts_with('/') { tail.to_owned() } else { format!("/{tail}") };
        let uri = tail.parse().map_err(|_| self.unknown(name))?;
        Ok((cluster, Some(uri)))
    }

    fn unknown(&self, name: &str) -> Refusal {
        let known: Vec<&str> = self.iter().map(|cluster| &*cluster.name).collect();
        let message = format!("no cluster {name:?} behind this proxy; it has {}", known.join(", "));
        Refusal::new(StatusCode::NOT_FOUND, "NotFound", message)
    }
}

fn not_here() -> Refusal {
    let message = "this listener is for one cluster: the others have their own, or are behind the hub's";
    Refusal::new(StatusCode::NOT_FOUND, "NotFound", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        metrics::Metrics,
        upstream::endpoint::{ForwardIdentity, Source},
    };

    fn upstream(name: &str) -> Arc<Upstream> {
        let folder = tempfile::tempdir().unwrap();
        let authority = rcgen::generate_simple_self_signed(vec!["a".to_owned()]).unwrap();
        std::fs::write(folder.path().join("ca.crt"), authority.cert.pem()).unwrap();
        let text = "{current-context: c, contexts: [{name: c, context: {cluster: k}}], clusters: [{name: k, \
                    cluster: {server: 'https://a', certificate-authority: ca.crt}}]}";
        std::fs::write(folder.path().join("kubeconfig"), text).unwrap();
        let source = Source::Kubeconfig(folder.path().join("kubeconfig"));
        let metrics = Metrics::new().unwrap();
        Arc::new(Upstream::new(name, source, ForwardIdentity::Client, &metrics).unwrap())
    }

    fn clusters() -> Clusters {
        Clusters::new(upstream("hub"), vec![upstream("west"), upstream("east")])
    }

    fn routed(target: &str) -> Result<(String, Option<String>), Refusal> {
        routed_from(Home::Hub, target)
    }

    fn routed_from(home: Home, target: &str) -> Result<(String, Option<String>), Refusal> {
        let clusters = clusters();
        let (cluster, rest) = clusters.route(home, &target.parse().unwrap())?;
        Ok((cluster.name.to_string(), rest.map(|uri| uri.to_string())))
    }

    #[test]
    fn the_path_tells_the_cluster() {
        for (target, cluster, rest) in [
            ("/api/v1/pods?limit=1", "hub", None),
            ("/clusters/east/api/v1/pods?a=%2F", "east", Some("/api/v1/pods?a=%2F")),
            ("/clusters/hub/version", "hub", Some("/version")),
            ("/clusters/east", "east", Some("/")),
            ("/clusters/east?x=1", "east", Some("/?x=1")),
            ("/clusters/east//api", "east", Some("//api")),
            ("https://127.0.0.1:6443/clusters/east/api", "east", Some("/api")),
        ] {
            assert_eq!(routed(target).unwrap(), (cluster.to_owned(), rest.map(str::to_owned)), "{target}");
        }
    }

    #[test]
    fn an_unknown_cluster_is_named_with_those_that_exist() {
        let refusal = routed("/clusters/north/api").unwrap_err();
        assert_eq!(refusal.code, 404);
        assert!(refusal.message.contains("hub, west, east"), "{}", refusal.message);
    }

    #[test]
    fn a_members_own_listener_leads_nowhere_else() {
        let home = clusters().home("east").unwrap();
        assert_eq!((clusters().home("hub"), clusters().home("north")), (Some(Home::Hub), None));
        assert_eq!(routed_from(home, "/api/v1/pods").unwrap(), ("east".to_owned(), None));
        for target in ["/clusters/hub/api", "/clusters/east/api", "/clusters/"] {
            assert_eq!(routed_from(home, target).unwrap_err().code, 404, "{target}");
        }
    }
}
