//! The documents below a folder: which there are, and their texts.
//!
//! A document is a regular file with one of the [`ENDINGS`], and no part of its path begins with a dot. No link below the
//! folder is followed, so that nothing outside can be read, wherever a link leads.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File, FileType};
use std::io::{self, Read};
use std::path::Path;
use std::time::SystemTime;

use super::BuiltInError;
use contextweaver_core::files::without_mark;

/// The endings of the names of documents, in small letters.
const ENDINGS: [&str; 8] = ["adoc", "markdown", "md", "mdx", "org", "rst", "text", "txt"];

/// Documents of a folder, at most.
pub(super) const MOST_DOCUMENTS: usize = 2_000;

/// Bytes of a document, at most.
pub(super) const MOST_BYTES_EACH: u64 = 1024 * 1024;

/// Bytes of all documents, at most.
pub(super) const MOST_BYTES: u64 = 32 * 1024 * 1024;

/// Names below a folder that are looked at, at most.
const MOST_NAMES: usize = 50_000;

/// Folders within each other, at most.
const DEEPEST: usize = 32;

/// What is left out that a message names, at most.
const NAMED: usize = 3;

/// A document as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// Its path below the folder, with `/` between the parts.
    pub(super) path: String,
    bytes: u64,
    modified: Option<SystemTime>,
}

/// What of a folder is not served, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LeftOut {
    count: usize,
    named: Vec<String>,
}

impl LeftOut {
    /// Notes what is left out.
    pub(super) fn add(&mut self, path: &str, reason: impl fmt::Display) {
        self.count += 1;
        if self.named.len() < NAMED {
            self.named.push(format!("{}: {reason}", if path.is_empty() { "." } else { path }));
        }
    }

    /// Whether everything is served.
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} left out: {}", self.count, self.named.join("; "))?;
        match self.count - self.named.len() {
            0 => Ok(()),
            more => write!(formatter, "; and {more} more"),
        }
    }
}

/// The documents below a folder, in the order of their paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Listing {
    /// Those that are served.
    pub(super) entries: Vec<Entry>,
    /// What is not.
    pub(super) left_out: LeftOut,
    names: usize,
    bytes: u64,
}

/// Checks that `root` is a folder that may be read.
///
/// # Errors
/// [`BuiltInError`].
pub(super) fn check(root: &Path) -> Result<(), BuiltInError> {
    let unreadable = |reason| BuiltInError::Unreadable { path: root.to_owned(), reason };
    if !root.metadata().map_err(unreadable)?.is_dir() {
        return Err(BuiltInError::NoFolder(root.to_owned()));
    }
    fs::read_dir(root).map(drop).map_err(unreadable)
}

impl Listing {
    /// The documents below `root`. What cannot be read is left out.
    pub(super) fn of(root: &Path) -> Self {
        let mut listing = Self::default();
        listing.visit(root, "", 0);
        listing
    }

    fn visit(&mut self, folder: &Path, within: &str, depth: usize) {
        let found = match fs::read_dir(folder) {
            Ok(found) => found,
            Err(error) => return self.left_out.add(within, error),
        };
        let mut names: BTreeMap<String, FileType> = BTreeMap::new();
        for entry in found {
            if self.names == MOST_NAMES {
                self.left_out.add(within, format_args!("there are more than {MOST_NAMES} names before its end"));
                break;
            }
            self.names += 1;
            match entry.and_then(|entry| Ok((entry.file_name(), entry.file_type()?))) {
                Ok((name, kind)) => match name.into_string() {
                    Ok(name) if name.starts_with('.') => {}
                    Ok(name) => drop(names.insert(name, kind)),
                    Err(name) => self.left_out.add(&below(within, &name.to_string_lossy()), "its name is not UTF-8"),
                },
                Err(error) => self.left_out.add(within, error),
            }
        }
        for (name, kind) in names {
            let path = below(within, &name);
            if kind.is_symlink() {
                self.left_out.add(&path, "it is a link, and links are not followed");
            } else if kind.is_dir() {
                match depth + 1 < DEEPEST {
                    true => self.visit(&folder.join(&name), &path, depth + 1),
                    false => self.left_out.add(&path, format_args!("it is {DEEPEST} folders deep")),
                }
            } else if kind.is_file() && is_document(&name) {
                self.take(&folder.join(&name), path);
            }
        }
    }

