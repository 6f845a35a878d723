//! What one process uses, as the kernel counts it (`proc_pid_*(5)`).

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{HarnessError, Process};

/// Resets the peak of the resident set (`/proc/PID/clear_refs`).
const RESET_PEAK: &str = "5";

/// A process that is measured.
#[derive(Debug, Clone)]
pub struct Meter(PathBuf);

/// How much a process grows from a moment on.
#[derive(Debug)]
pub struct Growth {
    meter: Meter,
    before: u64,
}

// === impl Meter ===

impl Meter {
    /// Of the process of that id.
    pub fn new(pid: u32) -> Self {
        Self(Path::new("/proc").join(pid.to_string()))
    }

    /// CPU time of its threads, user and system. From `schedstat`, because `stat` counts in steps of 10 ms.
    pub fn cpu(&self) -> Result<Duration, HarnessError> {
        let tasks = self.0.join("task");
        let mut total = 0;
        for task in fs::read_dir(&tasks).map_err(HarnessError::io("read", &tasks))? {
            let path = task.map_err(HarnessError::io("read", &tasks))?.path().join("schedstat");
            total += first_number(&read(&path)?);
        }
        Ok(Duration::from_nanos(total))
    }

    /// Bytes of memory that are resident now.
    pub fn resident(&self) -> Result<u64, HarnessError> {
        self.status("VmRSS:")
    }

    /// The most that was resident since [`Self::reset_peak`], in bytes.
    pub fn peak(&self) -> Result<u64, HarnessError> {
        self.status("VmHWM:")
    }

    /// Lets the peak start at what is resident now.
    pub fn reset_peak(&self) -> Result<(), HarnessError> {
        let path = self.0.join("clear_refs");
        fs::write(&path, RESET_PEAK).map_err(HarnessError::io("write", &path))
    }

    fn status(&self, field: &str) -> Result<u64, HarnessError> {
        let status = read(&self.0.join("status"))?;
        let kib = status.lines().find_map(|line| line.strip_prefix(field)).map_or(0, first_number);
        Ok(kib * 1024)
    }
}

// === impl Growth ===

impl Growth {
    /// From what is resident now.
    pub fn of(process: &Process) -> Result<Self, HarnessError> {
        let meter = Meter::new(process.pid());
        meter.reset_peak()?;
        let before = meter.resident()?;
        Ok(Self { meter, before })
    }

    /// Bytes that were resident at the start.
    pub fn before(&self) -> u64 {
        self.before
    }

    /// By how many bytes it has grown at its peak.
    pub fn at_peak(&self) -> Result<u64, HarnessError> {
        Ok(self.meter.peak()?.saturating_sub(self.before))
    }
}

fn read(path: &Path) -> Result<String, HarnessError> {
    fs::read_to_string(path).map_err(HarnessError::io("read", path))
}

fn first_number(text: &str) -> u64 {
    text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_and_memory_of_this_process_are_counted() {
        let meter = Meter::new(std::process::id());
        let before = meter.cpu().unwrap();
        let block = vec![1_u8; 32 << 20];
        assert!(meter.peak().unwrap() >= 32 << 20);
        assert!(block.iter().map(|byte| u64::from(*byte)).sum::<u64>() == 32 << 20);
        assert!(meter.resident().unwrap() > 0);
        assert!(meter.cpu().unwrap() > before);
    }
}
