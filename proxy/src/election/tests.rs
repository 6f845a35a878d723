//! Names of locks, in and out.

use http::{HeaderMap, Method};
use shoal_api::LockResource;

use super::*;
use crate::request::KubeRequest;

/// A kind of lock, and a path of its collection in a namespace.
struct Kind {
    resource: LockResource,
    name: (&'static str, &'static str),
    root: &'static str,
}

const KINDS: [Kind; 2] = [
    Kind {
        resource: LockResource::Leases,
        name: ("coordination.k8s.io", "leases"),
        root: "/apis/coordination.k8s.io/v1",
    },
    Kind { resource: LockResource::ConfigMaps, name: ("", "configmaps"), root: "/api/v1" },
];

// === impl Kind ===

impl Kind {
    fn path(&self, namespace: &str) -> String {
        format!("{}/namespaces/{namespace}/{}", self.root, self.name.1)
    }

    /// One lock in each of two namespaces, none of another kind.
    fn locks(&self) -> Locks {
        let lock = |namespace: &str| Lock {
            resource: self.resource,
            namespace: namespace.into(),
            name: "manager".into(),
        };
        Locks::new(&[lock("kube-system"), lock("other")], "kcm", "kcm-1")
    }

    fn with<T>(&self, method: &str, path: &str, test: impl FnOnce(Result<Touch<'_>, Refusal>) -> T) -> T {
        let (request, locks) = (request(method, path), self.locks());
        test(locks.touch(&request.info.verb, request.target().unwrap(), request.is_write()))
    }
}

fn request(method: &str, path: &str) -> KubeRequest {
    let method: Method = method.parse().unwrap();
    KubeRequest::parse(&method, &path.parse().unwrap(), &HeaderMap::new()).unwrap()
}

#[test]
fn each_shard_has_its_own_lock_behind_the_name_the_controller_knows() {
    for kind in KINDS {
        for method in ["GET", "PUT", "PATCH", "DELETE"] {
            kind.with(method, &format!("{}/manager", kind.path("kube-system")), |touch| {
                let Ok(Touch::Lock(lock)) = touch else { panic!("{method}: {touch:?}") };
                assert_eq!(lock.own, "manager-kcm-1");
            });
        }
    }
}

#[test]
fn the_locks_of_sisters_cannot_be_written() {
    for kind in KINDS {
        let path = kind.path("kube-system");
        for name in ["manager-kcm-0", "manager-kcm-1", "manager-kcm-17"] {
            for method in ["PUT", "PATCH", "DELETE"] {
                let refusal = kind.with(method, &format!("{path}/{name}"), |touch| touch.unwrap_err());
                let subject = refusal.subject.unwrap();
                assert_eq!(refusal.code, 409);
                assert_eq!((subject.group.as_str(), subject.resource.as_str()), kind.name);
            }
            kind.with("GET", &format!("{path}/{name}"), |touch| assert_eq!(touch, Ok(Touch::None)));
            kind.with("POST", &path, |touch| assert_eq!(touch, Ok(Touch::Create)));
            let create = request("POST", &path);
            assert_eq!(kind.locks().create(create.target().unwrap(), name).unwrap_err().code, 503);
        }
    }
}

#[test]
fn other_objects_are_left_alone() {
    for (kind, other) in [(&KINDS[0], &KINDS[1]), (&KINDS[1], &KINDS[0])] {
        let path = kind.path("kube-system");
        for path in [
            format!("{path}/manager-kcm-x"),
            format!("{path}/manager-kcm-"),
            format!("{path}/scheduler"),
            format!("{}/manager", kind.path("shop")),
            format!("{}/manager", other.path("kube-system")),
            format!("{}/manager-kcm-0", other.path("kube-system")),
            "/apis/example.com/v1/namespaces/kube-system/configmaps/manager".to_owned(),
            "/api/v1/namespaces/kube-system/leases/manager".to_owned(),
        ] {
            kind.with("PUT", &path, |touch| assert_eq!(touch, Ok(Touch::None), "{path}"));
        }
        kind.with("DELETE", &other.path("kube-system"), |touch| assert_eq!(touch, Ok(Touch::None)));
        kind.with("POST", &other.path("kube-system"), |touch| assert_eq!(touch, Ok(Touch::None)));
    }
}

#[test]
fn a_collection_with_locks_in_it_is_read_through_the_lens_and_never_deleted() {
    for kind in KINDS {
        let (path, everywhere) = (kind.path("kube-system"), format!("{}/{}", kind.root, kind.name.1));
        for path in [&path, &format!("{everywhere}?watch=1")] {
            kind.with("GET", path, |touch| assert_eq!(touch, Ok(Touch::Collection)));
        }
        let broad = format!("{everywhere}?fieldSelector=metadata.name%3Dmanager");
        kind.with("GET", &broad, |touch| assert_eq!(touch.unwrap_err().code, 400));
        kind.with("DELETE", &path, |touch| {
            let refusal = touch.unwrap_err();
            assert_eq!(refusal.code, 403);
            assert!(refusal.message.contains(kind.name.1), "{}", refusal.message);
        });
    }
}

#[test]
fn a_response_shows_the_own_lock_only_and_under_the_known_name() {
    for (kind, other) in [(&KINDS[0], &KINDS[1]), (&KINDS[1], &KINDS[0])] {
        let locks = kind.locks();
        let verdict = |kind: &Kind, namespace, name| {
            let verdict = locks.verdict(kind.name.0, kind.name.1, namespace, name);
            verdict.map(|verdict| if let Verdict::Rename(new) = verdict { new } else { "-" }.to_owned())
        };
        assert_eq!(verdict(kind, "kube-system", "manager-kcm-1").as_deref(), Some("manager"));
        for hidden in ["manager", "manager-kcm-0", "manager-kcm-25"] {
            assert_eq!(verdict(kind, "kube-system", hidden).as_deref(), Some("-"), "{hidden}");
            assert_eq!(verdict(other, "kube-system", hidden), None, "{hidden}");
        }
        assert_eq!(verdict(kind, "kube-system", "scheduler"), None);
        assert_eq!(verdict(kind, "shop", "manager"), None);
    }
}

#[test]
fn a_selector_means_the_own_lock() {
    for (kind, other) in [(&KINDS[0], &KINDS[1]), (&KINDS[1], &KINDS[0])] {
        let locks = kind.locks();
        let selected = |path: String, name| {
            locks.selected(request("GET", &path).target().unwrap(), name).map(str::to_owned)
        };
        assert_eq!(selected(kind.path("kube-system"), "manager").as_deref(), Some("manager-kcm-1"));
        assert_eq!(selected(kind.path("shop"), "manager"), None);
        assert_eq!(selected(kind.path("kube-system"), "scheduler"), None);
        assert_eq!(selected(other.path("kube-system"), "manager"), None);
    }
}