    fn take(&mut self, file: &Path, path: String) {
        let data = match file.symlink_metadata() {
            Ok(data) => data,
            Err(error) => return self.left_out.add(&path, error),
        };
        let bytes = data.len();
        if bytes > MOST_BYTES_EACH {
            self.left_out.add(&path, format_args!("it has more than {MOST_BYTES_EACH} bytes"));
        } else if self.entries.len() == MOST_DOCUMENTS {
            self.left_out.add(&path, format_args!("{MOST_DOCUMENTS} documents come before it"));
        } else if self.bytes + bytes > MOST_BYTES {
            self.left_out.add(&path, format_args!("with those before it there are more than {MOST_BYTES} bytes"));
        } else {
            self.bytes += bytes;
            self.entries.push(Entry { path, bytes, modified: data.modified().ok() });
        }
    }
}

fn below(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

fn is_document(name: &str) -> bool {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    ending.is_some_and(|ending| ENDINGS.contains(&ending.as_str()))
}

/// Why a document cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unread {
    /// The path is not that of a document.
    #[error(
        "`{0}` leads out of the folder, or to what is hidden; name a path as `search` gives it, such as guide/start.md"
    )]
    Path(String),
    /// The file does not hold text.
    #[error("`{path}` is not a document: those end in .{}", ENDINGS.join(", ."))]
    Ending {
        /// The path.
        path: String,
    },
    /// It is not a regular file, or beside a link.
    #[error("`{0}` is not a regular file of this folder; links are not followed")]
    NoFile(String),
    /// There is none.
    #[error("there is no document `{0}`; `search` finds those that there are")]
    Missing(String),
    /// It is too large.
    #[error("`{0}` has more than {MOST_BYTES_EACH} bytes")]
    Large(String),
    /// It is not UTF-8.
    #[error("`{0}` is not UTF-8")]
    Encoding(String),
    /// The system's error.
    #[error("`{0}`: {1}")]
    System(String, io::Error),
}

/// The text of the document at `path` below `root`, at most [`MOST_BYTES_EACH`] bytes.
///
/// # Errors
/// [`Unread`].
pub(super) fn text_of(root: &Path, path: &str) -> Result<String, Unread> {
    let own = || super::beginning(path, 200).0.to_owned();
    let parts: Vec<&str> = path.split('/').collect();
    // On one system a backslash and a colon lead elsewhere; on the others hardly a document has them in its name.
    let leads_out = |part: &&str| part.is_empty() || part.starts_with('.') || part.contains(['\\', ':', '\0']);
    if parts.iter().any(leads_out) || parts.len() > DEEPEST {
        return Err(Unread::Path(own()));
    }
    if !is_document(path) {
        return Err(Unread::Ending { path: own() });
    }
    let file = open_below(root, &parts).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Unread::Missing(own()),
        io::ErrorKind::NotADirectory => Unread::NoFile(own()),
        _ => Unread::System(own(), error),
    })?;
    let system = |error| Unread::System(own(), error);
    if !file.metadata().map_err(system)?.is_file() {
        return Err(Unread::NoFile(own()));
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES_EACH + 1).read_to_end(&mut bytes).map_err(system)?;
    if bytes.len() as u64 > MOST_BYTES_EACH {
        return Err(Unread::Large(own()));
    }
    let text = std::str::from_utf8(without_mark(&bytes)).map_err(|_| Unread::Encoding(own()))?;
    Ok(text.to_owned())
}

/// Opens what is below `root`, without following a link. Each folder is opened from the one before it, so that none can be
/// replaced by a link between a look and the next step.
#[cfg(unix)]
fn open_below(root: &Path, parts: &[&str]) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags, open, openat};
    use rustix::io::Errno;
    // What a system says of a link that is not to be followed.
    let told = |error: Errno| match error {
        Errno::LOOP | Errno::NXIO => io::ErrorKind::NotADirectory.into(),
        error => io::Error::from(error),
    };
    let Some((name, folders)) = parts.split_last() else { return Err(io::ErrorKind::NotFound.into()) };
    let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at = open(root, folder, Mode::empty())?;
    for part in folders {
        at = openat(&at, *part, folder | OFlags::NOFOLLOW, Mode::empty()).map_err(told)?;
    }
    // A pipe would wait for its writer, and a terminal become that of this process.
    let file = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    openat(&at, *name, file, Mode::empty()).map(File::from).map_err(told)
}

