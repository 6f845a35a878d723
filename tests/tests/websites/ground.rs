//! A ring of the controller over Websites with people at work on it, and what must be true of it in the end.

use std::time::Duration;

use k8s_openapi::api::core::v1::Event;
use kube::api::{Api, DeleteParams, ListParams};
use serde_json::json;
use shoal_api::names;
use shoal_tests::controllers::{Controller, ControllerManager};
use shoal_tests::live::Work;
use shoal_tests::websites::{self, Users, Watching};
use shoal_tests::{ControlPlane, LiveRing, Options, RunDir, User, evidence, soon, wait_for};

/// A loaded machine needs most of it.
pub(crate) const DEADLINE: Duration = Duration::from_mins(3);
const WORK: websites::Work = websites::Work { namespaces: 12, prefill: 60, pace: Duration::from_millis(60) };

pub(crate) struct Ground {
    // Dropped in this order: what depends on others first.
    users: Users,
    watching: Watching,
    pub(crate) ring: LiveRing,
    _collector: Controller,
    plane: ControlPlane,
    _dir: RunDir,
}

// === impl Ground ===

impl Ground {
    /// Returns when the first Websites are Ready and people are at work.
    pub(crate) async fn start(name: &str, shards: u16) -> Self {
        let dir = RunDir::for_test(name).unwrap();
        let plane = ControlPlane::start(dir.path(), Options::default()).await.unwrap();
        let client = plane.client(&User::ADMIN).await.unwrap();
        websites::install(&client).await.unwrap();
        let collector = collector(&plane).await;
        let ring = websites::ring(shards).unwrap();
        let ring = LiveRing::start(&plane, &ring, Work::Websites, DEADLINE).await.unwrap();
        let watching = Watching::start(&client);
        let users = Users::start(&client, WORK).await.unwrap();
        wait_for("the first Websites", DEADLINE, || async {
            let seen = watching.seen();
            let ready = seen.sites.values().filter(|site| site.phase == "Ready").count();
            if ready >= WORK.prefill / 2 { Ok(()) } else { Err(format!("{ready} of {}", seen.sites.len())) }
        })
        .await
        .unwrap();
        Self { users, watching, ring, _collector: collector, plane, _dir: dir }
    }

    pub(crate) async fn add_pod(&mut self) {
        self.ring.add_pod(&self.plane).await.unwrap();
    }

    /// Waits until the newest Pod has found its place.
    pub(crate) async fn stands_by(&self) {
        let pod = self.ring.pods.last().unwrap();
        wait_for("the new Pod to stand by", DEADLINE, || async {
            let seat = pod.seat().await.map_err(|error| error.to_string())?;
            if seat.role == "nobody" { Err("it does nothing") } else { Ok(()) }.map_err(str::to_owned)
        })
        .await
        .unwrap();
    }

    pub(crate) async fn version(&self) -> i64 {
        self.ring.state().await.unwrap().map.unwrap().spec.version
    }

    /// Sends slots to a shard by hand, `0-40>websites-1`, and waits until they are there.
    pub(crate) async fn send(&self, wish: &str) {
        let annotation = json!({names::WISHES_ANNOTATION: format!("move={wish}")});
        self.ring.patch(&json!({"metadata": {"annotations": annotation}})).await.unwrap();
        let (_, to) = wish.split_once('>').unwrap();
        wait_for(wish, DEADLINE, || async {
            let state = self.ring.state().await.map_err(|error| error.to_string())?;
            state.check_settled(self.ring.name(), 3)?;
            let map = state.map.ok_or("no map")?;
            let first = map.spec.slots.first().and_then(|range| range.owner.clone());
            if first.as_deref() == Some(to) { Ok(()) } else { Err(format!("they are {first:?}'s")) }
        })
        .await
        .unwrap();
    }

    /// Deletes an identity Lease and waits until it is there again.
    pub(crate) async fn delete_lease(&self, shard: &str) {
        let (api, name) = (self.ring.leases(), names::identity_lease(shard));
        let old = api.get(&name).await.unwrap();
        api.delete(&name, &DeleteParams::default()).await.unwrap();
        let holder = wait_for("the Lease to be there again", DEADLINE, || async {
            let lease = api.get_opt(&name).await.map_err(|error| error.to_string())?;
            let lease = lease.filter(|lease| lease.metadata.uid != old.metadata.uid);
            lease.and_then(|lease| lease.spec?.holder_identity).ok_or_else(|| "it is not".to_owned())
        })
        .await
        .unwrap();
        assert_eq!(Some(holder), old.spec.unwrap().holder_identity);
    }

    /// Everybody stops; all must be Ready, nobody may have seen an error, and nothing may have been created twice.
    pub(crate) async fn finish(self) {
        let changed = self.users.end().await.unwrap();
        let seen = soon("all Websites to be Ready", self.watching.all_ready(&changed.sites)).await;
        assert_eq!(seen.errors, std::collections::BTreeSet::new(), "Websites that showed an error");
        let events: Api<Event> = Api::all(self.ring.client.clone());
        let warnings = events.list(&ListParams::default().fields("type=Warning")).await.unwrap();
        let messages = warnings.iter().filter_map(|event| event.message.as_ref());
        // What the loser of a slot had begun meets its gate, and it says so; nothing comes of that.
        let twice: Vec<_> = messages.filter(|message| message.contains("already exists")).collect();
        assert_eq!(twice, Vec::<&String>::new());
        let log = evidence::snapshot(&self.plane.audit_log()).unwrap();
        assert_eq!(evidence::refused_creates(&log, "websites"), Vec::<String>::new(), "created twice");
        let ring = websites::ring(4).unwrap();
        let report = evidence::judge_live(&log, &ring, vec![User::WEBSITES.name.to_owned()]).unwrap();
        assert!(report.is_clean() && report.judged > 0, "{report}");
    }
}

/// What a cluster has beside: what a deleted Website leaves goes, and Deployments have a status.
async fn collector(plane: &ControlPlane) -> Controller {
    let kubeconfig = plane.kubeconfig(&User::SINGLETONS).unwrap();
    let controllers = [
        "garbage-collector-controller",
        "deployment-controller",
        "replicaset-controller",
        "endpointslice-controller",
        "namespace-controller",
        "serviceaccount-controller",
    ];
    let manager = ControllerManager {
        name: "collector",
        controllers: &controllers,
        kubeconfig: &kubeconfig,
        election: None,
        flags: &[],
    };
    manager.start(plane).await.unwrap()
}
