//! The folder of one test's logs and files.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use crate::{HarnessError, programs};

/// `target/test-logs/<test>/`. Dropped while a test fails (panics), it stays and says where it is; else it is deleted.
///
/// Declare it before everything that writes into it, so that it is dropped last. A test that returns `Err` does not
/// panic: unwrap instead.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    keep: bool,
}

// === impl RunDir ===

impl RunDir {
    /// An empty folder for the test of that name, which is unique in the workspace.
    pub fn for_test(name: &str) -> Result<Self, HarnessError> {
        Self::create(programs::target_dir()?.join("test-logs").join(name), false)
    }

    /// An empty folder under `target/` that stays, for a demo or a bench.
    pub fn kept(name: &str) -> Result<Self, HarnessError> {
        Self::create(programs::target_dir()?.join(name), true)
    }

    fn create(path: PathBuf, keep: bool) -> Result<Self, HarnessError> {
        if path.exists() {
            fs::remove_dir_all(&path).map_err(HarnessError::io("empty", &path))?;
        }
        fs::create_dir_all(&path).map_err(HarnessError::io("make", &path))?;
        Ok(Self { path, keep })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("logs of this test: {}", self.path.display());
        } else if !self.keep {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    #[test]
    fn logs_stay_when_the_test_fails_and_go_when_it_passes() {
        let passed = RunDir::for_test("run_dir_passed").unwrap().path().to_owned();
        assert!(!passed.exists());
        let failed = catch_unwind(|| {
            let _dir = RunDir::for_test("run_dir_failed").unwrap();
            panic!("on purpose");
        });
        assert!(failed.is_err());
        let kept = passed.with_file_name("run_dir_failed");
        assert!(kept.exists());
        fs::remove_dir(kept).unwrap();
    }
}
