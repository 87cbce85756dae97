//! Reading files up to a bound, writing files whole or not at all, files that only their owner can read, and the byte order
//! mark in front of a text.

use std::fs;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

#[cfg(feature = "map")]
use bytes::Bytes;

/// A file was not written. What was there before is still there.
#[derive(Debug, thiserror::Error)]
#[error("{}: not written: {source}", path.display())]
pub struct WriteError {
    /// The file that was to be written.
    pub path: PathBuf,
    /// The system's error.
    source: io::Error,
}

/// A file was not read: nothing of it is used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct ReadError {
    /// The file that was to be read.
    pub path: PathBuf,
    /// Why it was not.
    #[source]
    pub reason: Unread,
}

impl ReadError {
    /// What the system says when the file at `path` is opened or read.
    pub fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |error| Self { path: path.to_owned(), reason: error.into() }
    }
}

/// Why something was not read whole.
#[derive(Debug, thiserror::Error)]
pub enum Unread {
    /// The system does not give it. Its own words are no cause beside these.
    #[error("{}", in_words(.0))]
    System(io::Error),
    /// It is over the bound.
    #[error("it has more than {}", size(*most))]
    TooLarge {
        /// Bytes that it may have.
        most: u64,
    },
    /// It was to be text.
    #[error("it is not UTF-8; save it as UTF-8")]
    NotText,
}

impl From<io::Error> for Unread {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// What the system says of a file that cannot be read, as people say it.
#[must_use]
pub fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::IsADirectory => "it is a folder; name a file in it".to_owned(),
        _ => error.to_string(),
    }
}

/// A number of bytes, in MiB where that is a whole number.
fn size(bytes: u64) -> String {
    match bytes {
        whole if whole > 0 && whole.trailing_zeros() >= 20 => format!("{} MiB", whole >> 20),
        bytes => format!("{bytes} bytes"),
    }
}

/// Reads `source` to its end, where that comes within `most` bytes. No more is held of a longer one, whatever it says about
/// its length.
///
/// # Errors
/// [`Unread::System`] and [`Unread::TooLarge`].
pub fn read_at_most(source: impl Read, most: u64) -> Result<Vec<u8>, Unread> {
    let mut bytes = Vec::new();
    // One byte more tells what is too large from what just fits.
    source.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(Unread::TooLarge { most }) } else { Ok(bytes) }
}

/// The bytes of a file of at most `most` bytes.
///
/// # Errors
/// [`ReadError`], which is not [`Unread::NotText`].
pub fn read_file(path: &Path, most: u64) -> Result<Vec<u8>, ReadError> {
    let read = fs::File::open(path).map_err(Unread::from).and_then(|file| read_at_most(file, most));
    read.map_err(|reason| ReadError { path: path.to_owned(), reason })
}

/// Opens a file that the program keeps for itself. A pipe is refused: its end may never come, nor what opens its other side.
///
/// # Errors
/// The system's, and for what is not a regular file.
pub fn open_kept_file(path: &Path) -> io::Result<fs::File> {
    if fs::metadata(path)?.is_file() { fs::File::open(path) } else { Err(io::Error::other("it is not a regular file")) }
}

/// As [`read_file`], for a file that the program keeps for itself.
///
/// # Errors
/// As [`read_file`] and [`open_kept_file`].
pub fn read_kept_file(path: &Path, most: u64) -> Result<Vec<u8>, ReadError> {
    let read = open_kept_file(path).map_err(Unread::from).and_then(|file| read_at_most(file, most));
    read.map_err(|reason| ReadError { path: path.to_owned(), reason })
}

/// The text of a file of at most `most` bytes.
///
/// # Errors
/// [`ReadError`].
pub fn read_text_file(path: &Path, most: u64) -> Result<String, ReadError> {
    let bytes = read_file(path, most)?;
    String::from_utf8(bytes).map_err(|_| ReadError { path: path.to_owned(), reason: Unread::NotText })
}

/// The bytes of a text without the byte order mark that some editors put in front of UTF-8.
#[must_use]
pub fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes)
}

/// Replaces `path` by `bytes`, whole or not at all: they go to a temporary file beside it, which is then renamed. On
/// return both the bytes and the name are on disk. A file that takes the place of another has its permissions.
///
/// # Errors
/// [`WriteError`] with the system's error.
pub fn replace_file(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    replace_file_with(path, |out| out.write_all(bytes))
}

/// As [`replace_file`], with these permissions, whatever is there.
///
/// # Errors
/// As [`replace_file`].
pub fn replace_file_as(path: &Path, bytes: &[u8], permissions: &fs::Permissions) -> Result<(), WriteError> {
    replace(path, Access::Given(permissions), |out| out.write_all(bytes))
}

