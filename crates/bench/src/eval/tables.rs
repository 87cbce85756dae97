//! Recorded tables: times and what other programs gave, in `scorecard/timings/`. They belong to a machine and a day, and
//! nothing computes them again.
//!
//! Pages show them and say that they are recorded. A list beside them ([`manifest`]) has the digest and the origin of each,
//! so that a table is what was recorded, and so that a check can name what it did not compute.

pub mod manifest;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::manifest::TableOrigin;
use super::day::Day;
use super::files::{make_folder, replace_file};
use super::gateway::overhead::{self, OverheadRow};
use super::machine;
use super::rival::{self, RivalTimes};
use super::scaling::{self, RivalRow};
use super::timing::TimingRow;
use super::workspace::Workspace;
use contextweaver_core::text::sha256_hex;

/// The folder of the tables in a checkout.
pub const FOLDER: &str = "scorecard/timings";

/// How a table or the list of them is repaired.
const REPAIR: &str = "restore `scorecard/timings` with `git checkout`, or accept what the table says now with \
                      `contextweaver bench accept scorecard/timings/TABLE`";

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
    /// What the engines cost over HTTP.
    pub interface: Vec<OverheadRow>,
    /// What engines of others take, by engine and collection.
    pub engines: Vec<RivalTimes>,
    /// Where each of the files comes from, by name.
    pub origins: Vec<TableOrigin>,
}

/// What a file of the folder holds, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Timings,
    Growth,
    Rivals,
    Overhead,
    Interface,
    Engines,
}

impl Kind {
    /// What a file of this name holds; `None` for a name that no recording has.
    fn of(file: &str) -> Option<Self> {
        match file {
            scaling::TIMINGS_FILE => Some(Self::Growth),
            scaling::RIVALS_FILE => Some(Self::Rivals),
            overhead::FILE => Some(Self::Overhead),
            overhead::INTERFACE_FILE => Some(Self::Interface),
            rival::TIMES_FILE => Some(Self::Engines),
            file => {
                let (day, machine) = file.strip_suffix(".csv")?.split_at_checked(10)?;
                let machine = machine.strip_prefix('-')?;
                let is_one = Day::try_from(day.to_owned()).is_ok() && machine::parse_name(machine).is_ok();
                is_one.then_some(Self::Timings)
            }
        }
    }
}

/// What the rows of a table say of where they come from.
struct Stated {
    recorded: Day,
    machine: String,
    revision: String,
}

impl Tables {
    /// The tables of `workspace`.
    ///
    /// # Errors
    /// A file that cannot be read, has other columns, is not in the list or not what the list says of it, or a list that
    /// is damaged; the message says how to repair it.
    pub fn read(workspace: &Workspace) -> Result<Self> {
        let (folder, origins) = (workspace.path(FOLDER), origins(workspace)?);
        let mut tables = Self::default();
        for origin in &origins {
            let path = folder.join(&origin.file);
            tables.add(origin, &path, workspace).with_context(|| format!("{}: {REPAIR}", path.display()))?;
        }
        for file in file_names(&folder)?.into_iter().filter(|file| file != manifest::FILE) {
            let is_listed = origins.iter().any(|origin| origin.file == file);
            let path = folder.join(&file);
            ensure!(is_listed, "{}: no recorded table of that name is in {}; {REPAIR}", path.display(), manifest::FILE);
        }
        Ok(Self { origins, ..tables })
    }

    /// Reads one file and holds it against its origin.
    fn add(&mut self, origin: &TableOrigin, path: &Path, workspace: &Workspace) -> Result<()> {
        let kind = Kind::of(&origin.file).context("no recorded table has such a name")?;
        let bytes = fs::read(path).context("in the list of recorded tables, and not there")?;
        ensure!(sha256_hex(&bytes) == origin.sha256, "its digest does not match {}: it was changed", manifest::FILE);
        let day = &origin.recorded;
        ensure!(!machine::is_to_come(day, &workspace.path("")), "recorded {day}, which is in the future");
        if let Some(stated) = self.take(kind, &bytes)? {
            let own = [Some(stated.machine), Some(stated.revision)];
            let is_same = (day, [&origin.machine, &origin.revision]) == (&stated.recorded, [&own[0], &own[1]]);
            ensure!(is_same, "{} has a day, machine or revision that differs from its rows", manifest::FILE);
            if kind == Kind::Timings {
                let name = table_name(&stated.recorded, own[0].as_deref().unwrap_or_default());
                ensure!(name == origin.file, "its rows are those of {name}");
            }
        }
        Ok(())
    }

