//! What a command reads and what it writes: no output may be an input, or another output.

use std::io::{self, Read, Stderr, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::note;
use contextweaver_core::catalog::folder_files;
use contextweaver_core::files::{open_kept_file, read_at_most, read_file, replace_file, replace_file_with};

/// The files of a command, each with the option that names it.
#[derive(Default)]
pub(super) struct Files {
    read: Vec<(&'static str, PathBuf)>,
    written: Vec<(&'static str, PathBuf)>,
}

impl Files {
    /// Adds files that are read. Of a folder these are the files that a catalog is read from.
    pub(super) fn read<P: AsRef<Path>>(mut self, option: &'static str, paths: impl IntoIterator<Item = P>) -> Self {
        for path in paths {
            let path = path.as_ref();
            match path.is_dir() {
                // A folder without such a file, or one that cannot be read, is refused when it is loaded.
                true => self.read.extend(folder_files(path).unwrap_or_default().into_iter().map(|path| (option, path))),
                false => self.read.push((option, path.to_owned())),
            }
        }
        self
    }

    /// Adds files that are written.
    pub(super) fn written<P: AsRef<Path>>(mut self, option: &'static str, paths: impl IntoIterator<Item = P>) -> Self {
        self.written.extend(paths.into_iter().map(|path| (option, path.as_ref().to_owned())));
        self
    }

    /// Adds the page that `--html` names.
    pub(super) fn page<P: AsRef<Path>>(self, path: impl IntoIterator<Item = P>) -> Self {
        self.written(PAGE, path)
    }

    /// Refuses an output that is an input, or another output: the command would destroy what it was given. A page takes the
    /// place of nothing but a page, since what a command reads names more files: keys, logs, files of clients.
    ///
    /// # Errors
    /// Names both, or the file that is no page.
    pub(super) fn check(&self) -> Result<()> {
        for (number, (option, path)) in self.written.iter().enumerate() {
            if is_stream(path) && *option != OUT {
                bail!("{option} -: only {OUT} can be standard output; name a file");
            }
            let others = self.read.iter().chain(self.written.iter().take(number));
            let same = |(_, other): &&(&str, PathBuf)| canonical(path).is_some_and(|one| canonical(other) == Some(one));
            if let Some((other, at)) = others.clone().find(same) {
                let (path, at) = (path.display(), at.display());
                bail!("{option} {path} would write over {at} of {other}; name another file");
            }
            if *option == PAGE && holds_something_else(path) {
                bail!(
                    "{option} {} would write over a file that is not an HTML page; name another file",
                    path.display()
                );
            }
        }
        Ok(())
    }
}

/// Whether a file of another kind may be overwritten
#[derive(Debug, clap::Args)]
pub(super) struct Overwrite {
    /// Overwrite the file of --out even if it holds something else than what is written
    #[arg(long, requires = "out")]
    force: bool,
}

impl Overwrite {
    /// Refuses an output in the place of a file that is not `what` already, as `is_one` tells by its bytes.
    ///
    /// # Errors
    /// Names the file.
    pub(super) fn check(&self, out: &Path, what: &str, is_one: impl FnOnce(&[u8]) -> bool) -> Result<()> {
        let holds_something = !is_stream(out) && out.metadata().is_ok_and(|about| about.is_file() && about.len() > 0);
        if self.force || !holds_something || std::fs::read(out).is_ok_and(|bytes| is_one(&bytes)) {
            return Ok(());
        }
        bail!("--out {}: it is there, and not {what}; name another file, or overwrite it with --force", out.display());
    }
}

/// Whether a file of ours begins with what tells its kind.
pub(super) fn begins_as(bytes: &[u8], format: &str) -> bool {
    const LOOKED_AT: usize = 100;
    let start = bytes.get(..LOOKED_AT).unwrap_or(bytes);
    String::from_utf8_lossy(start).contains(&format!("\"{format}\""))
}

/// The option that names the result of a command.
const OUT: &str = "--out";

/// Whether a path means standard output, or standard input where something is read.
pub(super) fn is_stream(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// A file that is written or read, as messages name it.
pub(super) fn shown(path: &Path, stream: &'static str) -> String {
    if is_stream(path) { stream.to_owned() } else { path.display().to_string() }
}

/// Where the words about a result go: not among its bytes.
pub(super) fn words_about<'o>(result: &Path, out: &'o mut dyn Write, words: &'o mut Stderr) -> &'o mut dyn Write {
    if is_stream(result) { words } else { out }
}

/// The option that names a page to write.
const PAGE: &str = "--html";

/// Whether a file is there with something that is not a page.
fn holds_something_else(path: &Path) -> bool {
    const BEGINNING: &[u8] = b"<!doctype html";
    let Ok(file) = open_kept_file(path) else { return false };
    let mut begins = Vec::new();
    let read = file.take(BEGINNING.len() as u64).read_to_end(&mut begins);
    read.is_ok() && !begins.is_empty() && !begins.eq_ignore_ascii_case(BEGINNING)
}

/// Refuses a file that cannot be written, before the work is done whose result would go there. Nothing is written.
///
/// # Errors
/// Names the option, and what is in the way.
pub(super) fn writable(option: &str, path: &Path) -> Result<()> {
    match path.metadata() {
        Ok(about) if about.is_dir() => bail!("{option} {}: it is a folder; name a file", path.display()),
        // A pipe has one reader, for what is written in the end.
        Ok(about) if !about.is_file() => return Ok(()),
        _ => {}
    }
    let mut is_open = false;
    let tried = replace_file_with(path, |_| {
        is_open = true;
        Err(io::Error::other("nothing to write yet"))
    });
    match tried {
        Err(error) if !is_open => Err(error)
            .with_context(|| format!("{option}: the file cannot be written; name one in a folder that exists")),
        _ => Ok(()),
    }
}

/// Writes a file, whole or not at all, and says so on standard error.
///
/// # Errors
/// The file cannot be written.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    replace_file(path, bytes)?;
    note(&format!("wrote {}", path.display()));
    Ok(())
}

/// Writes the result of a command to the file of `--out`, or to standard output: without one, and for `-`.
///
/// # Errors
/// It cannot be written.
pub(super) fn write_result(path: Option<&Path>, bytes: &[u8], out: &mut dyn Write) -> Result<()> {
    match path.filter(|path| !is_stream(path)) {
        Some(path) => write(path, bytes),
        None => Ok(out.write_all(bytes)?),
    }
}

/// Larger inputs are refused: they are held in memory, and a device never ends.
const MOST_READ: u64 = 1 << 30;

/// The bytes of a file; of standard input for `-`.
///
/// # Errors
/// It cannot be read, or has more than [`MOST_READ`] bytes.
pub(super) fn read_input(path: &Path) -> Result<Vec<u8>> {
    match is_stream(path) {
        true => read_at_most(io::stdin().lock(), MOST_READ).context("standard input"),
        false => Ok(read_file(path, MOST_READ)?),
    }
}

/// As [`writable`], for files in a folder that is made with its missing parents.
///
/// # Errors
/// As [`writable`].
pub(super) fn writable_in<'n>(option: &str, folder: &Path, names: impl IntoIterator<Item = &'n str>) -> Result<()> {
    if folder.is_dir() {
        return names.into_iter().try_for_each(|name| writable(option, &folder.join(name)));
    }
    let folder = std::path::absolute(folder).with_context(|| format!("{option} {}", folder.display()))?;
    match folder.ancestors().find(|one| one.exists()) {
        Some(parent) if parent.is_dir() => {
            let first = folder.strip_prefix(parent).ok().and_then(|rest| rest.components().next());
            first.map_or(Ok(()), |first| writable(option, &parent.join(first)))
        }
        Some(file) => bail!("{option} {}: {} is no folder; name another", folder.display(), file.display()),
        None => Ok(()),
    }
}

/// The path without links; of a file that does not exist yet, below its folder's. `None` for a stream or a device, which
/// are written to and never replaced.
fn canonical(path: &Path) -> Option<PathBuf> {
    if is_stream(path) || path.metadata().is_ok_and(|about| !about.is_file() && !about.is_dir()) {
        return None;
    }
    let path = std::path::absolute(path).ok()?;
    let of_folder = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(of_folder).or(Some(path))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_cannot_be_written_is_refused_beforehand() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "kept").unwrap();
        for (name, expected) in [
            ("new.html", None),
            ("file", None),
            ("none/x.html", Some("--html: the file cannot be written; name one in a folder that exists")),
            ("file/x.html", Some("--html: the file cannot be written")),
            (".", Some("it is a folder; name a file")),
        ] {
            let said = writable("--html", &at(name)).map_err(|error| format!("{error:#}"));
            assert_eq!(
                said.as_ref().err().map(|said| said.contains(expected.unwrap_or("no refusal"))),
                expected.map(|_| true),
                "{name}: {said:?}"
            );
        }
        for (name, is_refused) in [("new/deep", false), (".", false), ("file", true), ("file/deep", true)] {
            assert_eq!(writable_in("--trec-out", &at(name), ["qrels"]).is_err(), is_refused, "{name}");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "something was left there");
        assert_eq!(fs::read_to_string(at("file")).unwrap(), "kept");
    }

    #[test]
    fn an_output_is_no_input_and_no_other_output() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("servers/deploy")).unwrap();
        for name in
            ["tools.json", "servers/one.yaml", "servers/notes.txt", "servers/SKILL.md", "servers/deploy/SKILL.md"]
        {
            fs::write(at(name), "").unwrap();
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink(at("tools.json"), at("link")).unwrap();
        let table: &[(&[&str], Option<&str>)] = &[
            (&["new"], None),
            (&["tools.json"], Some("of --catalog; name another file")),
            (&["servers/../tools.json"], Some("of --catalog; name another file")),
            #[cfg(unix)]
            (&["link"], Some("of --catalog; name another file")),
            (&["servers/one.yaml"], Some("of --catalog; name another file")),
            (&["servers/SKILL.md"], Some("of --catalog; name another file")),
            (&["servers/deploy/SKILL.md"], Some("of --catalog; name another file")),
            (&["servers/notes.txt", "servers/new.json", "servers/README.md"], None),
            (&["new", "servers/../new"], Some("of --out; name another file")),
        ];
        for &(outputs, expected) in table {
            let files = Files::default().read("--catalog", [at("tools.json"), at("servers")]);
            let said =
                files.written("--out", outputs.iter().map(|name| at(name))).check().map_err(|error| error.to_string());
            match expected {
                None => assert!(said.is_ok(), "{outputs:?}: {said:?}"),
                Some(text) => assert!(said.as_ref().is_err_and(|said| said.contains(text)), "{outputs:?}: {said:?}"),
            }
        }
        for (name, held, is_refused) in
            [("page", "<!DOCTYPE html><title>x</title>", false), ("empty", "", false), ("key", "secret", true)]
        {
            fs::write(at(name), held).unwrap();
            assert_eq!(Files::default().page([at(name)]).check().is_err(), is_refused, "{name}");
        }
        assert!(Files::default().page([at("new.html")]).check().is_ok());
        let streams = Files::default().read("--events", ["-"]).written("--out", ["-"]);
        assert!(streams.check().is_ok());
        for option in ["--html", "--names", "--svg"] {
            let said = Files::default().written(option, ["-"]).check().unwrap_err().to_string();
            assert_eq!(said, format!("{option} -: only --out can be standard output; name a file"));
        }
        #[cfg(unix)]
        assert!(Files::default().page(["/dev/null", "/dev/null"]).check().is_ok());
    }
}