/// Opens what is below `root`, where no part is a link.
#[cfg(not(unix))]
fn open_below(root: &Path, parts: &[&str]) -> io::Result<File> {
    let mut at = root.to_owned();
    for part in parts {
        at.push(part);
        let data = at.symlink_metadata()?;
        if !data.is_dir() && !data.is_file() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
    }
    File::open(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        folder
    }

    #[test]
    fn documents_are_listed_in_order_and_the_rest_is_said() {
        let large = vec![b'x'; MOST_BYTES_EACH as usize + 1];
        let folder = folder(&[
            ("b.txt", b"b"),
            ("a/one.MD", b"1"),
            ("a/two.rs", b"2"),
            (".git/x.md", b"3"),
            ("a/.env.md", b"4"),
            ("large.md", &large),
        ]);
        #[cfg(unix)]
        std::os::unix::fs::symlink(folder.path(), folder.path().join("again")).unwrap();
        let listing = Listing::of(folder.path());
        let paths: Vec<&str> = listing.entries.iter().map(|entry| entry.path.as_str()).collect();
        assert_eq!(paths, ["a/one.MD", "b.txt"]);
        #[cfg(unix)]
        assert_eq!(
            listing.left_out.to_string(),
            "2 left out: again: it is a link, and links are not followed; large.md: it has more than 1048576 bytes"
        );
        assert_eq!(Listing::of(folder.path()), listing);
        fs::write(folder.path().join("b.txt"), "other").unwrap();
        assert_ne!(Listing::of(folder.path()), listing);
    }

    #[test]
    fn so_many_documents_and_no_more() {
        let folder = folder(&[]);
        for number in 0..=MOST_DOCUMENTS {
            fs::write(folder.path().join(format!("{number:05}.md")), "").unwrap();
        }
        let listing = Listing::of(folder.path());
        assert_eq!(listing.entries.len(), MOST_DOCUMENTS);
        assert_eq!(listing.left_out.to_string(), "1 left out: 02000.md: 2000 documents come before it");
        let mut full = Listing { bytes: MOST_BYTES, ..Listing::default() };
        fs::write(folder.path().join("last.md"), "x").unwrap();
        full.take(&folder.path().join("last.md"), "last.md".to_owned());
        assert_eq!((full.entries.len(), full.left_out.count), (0, 1));
    }

    #[test]
    fn nothing_outside_is_read() {
        let outside = folder(&[("secret.md", b"s3cret")]);
        let inside = folder(&[
            ("a/fine.md", b"\xEF\xBB\xBFfine"),
            ("a/bytes.md", b"\xff"),
            ("a/.hidden.md", b"s3cret"),
            ("key.pem", b"s3cret"),
        ]);
        let root = inside.path();
        fs::create_dir(root.join("folder.md")).unwrap();
        assert_eq!(text_of(root, "a/fine.md").unwrap(), "fine");
        let absolute = outside.path().join("secret.md").display().to_string();
        let around = format!("../{}/secret.md", outside.path().file_name().unwrap().to_string_lossy());
        let mut said = String::new();
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(outside.path(), root.join("link")).unwrap();
            std::os::unix::fs::symlink(&absolute, root.join("link.md")).unwrap();
            rustix::fs::mkfifoat(rustix::fs::CWD, root.join("pipe.md"), rustix::fs::Mode::RUSR).unwrap();
        }
        for path in
            ["a/../a/fine.md", "a//fine.md", "", "./a/fine.md", "a/.hidden.md", "a\\fine.md", &absolute, &around]
        {
            assert!(matches!(text_of(root, path), Err(Unread::Path(_))), "{path}");
        }
        let cases: &[&str] = if cfg!(unix) {
            &["link/secret.md", "link.md", "pipe.md", "folder.md", "key.pem", "none.md", "a/bytes.md", "a/fine.md/x.md"]
        } else {
            &["folder.md", "key.pem", "none.md", "a/bytes.md"]
        };
        for path in cases {
            said += &format!("{}\n", text_of(root, path).unwrap_err());
        }
        #[cfg(unix)]
        insta::assert_snapshot!(said, @r"
        `link/secret.md` is not a regular file of this folder; links are not followed
        `link.md` is not a regular file of this folder; links are not followed
        `pipe.md` is not a regular file of this folder; links are not followed
        `folder.md` is not a regular file of this folder; links are not followed
        `key.pem` is not a document: those end in .adoc, .markdown, .md, .mdx, .org, .rst, .text, .txt
        there is no document `none.md`; `search` finds those that there are
        `a/bytes.md` is not UTF-8
        `a/fine.md/x.md` is not a regular file of this folder; links are not followed
        ");
        assert!(!said.contains("s3cret"));
    }
}
