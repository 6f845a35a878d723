//! Small files that operators write: kubeconfigs, authorities, tokens.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

/// None of them is larger, in bytes.
const BYTES: u64 = 4 << 20;

/// Reads a whole file; one above 4 MiB is an error, and is not read to its end. Blocks.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let size = File::open(path)?.take(BYTES + 1).read_to_end(&mut bytes)?;
    if size as u64 > BYTES { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
}

/// The same of text in UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(|_| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_an_end_is_not_read_to_its_end() {
        assert_eq!(read(Path::new("/dev/zero")).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn text_is_text() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"a\xff").unwrap();
        assert_eq!(read(file.path()).unwrap(), b"a\xff");
        assert_eq!(read_text(file.path()).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
