//! What is run: the scenario files, turned into checked cases.
//!
//! A scenario file names collections, how they are grown and which engines run on them, with a paragraph that says
//! what the scenario shows. `engines.toml` names the engines. A name that does not exist is refused here, so that
//! nothing behind this module meets one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::engine::{EncoderChoice, Engine, RouterEngine};
use super::record::{Grade, Growth, Origin};
use super::rival::{ProcessEntry, Rival, Sort};
use contextweaver_routing::RoutingConfig;

/// The engine that every other one is compared with: flat BM25 over all fields.
pub const CONTROL: &str = "bm25";

/// The engine that the project ships as its default.
pub const DEFAULT: &str = "default";

/// The default with a sentence encoder beside it, where one is built in.
pub const BEST: &str = "best";

/// Display order of engines; those that are not named here follow by name.
const ENGINE_ORDER: [&str; 7] = [DEFAULT, BEST, "lexical", CONTROL, "tfidf", "fuzzy", "beam"];

/// The place of an engine in tables and pictures.
#[must_use]
pub fn engine_position(engine: &str) -> usize {
    ENGINE_ORDER.iter().position(|name| *name == engine).unwrap_or(ENGINE_ORDER.len())
}

/// A scenario or engine file is not usable.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct MatrixError {
    path: PathBuf,
    reason: String,
}

/// Everything that `bench` runs.
#[derive(Debug)]
pub struct Matrix {
    /// In the order of `engines.toml`, the control included.
    pub engines: Vec<EngineSpec>,
    /// Programs that are measured beside them, in the order of `engines.toml`.
    pub rivals: Vec<Rival>,
    /// Programs that are measured beside the context engine, in the order of `engines.toml`.
    pub context_rivals: Vec<Rival>,
    /// In ascending order of their ids, without repeats.
    pub cases: Vec<Case>,
    /// Name and analysis of every scenario file, by name.
    pub scenarios: Vec<(String, String)>,
}

/// An engine of the matrix.
#[derive(Debug, Clone)]
pub struct EngineSpec {
    /// What the engine is there to show.
    pub analysis: String,
    /// The engine with its configuration.
    pub engine: RouterEngine,
}

