//! The lock of the controller behind the proxy, as the API server has it.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use shoal_tests::controllers::{Controller, ControllerManager, Election};
use shoal_tests::{ControlPlane, Proxy, User, wait_for};
use tokio::time::{Instant, interval};

use crate::{DEADLINE, GRACE};

/// As the controller calls it, and as it is called upstream.
const NAME: &str = "kube-controller-manager";
const REAL: &str = "kube-controller-manager-kcm-0";
const NAMESPACE: &str = "kube-system";
/// A last write this long after TERM still passes: a controller may have workers to drain first.
const LATE: Duration = Duration::from_secs(10);
/// Stock since 1.36, off by default.
const RELEASE: &str = "--feature-gates=ControllerManagerReleaseLeaderElectionLockOnExit=true";

/// A stock kube-controller-manager that leads, through the proxy.
pub(crate) async fn leader(plane: &ControlPlane, proxy: &Proxy) -> Controller {
    let manager = ControllerManager {
        name: "manager",
        controllers: &["deployment-controller", "replicaset-controller"],
        kubeconfig: &proxy.kubeconfig(plane, &User::CONTROLLER_MANAGER).unwrap(),
        election: Some(Election::default()),
        flags: &[RELEASE.to_owned()],
    };
    let manager = manager.start(plane).await.unwrap();
    let held = || async { if holder(plane).await.is_empty() { Err("nobody leads") } else { Ok(()) } };
    wait_for("a leader", DEADLINE, held).await.unwrap();
    manager
}

/// The controller has let its lock go, before it would have run out.
pub(crate) async fn is_released(plane: &ControlPlane) {
    let released = || async {
        let holder = holder(plane).await;
        if holder.is_empty() { Ok(()) } else { Err(format!("held by {holder}")) }
    };
    wait_for("the lock to be released", DEADLINE, released).await.unwrap();
}

/// Writes the lock through the proxy until it no longer can.
pub(crate) async fn can_be_written_late(plane: &ControlPlane, proxy: &Proxy, told: Instant) {
    let locks: Api<Lease> = Api::namespaced(proxy.client(plane, &User::ADMIN).await.unwrap(), NAMESPACE);
    let (mut pace, mut last) = (interval(Duration::from_millis(200)), told);
    while last.elapsed() < GRACE {
        pace.tick().await;
        let holder = json!({"spec": {"holderIdentity": format!("late-{:?}", told.elapsed())}});
        match locks.patch(NAME, &PatchParams::default(), &Patch::Merge(holder)).await {
            Ok(_) => last = Instant::now(),
            Err(_) => break,
        }
    }
    assert!(last - told > LATE, "the last write that passed came {:?} after TERM", last - told);
    assert!(holder(plane).await.starts_with("late-"), "it has arrived");
}

async fn holder(plane: &ControlPlane) -> String {
    let locks: Api<Lease> = Api::namespaced(plane.client(&User::ADMIN).await.unwrap(), NAMESPACE);
    let lock = locks.get_opt(REAL).await.unwrap();
    lock.and_then(|lock| lock.spec?.holder_identity).unwrap_or_default()
}
