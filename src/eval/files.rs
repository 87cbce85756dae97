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
    // A device, a pipe or a link is written through, never replaced by a plain file.
    let (path, special) = match fs::metadata(path) {
        Ok(data) if !data.is_file() && !data.is_dir() => (path.to_owned(), true),
        Ok(_) => (fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()), false),
        Err(_) => (path.to_owned(), false),
    };
    if special {
        return fs::write(&path, bytes).map_err(|source| WriteError { path, source });
    }
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    // Temporary files are private by default; the result should be as readable as any file (the umask applies).
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let replace = || -> std::io::Result<()> {
        let mut file = builder.tempfile_in(folder)?;
        file.write_all(bytes)?;
        file.persist(&path).map_err(|error| error.error)?;
        Ok(())
    };
    replace().map_err(|source| WriteError { path: path.clone(), source })
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
        #[cfg(unix)]
        {
            let link = folder.path().join("new/link");
            std::os::unix::fs::symlink(&path, &link).unwrap();
            replace_file(&link, b"through the link").unwrap();
            assert!(link.is_symlink() && fs::read(&path).unwrap() == b"through the link");
            replace_file(Path::new("/dev/null"), b"nowhere").unwrap();
            assert!(!Path::new("/dev/null").is_file());
            replace_file(&path, b"second").unwrap();
            fs::remove_file(link).unwrap();
        }
        // A folder cannot be replaced by a file.
        let error = replace_file(&folder.path().join("new"), b"third").unwrap_err();
        assert!(error.to_string().contains("not written"), "{error}");
        let left = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!((fs::read(&path).unwrap(), left), (b"second".to_vec(), 1));
    }
}
