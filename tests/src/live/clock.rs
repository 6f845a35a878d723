//! Wall clocks that jump, one for each program that is started with it.
//!
//! A library of a few lines of C is loaded into the program and adds what a file says to what the wall clock tells. The
//! monotonic clock stays as it is. It works on programs that ask the C library for the time, as Rust's do and Go's don't.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use crate::HarnessError;

const SOURCE: &str = include_str!("clock/jump.c");

/// The clock of one program.
#[derive(Debug, Clone)]
pub struct Clock {
    library: PathBuf,
    file: PathBuf,
}

// === impl Clock ===

impl Clock {
    /// A clock that is right so far; its files are in `dir`. None where there is no C compiler.
    pub async fn new(dir: &Path) -> Result<Option<Self>, HarnessError> {
        fs::create_dir_all(dir).map_err(HarnessError::io("make", dir))?;
        let (source, library) = (dir.join("jump.c"), dir.join("jump.so"));
        fs::write(&source, SOURCE).map_err(HarnessError::io("write", &source))?;
        let built = Command::new("cc")
            .args(["-O1", "-shared", "-fPIC", "-o"])
            .args([&library, &source])
            .stdin(Stdio::null())
            .status()
            .await;
        if !built.is_ok_and(|status| status.success()) {
            return Ok(None);
        }
        let clock = Self { library, file: dir.join("jump") };
        clock.jump(0)?;
        Ok(Some(clock))
    }

    /// The environment that a program with this clock is started with.
    pub fn env(&self) -> Vec<(String, String)> {
        let pair = |name: &str, path: &Path| (name.to_owned(), path.display().to_string());
        vec![pair("LD_PRELOAD", &self.library), pair("SHOAL_TEST_CLOCK", &self.file)]
    }

    /// From now on the clock is wrong by so many seconds.
    pub fn jump(&self, seconds: i64) -> Result<(), HarnessError> {
        // Renamed into its place, so that nobody reads half of it.
        let next = self.file.with_extension("next");
        fs::write(&next, seconds.to_string()).map_err(HarnessError::io("write", &next))?;
        fs::rename(&next, &self.file).map_err(HarnessError::io("write", &self.file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_program_sees_the_jump_and_others_do_not() {
        let dir = tempfile::tempdir().unwrap();
        let Some(clock) = Clock::new(dir.path()).await.unwrap() else { return };
        let year = |env: Vec<(String, String)>| async {
            let output = Command::new("date").arg("+%Y").envs(env).output().await.unwrap();
            String::from_utf8(output.stdout).unwrap().trim().parse::<i64>().unwrap()
        };
        clock.jump(100 * 366 * 24 * 3600).unwrap();
        let right = year(Vec::new()).await;
        assert!((right + 99..=right + 101).contains(&year(clock.env()).await));
    }
}
