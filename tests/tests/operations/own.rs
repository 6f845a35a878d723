//! A proxy that forwards with its own identity, behind a listener without TLS and one with it.

use std::path::Path;

use http::StatusCode;
use shoal_tests::ring::{HUB, example};
use shoal_tests::scripted::client::{Http, Wire};
use shoal_tests::{ControlPlane, Options, Proxy, ProxyArgs, RunDir, User};

use crate::{log, no_credential_in, whoami};

/// What the listener's clients must present.
pub(crate) const LISTEN_TOKEN: &str = "the-listeners-own-token";
/// Whom the proxy is upstream.
const ROBOT: User = User::plain("robot");

/// A proxy with an identity of its own; `flags` are more of its flags.
pub(crate) async fn proxy(dir: &Path, kubeconfig: &Path, token: &Path, flags: &str) -> Proxy {
    std::fs::write(token, LISTEN_TOKEN).unwrap();
    let line = format!(r#"exec "$@" --forward-identity=own --listen-token-file={} {flags}"#, token.display());
    let (upstreams, config) = ([(HUB, kubeconfig.to_owned())], example());
    let args = ProxyArgs { shard: "kcm-0", config: &config, upstreams: &upstreams, dir };
    Proxy::start_by(&line, args).await.unwrap()
}

#[tokio::test]
async fn only_the_listeners_token_buys_the_proxys_own_identity() {
    let dir = RunDir::for_test("operations_own").unwrap();
    let options = Options { users: vec![ROBOT], ..Options::default() };
    let plane = ControlPlane::start(dir.path(), options).await.unwrap();
    let kubeconfig = plane.kubeconfig(&ROBOT).unwrap();
    let token = dir.path().join("listen-token");
    for (listen, http) in [("--listen=http://127.0.0.1:0", Http::One), ("", Http::One), ("", Http::Two)] {
        let proxy = proxy(dir.path(), &kubeconfig, &token, listen).await;
        assert_eq!(proxy.url().starts_with("http://"), !listen.is_empty(), "{}", proxy.url());
        let wire = crate::wire(&proxy, http).await;
        assert_eq!(whoami(&wire, LISTEN_TOKEN).await, Ok(ROBOT.name.to_owned()));
        // Not even the cluster's mightiest passes on its own token.
        for wrong in [plane.token(&User::ADMIN).unwrap(), "", "the-listeners-own-toke"] {
            let (status, body) = whoami(&wire, wrong).await.unwrap_err();
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{body}");
            assert!(body.contains("--listen-token-file") && body.contains("Unauthorized"), "{body}");
        }
        impersonation_is_forbidden(&wire).await;
        no_credential_in(&log(&proxy), &plane, &[&ROBOT, &User::ADMIN]);
        assert!(!log(&proxy).contains(LISTEN_TOKEN));
    }
}

async fn impersonation_is_forbidden(wire: &Wire) {
    let mut request = wire.request("/api/v1/nodes");
    request.headers_mut().insert("impersonate-user", "system:admin".parse().unwrap());
    let (status, body) = crate::ask(wire, request, LISTEN_TOKEN).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{body}");
    assert!(body.contains("impersonation"), "{body}");
}
