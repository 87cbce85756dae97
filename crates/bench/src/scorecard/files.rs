//! The results files of a checkout.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::chapter::{AnyChapter, Recordings};
use crate::chapters::CHAPTERS;
use crate::eval::files::{files_ending_in, make_folder, replace_file};
use crate::eval::matrix::Matrix;
use crate::eval::workspace::Workspace;
use crate::results::Results;

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
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
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
                format!("{}: missing; `contextweaver bench run` writes it", path.display())
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
    make_folder(&workspace.path(FOLDER))?;
    for results in recordings.iter() {
        replace_file(&path(workspace, &results.name), results.to_json()?.as_bytes())?;
    }
    Ok(())
}

/// Results files of no chapter.
///
/// # Errors
/// The folder cannot be listed.
pub(super) fn strays(workspace: &Workspace, matrix: &Matrix) -> Result<Vec<PathBuf>> {
    let names: Vec<String> = CHAPTERS.into_iter().flat_map(|chapter| chapter.files(matrix)).collect();
    let folder = workspace.path(FOLDER);
    let files = files_ending_in(&folder, "json").with_context(|| folder.display().to_string())?;
    let is_known = |path: &PathBuf| {
        path.file_stem().is_some_and(|stem| names.iter().any(|name| **name == *stem.to_string_lossy()))
    };
    Ok(files.into_iter().filter(|path| !is_known(path)).collect())
}
