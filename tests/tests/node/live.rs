//! A client that goes on while the test looks.

use std::process::Stdio;

use shoal_tests::soon;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// A running command. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Live {
    child: Child,
    stdin: ChildStdin,
    stdout: Lines<BufReader<ChildStdout>>,
    seen: String,
}

// === impl Live ===

impl Live {
    /// Starts it with pipes at its stdin and stdout.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, stdin, stdout: BufReader::new(stdout).lines(), seen: String::new() }
    }

    /// Reads until a line contains `what`, and returns that line.
    pub(crate) async fn until(&mut self, what: &str) -> String {
        loop {
            let line = soon(what, self.stdout.next_line()).await.unwrap();
            let line = line.unwrap_or_else(|| panic!("it ended before {what:?}: {}", self.seen));
            self.seen.push_str(&line);
            self.seen.push('\n');
            if line.contains(what) {
                return line;
            }
        }
    }

    /// Sends a line.
    pub(crate) async fn says(&mut self, line: &str) {
        self.stdin.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    /// Sends a line and reads until one that contains `what`.
    pub(crate) async fn answer(&mut self, line: &str, what: &str) -> String {
        self.says(line).await;
        self.until(what).await
    }

    /// Kills it without a word to its peer.
    pub(crate) async fn vanish(mut self) {
        self.child.kill().await.unwrap();
    }

    /// Waits until it ends by itself, if it was to; returns its exit code.
    pub(crate) async fn ended_by_itself(mut self) -> Option<i32> {
        soon("the end of a command", self.child.wait()).await.unwrap().code()
    }

    /// Closes its stdin and waits until it ends.
    pub(crate) async fn end(self) -> Option<i32> {
        let Self { mut child, stdin, mut stdout, .. } = self;
        drop(stdin);
        while soon("the rest of its output", stdout.next_line()).await.unwrap().is_some() {}
        soon("the end of a command", child.wait()).await.unwrap().code()
    }
}
