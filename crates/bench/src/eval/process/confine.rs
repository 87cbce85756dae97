//! Files that a measured program must not read, kept from it by the kernel: on Linux with Landlock.
//!
//! A domain of Landlock belongs to a thread and to what that thread starts. So a thread of its own is confined, starts the
//! program and ends, and the harness goes on as it was. Landlock only allows: everything is allowed but what is hidden and
//! the folders above it, which would pass their rights down. Those folders can still be listed and searched, since neither
//! is restricted anywhere; but nothing can be made, removed or written right in them.
//!
//! A process that is confined may not look into one that is not (`/proc/PID/fd`, `environ`, `root`, `mem`), may not mount,
//! and may not link or move a file to where it would be allowed more. A copy of a hidden file is another file.

use std::io;
use std::path::{Path, PathBuf};
use std::thread;

use serde::Serialize;

/// Whether the kernel keeps files from a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Hiding {
    /// These files and folders, by their canonical paths.
    Hidden(Vec<String>),
    /// Nothing is kept from it, and why.
    NotHidden(String),
}

impl Hiding {
    /// As a sentence without its end.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self {
            Self::Hidden(paths) => format!("hidden from it by the kernel: {}", paths.join(", ")),
            Self::NotHidden(reason) => format!("not hidden from it: {reason}"),
        }
    }
}

/// Does `start` on a thread that cannot read `hidden`, nor can what it starts. `own` are folders that stay open to it
/// wherever they are. Where the kernel cannot hide, `start` is done all the same, and the second value says so.
pub(crate) fn confined<T: Send>(
    hidden: &[PathBuf],
    own: &[&Path],
    start: impl FnOnce() -> T + Send,
) -> io::Result<(T, Hiding)> {
    let task = || {
        let hiding = hide(hidden, own);
        (start(), hiding)
    };
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("confined".to_owned()).spawn_scoped(scope, task)?;
        thread.join().map_err(|_| io::Error::other("the thread that starts it ended"))
    })
}

/// Whether the kernel can keep `hidden` from a program, without starting one.
#[must_use]
pub fn hiding(hidden: &[PathBuf]) -> Hiding {
    match confined(hidden, &[], || ()) {
        Ok(((), hiding)) => hiding,
        Err(error) => Hiding::NotHidden(error.to_string()),
    }
}

/// Whether a folder is above something hidden: nothing new can be made right in it.
pub(super) fn is_above(folder: &Path, hidden: &[PathBuf]) -> bool {
    let Ok(folder) = folder.canonicalize() else { return false };
    outermost(hidden).iter().any(|path| path.starts_with(&folder))
}

/// What is there of `hidden`, by canonical paths, without what lies below another.
fn outermost(hidden: &[PathBuf]) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = hidden.iter().filter_map(|path| path.canonicalize().ok()).collect();
    // A folder comes right before what it holds.
    found.sort();
    let mut kept: Vec<PathBuf> = Vec::new();
    for path in found {
        if !kept.last().is_some_and(|last| path.starts_with(last)) {
            kept.push(path);
        }
    }
    kept
}

/// Confines this thread.
fn hide(hidden: &[PathBuf], own: &[&Path]) -> Hiding {
    let hidden = outermost(hidden);
    if hidden.is_empty() {
        return Hiding::NotHidden("there is nothing to hide".to_owned());
    }
    match restrict(&hidden, own) {
        Ok(()) => Hiding::Hidden(hidden.iter().map(|path| path.display().to_string()).collect()),
        Err(reason) => Hiding::NotHidden(reason),
    }
}

#[cfg(not(target_os = "linux"))]
fn restrict(_: &[PathBuf], _: &[&Path]) -> Result<(), String> {
    Err("only Linux can hide files from a program".to_owned())
}

