//! Which API server a request is for: the hub, or a member under `/clusters/<name>`.

use std::sync::Arc;

use http::{StatusCode, Uri};

use crate::{respond::Refusal, upstream::Upstream};

/// In front of the path of a request to a member cluster.
const PREFIX: &str = "/clusters/";

/// The API servers of a ring.
pub struct Clusters {
    hub: Cluster,
    members: Vec<Cluster>,
}

/// One API server and its name, which is hashed into the keys of its objects.
pub struct Cluster {
    /// The cluster's name in the ring.
    pub name: Arc<str>,
    /// The connections to it.
    pub upstream: Arc<Upstream>,
}

// === impl Clusters ===

impl Clusters {
    /// The hub and the member clusters.
    pub fn new(hub: Arc<Upstream>, members: Vec<Arc<Upstream>>) -> Self {
        let cluster = |upstream: Arc<Upstream>| Cluster { name: upstream.name().into(), upstream };
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

    /// The cluster that a request is for, and the request's target without the prefix if it had one.
    pub fn route(&self, uri: &Uri) -> Result<(&Cluster, Option<Uri>), Refusal> {
        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        let Some(rest) = target.strip_prefix(PREFIX) else { return Ok((&self.hub, None)) };
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

    fn routed(target: &str) -> Result<(String, Option<String>), Refusal> {
        let clusters = Clusters::new(upstream("hub"), vec![upstream("east")]);
        let (cluster, rest) = clusters.route(&target.parse().unwrap())?;
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
        let refusal = routed("/clusters/west/api").unwrap_err();
        assert_eq!(refusal.code, 404);
        assert!(refusal.message.contains("hub, east"), "{}", refusal.message);
    }
}
