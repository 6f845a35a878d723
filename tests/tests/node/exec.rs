//! exec: exit codes, both outputs, the end of stdin, a terminal, and a gibibyte both ways at once.

use shoal_tests::meter::Growth;

use crate::PROTOCOLS;
use crate::ground::{Ground, Way};
use crate::live::Live;

const GIBIBYTE: u64 = 1 << 30;
/// What a tunnel may add to the proxy's memory.
const MAY_ADD: u64 = 16 << 20;

#[tokio::test]
#[ignore = "needs a real node: make test-node"]
async fn exec_tells_exit_codes_and_keeps_stderr_apart() {
    let ground = Ground::get().await;
    for (name, setting) in PROTOCOLS {
        let line = "kubectl exec tools -c main -- sh -c 'echo out; echo err >&2; exit 3'";
        let seen = ground.same(&format!("{setting}{line}")).await;
        assert_eq!((seen.code, seen.stdout.as_str()), (Some(3), "out\n"), "{name}: {seen:?}");
        assert_eq!(seen.stderr, "err\ncommand terminated with exit code 3\n", "{name}");
        // The message names the attempt.
        let absent = "kubectl exec tools -c main -- no-such-program 2>/dev/null || echo $?";
        assert_eq!(ground.same(&format!("{setting}{absent}")).await.stdout, "1\n", "{name}");
    }
}

#[tokio::test]
#[ignore = "needs a real node: make test-node"]
async fn exec_passes_the_end_of_stdin_and_what_comes_after_it() {
    let ground = Ground::get().await;
    for (name, setting) in PROTOCOLS {
        // The digest is written when stdin has ended, so both the end and the last bytes must arrive.
        let lines =
            "printf 'first\\nlast' | kubectl exec -i tools -c main -- sh -c 'cat; sleep 1; echo after'";
        let seen = ground.same(&format!("{setting}{lines}")).await;
        assert_eq!((seen.code, seen.stdout.as_str()), (Some(0), "first\nlastafter\n"), "{name}: {seen:?}");
        let lines = "printf '' | kubectl exec -i tools -c main -- podtools digest";
        let seen = ground.same(&format!("{setting}{lines}")).await;
        assert!(seen.stdout.starts_with("0 "), "{name}: {seen:?}");
    }
}

#[tokio::test]
#[ignore = "needs a real node: make test-node"]
async fn exec_carries_a_gibibyte_both_ways_at_once() {
    let ground = Ground::get().await;
    let sent = ground.digest(GIBIBYTE, 1).await;
    let returned = ground.digest(GIBIBYTE, 2).await;
    for (name, setting) in PROTOCOLS {
        let growth = Growth::of(ground.proxy().process()).unwrap();
        let lines = format!(
            "{setting}podtools source {GIBIBYTE} 1 \
             | {{ kubectl exec -i tools -c main -- podtools both {GIBIBYTE} 2 7 || echo $? >&2; }} | podtools digest"
        );
        let seen = ground.shell(Way::Proxied, &lines).await;
        let added = growth.at_peak().unwrap();
        println!("exec over {name}, 1 GiB both ways: the proxy grew by {} KiB", added >> 10);
        let told = format!("in {sent}\nout {returned}\ncommand terminated with exit code 7\n7\n");
        assert_eq!((seen.stdout.trim(), &seen.stderr), (returned.as_str(), &told), "{name}");
        assert!(added <= MAY_ADD, "{name}: the proxy grew by {added} bytes");
    }
}

#[tokio::test]
#[ignore = "needs a real node: make test-node"]
async fn exec_has_a_terminal_that_is_resized() {
    let ground = Ground::get().await;
    for (name, setting) in PROTOCOLS {
        for way in Way::ALL {
            let mut terminal = Live::start(ground.bash(way, &format!("{setting}{}", in_a_terminal())));
            let tty = terminal.until("/dev/pts/").await;
            has_size(&mut terminal, "40 100").await;
            let resized = ground.shell(way, &format!("stty -F {} rows 50 cols 120", tty.trim())).await;
            assert_eq!(resized.code, Some(0), "{resized:?}");
            has_size(&mut terminal, "50 120").await;
            terminal.says("exit").await;
            assert_eq!(terminal.end().await, Some(5), "{name}, {way:?}");
        }
    }
}

/// Asks until the answer is this size, which travels apart from what is typed.
async fn has_size(terminal: &mut Live, size: &str) {
    while !terminal.answer("size", " ").await.contains(size) {}
}

/// A terminal of 40 rows and 100 columns around a kubectl whose shell answers each line with its size.
fn in_a_terminal() -> &'static str {
    r#"exec script -qec 'tty; stty rows 40 cols 100; exec kubectl -n $NS exec -it tools -c main -- sh -c "
        while read line && [ \$line = size ]; do stty size; done; exit 5"' /dev/null"#
}
