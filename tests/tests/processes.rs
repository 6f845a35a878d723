//! A child of the harness cannot outlive it. No control plane is needed here.
#![allow(clippy::unwrap_used, reason = "test code, helpers included")]

use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use shoal_tests::live::{Command, Container};
use shoal_tests::{HarnessError, Process, RunDir, soon, wait_for};

const DEADLINE: Duration = Duration::from_mins(1);

fn shell(script: &str, dir: &RunDir) -> Process {
    let args = ["-c".to_owned(), script.to_owned()];
    Process::spawn("sh", Path::new("/bin/sh"), &args, &[("GREETING", "hello")], dir.path()).unwrap()
}

/// Waits until the shell has printed a line of its own, and returns it.
async fn first_line(process: &Process) -> String {
    wait_for("a line in the log", DEADLINE, || async {
        let log = std::fs::read_to_string(process.log_path()).unwrap();
        log.split_once('\n').map(|(line, _)| line.to_owned()).ok_or("nothing yet")
    })
    .await
    .unwrap()
}

/// Gone, or dead and not yet reaped by whom it was left to.
fn is_gone(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
}

async fn gone(pid: &str) {
    wait_for("the process to be gone", DEADLINE, || async {
        if is_gone(pid) { Ok(()) } else { Err(format!("{pid} is there")) }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn the_exit_code_is_passed_on() {
    let dir = RunDir::for_test("exit_code_passed_on").unwrap();
    assert_eq!(shell("exit 7", &dir).wait().await, 7);
    assert_eq!(shell("kill -9 $$", &dir).wait().await, 128 + 9);
}

#[tokio::test]
async fn output_and_environment_reach_the_log() {
    let dir = RunDir::for_test("output_reaches_log").unwrap();
    let process = shell("echo $GREETING; echo error >&2", &dir);
    process.wait().await;
    assert_eq!(std::fs::read_to_string(process.log_path()).unwrap(), "hello\nerror\n");
}

#[tokio::test]
async fn drop_ends_the_whole_group() {
    let dir = RunDir::for_test("drop_ends_group").unwrap();
    let process = shell("sleep 1000 & echo $!; wait", &dir);
    let (parent, child) = (process.pid().to_string(), first_line(&process).await);
    assert!(!is_gone(&parent) && !is_gone(&child));
    drop(process);
    assert!(is_gone(&parent));
    gone(&child).await;
}

#[tokio::test]
async fn what_ignores_term_is_killed() {
    let dir = RunDir::for_test("ignores_term").unwrap();
    let process = shell("trap '' TERM; echo ready; while :; do sleep 1000; done", &dir);
    first_line(&process).await;
    let pid = process.pid().to_string();
    drop(process);
    assert!(is_gone(&pid));
}

#[tokio::test]
async fn what_a_program_leaves_behind_ends_with_it() {
    let dir = RunDir::for_test("leaves_behind").unwrap();
    let process = shell("sleep 1000 & echo $!", &dir);
    assert_eq!(process.wait().await, 0);
    gone(&first_line(&process).await).await;
}

#[tokio::test]
async fn kill_needs_no_consent() {
    let dir = RunDir::for_test("kill_needs_no_consent").unwrap();
    let process = shell("trap '' TERM; echo ready; while :; do sleep 1000; done", &dir);
    first_line(&process).await;
    process.kill();
    assert_eq!(process.wait().await, 128 + 9);
}

#[tokio::test]
async fn a_killed_supervisor_takes_its_program_along() {
    let dir = RunDir::for_test("killed_supervisor").unwrap();
    let process = shell("echo $PPID; sleep 1000", &dir);
    let supervisor = first_line(&process).await;
    std::process::Command::new("kill").args(["-9", &supervisor]).status().unwrap();
    assert_eq!(process.wait().await, 128 + 9);
    gone(&process.pid().to_string()).await;
}

#[tokio::test]
async fn what_cannot_start_says_so() {
    let dir = RunDir::for_test("cannot_start").unwrap();
    let error = Process::spawn("ghost", Path::new("/no/such/program"), &[], &[], dir.path()).unwrap_err();
    assert!(matches!(&error, HarnessError::Exited { code: 127, .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("ghost.log") && text.contains("/no/such/program: No such file"), "{text}");
}

#[tokio::test]
async fn a_container_is_started_again_until_it_is_to_end_for_good() {
    let dir = RunDir::for_test("container_started_again").unwrap();
    let args = vec!["-c".to_owned(), "exec sleep 1000".to_owned()];
    let (name, program, log_dir) = ("kept".to_owned(), "/bin/sh".into(), dir.path().to_owned());
    let container = Container::start(Command { name, program, args, env: Vec::new(), log_dir }).unwrap();
    let first = container.process().unwrap();
    assert_eq!(soon("its next life", container.restart_by(Signal::KILL)).await, Some(128 + 9));
    let second = container.process().unwrap();
    assert!(second.pid() != first.pid() && second.exit_code().is_none());
    container.signal(Signal::STOP).unwrap();
    soon("its end, though it stands still", container.end()).await;
    assert_eq!(second.exit_code(), Some(128 + 15));
    assert!(container.has_ended() && container.restart_by(Signal::KILL).await.is_none());
}
