//! Where things lie in a checkout, and how results get there and back.
//!
//! Files are written to a temporary name and renamed, after everything that is to be written has been computed: a
//! run that fails leaves the tree as it was.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};

use super::capability::CopiesFacts;
use super::collection::Collection;
use super::confidence::ConfidenceFacts;
use super::context::record::ContextRecord;
use super::context::run::CountedCatalog;
use super::context::scenario::{self, Scenario};
use super::feedback::FeedbackFacts;
use super::files::{files_ending_in, make_folder, replace_file};
use super::gateway::case::Places;
use super::gateway::overhead::{self, OverheadRow};
use super::gateway::record::GatewayRecord;
use super::left_out::LeftOutFacts;
use super::matrix::{Case, Matrix};
use super::played::CollectionFacts;
use super::record::{Origin, Record, Results};
use super::results::{self, Chapter, ChapterRecord};
use super::scaling::{self, RivalRow, ScalingRecord};
use super::timing::TimingRow;

/// The folders of a checkout.
#[derive(Debug, Clone)]
pub struct Workspace {
    root: PathBuf,
    public: PathBuf,
}

/// The collections of a matrix that are there.
#[derive(Debug)]
pub struct Collections {
    found: BTreeMap<String, Arc<Collection>>,
}

impl Workspace {
    /// The workspace at `root`, or the nearest one at or above the current folder; public collections from `public`,
    /// or from where a checkout usually has them beside it (`../shared/data/gold`).
    ///
    /// # Errors
    /// When no folder with `scenarios/engines.toml` is found, or `public` was given and is no folder.
    pub fn find(root: Option<&Path>, public: Option<&Path>) -> Result<Self> {
        let is_workspace = |folder: &Path| folder.join("scenarios/engines.toml").is_file();
        let root = match root {
            Some(root) if is_workspace(root) => root.to_owned(),
            Some(root) => bail!("{}: no scenarios/engines.toml in it; name a contextweaver checkout", root.display()),
            None => {
                let here = std::env::current_dir().context("the current folder is not accessible")?;
                let found = here.ancestors().find(|folder| is_workspace(folder)).map(Path::to_owned);
                found.context("no scenarios/engines.toml here or above; run inside a checkout or give --root")?
            }
        };
        let public = match public {
            Some(public) if public.is_dir() => public.to_owned(),
            Some(public) => bail!("{}: not a folder; name the folder that holds the collections", public.display()),
            None => root.join("../shared/data/gold"),
        };
        Ok(Self { root, public })
    }

    /// A file or folder of the checkout.
    #[must_use]
    pub fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// The matrix of `scenarios/`.
    ///
    /// # Errors
    /// As [`Matrix::load`].
    pub fn matrix(&self) -> Result<Matrix> {
        Ok(Matrix::load(&self.path("scenarios"))?)
    }

    /// Loads every collection that `cases` need and that is there. An embedded one must be.
    ///
    /// # Errors
    /// A collection that is missing from `gold/`, or one that does not load.
    pub fn collections(&self, cases: &[Case]) -> Result<Collections> {
        let mut found = BTreeMap::new();
        for case in cases {
            if found.contains_key(&case.collection) {
                continue;
            }
            if case.origin == Origin::Public && !self.is_present(case) {
                continue;
            }
            let collection = Collection::load(&self.folder(case), case.origin)?;
            found.insert(case.collection.clone(), Arc::new(collection));
        }
        Ok(Collections { found })
    }

    /// Whether the collection of `case` is on this machine.
    #[must_use]
    pub fn is_present(&self, case: &Case) -> bool {
        self.folder(case).is_dir()
    }

    fn folder(&self, case: &Case) -> PathBuf {
        match case.origin {
            Origin::Embedded => self.path("gold").join(&case.collection),
            Origin::Public => self.public.join(&case.collection),
        }
    }

    /// The scenarios of the context engine; logs of public ones are looked for beside the public collections.
    ///
    /// # Errors
    /// A scenario file that says something wrong.
    pub fn scenarios(&self) -> Result<Vec<Scenario>> {
        Ok(scenario::load_all(&self.path("scenarios/context"), &self.public.join(".."))?)
    }

    /// Whether the log and the catalog of `scenario` are on this machine. What belongs to the checkout always counts as
    /// present, so that its absence is an error and not a silent omission.
    #[must_use]
    pub fn has_scenario(&self, scenario: &Scenario) -> bool {
        let catalog = scenario.catalog.as_ref().is_none_or(|name| self.catalog_folder(name).is_some());
        scenario.origin == Origin::Embedded || scenario.is_present() && catalog
    }

