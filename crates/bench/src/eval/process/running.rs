//! The programs that run and the folders that were made for them, so that a signal can end the ones and remove the others.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use contextweaver_core::sync::lock;

/// How often it is looked whether a program has ended and a folder can be removed, and how long between.
const LOOKS: usize = 200;
const PAUSE: Duration = Duration::from_millis(5);

/// What there is now.
pub(super) struct Running {
    /// The programs, by the number of their first process and so of their group.
    pub(super) groups: BTreeSet<u32>,
    folders: BTreeSet<PathBuf>,
}

static RUNNING: Mutex<Running> = Mutex::new(Running { groups: BTreeSet::new(), folders: BTreeSet::new() });

/// What there is now. A program is started and registered under one lock: none is missed.
pub(super) fn running() -> MutexGuard<'static, Running> {
    lock(&RUNNING)
}

/// A temporary folder, removed on drop or by [`end_all`].
pub(super) struct Folder {
    folder: tempfile::TempDir,
    // Dropped after the folder, so that no moment is left in which nobody removes it.
    _listed: Listed,
}

struct Listed(PathBuf);

impl Drop for Listed {
    fn drop(&mut self) {
        running().folders.remove(&self.0);
    }
}

impl Folder {
    pub(super) fn new() -> io::Result<Self> {
        let mut running = running();
        let folder = tempfile::tempdir()?;
        let path = folder.path().to_owned();
        running.folders.insert(path.clone());
        Ok(Self { folder, _listed: Listed(path) })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Ends the processes of a group at once.
pub(super) fn end_group(group: u32) {
    #[cfg(unix)]
    if let Some(group) = i32::try_from(group).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    #[cfg(not(unix))]
    let _ = group;
}

/// Whether a child has ended, or is not ours.
fn has_ended(child: u32) -> bool {
    #[cfg(unix)]
    if let Some(child) = i32::try_from(child).ok().and_then(rustix::process::Pid::from_raw) {
        return !matches!(rustix::process::waitpid(Some(child), rustix::process::WaitOptions::NOHANG), Ok(None));
    }
    let _ = child;
    true
}

/// Ends every program that runs, with what it started, and removes their folders: what is left to do before this process
/// ends at a signal. Nothing starts after it: what would start one waits until the process has ended.
pub fn end_all() {
    let running = running();
    running.groups.iter().for_each(|group| end_group(*group));
    let until = |done: &dyn Fn() -> bool| {
        (0..LOOKS).any(|_| {
            done() || {
                thread::sleep(PAUSE);
                false
            }
        })
    };
    for group in &running.groups {
        until(&|| has_ended(*group));
    }
    for folder in &running.folders {
        // What a program started may write for a moment after its signal.
        until(&|| std::fs::remove_dir_all(folder).is_ok() || !folder.exists());
    }
    std::mem::forget(running);
}
