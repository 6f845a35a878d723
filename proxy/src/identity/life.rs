//! What outlives the proxy, not the Pod: which process the controller was.
//!
//! A proxy that starts anew beside a controller that lived on does not know what that controller was shown. If it served
//! it, objects could vanish from its caches, which makes garbage collectors delete. So it waits until that process has
//! gone, and lets it go: it gets no lists, and its lock lapses. Which process is which tells the identity that it writes
//! into its lock, which every process makes anew.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The file's name, beside the listener's certificates.
const FILE: &str = "controller";

/// What was known of the controller when the proxy began, and what is known now.
#[derive(Debug)]
pub struct Life {
    file: PathBuf,
    /// The identity in the lock of a controller that may live on from an earlier life of this proxy.
    earlier: Option<String>,
    /// The identity of the controller beside this one.
    current: Option<String>,
}

// === impl Life ===

impl Life {
    /// Reads what an earlier life left in a folder. A folder without is a new Pod's.
    pub fn begin(folder: &Path) -> io::Result<Self> {
        let file = folder.join(FILE);
        match fs::read_to_string(&file) {
            Ok(earlier) => Ok(Self { file, earlier: Some(earlier), current: None }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(Self { file, earlier: None, current: None })
            }
            Err(error) => Err(error),
        }
    }

    /// Whether the controller may be one that an earlier life served.
    pub fn is_haunted(&self) -> bool {
        self.earlier.is_some()
    }

    /// The controller writes that identity into its lock.
    pub fn wrote(&mut self, identity: &str) -> io::Result<()> {
        if self.earlier.as_deref() == Some(identity) || self.current.as_deref() == Some(identity) {
            return Ok(());
        }
        self.earlier = None;
        self.current = Some(identity.to_owned());
        fs::write(&self.file, identity)
    }

    /// The controller has gone: whoever comes is another.
    pub fn gone(&mut self) -> io::Result<()> {
        (self.earlier, self.current) = (None, None);
        match fs::remove_file(&self.file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_that_lived_on_is_told_from_a_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let mut first = Life::begin(folder.path()).unwrap();
        assert!(!first.is_haunted());
        first.wrote("host_1").unwrap();

        let mut second = Life::begin(folder.path()).unwrap();
        assert!(second.is_haunted());
        second.wrote("host_1").unwrap();
        assert!(second.is_haunted(), "it renews what it held before");
        second.wrote("host_2").unwrap();
        assert!(!second.is_haunted());

        let mut third = Life::begin(folder.path()).unwrap();
        assert!(third.is_haunted());
        third.gone().unwrap();
        assert!(!third.is_haunted());
        assert!(!Life::begin(folder.path()).unwrap().is_haunted());
    }
}