#[cfg(target_os = "linux")]
fn restrict(hidden: &[PathBuf], own: &[&Path]) -> Result<(), String> {
    linux::restrict(hidden, own)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeSet;
    use std::os::fd::OwnedFd;
    use std::path::{Path, PathBuf};

    use landlock::{
        ABI, Access, AccessFs, BitFlags, PathBeneath, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr,
        RulesetError, RulesetStatus,
    };
    use rustix::fs::{FileType, Mode, OFlags, fstat, open};

    /// The folder of devices.
    const DEVICES: &str = "/dev";

    /// Entries that a folder above something hidden may have: each becomes a rule.
    const MOST_ENTRIES: usize = 50_000;

    /// The rights that are restricted. Programs find their parts by listing folders, and a list of names holds no
    /// judgement. A program that can be run can be read, so that running it needs no rule.
    fn handled() -> BitFlags<AccessFs> {
        AccessFs::from_all(ABI::V3) & !(AccessFs::ReadDir | AccessFs::Execute)
    }

    /// A device that a program makes itself would show it a whole disk.
    fn allowed() -> BitFlags<AccessFs> {
        handled() & !(AccessFs::MakeBlock | AccessFs::MakeChar)
    }

    pub(super) fn restrict(hidden: &[PathBuf], own: &[&Path]) -> Result<(), String> {
        let refused = |error: RulesetError| format!("Landlock: {error}");
        let ruleset = Ruleset::default().handle_access(handled()).map_err(refused)?;
        let mut ruleset = ruleset.create().map_err(refused)?;
        let mut above: BTreeSet<&Path> = hidden.iter().flat_map(|path| path.ancestors().skip(1)).collect();
        // Its entries are allowed one by one, without the disks.
        above.extend([Path::new(DEVICES)].into_iter().filter(|folder| folder.is_dir()));
        let secret: BTreeSet<(u64, u64)> = hidden.iter().filter_map(|path| identity(&handle(path)?)).collect();
        for folder in &above {
            let unknown = |error: std::io::Error| format!("{}: {error}", folder.display());
            for (number, entry) in std::fs::read_dir(folder).map_err(unknown)?.enumerate() {
                let path = entry.map_err(unknown)?.path();
                if number == MOST_ENTRIES {
                    return Err(format!("{}: more than {MOST_ENTRIES} entries", folder.display()));
                }
                if !above.contains(path.as_path()) {
                    ruleset = allow(ruleset, &path, &secret)?;
                }
            }
        }
        for folder in own.iter().filter_map(|folder| folder.canonicalize().ok()) {
            ruleset = allow(ruleset, &folder, &secret)?;
        }
        match ruleset.restrict_self().map_err(refused)?.ruleset {
            RulesetStatus::NotEnforced => Err("this kernel has no Landlock, or it is off".to_owned()),
            RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        }
    }

    /// Allows a file, or a folder with all that is and will be below it. What a link leads to is allowed where it lies; a
    /// second name of a hidden file is that file; a disk holds every file.
    fn allow(ruleset: RulesetCreated, path: &Path, secret: &BTreeSet<(u64, u64)>) -> Result<RulesetCreated, String> {
        // What is gone by now, or is out of the program's reach anyhow, needs no rule.
        let Some(handle) = handle(path) else { return Ok(ruleset) };
        let Ok(state) = fstat(&handle) else { return Ok(ruleset) };
        let rights = match FileType::from_raw_mode(state.st_mode) {
            FileType::Symlink | FileType::BlockDevice => return Ok(ruleset),
            _ if identity(&handle).is_some_and(|own| secret.contains(&own)) => return Ok(ruleset),
            FileType::Directory => allowed(),
            _ => allowed() & AccessFs::from_file(ABI::V3),
        };
        let refused = |error: RulesetError| format!("Landlock: {}: {error}", path.display());
        ruleset.add_rule(PathBeneath::new(handle, rights)).map_err(refused)
    }

    /// The thing itself, and not what it leads to.
    fn handle(path: &Path) -> Option<OwnedFd> {
        open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()).ok()
    }

    /// Device and number of a file.
    // Their types differ between architectures.
    #[allow(clippy::unnecessary_cast)]
    fn identity(handle: &OwnedFd) -> Option<(u64, u64)> {
        let state = fstat(handle).ok()?;
        Some((state.st_dev as u64, state.st_ino as u64))
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use super::*;

    const SECRET: &str = "the judgement";

    /// What a script in shell prints that is started without `hidden`, and whether that is so.
    fn printed(script: &str, folder: &Path, hidden: &[PathBuf]) -> (String, Hiding) {
        let start = || Command::new("sh").args(["-c", script]).current_dir(folder).output();
        let (output, hiding) = confined(hidden, &[], start).unwrap();
        (String::from_utf8(output.unwrap().stdout).unwrap(), hiding)
    }

    /// A folder as people have it: a program and its parts beside the queries, and a folder of gold.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["gold", "parts"] {
            fs::create_dir(path(name)).unwrap();
        }
        for name in ["queries.jsonl", "gold/all.jsonl"] {
            fs::write(path(name), SECRET).unwrap();
        }
        fs::write(path("parts/words"), "a part").unwrap();
        fs::write(path("engine"), ". ./parts/words.sh").unwrap();
        fs::hard_link(path("queries.jsonl"), path("other-name")).unwrap();
        symlink(path("gold"), path("parts/link")).unwrap();
        folder
    }

    #[test]
    fn what_is_hidden_cannot_be_read_by_any_way() {
        let folder = folder();
        let hidden = ["queries.jsonl", "gold", "not-there"].map(|name| folder.path().join(name));
        let opened = fs::File::open(&hidden[0]).unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&opened);
        let us = std::process::id();
        let by_handle = format!("cat /proc/{us}/fd/{fd} /proc/{us}/root/{}", hidden[0].display());
        for script in [
            "cat queries.jsonl gold/all.jsonl other-name parts/link/all.jsonl",
            "grep -r judgement .",
            "cp queries.jsonl parts/copy; cat parts/copy",
            "ln queries.jsonl parts/copy; cat parts/copy",
            "mv queries.jsonl parts/copy; cat parts/copy",
            "mv queries.jsonl moved; cat moved",
            "mv gold parts/gold; cat parts/gold/all.jsonl",
            "ln -s ../gold parts/another; cat parts/another/all.jsonl",
            "cat /proc/self/cwd/queries.jsonl /proc/self/root$PWD/queries.jsonl",
            "(cd gold; cat all.jsonl); env sh -c 'cat queries.jsonl'",
            &by_handle,
        ] {
            let (text, hiding) = printed(script, folder.path(), &hidden);
            let Hiding::Hidden(paths) = hiding else { panic!("{hiding:?}") };
            assert_eq!(paths.len(), 2, "{paths:?}");
            assert!(!text.contains(SECRET), "{script}: {text}");
        }
        assert_eq!(fs::read_to_string(&hidden[0]).unwrap(), SECRET, "neither changed nor moved");
        let (text, _) = printed("echo x > queries.jsonl; rm queries.jsonl; rm -r gold", folder.path(), &hidden);
        assert_eq!((text.as_str(), fs::read_to_string(&hidden[0]).unwrap().as_str()), ("", SECRET));
    }

    #[test]
    fn what_is_not_hidden_is_there_as_before() {
        let folder = folder();
        let hidden = ["queries.jsonl", "gold"].map(|name| folder.path().join(name));
        for (script, expected) in [
            ("cat parts/words", "a part"),
            ("ls", "engine\ngold\nother-name\nparts\nqueries.jsonl\n"),
            (
                "echo new > parts/new; cat parts/new; mkdir parts/deep; mv parts/new parts/deep; cat parts/deep/new",
                "new\nnew\n",
            ),
            ("echo x > /dev/null; head -c 1 /dev/zero | wc -c; cat /proc/self/comm", "1\ncat\n"),
            ("echo x | cat /dev/stdin > /dev/shm/$$; cat /dev/shm/$$; rm /dev/shm/$$", "x\n"),
            // Right above what is hidden nothing is made.
            ("echo new > new; cat new", ""),
        ] {
            let (text, _) = printed(script, folder.path(), &hidden);
            assert_eq!(text, expected, "{script}");
        }
    }

    #[test]
    fn the_harness_itself_goes_on_as_it_was() {
        let folder = folder();
        let hidden = [folder.path().join("gold")];
        printed("true", folder.path(), &hidden);
        assert_eq!(fs::read_to_string(folder.path().join("gold/all.jsonl")).unwrap(), SECRET);
        let (text, hiding) = printed("cat gold/all.jsonl", folder.path(), &[]);
        assert_eq!((text.as_str(), hiding), (SECRET, Hiding::NotHidden("there is nothing to hide".to_owned())));
    }

    #[test]
    fn a_folder_of_its_own_stays_open_wherever_it_is() {
        let folder = folder();
        let (hidden, own) = ([folder.path().to_owned()], folder.path().join("parts"));
        let start = || fs::read_to_string(own.join("words"));
        let (read, _) = confined(&hidden, &[&own], start).unwrap();
        assert_eq!(read.unwrap(), "a part");
        assert!(is_above(&std::env::temp_dir(), &hidden));
        assert!(!is_above(&own, &hidden));
    }
}
