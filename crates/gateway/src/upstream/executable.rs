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

/// Folders that hold more than a program needs, under all names that are known of them.
struct Private {
    homes: Vec<PathBuf>,
    others: Vec<PathBuf>,
}

/// Where the homes of people are.
const HOMES: [&str; 2] = ["/home", "/Users"];

impl Private {
    fn of(home: Option<&Path>, others: &[&Path]) -> Self {
        Self {
            homes: home.map(names).unwrap_or_default(),
            others: others.iter().flat_map(|folder| names(folder)).collect(),
        }
    }

    /// Whether a folder is one of these, or holds one.
    fn is_in(&self, folder: &Path) -> bool {
        names(folder).iter().any(|folder| {
            let is_home = |home: &PathBuf| {
                home.starts_with(folder)
                // It has the state and the keys of all programs beside their `bin`.
                || *folder == home.join(".local")
            };
            let is_of_another = folder == Path::new("/root")
                || folder.parent().is_some_and(|around| HOMES.iter().any(|homes| around == Path::new(homes)));
            folder.parent().is_none()
                || is_of_another
                || self.homes.iter().any(is_home)
                || self.others.iter().any(|other| other.starts_with(folder))
        })
    }
}

/// A folder as it is written, and where its links lead.
fn names(folder: &Path) -> Vec<PathBuf> {
    let written = plain(folder);
    let mut names: Vec<PathBuf> =
        std::fs::canonicalize(folder).ok().filter(|real| *real != written).into_iter().collect();
    names.push(written);
    names
}

impl Executable {
    /// Follows the links of a program and the interpreters of scripts, which `path` is searched for. Where a program is in a
    /// folder `bin`, the folder around it is taken: there a runtime has its libraries. A folder that holds more than that
    /// (the `home` or another person's, what is around it, and what is around one of `hidden`) is never taken, by whatever
    /// name; then the program is taken alone.
    pub(crate) fn of(file: &Path, path: &OsStr, home: Option<&Path>, hidden: &[&Path]) -> Self {
        let private = Private::of(home, hidden);
        let file = std::path::absolute(file).map_or_else(|_| file.to_owned(), |file| plain(&file));
        let mut found = Self { file: file.clone(), needs: BTreeSet::new(), folders: Vec::new() };
        let mut seen = BTreeSet::new();
        let mut left = vec![file];
        while let Some(file) = left.pop().filter(|_| seen.len() < MOST_FILES) {
            if !seen.insert(file.clone()) {
                continue;
            }
            if !SYSTEM.iter().any(|system| file.starts_with(system)) {
                found.take(&file, &private);
            }
            if let (Ok(target), Some(folder)) = (std::fs::read_link(&file), file.parent()) {
                left.push(plain(&folder.join(target)));
            }
            left.extend(std::fs::canonicalize(&file));
            left.extend(interpreter(&file, path));
        }
        found
    }

    fn take(&mut self, file: &Path, private: &Private) {
        let Some(folder) = file.parent() else { return };
        if !self.folders.iter().any(|taken| taken == folder) {
            self.folders.push(folder.to_owned());
        }
        let around = folder.parent().filter(|_| folder.file_name() == Some(OsStr::new("bin")));
        self.needs.insert(around.filter(|around| !private.is_in(around)).unwrap_or(file).to_owned());
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

    #[test]
    fn a_home_is_not_taken_by_another_name() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let program = root.join("real/me/bin/server");
        std::fs::create_dir_all(program.parent().unwrap()).unwrap();
        std::fs::write(&program, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        symlink(root.join("real"), root.join("link")).unwrap();
        let (real, link) = (root.join("real/me"), root.join("link/me"));
        for of in [&real, &link] {
            for kept in [&real, &link] {
                for (home, hidden) in [(Some(kept.as_path()), None), (None, Some(kept.as_path()))] {
                    let found = Executable::of(&of.join("bin/server"), OsStr::new(""), home, hidden.as_slice());
                    assert!(found.needs.iter().all(|need| need.is_file()), "{kept:?}: {:?}", found.needs);
                }
            }
        }
        let private = Private::of(None, &[]);
        for (folder, is_private) in [
            ("/home/deploy", true),
            ("/Users/ana", true),
            ("/root", true),
            ("/", true),
            ("/home/deploy/app", false),
            ("/opt/app", false),
        ] {
            assert_eq!(private.is_in(Path::new(folder)), is_private, "{folder}");
        }
    }
}
