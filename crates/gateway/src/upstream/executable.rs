//! The file that starts when a command is run, and the files that it needs to run at all.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::sandbox::plain;

/// Folders of the system, in which programs and what they need lie together.
pub(super) const SYSTEM: [&str; 6] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"];

/// Files that are looked at to find an interpreter, and what that needs, at most.
const MOST_FILES: usize = 32;

/// Bytes of the first line of a script that are read.
const FIRST_LINE: u64 = 256;

/// The file that starts when `command` is run with this `PATH` in the folder `cwd`.
pub(crate) fn find(command: &str, path: &OsStr, cwd: Option<&Path>) -> Option<PathBuf> {
    if is_path(command) {
        let file = cwd.unwrap_or(Path::new("")).join(command);
        return is_program(&file).then_some(file);
    }
    std::env::split_paths(path).map(|folder| folder.join(command)).find(|file| is_program(file))
}

/// Whether a command is a path, and no name to be looked for.
pub(crate) fn is_path(command: &str) -> bool {
    command.contains(std::path::MAIN_SEPARATOR)
}

fn is_program(file: &Path) -> bool {
    let Ok(data) = file.metadata() else { return false };
    #[cfg(unix)]
    let may_run = std::os::unix::fs::PermissionsExt::mode(&data.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let may_run = true;
    data.is_file() && may_run
}

/// A program with what it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Executable {
    /// Its file, from the root.
    pub(crate) file: PathBuf,
    /// The files and folders that it needs beside those of the system, a folder before what is in it.
    pub(crate) needs: BTreeSet<PathBuf>,
    /// The folders of the programs that it is made of, outside of the system.
    pub(crate) folders: Vec<PathBuf>,
}

impl Executable {
    /// Follows the links of a program and the interpreters of scripts, which `path` is searched for. Where a program is in a
    /// folder `bin`, the folder around it is taken: there a runtime has its libraries. A folder that holds more than that
    /// (the `home`, what is around it, and what is around one of `hidden`) is never taken; then the program is taken alone.
    pub(crate) fn of(file: &Path, path: &OsStr, home: Option<&Path>, hidden: &[&Path]) -> Self {
        let file = std::path::absolute(file).map_or_else(|_| file.to_owned(), |file| plain(&file));
        let mut found = Self { file: file.clone(), needs: BTreeSet::new(), folders: Vec::new() };
        let mut seen = BTreeSet::new();
        let mut left = vec![file];
        while let Some(file) = left.pop().filter(|_| seen.len() < MOST_FILES) {
            if !seen.insert(file.clone()) {
                continue;
            }
            if !SYSTEM.iter().any(|system| file.starts_with(system)) {
                found.take(&file, home, hidden);
            }
            if let (Ok(target), Some(folder)) = (std::fs::read_link(&file), file.parent()) {
                left.push(plain(&folder.join(target)));
            }
            left.extend(std::fs::canonicalize(&file));
            left.extend(interpreter(&file, path));
        }
        found
    }

    fn take(&mut self, file: &Path, home: Option<&Path>, hidden: &[&Path]) {
        let Some(folder) = file.parent() else { return };
        if !self.folders.iter().any(|taken| taken == folder) {
            self.folders.push(folder.to_owned());
        }
        let around = folder.parent().filter(|_| folder.file_name() == Some(OsStr::new("bin")));
        let is_narrow = |around: &&Path| {
            let holds_more = hidden.iter().chain(home.iter()).any(|kept| kept.starts_with(around));
            // `~/.local` has the state and the keys of all programs beside their `bin`.
            let is_local = home.is_some_and(|home| **around == home.join(".local"));
            around.parent().is_some() && !holds_more && !is_local
        };
        self.needs.insert(around.filter(is_narrow).unwrap_or(file).to_owned());
    }
}

/// The program that the first line of a script names.
fn interpreter(file: &Path, path: &OsStr) -> Option<PathBuf> {
    let mut line = Vec::new();
    std::fs::File::open(file).ok()?.take(FIRST_LINE).read_to_end(&mut line).ok()?;
    let line = line.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split_whitespace();
    let program = Path::new(words.next()?);
    if program.file_name() != Some(OsStr::new("env")) {
        return program.is_absolute().then(|| plain(program));
    }
    let name = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
    find(name, path, None)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn what_a_program_needs_is_found_and_no_more() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let at = |path: &str| root.join(path);
        let write = |path: &str, text: &str| {
            std::fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            std::fs::write(at(path), text).unwrap();
            std::fs::set_permissions(at(path), std::fs::Permissions::from_mode(0o755)).unwrap();
        };
        write("runtime/3.12/bin/python3.12", "");
        write("home/me/project/.venv/lib/x", "");
        std::fs::create_dir_all(at("home/me/project/.venv/bin")).unwrap();
        symlink(at("runtime/3.12/bin/python3.12"), at("home/me/project/.venv/bin/python")).unwrap();
        write("home/me/.local/bin/tool", &format!("#!{}\n", at("home/me/project/.venv/bin/python").display()));
        write("home/me/bin/own", "#!/bin/sh\n");
        write("home/me/project/bin/server", "#!/usr/bin/env -S node --x\n");
        write("node/v20/bin/node", "");
        let home = at("home/me");
        let path = std::env::join_paths([at("node/v20/bin")]).unwrap();
        let needs = |file: &str| {
            let found = Executable::of(&at(file), &path, Some(&home), &[&at("home/me/project")]);
            let needs = found.needs.iter().map(|need| need.strip_prefix(&root).unwrap().display().to_string());
            needs.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(needs("home/me/project/.venv/bin/python"), "home/me/project/.venv runtime/3.12");
        assert_eq!(needs("home/me/.local/bin/tool"), "home/me/.local/bin/tool home/me/project/.venv runtime/3.12");
        assert_eq!(needs("home/me/bin/own"), "home/me/bin/own");
        assert_eq!(needs("home/me/project/bin/server"), "home/me/project/bin/server node/v20");
        assert!(Executable::of(Path::new("/bin/sh"), &path, None, &[]).needs.is_empty());
    }
}