/// As [`replace_file`], for content that only the owner may read, whoever could read what was there.
///
/// # Errors
/// As [`replace_file`].
pub fn replace_private_file(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    replace(path, Access::Owner, |out| out.write_all(bytes))
}

/// As [`replace_private_file`], for a secret: it goes through no link, and into nothing but a regular file, since what is in the way
/// may have been put there by somebody who waits for it.
///
/// # Errors
/// As [`replace_file`]; and something is there that is not a regular file.
pub fn replace_secret_file(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    let replaced = match fs::symlink_metadata(path) {
        Ok(data) if !data.is_file() => Err(io::Error::other("it is not a regular file; name another file")),
        // A link that is put there from now on is itself replaced.
        _ => rename_into(folder_of(path), path, Readers::Owner, |out| out.write_all(bytes)),
    };
    replaced.map_err(|source| WriteError { path: path.to_owned(), source })
}

/// As [`replace_file`], with what `write` writes: for files that need not be in memory as a whole.
///
/// # Errors
/// As [`replace_file`], or what `write` returned.
pub fn replace_file_with(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), WriteError> {
    replace(path, Access::Kept, write)
}

/// Maps a file into memory: its bytes are read from disk only when they are looked at.
///
/// A mapped file that is changed in place changes under the reader, and one that is truncated ends the process when a
/// missing byte is read. Files that [`replace_file`] wrote are safe: it never changes a file in place.
///
/// # Errors
/// The system's error about opening or mapping the file.
#[cfg(feature = "map")]
pub fn mapped(path: &Path) -> io::Result<Bytes> {
    let file = fs::File::open(path)?;
    // Sound as long as the file does not change: the mapping is plain bytes, and every reader checks its bounds.
    #[expect(unsafe_code, reason = "mapping a file is unsafe wherever others can change it")]
    let map = unsafe { memmap2::Mmap::map(&file) }?;
    Ok(Bytes::from_owner(map))
}

/// Who may read a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// Everyone whom the umask of the process permits.
    All,
    /// The owner alone, on systems that have such permissions.
    Owner,
}

/// Who may read what is written.
#[derive(Debug, Clone, Copy)]
enum Access<'p> {
    /// Those who could read what it replaces; a new file, as [`Readers::All`].
    Kept,
    /// As [`Readers::Owner`].
    Owner,
    /// Whom these permissions name.
    Given(&'p fs::Permissions),
}

fn replace(
    path: &Path,
    access: Access<'_>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), WriteError> {
    let failed = |path: &Path, source| WriteError { path: path.to_owned(), source };
    // A device, a pipe or a link is written through, never replaced by a plain file.
    let before = match fs::metadata(path) {
        Ok(data) if !data.is_file() && !data.is_dir() => {
            let file = fs::File::options().write(true).open(path);
            return file.and_then(|file| buffered(file, write)).map(drop).map_err(|source| failed(path, source));
        }
        Ok(data) => Some(data.permissions()),
        Err(_) => None,
    };
    let path = match fs::canonicalize(path) {
        Ok(path) => path,
        Err(_) => behind_links(path).map_err(|source| failed(path, source))?,
    };
    let (readers, permissions) = match (access, &before) {
        (Access::Kept, None) => (Readers::All, None),
        (Access::Kept, Some(permissions)) | (Access::Given(permissions), _) => (Readers::Owner, Some(permissions)),
        (Access::Owner, _) => (Readers::Owner, None),
    };
    renamed_into(folder_of(&path), &path, readers, permissions, write).map_err(|source| failed(&path, source))
}

/// Where a link leads in the end, also where nothing is there yet; the path itself of what is no link.
///
/// # Errors
/// The links lead nowhere, as those in a circle do.
pub fn behind_links(path: &Path) -> io::Result<PathBuf> {
    // As many as Linux follows.
    const MOST: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..MOST {
        let Ok(next) = fs::read_link(&path) else { return Ok(path) };
        path = folder_of(&path).join(next);
    }
    Err(io::Error::other("it is a link that leads nowhere"))
}

/// The folder that `path` is in; `.` for a bare name.
#[must_use]
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes a temporary file in `folder` and renames it to `path`, which must be on the same file system.
pub fn rename_into(
    folder: &Path,
    path: &Path,
    readers: Readers,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    renamed_into(folder, path, readers, None, write)
}

