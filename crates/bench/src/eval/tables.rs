//! Recorded tables: times and what other programs gave, in `scorecard/timings/`. They belong to a machine and a day, and
//! pages show them without a check.

use std::path::Path;

use anyhow::{Context, Result, bail};

use super::files::{files_ending_in, make_folder, replace_file};
use super::gateway::overhead::{self, OverheadRow};
use super::scaling::{self, RivalRow};
use super::timing::TimingRow;
use super::workspace::Workspace;

/// The folder of the tables in a checkout.
const FOLDER: &str = "scorecard/timings";

/// Every recorded table. A table without a file is empty.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tables {
    /// What was timed in one process, of all days and machines, in order of file name.
    pub timings: Vec<TimingRow>,
    /// How times grow with the catalog.
    pub growth: Vec<TimingRow>,
    /// What other libraries take for the same.
    pub rivals: Vec<RivalRow>,
    /// What a hop through the gateway costs.
    pub overhead: Vec<OverheadRow>,
}

impl Tables {
    /// The tables of `workspace`.
    ///
    /// # Errors
    /// A file that cannot be read or has other columns.
    pub fn read(workspace: &Workspace) -> Result<Self> {
        let folder = workspace.path(FOLDER);
        let mut timings = Vec::new();
        for path in files_ending_in(&folder, "csv").with_context(|| folder.display().to_string())? {
            let others = [overhead::FILE, scaling::RIVALS_FILE, scaling::TIMINGS_FILE];
            if path.file_name().is_none_or(|name| others.iter().all(|other| name != *other)) {
                timings.extend(rows::<TimingRow>(&path)?);
            }
        }
        Ok(Self {
            timings,
            growth: optional_rows(&folder.join(scaling::TIMINGS_FILE))?,
            rivals: optional_rows(&folder.join(scaling::RIVALS_FILE))?,
            overhead: optional_rows(&folder.join(overhead::FILE))?,
        })
    }

    /// Puts `rows`, a recording, in the place of an earlier one of that day and machine, as its file will.
    pub fn replace_timings(&mut self, rows: &[TimingRow]) {
        self.timings.retain(|row| rows.iter().all(|new| (&new.date, &new.machine) != (&row.date, &row.machine)));
        self.timings.extend(rows.iter().cloned());
    }
}

/// Writes `rows`, a recording, into the file of its day and machine. An earlier recording of that day and machine is
/// replaced: rows of both in one table would say the same of two states of the sources.
///
/// # Errors
/// No rows, or what the file system says.
pub fn write_timings(workspace: &Workspace, rows: &[TimingRow]) -> Result<()> {
    let Some(first) = rows.first() else { bail!("no timings to record") };
    write_rows(workspace, &format!("{}-{}.csv", first.date, first.machine), rows)
}

/// Writes how times grow with the catalog, in place of what was recorded before.
///
/// # Errors
/// What the file system says.
pub fn write_growth(workspace: &Workspace, rows: &[TimingRow]) -> Result<()> {
    write_rows(workspace, scaling::TIMINGS_FILE, rows)
}

fn write_rows(workspace: &Workspace, name: &str, rows: &[TimingRow]) -> Result<()> {
    make_folder(&workspace.path(FOLDER))?;
    let mut writer = csv::Writer::from_writer(Vec::new());
    rows.iter().try_for_each(|row| writer.serialize(row))?;
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(replace_file(&workspace.path(FOLDER).join(name), &bytes)?)
}

fn optional_rows<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
    if path.exists() { rows(path) } else { Ok(Vec::new()) }
}

/// The rows of a CSV file with a header.
fn rows<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
    let reader = csv::Reader::from_path(path).with_context(|| path.display().to_string())?;
    reader.into_deserialize().map(|row| row.with_context(|| path.display().to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::timing::{Subject, Unit};

    #[test]
    fn a_recording_replaces_that_of_its_day_and_machine() {
        let row = |date: &str, median: f64| TimingRow {
            date: date.to_owned(),
            machine: "desk".to_owned(),
            cpu: "some".to_owned(),
            os: "some".to_owned(),
            rustc: "1.0.0".to_owned(),
            revision: "abc".to_owned(),
            subject: Subject::Search,
            engine: Some("default".to_owned()),
            tools: Some(1000),
            unit: Unit::Microseconds,
            runs: 9,
            median,
            p95: median,
            p99: median,
            mad: 0.0,
        };
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("scenarios")).unwrap();
        std::fs::write(folder.path().join("scenarios/engines.toml"), "").unwrap();
        let workspace = Workspace::find(Some(folder.path()), Some(folder.path())).unwrap();
        assert!(write_timings(&workspace, &[]).is_err());
        let recordings = [("2026-01-30", 1.0), ("2026-01-31", 2.0), ("2026-01-31", 3.0)];
        let mut tables = Tables::default();
        for (date, median) in recordings {
            let rows = [row(date, median), row(date, median + 0.5)];
            write_timings(&workspace, &rows).unwrap();
            tables.replace_timings(&rows);
        }
        let read = Tables::read(&workspace).unwrap();
        assert_eq!(read.timings.iter().map(|row| row.median).collect::<Vec<f64>>(), [1.0, 1.5, 3.0, 3.5]);
        assert_eq!(read, tables);
    }
}
