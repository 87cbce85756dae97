//! Measuring, writing and rendering as one step: what a run does, and what rendering alone does.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, bail};

use super::cells::{CellResult, Store, Work};
use super::files::{committed, write};
use super::measured::{Course, Measured, Unmeasured, require_all};
use super::pages::{self, Page};
use crate::chapter::Recordings;
use crate::chapters::CHAPTERS;
use crate::eval::tables::{self, Tables};
use crate::eval::timing::TimingRow;
use crate::eval::workspace::{Bench, Workspace};
use crate::eval::{machine, recording};
use crate::results::Day;

/// What a run left behind.
#[derive(Debug)]
pub struct Ran {
    /// The records as they were written.
    pub recordings: Recordings,
    /// What was not measured, and kept where it was recorded.
    pub kept: Vec<Unmeasured>,
    /// Records that were not measured and not recorded either, so that there is nothing to keep.
    pub missing: Vec<String>,
    /// What was timed on the way.
    pub timings: Vec<TimingRow>,
}

/// Where times are recorded: the path of this program, whose whole processes are timed too, and the name of the machine
/// where it is not to be called by its architecture and cores.
#[derive(Debug, Clone, Copy)]
pub struct Recorder<'r> {
    /// The path of this program.
    pub program: &'r Path,
    /// The name of the machine; its architecture and cores without one.
    pub machine: Option<&'r str>,
}

/// Measures everything in a course, writes the records and the pages, and the times where there is a recorder. Everything
/// is computed before anything is written. Without a recorder, a run that has an end takes no times.
///
/// # Errors
/// Inputs that cannot be read, a damaged results file of which a record is to be kept, a front page without its markers, or
/// what the file system says.
pub fn run(bench: &Bench, recorder: Option<Recorder<'_>>, course: Course<'_>) -> Result<Ran> {
    let workspace = &bench.workspace;
    require_all(bench)?;
    // Damaged tables are refused before minutes are spent.
    Tables::read(workspace)?;
    let measured = Measured::by(&Work::of(bench)?, course)?;
    let samples = match (&recorder, course.until) {
        (None, Some(_)) => Vec::new(),
        _ => recording::samples(bench, recorder.map(|recorder| recorder.program), &|what| course.watch.step(what))?,
    };
    let timings = machine::rows(&samples, recorder.and_then(|recorder| recorder.machine), &workspace.path(""));
    if recorder.is_some() && timings.is_empty() {
        bail!("no timings to record: the collection `{}` is not in gold/ or in no scenario", recording::COLLECTION);
    }
    finish(bench, &measured, recorder.map(|_| timings.as_slice())).map(|ran| Ran { timings, ..ran })
}

/// Writes what a run writes, of cells that others have computed.
///
/// # Errors
/// As [`Measured::merged`], and as [`run`].
pub fn merge(bench: &Bench, stores: &[Store], answers: &BTreeMap<String, CellResult>) -> Result<Ran> {
    require_all(bench)?;
    finish(bench, &Measured::merged(&Work::of(bench)?, stores, answers)?, None)
}

/// Writes records and pages, and the times that are to be recorded.
fn finish(bench: &Bench, measured: &Measured, timings: Option<&[TimingRow]>) -> Result<Ran> {
    let workspace = &bench.workspace;
    let recordings = measured.recordings(workspace, &Day::now())?;
    let mut recorded = Tables::read(workspace)?;
    if let Some(timings) = timings {
        recorded.replace_timings(timings);
    }
    let pages = pages::of(&recordings, &recorded, workspace)?;
    write(&recordings, workspace)?;
    if let Some(timings) = timings {
        tables::write_timings(workspace, timings)?;
    }
    pages::write(&pages, workspace)?;
    let (missing, kept) = (measured.missing(&recordings), measured.unmeasured());
    Ok(Ran { missing, recordings, kept, timings: Vec::new() })
}

/// Renders the committed results again and writes the pages.
///
/// # Errors
/// As [`committed`], and as for [`run`].
pub fn render(workspace: &Workspace) -> Result<Vec<Page>> {
    let recordings = committed(workspace, &workspace.matrix()?)?;
    let pages = pages::of(&recordings, &Tables::read(workspace)?, workspace)?;
    pages::write(&pages, workspace)?;
    Ok(pages)
}

/// What a run prints: every chapter that is among `recordings`, in the order of the page.
///
/// # Errors
/// Facts of another chapter.
pub fn terminal(recordings: &Recordings) -> Result<String> {
    let mut texts = Vec::new();
    for chapter in CHAPTERS.into_iter().filter(|chapter| recordings.0.contains_key(chapter.name())) {
        let text = chapter.terminal(recordings)?;
        if !text.is_empty() {
            texts.push(text);
        }
    }
    Ok(texts.join("\n"))
}
