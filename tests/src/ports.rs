//! Free ports, also with many test processes side by side.
//!
//! A port that was bound to 0 and closed again may be given to somebody else before a child binds it. So ports come
//! from a range below the kernel's ephemeral one (Linux: from 32768), and a file lock reserves each, for as long as
//! its [`Port`] lives.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};

use crate::HarnessError;

const FIRST: u16 = 20_000;
const LAST: u16 = 31_999;

/// A port of 127.0.0.1 that no other harness on this machine uses.
#[derive(Debug)]
pub struct Port {
    number: u16,
    /// Unlocked by the kernel when this process ends.
    _lock: File,
}

// === impl Port ===

impl Port {
    /// Reserves a port.
    pub fn reserve() -> Result<Self, HarnessError> {
        let dir = lock_dir();
        fs::create_dir_all(&dir).map_err(HarnessError::io("make", &dir))?;
        for number in candidates() {
            if let Some(port) = Self::try_reserve(&dir, number)? {
                return Ok(port);
            }
        }
        Err(HarnessError::NoPort { first: FIRST, last: LAST })
    }

    fn try_reserve(dir: &Path, number: u16) -> Result<Option<Self>, HarnessError> {
        let path = dir.join(number.to_string());
        let lock = File::options().create(true).append(true).open(&path);
        let lock = lock.map_err(HarnessError::io("open", &path))?;
        let ours = lock.try_lock().is_ok() && TcpListener::bind((Ipv4Addr::LOCALHOST, number)).is_ok();
        Ok(ours.then_some(Self { number, _lock: lock }))
    }

    /// Its number.
    pub fn number(&self) -> u16 {
        self.number
    }
}

/// Shared by all checkouts on this machine.
fn lock_dir() -> PathBuf {
    std::env::temp_dir().join("shoal-test-ports")
}

/// The whole range once, starting at a place that differs between processes.
fn candidates() -> impl Iterator<Item = u16> {
    let start = u16::try_from(std::process::id() * 61 % u32::from(LAST - FIRST)).unwrap_or(0);
    (FIRST + start..=LAST).chain(FIRST..FIRST + start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reserve_any(dir: &Path) -> Port {
        candidates().find_map(|number| Port::try_reserve(dir, number).unwrap()).unwrap()
    }

    #[test]
    fn a_reserved_port_is_taken_while_it_lives() {
        let dir = tempfile::tempdir().unwrap();
        let first = reserve_any(dir.path());
        assert!(Port::try_reserve(dir.path(), first.number()).unwrap().is_none());
        assert_ne!(reserve_any(dir.path()).number(), first.number());
    }

    #[test]
    fn a_port_that_somebody_listens_on_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let number = listener.local_addr().unwrap().port();
        assert!(Port::try_reserve(dir.path(), number).unwrap().is_none());
    }

    #[test]
    fn every_port_of_the_range_is_a_candidate_once() {
        let mut all: Vec<u16> = candidates().collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(FIRST..=LAST));
    }
}
