//! What people do to workloads, in namespaces of every shard at once: scale, a new image, three ways to delete, and
//! the end of a namespace.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PropagationPolicy};
use kube::core::NamespaceResourceScope;
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::json;
use shoal_tests::load::{DB, WEB};
use shoal_tests::{Load, wait_for};

use super::script::{IMAGE, Script};
use super::{DEADLINE, owned};

const NEXT_IMAGE: &str = "registry.example/app:2";

/// One namespace of each shard for each kind of change.
struct Plan {
    scale: Vec<String>,
    update: Vec<String>,
    background: Vec<String>,
    foreground: Vec<String>,
    orphan: Vec<String>,
    namespace: Vec<String>,
}

/// Makes all changes and waits until the ring has followed each of them; those that nobody changed stay as they were.
pub(crate) async fn work_in_namespaces_of_every_shard(admin: &Client, load: &Load, script: &mut Script) {
    let plan = Plan::of(load);
    let before = pods_of_all(admin, load).await;
    scale(admin, load, &plan.scale, script).await;
    rolling_update(admin, load, &plan.update, script).await;
    cascade(admin, &plan, script).await;
    orphan(admin, &plan.orphan).await;
    end_namespaces(admin, &plan.namespace, script).await;
    for namespace in load.namespaces.iter().filter(|namespace| plan.keeps_pods(namespace)) {
        assert_eq!(
            uids(admin, namespace).await,
            of(&before, namespace),
            "{namespace}: its Pods were replaced"
        );
    }
}

/// A namespace of the shard that no change is made to.
pub(crate) fn untouched(load: &Load, shard: &str) -> String {
    let plan = Plan::of(load);
    let left = owned(load)[shard].clone().into_iter();
    left.filter(|namespace| !plan.orphan.contains(namespace)).find(|it| plan.keeps_pods(it)).unwrap()
}

// === impl Plan ===

impl Plan {
    fn of(load: &Load) -> Self {
        let owned: Vec<Vec<String>> =
            owned(load).into_values().map(|all| all.into_iter().collect()).collect();
        let nth = |index: usize| owned.iter().map(|namespaces| namespaces[index].clone()).collect();
        Self {
            scale: nth(0),
            update: nth(1),
            background: nth(2),
            foreground: nth(3),
            orphan: nth(4),
            namespace: nth(5),
        }
    }

    /// Whether no Pod is to come or go there: an orphaned Pod stays.
    fn keeps_pods(&self, namespace: &String) -> bool {
        let changed = [&self.scale, &self.update, &self.background, &self.foreground, &self.namespace];
        !changed.iter().any(|all| all.contains(namespace))
    }
}

async fn scale(admin: &Client, load: &Load, namespaces: &[String], script: &mut Script) {
    for namespace in namespaces {
        script.template(namespace, IMAGE, 5);
        script.ordinal(namespace, load.sizes.db);
        set_replicas(admin, namespace, 5, load.sizes.db + 1).await;
    }
    settle(admin, load, namespaces).await;
    for namespace in namespaces {
        script.deletes("pods", namespace, &format!("{WEB}-"));
        script.deletes("pods", namespace, &format!("{DB}-"));
        set_replicas(admin, namespace, 2, 1).await;
    }
    settle(admin, load, namespaces).await;
    for namespace in namespaces {
        assert_eq!(list::<Pod>(admin, namespace, WEB).await.len(), 2, "{namespace}: Pods of {WEB}");
        let db: Vec<_> = list::<Pod>(admin, namespace, DB).await.iter().map(ResourceExt::name_any).collect();
        assert_eq!(db, [format!("{DB}-0")], "{namespace}");
    }
}

async fn set_replicas(admin: &Client, namespace: &str, web: u32, db: u32) {
    patch::<Deployment>(admin, namespace, WEB, json!({"spec": {"replicas": web}})).await;
    patch::<StatefulSet>(admin, namespace, DB, json!({"spec": {"replicas": db}})).await;
}

async fn rolling_update(admin: &Client, load: &Load, namespaces: &[String], script: &mut Script) {
    for namespace in namespaces {
        script.template(namespace, NEXT_IMAGE, load.sizes.web.into());
        script.deletes("pods", namespace, &format!("{WEB}-"));
        let containers = json!([{"name": "app", "image": NEXT_IMAGE}]);
        let spec = json!({"template": {"spec": {"containers": containers}}});
        patch::<Deployment>(admin, namespace, WEB, json!({"spec": spec})).await;
    }
    settle(admin, load, namespaces).await;
    for namespace in namespaces {
        let mut sizes: Vec<_> =
            list::<ReplicaSet>(admin, namespace, WEB).await.iter().map(image_and_size).collect();
        sizes.sort();
        let web = i32::try_from(load.sizes.web).unwrap();
        assert_eq!(sizes, [(IMAGE.to_owned(), 0), (NEXT_IMAGE.to_owned(), web)], "{namespace}");
        let pods = list::<Pod>(admin, namespace, WEB).await;
        let new = |pod: &Pod| pod.spec.as_ref().unwrap().containers[0].image.as_deref() == Some(NEXT_IMAGE);
        assert!(pods.len() == load.sizes.web as usize && pods.iter().all(new), "{namespace}: {pods:#?}");
    }
}

