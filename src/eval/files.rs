//! Files that are replaced whole or not at all.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A file was not written; what was there before is still there.
#[derive(Debug, thiserror::Error)]
#[error("{}: not written: {source}", path.display())]
pub struct WriteError {
    /// The file.
    pub path: PathBuf,
    /// What the system said.
    source: std::io::Error,
}

/// Replaces `path` by `bytes` whole or not at all: they go to a temporary file beside it, which is then renamed.
///
/// # Errors
/// [`WriteError`] with what the system said.
pub fn replace_file(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    // Temporary files are private by default; the result should be as readable as any file (the umask applies).
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let replace = || -> std::io::Result<()> {
        let mut file = builder.tempfile_in(folder)?;
        file.write_all(bytes)?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    };
    replace().map_err(|source| WriteError { path: path.to_owned(), source })
}

/// Makes `folder` and those above it where they are missing.
///
/// # Errors
/// [`WriteError`] with what the system said.
pub fn make_folder(folder: &Path) -> Result<(), WriteError> {
    fs::create_dir_all(folder).map_err(|source| WriteError { path: folder.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_a_failure_leaves_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/one.txt");
        assert!(replace_file(&path, b"no folder").is_err());
        make_folder(&folder.path().join("new")).unwrap();
        replace_file(&path, b"first").unwrap();
        replace_file(&path, b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        // A folder cannot be replaced by a file.
        let error = replace_file(&folder.path().join("new"), b"third").unwrap_err();
        assert!(error.to_string().contains("not written"), "{error}");
        let left = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!((fs::read(&path).unwrap(), left), (b"second".to_vec(), 1));
    }
}
