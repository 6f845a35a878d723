//! Kubeconfig, authority and tokens change while requests run; none of them fails for it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use shoal_tests::pki::Pki;
use shoal_tests::relay::Relay;
use shoal_tests::scripted::client::{Http, Wire};
use shoal_tests::{ControlPlane, Options, Proxy, RunDir, User, wait_for};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::interval;

use crate::own::{self, LISTEN_TOKEN};
use crate::{DEADLINE, log, no_credential_in, whoami};

const FIRST: User = User { name: "first", groups: &["system:masters"] };
const SECOND: User = User { name: "second", groups: &["system:masters"] };
/// Between two requests of the load.
const PACE: Duration = Duration::from_millis(10);

/// The files of a proxy.
struct Files {
    kubeconfig: PathBuf,
    authority: PathBuf,
    token: PathBuf,
    listen_token: PathBuf,
}

/// Requests one after the other, until one fails or it is told to stop.
struct Load {
    stop: watch::Sender<bool>,
    sending: JoinHandle<Result<usize, String>>,
}

#[tokio::test]
async fn changed_files_are_in_force_soon_and_cost_no_request() {
    let dir = RunDir::for_test("operations_reload").unwrap();
    let options = Options { users: vec![FIRST, SECOND], ..Options::default() };
    let plane = ControlPlane::start(dir.path(), options).await.unwrap();
    let files = Files::create(dir.path(), &plane);
    let proxy = own::proxy(dir.path(), &files.kubeconfig, &files.listen_token, "").await;
    let wire = crate::wire(&proxy, Http::Two).await;
    let load = Load::start(wire.clone());

    is(&wire, FIRST.name).await;
    std::fs::write(&files.token, plane.token(&SECOND).unwrap()).unwrap();
    is(&wire, SECOND.name).await;

    std::fs::write(&files.kubeconfig, "clusters: [").unwrap();
    is_logged(&proxy, "the last good stay in force").await;
    is(&wire, SECOND.name).await;

    let relay = Relay::start(plane.url().trim_start_matches("https://").parse().unwrap()).await.unwrap();
    files.point_at(&format!("https://{}", relay.address()));
    let moved = || async { if relay.held() > 0 { Ok(()) } else { Err("nobody has come by the new way") } };
    wait_for("requests by the new address", DEADLINE, moved).await.unwrap();
    let sent = load.finish().await.expect("no change may cost a request");
    println!("{sent} requests");

    trust_follows_the_file(&files, &plane, &wire).await;
    the_listeners_token_follows_too(&files, &wire).await;
    no_credential_in(&log(&proxy), &plane, &[&FIRST, &SECOND]);
}

/// An authority that did not sign the server's certificate is believed to mean it.
async fn trust_follows_the_file(files: &Files, plane: &ControlPlane, wire: &Wire) {
    let other = Pki::create(&files.kubeconfig.with_file_name("other")).unwrap();
    std::fs::copy(other.ca, &files.authority).unwrap();
    let distrusted = || async {
        match whoami(wire, LISTEN_TOKEN).await {
            Err((status, body)) if status == 503 && body.contains("cannot connect") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    };
    wait_for("the server to be distrusted", DEADLINE, distrusted).await.unwrap();
    std::fs::copy(&plane.pki().ca, &files.authority).unwrap();
    is(wire, SECOND.name).await;
}

async fn the_listeners_token_follows_too(files: &Files, wire: &Wire) {
    std::fs::write(&files.listen_token, "a-newer-token").unwrap();
    let newer = || async { whoami(wire, "a-newer-token").await.map_err(|(status, _)| status) };
    wait_for("the new token to count", DEADLINE, newer).await.unwrap();
    assert_eq!(whoami(wire, LISTEN_TOKEN).await.unwrap_err().0, 401);
}

/// Waits until the API server takes the proxy for this user.
async fn is(wire: &Wire, user: &str) {
    let same = || async {
        let found = whoami(wire, LISTEN_TOKEN).await;
        if found.as_deref() == Ok(user) { Ok(()) } else { Err(format!("{found:?}")) }
    };
    wait_for(user, DEADLINE, same).await.unwrap();
}

async fn is_logged(proxy: &Proxy, words: &str) {
    let logged = || async { if log(proxy).contains(words) { Ok(()) } else { Err("not yet") } };
    wait_for(words, DEADLINE, logged).await.unwrap();
}

// === impl Files ===

impl Files {
    fn create(dir: &Path, plane: &ControlPlane) -> Self {
        let file = |name| dir.join("files").join(name);
        let files = Self {
            kubeconfig: file("kubeconfig"),
            authority: file("ca.crt"),
            token: file("token"),
            listen_token: file("listen-token"),
        };
        std::fs::create_dir_all(dir.join("files")).unwrap();
        std::fs::copy(&plane.pki().ca, &files.authority).unwrap();
        std::fs::write(&files.token, plane.token(&FIRST).unwrap()).unwrap();
        files.point_at(plane.url());
        files
    }

    /// Writes a kubeconfig that names the other files, relative to itself.
    fn point_at(&self, server: &str) {
        let text = json!({
            "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority": "ca.crt"}}],
            "users": [{"name": "u", "user": {"tokenFile": "token"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        });
        std::fs::write(&self.kubeconfig, text.to_string()).unwrap();
    }
}

// === impl Load ===

impl Load {
    fn start(wire: Wire) -> Self {
        let (stop, stopped) = watch::channel(false);
        let sending = tokio::spawn(async move {
            let (mut pace, mut sent) = (interval(PACE), 0);
            while !*stopped.borrow() {
                pace.tick().await;
                whoami(&wire, LISTEN_TOKEN).await.map_err(|refused| format!("after {sent}: {refused:?}"))?;
                sent += 1;
            }
            Ok(sent)
        });
        Self { stop, sending }
    }

    async fn finish(self) -> Result<usize, String> {
        self.stop.send_replace(true);
        self.sending.await.unwrap()
    }
}
