//! Where the programs are: the real ones under `target/control-plane/bin`, our own beside this executable.

use std::path::{Path, PathBuf};

use crate::HarnessError;

const BUILD_REAL: &str = "make control-plane";
const BUILD_NODE: &str = "make test-node";
const BUILD_OWN: &str = "cargo build";

/// The folder of the real programs, resolved once, so that a rebuild beside a running test changes nothing for it.
#[derive(Debug, Clone)]
pub struct Programs {
    dir: PathBuf,
    remedy: &'static str,
}

// === impl Programs ===

impl Programs {
    /// Finds the folder that `make control-plane` fills.
    pub fn find() -> Result<Self, HarnessError> {
        Self::at("control-plane/bin", "kube-apiserver", BUILD_REAL)
    }

    /// Finds what a real node needs beside them, which `make test-node` builds: `kubelet` and `podtools`.
    pub fn of_a_node() -> Result<Self, HarnessError> {
        Self::at("node/bin", "kubelet", BUILD_NODE)
    }

    fn at(link: &str, first: &str, remedy: &'static str) -> Result<Self, HarnessError> {
        let link = target_dir()?.join(link);
        match link.canonicalize() {
            Ok(dir) => Ok(Self { dir, remedy }),
            Err(_) => Err(missing(first, link.join(first), remedy)),
        }
    }

    /// The path of one real program, `kube-apiserver` for example, or of one of our own Go programs.
    pub fn path(&self, program: &str) -> Result<PathBuf, HarnessError> {
        existing(program, self.dir.join(program), self.remedy)
    }

    /// kwok's stock stages, a tree of YAML files copied from its module.
    pub(crate) fn kwok_stages(&self) -> PathBuf {
        self.dir.join("kwok-stages")
    }
}

/// A program of this workspace, `shoal-proxy` for example, of the same profile as this executable.
///
/// Cargo builds the programs of `shoal-tests` before its tests run, those of other crates only when asked to.
pub fn own(program: &str) -> Result<PathBuf, HarnessError> {
    existing(program, profile_dir()?.join(program), BUILD_OWN)
}

/// Cargo's target folder.
pub fn target_dir() -> Result<PathBuf, HarnessError> {
    let profile = profile_dir()?;
    let built = profile.ancestors().skip(1).find(|dir| dir.join("CACHEDIR.TAG").exists());
    Ok(built.or(profile.parent()).unwrap_or(&profile).to_owned())
}

/// `target/<profile>`: this executable is there, or in `deps` below it when it is a test.
fn profile_dir() -> Result<PathBuf, HarnessError> {
    let exe = std::env::current_exe().map_err(HarnessError::io("find", Path::new("this executable")))?;
    let dir = exe.parent().unwrap_or(Path::new("."));
    let in_deps = dir.file_name().is_some_and(|name| name == "deps");
    Ok(if in_deps { dir.parent().unwrap_or(dir) } else { dir }.to_owned())
}

fn existing(program: &str, path: PathBuf, remedy: &'static str) -> Result<PathBuf, HarnessError> {
    if path.exists() { Ok(path) } else { Err(missing(program, path, remedy)) }
}

fn missing(program: &str, path: PathBuf, remedy: &'static str) -> HarnessError {
    HarnessError::MissingProgram { program: program.to_owned(), path, remedy }
}