    /// Puts the rows of a table to the others. Rows that name day, machine and revision must all name the same.
    fn take(&mut self, kind: Kind, bytes: &[u8]) -> Result<Option<Stated>> {
        let timed = match kind {
            Kind::Rivals => {
                self.rivals = rows(bytes)?;
                return Ok(None);
            }
            Kind::Overhead => {
                self.overhead = rows(bytes)?;
                return Ok(None);
            }
            Kind::Interface => {
                self.interface = rows(bytes)?;
                return Ok(None);
            }
            Kind::Engines => {
                self.engines = rows(bytes)?;
                return Ok(None);
            }
            Kind::Growth | Kind::Timings => rows::<TimingRow>(bytes)?,
        };
        let said = |row: &TimingRow| (row.date.clone(), row.machine.clone(), row.revision.clone());
        let all: BTreeSet<_> = timed.iter().map(said).collect();
        ensure!(all.len() == 1, "its rows are not of one day, one machine and one revision");
        if kind == Kind::Growth {
            self.growth = timed;
        } else {
            self.timings.extend(timed);
        }
        let stated = all.into_iter().next();
        Ok(stated.map(|(recorded, machine, revision)| Stated { recorded, machine, revision }))
    }

    /// Puts `rows`, a recording, in the place of an earlier one of that day and machine, as its file will.
    pub fn replace_timings(&mut self, rows: &[TimingRow]) {
        self.timings.retain(|row| rows.iter().all(|new| (&new.date, &new.machine) != (&row.date, &row.machine)));
        self.timings.extend(rows.iter().cloned());
    }

    /// Where the table in the file of this name comes from.
    #[must_use]
    pub fn origin(&self, file: &str) -> Option<&TableOrigin> {
        self.origins.iter().find(|origin| origin.file == file)
    }
}

/// The paths that the folder of recorded tables may hold: the tables of `tables`, and the list of them.
#[must_use]
pub fn paths(tables: &Tables) -> Vec<String> {
    let files = tables.origins.iter().map(|origin| origin.file.as_str());
    let list = (!tables.origins.is_empty()).then_some(manifest::FILE);
    files.chain(list).map(|file| format!("{FOLDER}/{file}")).collect()
}

/// Writes `rows`, a recording, into the file of its day and machine. An earlier recording of that day and machine is
/// replaced: rows of both in one table would say the same of two states of the sources.
///
/// # Errors
/// No rows, or what the file system says.
pub fn write_timings(workspace: &Workspace, rows: &[TimingRow]) -> Result<()> {
    let Some(first) = rows.first() else { bail!("no timings to record") };
    write_rows(workspace, &table_name(&first.date, &first.machine), rows)
}

/// The name of the file of a recording.
fn table_name(day: &Day, machine: &str) -> String {
    format!("{day}-{machine}.csv")
}

/// Writes how times grow with the catalog, in place of what was recorded before.
///
/// # Errors
/// What the file system says.
pub fn write_growth(workspace: &Workspace, rows: &[TimingRow]) -> Result<()> {
    write_rows(workspace, scaling::TIMINGS_FILE, rows)
}

/// Writes the times of `engine` on `collection` in place of earlier ones of the two, or takes those out; all others stay.
///
/// # Errors
/// Recorded tables that are damaged, or what the file system says.
pub fn write_engine_times(
    workspace: &Workspace,
    [engine, collection]: [&str; 2],
    times: Option<&RivalTimes>,
) -> Result<()> {
    let before = Tables::read(workspace)?.engines;
    let others = before.iter().filter(|row| (row.engine.as_str(), row.collection.as_str()) != (engine, collection));
    let mut rows: Vec<RivalTimes> = others.chain(times).cloned().collect();
    if rows == before {
        return Ok(());
    }
    rows.sort_by_key(|row| (row.engine.clone(), row.collection.clone()));
    write_rows(workspace, rival::TIMES_FILE, &rows)
}

fn write_rows<T: Serialize>(workspace: &Workspace, name: &str, rows: &[T]) -> Result<()> {
    make_folder(&workspace.path(FOLDER))?;
    let mut writer = csv::Writer::from_writer(Vec::new());
    rows.iter().try_for_each(|row| writer.serialize(row))?;
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    replace_file(&workspace.path(FOLDER).join(name), &bytes)?;
    accept(workspace, name, None).map(|_| ())
}

