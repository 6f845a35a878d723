//! `kubectl cp`, which is exec with tar at both ends.

use crate::PROTOCOLS;
use crate::ground::Ground;

/// A file and a folder there, and back again.
const THERE_AND_BACK: &str = r#"
    rm -rf "$HOME/cp" && mkdir -p "$HOME/cp/folder"
    podtools source 20000000 7 >"$HOME/cp/folder/large"
    echo small >"$HOME/cp/folder/small"
    kubectl exec tools -c main -- rm -rf /tmp/cp
    kubectl cp "$HOME/cp/folder" tools:/tmp/cp -c main
    kubectl exec tools -c main -- sha256sum /tmp/cp/large /tmp/cp/small
    kubectl cp tools:/tmp/cp "$HOME/cp/back" -c main
    diff -r "$HOME/cp/folder" "$HOME/cp/back" && echo equal
"#;

#[tokio::test]
#[ignore = "needs a real node: make test-node"]
async fn cp_copies_there_and_back() {
    let ground = Ground::get().await;
    for (name, setting) in PROTOCOLS {
        let seen = ground.same(&format!("{setting}{THERE_AND_BACK}")).await;
        assert!(seen.stdout.contains("equal\n"), "{name}: {seen:?}");
    }
}