fn image_and_size(set: &ReplicaSet) -> (String, i32) {
    let template = set.spec.as_ref().unwrap().template.as_ref().unwrap();
    let image = template.spec.as_ref().unwrap().containers[0].image.clone().unwrap();
    (image, set.status.as_ref().unwrap().replicas)
}

/// Deletes Deployments with all that they own, the owner first or last.
async fn cascade(admin: &Client, plan: &Plan, script: &mut Script) {
    for namespace in plan.background.iter().chain(&plan.foreground) {
        script.deletes("replicasets", namespace, &format!("{WEB}-"));
        script.deletes("pods", namespace, &format!("{WEB}-"));
    }
    // A foreground deletion ends with the garbage collector taking its finalizer away, which is no deletion of its own.
    delete_web(admin, &plan.background, PropagationPolicy::Background).await;
    delete_web(admin, &plan.foreground, PropagationPolicy::Foreground).await;
    for namespace in plan.background.iter().chain(&plan.foreground) {
        wait_for(&format!("all of {WEB} in {namespace} to be gone"), DEADLINE, || async {
            let deployments = Api::<Deployment>::namespaced(admin.clone(), namespace);
            let deployment = deployments.get_opt(WEB).await.map_err(|error| error.to_string())?;
            let sets = list::<ReplicaSet>(admin, namespace, WEB).await.len();
            let pods = list::<Pod>(admin, namespace, WEB).await.len();
            let left = (deployment.is_some(), sets, pods);
            if left == (false, 0, 0) { Ok(()) } else { Err(format!("(Deployment, sets, Pods) {left:?}")) }
        })
        .await
        .unwrap();
    }
}

/// Deletes Deployments and leaves what they owned to itself.
async fn orphan(admin: &Client, namespaces: &[String]) {
    delete_web(admin, namespaces, PropagationPolicy::Orphan).await;
    for namespace in namespaces {
        let deployments = Api::<Deployment>::namespaced(admin.clone(), namespace);
        wait_for(&format!("the Deployment in {namespace} to be gone"), DEADLINE, || async {
            match deployments.get_opt(WEB).await.map_err(|error| error.to_string())? {
                None => Ok(()),
                Some(left) => Err(format!("finalizers {:?}", left.metadata.finalizers)),
            }
        })
        .await
        .unwrap();
        let sets = list::<ReplicaSet>(admin, namespace, WEB).await;
        let alone =
            |set: &ReplicaSet| set.owner_references().is_empty() && set.metadata.deletion_timestamp.is_none();
        assert!(
            sets.len() == 1 && alone(&sets[0]),
            "{namespace}: one ReplicaSet without an owner: {sets:#?}"
        );
    }
}

async fn delete_web(admin: &Client, namespaces: &[String], policy: PropagationPolicy) {
    let params = DeleteParams { propagation_policy: Some(policy), ..DeleteParams::default() };
    for namespace in namespaces {
        Api::<Deployment>::namespaced(admin.clone(), namespace).delete(WEB, &params).await.unwrap();
    }
}

async fn end_namespaces(admin: &Client, namespaces: &[String], script: &mut Script) {
    let api = Api::<Namespace>::all(admin.clone());
    for namespace in namespaces {
        script.deletes("*", namespace, "");
        api.delete(namespace, &DeleteParams::default()).await.unwrap();
    }
    for namespace in namespaces {
        wait_for(&format!("namespace {namespace} to be gone"), DEADLINE, || async {
            match api.get_opt(namespace).await.map_err(|error| error.to_string())? {
                None => Ok(()),
                Some(left) => Err(format!("{:?}", left.status)),
            }
        })
        .await
        .unwrap();
        assert_eq!(uids(admin, namespace).await, [""; 0], "{namespace}: Pods outlived it");
    }
}

async fn settle(admin: &Client, load: &Load, namespaces: &[String]) {
    let part = Load { namespaces: namespaces.to_vec(), sizes: load.sizes };
    part.wait_settled(admin, DEADLINE, |_| {}).await.unwrap();
}

async fn patch<K>(admin: &Client, namespace: &str, name: &str, change: serde_json::Value)
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    let api = Api::<K>::namespaced(admin.clone(), namespace);
    api.patch(name, &PatchParams::default(), &Patch::Strategic(change)).await.unwrap();
}

async fn list<K>(admin: &Client, namespace: &str, app: &str) -> Vec<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    let params = ListParams::default().labels(&format!("app={app}"));
    Api::<K>::namespaced(admin.clone(), namespace).list(&params).await.unwrap().items
}

/// UIDs of a namespace's Pods, sorted.
async fn uids(admin: &Client, namespace: &str) -> Vec<String> {
    let pods = Api::<Pod>::namespaced(admin.clone(), namespace).list(&ListParams::default()).await.unwrap();
    of(&pods.items, namespace)
}

async fn pods_of_all(admin: &Client, load: &Load) -> Vec<Pod> {
    let pods = Api::<Pod>::all(admin.clone()).list(&ListParams::default()).await.unwrap().items;
    let ours = |pod: &Pod| pod.namespace().is_some_and(|namespace| load.namespaces.contains(&namespace));
    pods.into_iter().filter(ours).collect()
}

fn of(pods: &[Pod], namespace: &str) -> Vec<String> {
    let there = pods.iter().filter(|pod| pod.namespace().as_deref() == Some(namespace));
    let mut uids: Vec<_> = there.filter_map(ResourceExt::uid).collect();
    uids.sort();
    uids
}
