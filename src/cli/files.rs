//! What a command reads and what it writes: no output may be an input, or another output.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

/// The files of a command, each with the option that names it.
#[derive(Default)]
pub(super) struct Files {
    read: Vec<(&'static str, PathBuf)>,
    written: Vec<(&'static str, PathBuf)>,
}

impl Files {
    /// Adds files that are read. Of a folder these are the files right in it that a catalog is read from.
    pub(super) fn read<P: AsRef<Path>>(mut self, option: &'static str, paths: impl IntoIterator<Item = P>) -> Self {
        for path in paths {
            let path = path.as_ref();
            match std::fs::read_dir(path) {
                Ok(entries) => {
                    let files = entries.flatten().map(|entry| entry.path()).filter(|path| is_of_catalog(path));
                    self.read.extend(files.map(|path| (option, path)));
                }
                Err(_) => self.read.push((option, path.to_owned())),
            }
        }
        self
    }

    /// Adds files that are written.
    pub(super) fn written<P: AsRef<Path>>(mut self, option: &'static str, paths: impl IntoIterator<Item = P>) -> Self {
        self.written.extend(paths.into_iter().map(|path| (option, path.as_ref().to_owned())));
        self
    }

    /// Refuses an output that is an input, or another output: the command would destroy what it was given.
    ///
    /// # Errors
    /// Names both.
    pub(super) fn check(&self) -> Result<()> {
        for (number, (option, path)) in self.written.iter().enumerate() {
            let others = self.read.iter().chain(self.written.iter().take(number));
            let same = |(_, other): &&(&str, PathBuf)| canonical(path).is_some_and(|one| canonical(other) == Some(one));
            if let Some((other, at)) = others.clone().find(same) {
                let (path, at) = (path.display(), at.display());
                bail!("{option} {path} would write over {at} of {other}; name another file");
            }
        }
        Ok(())
    }
}

fn is_of_catalog(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    ["json", "yaml", "yml"].iter().any(|one| extension.eq_ignore_ascii_case(one))
}

/// The path without links; of a file that does not exist yet, below its folder's. `None` for a stream or a device, which
/// are written to and never replaced.
fn canonical(path: &Path) -> Option<PathBuf> {
    if path.as_os_str() == "-" || path.metadata().is_ok_and(|about| !about.is_file() && !about.is_dir()) {
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
    fn an_output_is_no_input_and_no_other_output() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("servers")).unwrap();
        for name in ["tools.json", "servers/one.yaml", "servers/notes.txt"] {
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
            (&["servers/notes.txt", "servers/new.json"], None),
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
        let streams = Files::default().read("--events", ["-"]).written("--out", ["-"]);
        assert!(streams.check().is_ok());
        #[cfg(unix)]
        assert!(Files::default().written("--html", ["/dev/null", "/dev/null"]).check().is_ok());
    }
}
