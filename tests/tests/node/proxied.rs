//! pods/proxy and services/proxy: requests that go on to a container.

use crate::ground::Ground;

#[tokio::test]
#[ignore = "needs a real node: make test-node"]
async fn what_containers_serve_is_reached_through_the_api_server() {
    let ground = Ground::get().await;
    ground
        .same(
            "kubectl wait --for=jsonpath='{.endpoints[*].conditions.ready}'=true --timeout=120s \
         endpointslice -l kubernetes.io/service-name=web",
        )
        .await;
    for target in ["pods/tools:8080", "services/web:http", "services/web:80"] {
        let url = format!("/api/v1/namespaces/$NS/{target}/proxy");
        let seen =
            ground.same(&format!("kubectl get --raw '{url}/a/b%20c?d=e&d=f'").replace('\'', "\"")).await;
        assert!(seen.stdout.contains("GET /a/b%20c?d=e&d=f\n"), "{target}: {seen:?}");
        let post = format!(
            "podtools source 300000 5 >\"$HOME/body\"; kubectl create --raw \"{url}/x\" -f \"$HOME/body\""
        );
        let seen = ground.same(&post).await;
        assert!(seen.stdout.contains("POST /x\nbody 300000 "), "{target}: {seen:?}");
        let failed = ground.same(&format!("kubectl get --raw \"{url}/?code=418\"")).await;
        assert_eq!(failed.code, Some(1), "{failed:?}");
    }
}
