//! A program that is started again whenever it ends, as a kubelet does with a container.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::{HarnessError, Process};

/// Between an end and the next start; a kubelet's first back-off is shorter, its later ones are longer.
const BACK_OFF: Duration = Duration::from_secs(1);
/// Between TERM and KILL.
const GRACE: Duration = Duration::from_secs(30);

/// What is started.
#[derive(Debug, Clone)]
pub struct Command {
    /// Its name in this run; what all its lives print goes to one log of that name.
    pub name: String,
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment, beside this process' own.
    pub env: Vec<(String, String)>,
    /// Where its log goes.
    pub log_dir: PathBuf,
}

/// A program that lives on through its ends. Dropping it kills it.
#[derive(Debug)]
pub struct Container {
    shared: Arc<Shared>,
    process: watch::Receiver<Option<Arc<Process>>>,
}

#[derive(Debug)]
struct Shared {
    name: String,
    ends: AtomicBool,
}

// === impl Command ===

impl Command {
    fn start(&self) -> Result<Process, HarnessError> {
        let env: Vec<(&str, &str)> =
            self.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        Process::spawn(&self.name, &self.program, &self.args, &env, &self.log_dir)
    }
}

// === impl Container ===

impl Container {
    /// Starts it for the first time.
    pub fn start(command: Command) -> Result<Self, HarnessError> {
        let first = Arc::new(command.start()?);
        let shared = Arc::new(Shared { name: command.name.clone(), ends: AtomicBool::new(false) });
        let (tell, process) = watch::channel(Some(first));
        tokio::spawn(keep(command, shared.clone(), tell));
        Ok(Self { shared, process })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// The process that it is now, or was last.
    pub fn process(&self) -> Option<Arc<Process>> {
        self.process.borrow().clone()
    }

    /// Ends the process that it is now by a signal and waits until it runs as another one. Returns the exit code; nothing if
    /// it does not run, or cannot be started again.
    pub async fn restart_by(&self, signal: Signal) -> Option<i32> {
        let pid = self.signal(signal)?;
        let mut now = self.process.clone();
        let code = self.process()?.wait().await;
        let next = now.wait_for(|it| it.as_ref().is_none_or(|it| it.pid() != pid)).await.ok()?;
        next.as_ref().map(|_| code)
    }

    /// Sends a signal to the process that it is now; returns its id.
    pub fn signal(&self, signal: Signal) -> Option<u32> {
        let process = self.process().filter(|process| process.exit_code().is_none())?;
        process.signal(signal);
        Some(process.pid())
    }

    /// Ends it for good: TERM, and KILL if that takes long.
    pub async fn end(&self) {
        self.forbid();
        self.signal(Signal::TERM);
        // One that is stopped hears nothing.
        self.signal(Signal::CONT);
        let Some(process) = self.process() else { return };
        if timeout(GRACE, process.wait()).await.is_err() {
            process.kill();
            process.wait().await;
        }
    }

    /// Ends it for good at once, as the loss of its node does.
    pub fn kill(&self) {
        self.forbid();
        self.signal(Signal::KILL);
    }

    /// Whether it was ended for good.
    pub fn has_ended(&self) -> bool {
        self.shared.ends.load(Ordering::Relaxed)
    }

    fn forbid(&self) {
        self.shared.ends.store(true, Ordering::Relaxed);
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Starts it again until it is to end for good.
async fn keep(command: Command, shared: Arc<Shared>, tell: watch::Sender<Option<Arc<Process>>>) {
    loop {
        let Some(process) = tell.borrow().clone() else { return };
        process.wait().await;
        sleep(BACK_OFF).await;
        if shared.ends.load(Ordering::Relaxed) {
            return;
        }
        match command.start() {
            Ok(process) => {
                tell.send_replace(Some(Arc::new(process)));
            }
            Err(error) => {
                tell.send_replace(None);
                eprintln!("{}: {error}", command.name);
                return;
            }
        }
    }
}
