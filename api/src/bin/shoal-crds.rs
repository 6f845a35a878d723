//! Writes the CRDs into a folder: `shoal-crds charts/shoal/crds`.

use std::{error::Error, fs, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args_os().nth(1).ok_or("usage: shoal-crds FOLDER")?);
    fs::create_dir_all(&folder)?;
    for (name, yaml) in shoal_api::crds::files()? {
        fs::write(folder.join(name), yaml)?;
    }
    Ok(())
}
