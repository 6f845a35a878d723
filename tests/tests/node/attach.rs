//! attach, logs, and the container that `kubectl debug` adds.

use crate::PROTOCOLS;
use crate::ground::{Ground, Way};
use crate::live::Live;

#[tokio::test]
#[ignore = "needs a real node: make test-node"]
async fn attach_speaks_with_the_main_process() {
    let ground = Ground::get().await;
    for (_, setting) in PROTOCOLS {
        for way in Way::ALL {
            let lines = format!("{setting}exec kubectl -n $NS attach -i parrot 2>&1");
            let mut parrot = Live::start(ground.bash(way, &lines));
            parrot.answer("nuts", "heard nuts").await;
            parrot.answer("seeds", "and seeds").await;
            parrot.vanish().await;
        }
    }
}

#[tokio::test]
#[ignore = "needs a real node: make test-node"]
async fn logs_are_the_same_and_are_followed() {
    let ground = Ground::get().await;
    for lines in [
        "kubectl logs talker",
        "kubectl logs talker --tail=2 --timestamps",
        "kubectl logs talker --limit-bytes=100",
        "kubectl logs -l app=talker --prefix",
        "kubectl logs talker -c absent",
    ] {
        ground.same(lines).await;
    }
    assert_eq!(ground.same("kubectl logs talker --tail=1").await.stdout, "line 1000\n");
    for way in Way::ALL {
        let mut follows = Live::start(ground.bash(way, "exec kubectl -n $NS logs talker --follow"));
        follows.until("line 1000").await;
        let news = format!("news for {way:?}");
        ground.shell(Way::Direct, &format!("kubectl exec talker -- sh -c 'echo {news} >/proc/1/fd/1'")).await;
        follows.until(&news).await;
        follows.vanish().await;
    }
}

#[tokio::test]
#[ignore = "needs a real node: make test-node"]
async fn debug_adds_a_container_and_attaches_to_it() {
    let ground = Ground::get().await;
    for way in Way::ALL {
        // It waits for who attaches: nothing that it says is said too early.
        let name = format!("debug-{way:?}").to_lowercase();
        let lines = format!(
            "exec kubectl -n $NS debug -i tools --image=shoal.test/podtools:1 --target=main --quiet -c {name} \
             -- sh -c 'while read line && [ $line != bye ]; do ps; done; exit 4' 2>&1"
        );
        let mut debugger = Live::start(ground.bash(way, &lines));
        // The target's processes are its own.
        debugger.answer("look", "podtools pause").await;
        debugger.says("bye").await;
        debugger.end().await;
        let code = format!(
            "kubectl wait --timeout=120s pod/tools --for=jsonpath='{{.status.ephemeralContainerStatuses\
             [?(@.name==\"{name}\")].state.terminated.exitCode}}'=4"
        );
        let ended = ground.shell(way, &code).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
}
