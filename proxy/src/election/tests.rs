//! Names of locks, in and out.

use http::{HeaderMap, Method};
use shoal_api::LockResource;

use super::*;
use crate::request::KubeRequest;

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";

fn locks() -> Locks {
    let lock = |namespace: &str| Lock {
        resource: LockResource::Leases,
        namespace: namespace.into(),
        name: "manager".into(),
    };
    Locks::new(&[lock("kube-system"), lock("other")], "kcm", "kcm-1")
}

fn with<T>(method: &str, path: &str, test: impl FnOnce(&Locks, Result<Touch<'_>, Refusal>) -> T) -> T {
    let method: Method = method.parse().unwrap();
    let request = KubeRequest::parse(&method, &path.parse().unwrap(), &HeaderMap::new()).unwrap();
    let locks = locks();
    let touch = locks.touch(&request.info.verb, request.target().unwrap(), request.is_write());
    test(&locks, touch)
}

#[test]
fn each_shard_has_its_own_lock_behind_the_name_the_controller_knows() {
    for method in ["GET", "PUT", "PATCH", "DELETE"] {
        with(method, &format!("{LEASES}/manager"), |_, touch| {
            let Ok(Touch::Lock(lock)) = touch else { panic!("{method}: {touch:?}") };
            assert_eq!(lock.own, "manager-kcm-1");
        });
    }
}

#[test]
fn the_locks_of_sisters_cannot_be_written() {
    for name in ["manager-kcm-0", "manager-kcm-1", "manager-kcm-17"] {
        for method in ["PUT", "PATCH", "DELETE"] {
            with(method, &format!("{LEASES}/{name}"), |_, touch| assert_eq!(touch.unwrap_err().code, 409));
        }
        with("GET", &format!("{LEASES}/{name}"), |_, touch| assert_eq!(touch, Ok(Touch::None)));
        with("POST", LEASES, |locks, touch| {
            assert_eq!(touch, Ok(Touch::Create));
            let path = LEASES.parse().unwrap();
            let request = KubeRequest::parse(&Method::POST, &path, &HeaderMap::new()).unwrap();
            assert_eq!(locks.create(request.target().unwrap(), name).unwrap_err().code, 503);
        });
    }
}

#[test]
fn other_leases_are_left_alone() {
    for path in [
        format!("{LEASES}/manager-kcm-x"),
        format!("{LEASES}/manager-kcm-"),
        format!("{LEASES}/scheduler"),
        "/apis/coordination.k8s.io/v1/namespaces/shop/leases/manager".to_owned(),
        "/api/v1/namespaces/kube-system/configmaps/manager".to_owned(),
    ] {
        with("PUT", &path, |_, touch| assert_eq!(touch, Ok(Touch::None), "{path}"));
    }
}

#[test]
fn a_collection_with_locks_in_it_is_read_through_the_lens_and_never_deleted() {
    for path in [LEASES, "/apis/coordination.k8s.io/v1/leases?watch=1"] {
        with("GET", path, |_, touch| assert_eq!(touch, Ok(Touch::Collection)));
    }
    let broad = "/apis/coordination.k8s.io/v1/leases?fieldSelector=metadata.name%3Dmanager";
    with("GET", broad, |_, touch| assert_eq!(touch.unwrap_err().code, 400));
    with("DELETE", LEASES, |_, touch| assert_eq!(touch.unwrap_err().code, 403));
}

#[test]
fn a_response_shows_the_own_lock_only_and_under_the_known_name() {
    let locks = locks();
    assert_eq!(locks.verdict("kube-system", "manager-kcm-1"), Some(Verdict::Rename("manager")));
    for hidden in ["manager", "manager-kcm-0", "manager-kcm-25"] {
        assert_eq!(locks.verdict("kube-system", hidden), Some(Verdict::Drop), "{hidden}");
    }
    assert_eq!(locks.verdict("kube-system", "scheduler"), None);
    assert_eq!(locks.verdict("shop", "manager"), None);
}

#[test]
fn a_selector_means_the_own_lock() {
    let locks = locks();
    assert_eq!(locks.selected("kube-system", "manager"), Some("manager-kcm-1"));
    assert_eq!(locks.selected("shop", "manager"), None);
    assert_eq!(locks.selected("kube-system", "scheduler"), None);
}