    /// The catalogs of `scenarios`, counted, by name.
    ///
    /// # Errors
    /// A catalog that does not load.
    pub fn counted_catalogs(&self, scenarios: &[&Scenario]) -> Result<BTreeMap<String, CountedCatalog>> {
        let mut counted = BTreeMap::new();
        for name in scenarios.iter().filter_map(|scenario| scenario.catalog.as_ref()) {
            if counted.contains_key(name) {
                continue;
            }
            let Some((folder, origin)) = self.catalog_folder(name) else {
                bail!("{name}: no such collection in gold/ or among the public ones; correct `catalog`");
            };
            let collection = Collection::load(&folder, origin)?;
            counted.insert(name.clone(), CountedCatalog::new(&collection.catalog, &collection.inputs_sha256));
        }
        Ok(counted)
    }

    fn catalog_folder(&self, name: &str) -> Option<(PathBuf, Origin)> {
        let embedded = (self.path("gold").join(name), Origin::Embedded);
        let public = (self.public.join(name), Origin::Public);
        [embedded, public].into_iter().find(|(folder, _)| folder.is_dir())
    }

    /// The committed results of a chapter; `None` without a file.
    ///
    /// # Errors
    /// As [`Workspace::read_results`].
    pub fn read_chapter<R: ChapterRecord>(&self) -> Result<Option<Chapter<R>>> {
        let path = self.results_path(R::NAME);
        if !path.exists() {
            return Ok(None);
        }
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Chapter::from_json(&text).map(Some).with_context(|| path.display().to_string())
    }

    /// Writes the results of a chapter.
    ///
    /// # Errors
    /// What the file system says.
    pub fn write_chapter<R: ChapterRecord>(&self, results: &Chapter<R>) -> Result<()> {
        make_folder(&self.path("scorecard/results"))?;
        replace_file(&self.results_path(R::NAME), results.to_json()?.as_bytes())?;
        Ok(())
    }

    /// Where the cases of the gateway chapter are; public ones are looked for beside the public collections.
    #[must_use]
    pub fn gateway(&self) -> Places {
        let public = self.public.join("..");
        Places {
            scenarios: self.path("scenarios/gateway"),
            gold: self.path("gold"),
            catalogs: public.join("catalogs"),
            sessions: public.join("sessions"),
        }
    }

    /// What a hop through the gateway cost when it was last measured; empty without a file.
    ///
    /// # Errors
    /// A file that cannot be read or has other columns.
    pub fn read_overhead(&self) -> Result<Vec<OverheadRow>> {
        let path = self.path("scorecard/timings").join(overhead::FILE);
        if path.exists() { rows(&path) } else { Ok(Vec::new()) }
    }

    /// How times grow with the catalog, when somebody has recorded it.
    ///
    /// # Errors
    /// A file that cannot be read or has other columns.
    pub fn read_growth(&self) -> Result<Vec<TimingRow>> {
        let path = self.path("scorecard/timings").join(scaling::TIMINGS_FILE);
        if path.exists() { rows(&path) } else { Ok(Vec::new()) }
    }

    /// Writes how times grow with the catalog, in place of what was recorded before.
    ///
    /// # Errors
    /// What the file system says.
    pub fn write_growth(&self, rows: &[TimingRow]) -> Result<()> {
        self.write_timing_rows(scaling::TIMINGS_FILE, rows)
    }

    /// What other libraries take, when somebody has measured it.
    ///
    /// # Errors
    /// A file that cannot be read or has other columns.
    pub fn read_rivals(&self) -> Result<Vec<RivalRow>> {
        let path = self.path("scorecard/timings").join(scaling::RIVALS_FILE);
        if path.exists() { rows(&path) } else { Ok(Vec::new()) }
    }

    /// The committed results of every engine of `matrix`; engines without a file are left out.
    ///
    /// # Errors
    /// A file that cannot be read or is not what this version writes.
    pub fn read_results(&self, matrix: &Matrix) -> Result<Vec<Results>> {
        let mut all = Vec::new();
        for spec in &matrix.engines {
            use super::engine::Engine;
            let path = self.results_path(spec.engine.name());
            if !path.exists() {
                continue;
            }
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            all.push(results::from_json(&text).with_context(|| path.display().to_string())?);
        }
        Ok(all)
    }

