//! What the API server itself does with a `shardSelector`: the ground that leaving lists to it stands on.

use http::StatusCode;
use serde_json::Value;
use shoal_tests::raw::Encoding;

use crate::fixture::Fixture;

/// An upper half of all uids, spelled as the server spells it.
pub(crate) const HALF: &str = "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')";

/// Without an echo: what is not from the store, and custom resources, which are cut all the same.
const SILENT: [&str; 2] = ["/api/v1/componentstatuses", "/apis/test.shoal.dev/v1/widgets"];

/// No server refuses, whatever the resource. Where the feature is on, every list but a few says that it was cut; where it is
/// off, none does. So that an answer without an echo may be cut as well as whole, and must be looked at.
pub(crate) async fn every_resource_takes_one(fixture: &Fixture) {
    for cluster in &fixture.clusters {
        let get = |path: String| async move {
            let answer = cluster.request(None, "GET", &path, Encoding::Json, None).await;
            assert_eq!(answer.code, StatusCode::OK, "{} {path}: {answer:?}", cluster.name);
            serde_json::from_slice::<Value>(&answer.body).unwrap()
        };
        let mut roots = vec!["/api/v1".to_owned()];
        for group in get("/apis".to_owned()).await["groups"].as_array().unwrap() {
            let versions = group["versions"].as_array().unwrap().iter();
            roots.extend(
                versions.map(|version| format!("/apis/{}", version["groupVersion"].as_str().unwrap())),
            );
        }
        let (mut echoed, mut silent) = (0, Vec::new());
        for root in roots {
            for resource in get(root.clone()).await["resources"].as_array().unwrap() {
                if !resource["verbs"].as_array().unwrap().contains(&"list".into()) {
                    continue;
                }
                let path = format!("{root}/{}", resource["name"].as_str().unwrap());
                let list = get(format!("{path}?shardSelector={}", escaped(HALF))).await;
                match list["metadata"]["shardInfo"]["selector"].as_str() {
                    Some(echo) => {
                        assert_eq!((echo, cluster.cuts), (HALF, true), "{} {path}", cluster.name);
                        echoed += 1;
                    }
                    None => silent.push(path),
                }
            }
        }
        if cluster.cuts {
            assert_eq!(silent, SILENT);
        }
        assert!(echoed + silent.len() > 60, "only {echoed} and {} resources", silent.len());
    }
}

pub(crate) fn escaped(selector: &str) -> String {
    selector.replace(' ', "%20").replace('\'', "%27").replace('|', "%7C")
}