/// Notes in the list that the table in the file `name` is what was recorded: its digest, and its day, machine and revision.
/// Where its rows do not name them they are today, `machine` (or this one by its architecture and cores), and the
/// revision of the checkout. A table that the list has with these bytes keeps its origin; tables that are gone are left
/// out.
///
/// # Errors
/// A name that no recorded table has, rows with other columns, a damaged list, or what the file system says.
pub fn accept(workspace: &Workspace, name: &str, machine: Option<&str>) -> Result<TableOrigin> {
    let folder = workspace.path(FOLDER);
    let path = folder.join(name);
    let shown = || path.display().to_string();
    let kind = Kind::of(name).with_context(|| {
        let [growth, rivals, hops] = [scaling::TIMINGS_FILE, scaling::RIVALS_FILE, overhead::FILE];
        let [interface, engines] = [overhead::INTERFACE_FILE, rival::TIMES_FILE];
        format!(
            "{}: recorded tables are called {growth}, {rivals}, {hops}, {interface}, {engines} or YYYY-MM-DD-MACHINE.csv",
            shown()
        )
    })?;
    let bytes = fs::read(&path).with_context(shown)?;
    let stated = Tables::default().take(kind, &bytes).with_context(shown)?;
    let sha256 = sha256_hex(&bytes);
    let mut all = origins(workspace)?;
    all.retain(|origin| folder.join(&origin.file).is_file());
    let known = all.iter().position(|origin| origin.file == name).map(|at| all.remove(at));
    let origin = match (stated, known) {
        (Some(Stated { recorded, machine, revision }), _) => {
            TableOrigin { file: name.to_owned(), sha256, recorded, machine: Some(machine), revision: Some(revision) }
        }
        (None, Some(known)) if known.sha256 == sha256 && machine.is_none() => known,
        (None, _) => TableOrigin {
            file: name.to_owned(),
            sha256,
            recorded: Day::now(),
            machine: Some(machine::name(machine)),
            revision: Some(machine::revision(&workspace.path(""))),
        },
    };
    all.push(origin.clone());
    all.sort_by(|left, right| left.file.cmp(&right.file));
    replace_file(&folder.join(manifest::FILE), manifest::to_json(&all)?.as_bytes())?;
    Ok(origin)
}

/// As [`accept`], for a program that wrote a table to `path`: does nothing where that is not among the recorded tables of
/// a checkout.
///
/// # Errors
/// As [`accept`].
pub fn accept_written(path: &Path) -> Result<Option<TableOrigin>> {
    let path: PathBuf = fs::canonicalize(path).with_context(|| path.display().to_string())?;
    let Some((folder, name)) = path.parent().zip(path.file_name().and_then(|name| name.to_str())) else {
        return Ok(None);
    };
    let root = folder.ends_with(FOLDER).then(|| folder.ancestors().nth(2)).flatten();
    let Some(workspace) = root.and_then(|root| Workspace::find(Some(root), None).ok()) else { return Ok(None) };
    accept(&workspace, name, None).map(Some)
}

/// The list of tables; empty without a file.
fn origins(workspace: &Workspace) -> Result<Vec<TableOrigin>> {
    let path = workspace.path(FOLDER).join(manifest::FILE);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let place = || format!("{}: {REPAIR}", path.display());
    let text = fs::read_to_string(&path).with_context(place)?;
    manifest::from_json(&text).with_context(place)
}

/// What is in a folder, by name; nothing without a folder.
fn file_names(folder: &Path) -> Result<BTreeSet<String>> {
    if !folder.exists() {
        return Ok(BTreeSet::new());
    }
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    Ok(entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect::<std::io::Result<_>>()?)
}

