//! client-go's caches, in the Go program `informer`.

use std::path::Path;
use std::process::Stdio;

use shoal_tests::programs::Programs;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::caches::Lines;

/// A running informer program. It ends when its standard input does, at the latest with this process.
pub(crate) struct Informer {
    name: String,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    _child: Child,
}

// === impl Informer ===

impl Informer {
    /// Starts it; its log goes to `dir`.
    pub(crate) fn start(kubeconfig: &Path, watch_list: bool, dir: &Path) -> Self {
        let name = kubeconfig.file_stem().unwrap().to_string_lossy().into_owned();
        let log = std::fs::File::create(dir.join(format!("informer-{name}.log"))).unwrap();
        let mut child = Command::new(Programs::find().unwrap().path("informer").unwrap())
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .env("KUBE_FEATURE_WatchListClient", watch_list.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { name, input, output, _child: child }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What its stores hold now.
    pub(crate) async fn print(&mut self) -> Lines {
        self.input.write_all(b"print\n").await.unwrap();
        let (mut lines, mut line) = (Lines::new(), String::new());
        loop {
            line.clear();
            assert!(self.output.read_line(&mut line).await.unwrap() > 0, "{} ended", self.name);
            match line.trim_end() {
                "" => return lines,
                object => lines.insert(object.to_owned()),
            };
        }
    }
}