    /// Result files of engines that the matrix does not know.
    ///
    /// # Errors
    /// The folder cannot be listed.
    pub fn stray_results(&self, matrix: &Matrix) -> Result<Vec<PathBuf>> {
        let folder = self.path("scorecard/results");
        let chapters = [
            ConfidenceFacts::NAME,
            ContextRecord::NAME,
            CopiesFacts::NAME,
            FeedbackFacts::NAME,
            GatewayRecord::NAME,
            ScalingRecord::NAME,
            LeftOutFacts::NAME,
        ];
        let mut strays = Vec::new();
        for path in list(&folder, "json")? {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            if matrix.engine(&name).is_none() && !chapters.contains(&&*name) {
                strays.push(path);
            }
        }
        Ok(strays)
    }

    /// Pictures in `scorecard/` that are not among `pages`.
    ///
    /// # Errors
    /// The folder cannot be listed.
    pub fn stray_pages(&self, pages: &[&str]) -> Result<Vec<PathBuf>> {
        let pictures = list(&self.path("scorecard"), "svg")?;
        Ok(pictures.into_iter().filter(|path| !pages.iter().any(|page| self.path(page) == *path)).collect())
    }

    fn results_path(&self, engine: &str) -> PathBuf {
        self.path("scorecard/results").join(format!("{engine}.json"))
    }

    /// Writes one file per engine.
    ///
    /// # Errors
    /// What the file system says.
    pub fn write_results(&self, all: &[Results]) -> Result<()> {
        make_folder(&self.path("scorecard/results"))?;
        for one in all {
            replace_file(&self.results_path(&one.engine), results::to_json(one)?.as_bytes())?;
        }
        Ok(())
    }

    /// All recorded timings, in order of file name.
    ///
    /// # Errors
    /// A file that cannot be read or has other columns.
    pub fn read_timings(&self) -> Result<Vec<TimingRow>> {
        let mut all = Vec::new();
        for path in list(&self.path("scorecard/timings"), "csv")? {
            let others = [overhead::FILE, scaling::RIVALS_FILE, scaling::TIMINGS_FILE];
            if path.file_name().is_none_or(|name| others.iter().all(|other| name != *other)) {
                all.extend(rows::<TimingRow>(&path)?);
            }
        }
        Ok(all)
    }

    /// Writes `rows`, a recording, into the file of its day and machine. An earlier recording of that day and machine is
    /// replaced: rows of both in one table would say the same of two states of the sources.
    ///
    /// # Errors
    /// No rows, or what the file system says.
    pub fn write_timings(&self, rows: &[TimingRow]) -> Result<()> {
        let Some(first) = rows.first() else { bail!("no timings to record") };
        self.write_timing_rows(&format!("{}-{}.csv", first.date, first.machine), rows)
    }

    fn write_timing_rows(&self, name: &str, rows: &[TimingRow]) -> Result<()> {
        make_folder(&self.path("scorecard/timings"))?;
        let mut writer = csv::Writer::from_writer(Vec::new());
        rows.iter().try_for_each(|row| writer.serialize(row))?;
        let bytes = writer.into_inner().map_err(|error| error.into_error())?;
        Ok(replace_file(&self.path("scorecard/timings").join(name), &bytes)?)
    }
}

impl Collections {
    /// The collection called `name`, when it is there.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<Collection>> {
        self.found.get(name)
    }
}

/// The committed records of cases and engines that were not run again, where the matrix still has them.
#[must_use]
pub fn kept_records(
    matrix: &Matrix,
    committed: &[Results],
    ran: impl Fn(&Case, &str) -> bool,
) -> Vec<(String, Record)> {
    let mut kept = Vec::new();
    for results in committed {
        for record in &results.records {
            let case = matrix.cases.iter().find(|case| case.id == record.case);
            let wanted = case.is_some_and(|case| case.engines.contains(&results.engine) && !ran(case, &results.engine));
            if wanted {
                kept.push((results.engine.clone(), record.clone()));
            }
        }
    }
    kept
}

/// The rows of a CSV file with a header.
fn rows<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
    let reader = csv::Reader::from_path(path).with_context(|| path.display().to_string())?;
    reader.into_deserialize().map(|row| row.with_context(|| path.display().to_string())).collect()
}

fn list(folder: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    files_ending_in(folder, ending).with_context(|| folder.display().to_string())
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
        let workspace = Workspace { root: folder.path().to_owned(), public: folder.path().to_owned() };
        assert!(workspace.write_timings(&[]).is_err());
        let recordings = [("2026-01-30", 1.0), ("2026-01-31", 2.0), ("2026-01-31", 3.0)];
        for (date, median) in recordings {
            workspace.write_timings(&[row(date, median), row(date, median + 0.5)]).unwrap();
        }
        let read: Vec<f64> = workspace.read_timings().unwrap().iter().map(|row| row.median).collect();
        assert_eq!(read, [1.0, 1.5, 3.0, 3.5]);
    }
}
