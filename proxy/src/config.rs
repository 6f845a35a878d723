//! Reads the ring from its files, once.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use shoal_api::manifest::{ManifestError, Ring};

/// Why the ring's files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file or the folder cannot be read.
    #[error("cannot read {}: {}", .0.display(), .1)]
    Read(PathBuf, io::Error),
    /// The files do not hold one ring.
    #[error("{}: {}", .0.display(), .1)]
    Manifest(PathBuf, ManifestError),
}

/// Reads one ring from a file, or from every `*.yaml` and `*.yml` of a folder.
pub fn read(path: &Path) -> Result<Ring, ConfigError> {
    let files: Vec<String> = files_of(path)?.iter().map(|file| read_file(file)).collect::<Result<_, _>>()?;
    Ring::parse(files.iter().map(String::as_str))
        .map_err(|error| ConfigError::Manifest(path.to_owned(), error))
}

fn files_of(path: &Path) -> Result<Vec<PathBuf>, ConfigError> {
    let failed = |error| ConfigError::Read(path.to_owned(), error);
    if !fs::metadata(path).map_err(failed)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries: Vec<_> = fs::read_dir(path).map_err(failed)?.collect::<Result<_, _>>().map_err(failed)?;
    let mut files: Vec<PathBuf> =
        entries.into_iter().map(|entry| entry.path()).filter(|file| is_yaml(file)).collect();
    files.sort();
    Ok(files)
}

fn is_yaml(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
}

fn read_file(file: &Path) -> Result<String, ConfigError> {
    fs::read_to_string(file).map_err(|error| ConfigError::Read(file.to_owned(), error))
}