/// The rows of a CSV file with a header.
fn rows<T: DeserializeOwned>(bytes: &[u8]) -> Result<Vec<T>> {
    Ok(csv::Reader::from_reader(bytes).into_deserialize().collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::timing::{Subject, Unit};

    #[test]
    fn a_recording_replaces_that_of_its_day_and_machine() {
        let row = |date: &str, median: f64| TimingRow {
            date: Day::try_from(date.to_owned()).unwrap(),
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
        assert_eq!(read.timings, tables.timings);
        let files: Vec<&str> = read.origins.iter().map(|origin| origin.file.as_str()).collect();
        assert_eq!(files, ["2026-01-30-desk.csv", "2026-01-31-desk.csv"]);
        assert_eq!(read.origins[0].machine.as_deref(), Some("desk"));
    }

    /// A checkout with a table of rivals that a script wrote.
    fn with_rivals() -> (tempfile::TempDir, Workspace, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("scenarios/engines.toml", "");
        write("scorecard/timings/rivals.csv", "engine,tools,measure,value,unit\ntantivy,1000,search p50,19.2,us\n");
        let workspace = Workspace::find(Some(folder.path()), Some(folder.path())).unwrap();
        let path = folder.path().join("scorecard/timings/rivals.csv");
        (folder, workspace, path)
    }

    #[test]
    fn a_table_of_a_script_is_accepted_once_and_keeps_its_day() {
        let (_folder, workspace, path) = with_rivals();
        let refused = Tables::read(&workspace).unwrap_err().to_string();
        assert!(refused.contains("rivals.csv") && refused.contains("bench accept"), "{refused}");
        let origin = accept_written(&path).unwrap().unwrap();
        assert_eq!((origin.file.as_str(), origin.recorded.clone()), ("rivals.csv", Day::now()));
        let read = Tables::read(&workspace).unwrap();
        assert_eq!((read.rivals.len(), read.origin("rivals.csv")), (1, Some(&origin)));
        assert_eq!(accept(&workspace, "rivals.csv", None).unwrap(), origin);
        assert_eq!(accept(&workspace, "rivals.csv", Some("desk")).unwrap().machine.as_deref(), Some("desk"));
        assert_eq!(accept_written(&workspace.path("scenarios/engines.toml")).unwrap(), None);
        assert!(accept(&workspace, "other.csv", None).unwrap_err().to_string().contains("YYYY-MM-DD-MACHINE.csv"));
    }

    #[test]
    fn a_table_that_is_not_what_the_list_says_is_refused() {
        let (_folder, workspace, path) = with_rivals();
        accept(&workspace, "rivals.csv", None).unwrap();
        let list = workspace.path("scorecard/timings/timings.json");
        let (table, listed) = (fs::read_to_string(&path).unwrap(), fs::read_to_string(&list).unwrap());
        let refused = |why: &str| {
            let message = format!("{:#}", Tables::read(&workspace).unwrap_err());
            assert!(message.contains(why) && message.contains("git checkout"), "{why}: {message}");
        };
        fs::write(&path, table.replace("19.2", "9.2")).unwrap();
        refused("its digest does not match timings.json");
        fs::remove_file(&path).unwrap();
        refused("not there");
        fs::write(&path, &table).unwrap();
        for stray in ["rivals2.csv", "2026-01-31-desk.csv", "notes.txt"] {
            let stray = path.with_file_name(stray);
            fs::write(&stray, &table).unwrap();
            refused("no recorded table of that name");
            fs::remove_file(stray).unwrap();
        }
        let forge = |change: fn(&mut TableOrigin)| {
            let mut all = manifest::from_json(&listed).unwrap();
            change(&mut all[0]);
            fs::write(&list, manifest::to_json(&all).unwrap()).unwrap();
        };
        forge(|origin| origin.recorded = Day::try_from("9999-12-31".to_owned()).unwrap());
        refused("in the future");
        forge(|origin| origin.file = "../timings/rivals.csv".to_owned());
        refused("no recorded table has such a name");
        fs::write(&list, &listed).unwrap();
        assert!(Tables::read(&workspace).is_ok());
    }

    #[test]
    fn rows_hold_their_file_to_its_day_and_machine() {
        for (file, is_one) in [
            ("growth.csv", true),
            ("2026-01-31-desk.csv", true),
            ("2026-02-31-desk.csv", false),
            ("2026-01-31-.csv", false),
            ("2026-01-31-de/sk.csv", false),
            ("desk.csv", false),
            ("timings.json", false),
        ] {
            assert_eq!(Kind::of(file).is_some(), is_one, "{file}");
        }
    }

    #[test]
    fn the_project_has_recorded_every_kind_of_table() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let tables = Tables::read(&Workspace::find(Some(&root), None).unwrap()).unwrap();
        assert!(!tables.timings.is_empty() && !tables.growth.is_empty());
        assert!(!tables.rivals.is_empty() && !tables.overhead.is_empty());
    }
}
