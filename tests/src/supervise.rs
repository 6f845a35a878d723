//! The supervisor of one program, the body of `shoal-supervise`.
//!
//! ```text
//! harness ──stdin (a pipe, only ever closed)──▶ shoal-supervise ──▶ program, in a process group of its own
//!         ◀──stdout: the program's pid─────────
//! ```
//! The kernel closes the pipe when the harness dies, however it dies. The supervisor then ends the group: TERM, and
//! KILL after a grace. It has a group of its own too, so that Ctrl-C reaches the harness only.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// Time between TERM and KILL. kube-apiserver takes longest: it drains its watches.
pub const GRACE: Duration = Duration::from_secs(5);

/// The exit code when the program could not be started, as a shell has it.
pub const NOT_STARTED: i32 = 127;

/// Runs `command` (program, then arguments) until it ends or stdin does; returns the exit code to pass on.
pub fn supervise(command: &[OsString]) -> i32 {
    run(command).unwrap_or_else(|error| {
        let _ = writeln!(io::stderr(), "shoal-supervise: {}: {error}", command.join(" ".as_ref()).display());
        NOT_STARTED
    })
}

fn run(command: &[OsString]) -> io::Result<i32> {
    let mut child = start(command)?;
    let group = Pid::from_child(&child);
    // A reader that is gone already shows at stdin as well.
    let _ = writeln!(io::stdout(), "{}", child.id());
    thread::spawn(move || end_when_abandoned(group));
    waitid(WaitId::Pid(group), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
    // Not reaped yet, so the group's number cannot belong to anybody else.
    let _ = kill_process_group(group, Signal::KILL);
    child.wait().map(code)
}

fn start(command: &[OsString]) -> io::Result<Child> {
    let (program, args) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let log = io::stderr().as_fd().try_clone_to_owned()?;
    Command::new(program).args(args).stdin(Stdio::null()).stdout(Stdio::from(log)).process_group(0).spawn()
}

/// Returns only if the group outlives a KILL.
fn end_when_abandoned(group: Pid) {
    let mut rest = [0; 64];
    while matches!(io::stdin().read(&mut rest), Ok(n) if n > 0) {}
    let _ = kill_process_group(group, Signal::TERM);
    thread::sleep(GRACE);
    let _ = kill_process_group(group, Signal::KILL);
}

/// 128 + n for signal n, as a shell has it.
pub(crate) fn code(status: ExitStatus) -> i32 {
    status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(NOT_STARTED)
}