/// As [`rename_into`]; the file has these permissions before it has its name, so that nobody else reads it in between.
fn renamed_into(
    folder: &Path,
    path: &Path,
    readers: Readers,
    permissions: Option<&fs::Permissions>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let (file, temporary) = temporary(folder, readers)?;
    let file = buffered(file, write)?;
    if let Some(permissions) = permissions {
        permit(&file, permissions)?;
    }
    file.sync_all()?;
    fs::rename(&temporary.0, path)?;
    // There is nothing left to remove.
    std::mem::forget(temporary);
    path.parent().map_or(Ok(()), sync_folder)
}

/// Gives a file permissions, on systems that have them. One that has them already is left alone: not every file system can
/// change them.
fn permit(file: &fs::File, permissions: &fs::Permissions) -> io::Result<()> {
    #[cfg(unix)]
    if file.metadata()?.permissions() != *permissions {
        file.set_permissions(permissions.clone())?;
    }
    #[cfg(not(unix))]
    let _ = (file, permissions);
    Ok(())
}

/// How the names of temporary files begin.
const TEMPORARY: &str = ".tmp-";

/// A temporary file, removed on drop.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Creates a hidden file in `folder` with a name that no other thread or process uses.
fn temporary(folder: &Path, readers: Readers) -> io::Result<(fs::File, Temporary)> {
    static MADE: AtomicU64 = AtomicU64::new(0);
    let mut options = fs::File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, if readers == Readers::All { 0o666 } else { 0o600 });
    #[cfg(not(unix))]
    let _ = readers;
    loop {
        let name = format!("{TEMPORARY}{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let path = folder.join(name);
        match options.open(&path) {
            // Left behind by a killed process that had the same number.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|file| (file, Temporary(path))),
        }
    }
}

/// Removes from `folder` the temporary files of processes that were killed while they replaced a file in it: those that nobody has
/// written to for an hour. What cannot be removed stays.
pub fn remove_leftovers(folder: &Path) {
    const OLD: Duration = Duration::from_secs(3600);
    let is_old = |entry: &fs::DirEntry| {
        let modified = entry.metadata().and_then(|about| about.modified());
        modified.is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age > OLD))
    };
    let is_temporary = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(TEMPORARY);
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if is_temporary(&entry) && is_old(&entry) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn buffered<W: Write>(file: W, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<W> {
    let mut out = BufWriter::new(file);
    write(&mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)
}

/// Flushes the names in `folder` to disk. Where the system cannot open folders, its own guarantee about names has to
/// do.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        fs::File::open(folder)?.sync_all()?;
    }
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}

/// Creates `folder` and its missing parents.
///
/// # Errors
/// [`WriteError`] with the system's error.
pub fn make_folder(folder: &Path) -> Result<(), WriteError> {
    fs::create_dir_all(folder).map_err(|source| WriteError { path: folder.to_owned(), source })
}

