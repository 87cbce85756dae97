//! The results files of a checkout.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::chapter::{AnyChapter, Recordings};
use crate::chapters::CHAPTERS;
use crate::eval::files::{make_folder, replace_file};
use crate::eval::matrix::Matrix;
use crate::eval::workspace::Workspace;
use crate::report::readme;
use crate::results::{REPAIR, Results};

/// The folder of the results files in a checkout.
const FOLDER: &str = "scorecard/results";

fn path(workspace: &Workspace, name: &str) -> PathBuf {
    workspace.path(FOLDER).join(format!("{name}.json"))
}

/// The committed results called `name`; `None` without a file.
pub(super) fn read(chapter: &dyn AnyChapter, name: &str, workspace: &Workspace) -> Result<Option<Results>> {
    let path = path(workspace, name);
    if !path.exists() {
        return Ok(None);
    }
    let text = fs::read_to_string(&path).with_context(|| format!("{}: {REPAIR}", path.display()))?;
    chapter.read(name, &text).map(Some).with_context(|| path.display().to_string())
}

/// The committed results of every chapter.
///
/// # Errors
/// A file that is missing, or that is not what this version writes; the message names the command that repairs it.
pub fn committed(workspace: &Workspace, matrix: &Matrix) -> Result<Recordings> {
    let mut all = Recordings::default();
    for chapter in CHAPTERS {
        let results = chapter.files(matrix).into_iter().map(|name| {
            let found = read(chapter, &name, workspace)?;
            found.with_context(|| {
                let path = path(workspace, &name);
                format!("{}: missing; {REPAIR}", path.display())
            })
        });
        all.0.insert(chapter.name(), results.collect::<Result<_>>()?);
    }
    Ok(all)
}

/// Writes one file for each of the results.
///
/// # Errors
/// What the file system says.
pub fn write(recordings: &Recordings, workspace: &Workspace) -> Result<()> {
    recordings.iter().try_for_each(|results| write_one(results, workspace))
}

/// Writes the file of these results.
pub(super) fn write_one(results: &Results, workspace: &Workspace) -> Result<()> {
    make_folder(&workspace.path(FOLDER))?;
    replace_file(&path(workspace, &results.name), results.to_json()?.as_bytes())?;
    Ok(())
}

/// The paths of the results files.
pub(super) fn paths(recordings: &Recordings) -> impl Iterator<Item = String> {
    recordings.iter().map(|results| format!("{FOLDER}/{}.json", results.name))
}

/// Everything in the folder of the scorecard that is not among `known` paths, as a sentence each.
///
/// # Errors
/// A folder cannot be listed.
pub(super) fn strays(known: &BTreeSet<String>, workspace: &Workspace) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut folders = vec![readme::FOLDER.trim_end_matches('/').to_owned()];
    while let Some(folder) = folders.pop() {
        let path = workspace.path(&folder);
        if !path.is_dir() {
            continue;
        }
        for entry in fs::read_dir(&path).with_context(|| path.display().to_string())? {
            let entry = entry?;
            let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
            // A link is a file of its own, wherever it leads.
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else if !known.contains(&path) {
                found.push(format!("{path}: no page, results file or recorded table of that name; delete it"));
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}