/// One cell row of the matrix: a catalog and its queries, and the engines that run on them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// `collection` or `collection/grade@size`.
    pub id: String,
    /// The scenario file it comes from, without its ending.
    pub scenario: String,
    /// The name of the collection that it is made of.
    pub collection: String,
    /// Where the collection comes from.
    pub origin: Origin,
    /// How it is grown.
    pub growth: Option<Growth>,
    /// Names of engines, in the order of `engines.toml`; the control is always among them.
    pub engines: Vec<String>,
    /// Whether prompt tokens are counted.
    pub tokens: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EnginesFile {
    engine: Vec<EngineEntry>,
    #[serde(default)]
    process: Vec<ProcessEntry>,
    #[serde(default)]
    context: Vec<ProcessEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EngineEntry {
    name: String,
    analysis: String,
    #[serde(default)]
    configuration: RoutingConfig,
    #[serde(default)]
    encoder: EncoderChoice,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScenarioFile {
    analysis: String,
    origin: Origin,
    collections: Vec<String>,
    engines: Vec<String>,
    #[serde(default)]
    tokens: bool,
    /// Growth without it: the collection as it is.
    #[serde(default)]
    growth: Vec<GrowthEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GrowthEntry {
    grades: Vec<Grade>,
    sizes: Vec<usize>,
}

impl Matrix {
    /// Reads `engines.toml` and every other `*.toml` of `folder`.
    ///
    /// # Errors
    /// [`MatrixError`] naming the file: unreadable, malformed, an unknown or repeated engine, a repeated case, no
    /// control.
    pub fn load(folder: &Path) -> Result<Self, MatrixError> {
        let path = folder.join("engines.toml");
        let mut file: EnginesFile = read(&path)?;
        let processes = rivals(&path, std::mem::take(&mut file.process), Sort::Process)?;
        let context_rivals = rivals(&path, std::mem::take(&mut file.context), Sort::Context)?;
        let engines = engines(&path, file)?;
        let mut cases: Vec<Case> = Vec::new();
        let mut scenarios = Vec::new();
        for path in scenario_files(folder)? {
            let scenario: ScenarioFile = read(&path)?;
            scenarios.push((stem(&path), scenario.analysis.clone()));
            for case in scenario_cases(&path, &scenario, &engines)? {
                if let Some(other) = cases.iter().find(|other| other.id == case.id) {
                    let reason = format!("case `{}` is also in `{}.toml`; keep one", case.id, other.scenario);
                    return Err(MatrixError { path, reason });
                }
                cases.push(case);
            }
        }
        cases.sort_by(|left, right| left.id.cmp(&right.id));
        Ok(Self { engines, rivals: processes, context_rivals, cases, scenarios })
    }

    /// A case for each collection as it is, by the collection's name.
    #[must_use]
    pub fn plain_cases(&self) -> BTreeMap<&str, &Case> {
        let plain = self.cases.iter().filter(|case| case.growth.is_none());
        plain.map(|case| (case.collection.as_str(), case)).collect()
    }

    /// The engine called `name`.
    #[must_use]
    pub fn engine(&self, name: &str) -> Option<&RouterEngine> {
        self.engines.iter().map(|spec| &spec.engine).find(|engine| engine.name() == name)
    }
}

/// The engines of the scorecard, as this program was built with them: for catalogs outside of a checkout.
///
/// # Errors
/// Never in practice: a test reads them.
pub fn builtin_engines() -> Result<Vec<RouterEngine>, MatrixError> {
    let path = Path::new("scenarios/engines.toml");
    let text = include_str!("../../../../scenarios/engines.toml");
    Ok(engines(path, parse(path, text)?)?.into_iter().map(|spec| spec.engine).collect())
}

/// The engine of the scorecard called `name`, as [`builtin_engines`] has it.
///
/// # Errors
/// A name of no engine; the message lists those that there are.
pub fn builtin_engine(name: &str) -> Result<RouterEngine, MatrixError> {
    let known = builtin_engines()?;
    known.iter().find(|engine| engine.name() == name).cloned().ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(Engine::name).collect();
        let reason = format!("no engine `{name}`; there are {}", names.join(", "));
        MatrixError { path: "built-in engines".into(), reason }
    })
}

/// The programs that rank tools beside them, as this program was built with them: they need a checkout to run.
///
/// # Errors
/// Never in practice: a test reads them.
pub fn builtin_programs() -> Result<Vec<Rival>, MatrixError> {
    let path = Path::new("scenarios/engines.toml");
    let file: EnginesFile = parse(path, include_str!("../../../../scenarios/engines.toml"))?;
    rivals(path, file.process, Sort::Process)
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, MatrixError> {
    let refuse = |reason: String| MatrixError { path: path.to_owned(), reason };
    parse(path, &fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?)
}

fn parse<T: serde::de::DeserializeOwned>(path: &Path, text: &str) -> Result<T, MatrixError> {
    let refuse = |reason: String| MatrixError { path: path.to_owned(), reason };
    toml::from_str(text).map_err(|error| refuse(error.to_string().trim_end().to_owned()))
}

fn rivals(path: &Path, entries: Vec<ProcessEntry>, sort: Sort) -> Result<Vec<Rival>, MatrixError> {
    let refuse = |reason: String| MatrixError { path: path.to_owned(), reason };
    let mut names = BTreeSet::new();
    let mut rivals = Vec::new();
    for entry in entries {
        let rival = entry.checked(sort).map_err(refuse)?;
        if !names.insert(rival.name.clone()) {
            return Err(refuse(format!("{} `{}` is defined twice", sort.name(), rival.name)));
        }
        rivals.push(rival);
    }
    Ok(rivals)
}

fn engines(path: &Path, file: EnginesFile) -> Result<Vec<EngineSpec>, MatrixError> {
    let refuse = |reason: String| MatrixError { path: path.to_owned(), reason };
    let mut names = BTreeSet::new();
    for entry in &file.engine {
        let valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
        if entry.name.is_empty() || !entry.name.chars().all(valid) {
            return Err(refuse(format!("engine `{}`: a name consists of a-z, 0-9, - and _", entry.name)));
        }
        if !names.insert(&entry.name) {
            return Err(refuse(format!("engine `{}` is defined twice", entry.name)));
        }
        entry.configuration.validate().map_err(|error| refuse(format!("engine `{}`: {error}", entry.name)))?;
    }
    for needed in [CONTROL, DEFAULT] {
        if !file.engine.iter().any(|entry| entry.name == needed) {
            return Err(refuse(format!("engine `{needed}` is missing; every table is compared with it")));
        }
    }
    let spec = |entry: EngineEntry| EngineSpec {
        engine: RouterEngine::new(&entry.name, entry.configuration).with(entry.encoder),
        analysis: entry.analysis,
    };
    Ok(file.engine.into_iter().map(spec).collect())
}

fn scenario_files(folder: &Path) -> Result<Vec<PathBuf>, MatrixError> {
    let refuse = |error: std::io::Error| MatrixError { path: folder.to_owned(), reason: error.to_string() };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(refuse)? {
        let path = entry.map_err(refuse)?.path();
        let is_scenario = path.extension().is_some_and(|ending| ending == "toml");
        if is_scenario && path.file_name().is_some_and(|name| name != "engines.toml") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn scenario_cases(path: &Path, file: &ScenarioFile, engines: &[EngineSpec]) -> Result<Vec<Case>, MatrixError> {
    let refuse = |reason: String| MatrixError { path: path.to_owned(), reason };
    if file.analysis.trim().is_empty() {
        return Err(refuse("`analysis` is empty; say what the scenario shows".to_owned()));
    }
    for name in &file.engines {
        if !engines.iter().any(|spec| spec.engine.name() == name) {
            return Err(refuse(format!("engine `{name}` is not in engines.toml")));
        }
    }
    let wanted = |name: &str| name == CONTROL || file.engines.iter().any(|engine| engine == name);
    let names: Vec<String> =
        engines.iter().map(|spec| spec.engine.name()).filter(|name| wanted(name)).map(str::to_owned).collect();
    let scenario = stem(path);
    let grown = file.growth.iter().flat_map(|entry| {
        entry.grades.iter().flat_map(|&grade| entry.sizes.iter().map(move |&size| Some(Growth { grade, size })))
    });
    let growths: Vec<Option<Growth>> = if file.growth.is_empty() { vec![None] } else { grown.collect() };
    let case = |collection: &String, growth: Option<Growth>| Case {
        id: growth.map_or(collection.clone(), |growth| growth.case(collection)),
        scenario: scenario.clone(),
        collection: collection.clone(),
        origin: file.origin,
        growth,
        engines: names.clone(),
        tokens: file.tokens,
    };
    Ok(file.collections.iter().flat_map(|name| growths.iter().map(move |&growth| case(name, growth))).collect())
}