/// Creates `folder` and its missing parents, each readable by its owner alone.
///
/// # Errors
/// The system's error.
pub fn make_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Creates an empty file that only its owner can read; an existing file stays as it is.
///
/// # Errors
/// The system's error.
pub fn make_private_file(path: &Path) -> io::Result<fs::File> {
    let mut options = fs::File::options();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// The files of a folder with this extension, sorted by name; no files when the folder does not exist.
///
/// # Errors
/// The system's error.
pub fn files_ending_in(folder: &Path, extension: &str) -> io::Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|found| found == extension) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn what_is_private_is_readable_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("a/b");
        make_private_folder(&folder).unwrap();
        let (empty, full) = (folder.join("empty"), folder.join("full"));
        make_private_file(&empty).unwrap();
        replace_private_file(&full, b"x").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!([root.path().join("a"), folder, empty, full].map(|path| mode(&path)), [0o700, 0o700, 0o600, 0o600]);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_replaces_another_has_its_permissions() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("file");
        fs::write(&path, "old").unwrap();
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        for open in [0o600, 0o644, 0o751, 0o400] {
            fs::set_permissions(&path, fs::Permissions::from_mode(open)).unwrap();
            replace_file(&path, b"new").unwrap();
            assert_eq!(mode(), open, "{open:o}");
        }
        replace_file_as(&path, b"new", &fs::Permissions::from_mode(0o640)).unwrap();
        assert_eq!(mode(), 0o640);
        replace_private_file(&path, b"new").unwrap();
        assert_eq!(mode(), 0o600);
        fs::remove_file(&path).unwrap();
        replace_file_as(&path, b"new", &fs::Permissions::from_mode(0o640)).unwrap();
        assert_eq!((mode(), fs::read(&path).unwrap()), (0o640, b"new".to_vec()));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_nothing_yet_is_written_through() {
        use std::os::unix::fs::symlink;
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::create_dir(at("folder")).unwrap();
        for (target, link) in
            [("folder/new", "first"), ("first", "second"), ("none/new", "astray"), ("circle", "circle")]
        {
            symlink(target, at(link)).unwrap();
        }
        replace_file(&at("second"), b"new").unwrap();
        assert_eq!(fs::read(at("folder/new")).unwrap(), b"new");
        assert!(at("second").is_symlink() && at("first").is_symlink());
        for (link, reason) in [("astray", "/none/new: not written: "), ("circle", "it is a link that leads nowhere")] {
            let error = replace_private_file(&at(link), b"new").unwrap_err().to_string();
            assert!(error.contains(reason) && at(link).is_symlink(), "{error}");
        }
    }

    #[test]
    fn what_a_killed_process_left_is_removed_after_an_hour() {
        let root = tempfile::tempdir().unwrap();
        for (name, hours) in [(".tmp-1-0", 2), (".tmp-2-0", 0), ("kept.json", 2), (".tmp", 2)] {
            let file = fs::File::create(root.path().join(name)).unwrap();
            file.set_modified(std::time::SystemTime::now() - Duration::from_secs(hours * 3600)).unwrap();
        }
        remove_leftovers(root.path());
        let mut names: Vec<_> = fs::read_dir(root.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, [".tmp", ".tmp-2-0", "kept.json"]);
        remove_leftovers(&root.path().join("absent"));
    }

    #[cfg(unix)]
    #[test]
    fn a_secret_goes_into_a_regular_file_alone_and_through_no_link() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::write(at("old"), "of everyone").unwrap();
        fs::set_permissions(at("old"), fs::Permissions::from_mode(0o644)).unwrap();
        fs::hard_link(at("old"), at("other name")).unwrap();
        for name in ["new", "old"] {
            replace_secret_file(&at(name), b"secret").unwrap();
            assert_eq!(fs::read(at(name)).unwrap(), b"secret");
            assert_eq!(fs::metadata(at(name)).unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(fs::read(at("other name")).unwrap(), b"of everyone");
        fs::write(at("target"), "as it was").unwrap();
        symlink(at("target"), at("link")).unwrap();
        symlink(at("nowhere"), at("dangling")).unwrap();
        fs::create_dir(at("folder")).unwrap();
        let listener = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        for name in ["link", "dangling", "folder", "socket"] {
            let error = replace_secret_file(&at(name), b"secret").unwrap_err().to_string();
            assert!(
                error.ends_with(&format!("/{name}: not written: it is not a regular file; name another file")),
                "{error}"
            );
        }
        drop(listener);
        assert_eq!(fs::read(at("target")).unwrap(), b"as it was");
        assert!(at("link").is_symlink() && !at("nowhere").exists());
        assert!(replace_secret_file(&at("no/such"), b"secret").is_err());
        let mut left: Vec<_> = fs::read_dir(root.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["dangling", "folder", "link", "new", "old", "other name", "socket", "target"]);
    }

    #[test]
    fn a_file_is_read_whole_up_to_the_bound_and_one_byte_more_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("four");
        fs::write(&path, "four").unwrap();
        assert_eq!(read_file(&path, 4).unwrap(), b"four");
        assert_eq!(read_text_file(&path, u64::MAX).unwrap(), "four");
        let said = |error: ReadError| error.to_string().replace(&path.display().to_string(), "FILE");
        assert_eq!(said(read_file(&path, 3).unwrap_err()), "FILE: it has more than 3 bytes");
        fs::write(&path, b"\xff").unwrap();
        assert_eq!(said(read_text_file(&path, 4).unwrap_err()), "FILE: it is not UTF-8; save it as UTF-8");
        fs::remove_file(&path).unwrap();
        assert!(matches!(read_file(&path, 4), Err(ReadError { reason: Unread::System(_), .. })));
        let of_system = fs::read(&path).map_err(ReadError::at(&path)).unwrap_err();
        assert_eq!(of_system.to_string(), read_file(&path, 4).unwrap_err().to_string());
        // What never ends is read up to the bound all the same.
        let endless = read_at_most(io::repeat(b'x'), 1 << 20).unwrap_err();
        assert_eq!(endless.to_string(), "it has more than 1 MiB");
    }

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
        #[cfg(target_os = "linux")]
        {
            let full = replace_file(Path::new("/dev/full"), b"too much").unwrap_err();
            assert_eq!(full.to_string(), "/dev/full: not written: No space left on device (os error 28)");
        }
        // A folder cannot be replaced by a file.
        let error = replace_file(&folder.path().join("new"), b"third").unwrap_err();
        assert!(error.to_string().contains("not written"), "{error}");
        let left = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!((fs::read(&path).unwrap(), left), (b"second".to_vec(), 1));
    }
}
