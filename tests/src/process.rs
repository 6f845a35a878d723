//! One child process of the harness, which cannot outlive it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread::{self, JoinHandle};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::sync::watch;

use crate::supervise::{NOT_STARTED, code};
use crate::{HarnessError, programs};

/// A running program. Dropping it ends the program and what it started, and returns when they are gone.
#[derive(Debug)]
pub struct Process {
    name: String,
    log: PathBuf,
    group: Pid,
    /// Closing it tells the supervisor to end the program.
    hold: Option<ChildStdin>,
    exit: watch::Receiver<Option<i32>>,
    waiter: Option<JoinHandle<()>>,
}

// === impl Process ===

impl Process {
    /// Starts `program`; what it prints is appended to `<log_dir>/<name>.log`.
    ///
    /// `env` is added to this process' environment. Blocks for the few milliseconds that a start takes.
    pub fn spawn(
        name: &str,
        program: &Path,
        args: &[String],
        env: &[(&str, &str)],
        log_dir: &Path,
    ) -> Result<Self, HarnessError> {
        let log = log_dir.join(format!("{name}.log"));
        let mut supervisor = start(program, args, env, &log)?;
        let hold = supervisor.stdin.take();
        let pid = supervisor.stdout.take().and_then(read_pid);
        let Some(group) = pid else {
            return Err(not_started(name, supervisor, log));
        };
        let (tell, exit) = watch::channel(None);
        let waiter = Some(thread::spawn(move || wait(supervisor, group, &tell)));
        Ok(Self { name: name.to_owned(), log, group, hold, exit, waiter })
    }

    /// The name that it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The program's own process id, which is its group's too.
    pub fn pid(&self) -> u32 {
        self.group.as_raw_nonzero().get().unsigned_abs()
    }

    /// Where its output goes.
    pub fn log_path(&self) -> &Path {
        &self.log
    }

    /// Its exit code if it has ended; 128 + n when signal n ended it.
    pub fn exit_code(&self) -> Option<i32> {
        *self.exit.borrow()
    }

    /// Waits until it ends and returns its exit code.
    pub async fn wait(&self) -> i32 {
        let mut exit = self.exit.clone();
        // The waiter always tells before it goes.
        exit.wait_for(Option::is_some).await.ok().and_then(|code| *code).unwrap_or(NOT_STARTED)
    }

    /// Ends it at once, without a chance to clean up (SIGKILL to the group).
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Sends a signal to the program's group: STOP and CONT play a pause.
    pub fn signal(&self, signal: Signal) {
        if self.exit_code().is_none() {
            let _ = kill_process_group(self.group, signal);
        }
    }

    /// Asks it to end (TERM, then KILL after [`crate::supervise::GRACE`]) and does not wait.
    pub fn terminate(&mut self) {
        self.hold = None;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.terminate();
        if let Some(waiter) = self.waiter.take() {
            let _ = waiter.join();
        }
    }
}

/// Starts the supervisor, in a group of its own, with the log as the program's output.
fn start(program: &Path, args: &[String], env: &[(&str, &str)], log: &Path) -> Result<Child, HarnessError> {
    if let Some(dir) = log.parent() {
        fs::create_dir_all(dir).map_err(HarnessError::io("make", dir))?;
    }
    let file = File::options().create(true).append(true).open(log).map_err(HarnessError::io("open", log))?;
    let supervisor = programs::own("shoal-supervise")?;
    Command::new(&supervisor)
        .arg(program)
        .args(args)
        .envs(env.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(file)
        .process_group(0)
        .spawn()
        .map_err(HarnessError::io("start", &supervisor))
}

/// The supervisor's one line.
fn read_pid(stdout: impl std::io::Read) -> Option<Pid> {
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).ok()?;
    line.trim().parse().ok().and_then(Pid::from_raw)
}

fn not_started(name: &str, mut supervisor: Child, log: PathBuf) -> HarnessError {
    let code = supervisor.wait().map_or(NOT_STARTED, code);
    HarnessError::Exited { program: name.to_owned(), code, awaited: "it had started".to_owned(), log }
}

/// Runs on a thread of its own, one a process.
fn wait(mut supervisor: Child, group: Pid, tell: &watch::Sender<Option<i32>>) {
    let status = supervisor.wait();
    let killed = !matches!(&status, Ok(status) if status.signal().is_none());
    if killed {
        // Somebody ended the supervisor itself, so nobody watches the program any more.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = tell.send(Some(status.map_or(NOT_STARTED, code)));
}
