//! The folder of a workspace: `gate.toml`, and the files that it names.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use serde::Deserialize;

use crate::eval::collection::Collection;
use crate::eval::decision::MARGIN;
use crate::eval::engine::{Engine, RouterEngine};
use crate::eval::matrix::{DEFAULT, builtin_engines};
use crate::eval::measure::Measure;
use crate::eval::record::Origin;
use crate::eval::workspace::Workspace;
use contextweaver_core::catalog::{LoadOptions, load};
use contextweaver_gateway::quoted;
use contextweaver_routing::RoutingConfig;

/// The file that makes a folder a workspace.
pub const GATE_FILE: &str = "gate.toml";

pub use crate::eval::collection::YOURS;

/// Where the commands of the benchmark work.
#[derive(Debug)]
pub enum Home {
    /// A checkout of contextweaver with its scorecard.
    Checkout(Workspace),
    /// A folder with a catalog of one's own.
    Own(Box<OwnWorkspace>),
}

impl Home {
    /// The home at `root`, or the nearest one at or above the current folder. `public` is the folder of public
    /// collections, which only a checkout has.
    ///
    /// # Errors
    /// When there is neither a workspace nor a checkout, `gate.toml` says something wrong, or `public` was given for a
    /// workspace.
    pub fn find(root: Option<&Path>, public: Option<&Path>) -> Result<Self> {
        let is_own = |folder: &Path| folder.join(GATE_FILE).is_file();
        let is_checkout = |folder: &Path| folder.join("scenarios/engines.toml").is_file();
        let is_home = |folder: &Path| is_own(folder) || is_checkout(folder);
        let folder = match root {
            Some(root) if is_home(root) => root.to_owned(),
            Some(root) => bail!(
                "{}: neither {GATE_FILE} nor scenarios/engines.toml is in it; make a workspace with `contextweaver bench init`, \
                 or name a contextweaver checkout",
                root.display()
            ),
            None => {
                let here = std::env::current_dir().context("the current folder is not accessible")?;
                let found = here.ancestors().find(|folder| is_home(folder)).map(Path::to_owned);
                found.context(
                    "neither gate.toml nor scenarios/engines.toml is here or above; make a workspace with `contextweaver bench \
                     init DIR`, name one with --root, or run inside a contextweaver checkout",
                )?
            }
        };
        if !is_own(&folder) {
            return Workspace::find(Some(&folder), public).map(Self::Checkout);
        }
        if public.is_some() {
            bail!("{}: --public is for a contextweaver checkout; a workspace has its own catalog", folder.display());
        }
        OwnWorkspace::open(&folder).map(|own| Self::Own(Box::new(own)))
    }
}

/// A workspace whose `gate.toml` was checked.
#[derive(Debug, Clone)]
pub struct OwnWorkspace {
    folder: PathBuf,
    file: GateFile,
    /// What must hold of the first engine.
    pub limits: Limits,
}

/// What must hold of the first engine.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// The least value of each of these measures.
    pub least: Vec<(Measure, f64)>,
    /// The most tokens that all definitions together may take.
    pub most_tokens: Option<usize>,
    /// A change of recall@5 within this counts as none.
    pub margin: f64,
    /// With fewer queries the gate says that it can hardly fail.
    pub fewest_queries: usize,
}

impl Limits {
    /// Each limit by its place in `gate.toml`; results hold them, so that a change of one is seen beside what it hides.
    #[must_use]
    pub fn stated(&self) -> BTreeMap<String, f64> {
        let least = self.least.iter().map(|(measure, value)| (format!("least.{measure}"), *value));
        let tokens = self.most_tokens.map(|most| ("tokens.most".to_owned(), most as f64));
        let change = [("margin", self.margin), ("fewest_queries", self.fewest_queries as f64)];
        let change = change.map(|(name, value)| (format!("change.{name}"), value));
        least.chain(tokens).chain(change).collect()
    }
}

/// One path or several.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "a path or a list of paths")]
enum Paths {
    One(PathBuf),
    Several(Vec<PathBuf>),
}

/// `gate.toml` as it is written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct GateFile {
    catalog: Paths,
    queries: PathBuf,
    #[serde(default = "default_engines")]
    engines: Vec<String>,
    configuration: Option<PathBuf>,
    snapshot: Option<String>,
    #[serde(default)]
    least: BTreeMap<String, f64>,
    #[serde(default)]
    tokens: Tokens,
    #[serde(default)]
    change: Change,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tokens {
    most: Option<usize>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Change {
    margin: f64,
    fewest_queries: usize,
}

impl Default for Change {
    fn default() -> Self {
        Self { margin: MARGIN, fewest_queries: FEWEST_QUERIES }
    }
}

/// With fewer queries, a gate on a change can hardly fail.
pub const FEWEST_QUERIES: usize = 20;

fn default_engines() -> Vec<String> {
    vec![DEFAULT.to_owned()]
}

/// The least value of a measure, by its name in letters of either case.
///
/// # Errors
/// Why there is no such measure, or no such value.
pub fn least(name: &str, value: f64) -> Result<(Measure, f64), String> {
    let measure = Measure::ALL.into_iter().find(|measure| measure.to_string().eq_ignore_ascii_case(name));
    let measure = measure.ok_or_else(|| {
        let names = Measure::ALL.map(|measure| measure.to_string()).join(", ");
        format!("no measure `{name}`; there are {names}")
    })?;
    if !(0.0..=1.0).contains(&value) {
        return Err(format!("`{name}` is {value}, which is not a number from 0 to 1"));
    }
    Ok((measure, value))
}

impl GateFile {
    fn limits(&self) -> Result<Limits, String> {
        let least = self.least.iter().map(|(name, value)| least(name, *value)).collect::<Result<Vec<_>, String>>();
        let least = least.map_err(|reason| format!("[least]: {reason}"))?;
        let mut measures = BTreeSet::new();
        if let Some((twice, _)) = least.iter().find(|(measure, _)| !measures.insert(measure.to_string())) {
            // Results state one limit of each.
            return Err(format!("[least]: it names `{twice}` twice, in other letters; name each measure once"));
        }
        if !(0.0..1.0).contains(&self.change.margin) {
            let margin = self.change.margin;
            return Err(format!("[change]: `margin` is {margin}; it is a share of at least 0 and below 1"));
        }
        if self.engines.is_empty() {
            return Err("`engines` is empty; name at least one, such as \"default\"".to_owned());
        }
        let mut names: BTreeSet<String> = self.configuration.iter().map(|path| path.display().to_string()).collect();
        if let Some(twice) = self.engines.iter().find(|name| !names.insert((*name).clone())) {
            // Results hold one engine of each name.
            return Err(match self.engines.iter().filter(|name| *name == twice).count() {
                1 => format!("`configuration` and `engines` both name `{twice}`; give the file another name"),
                _ => format!("`engines` names `{twice}` twice; name each engine once"),
            });
        }
        Ok(Limits {
            least,
            most_tokens: self.tokens.most,
            margin: self.change.margin,
            fewest_queries: self.change.fewest_queries,
        })
    }
}

impl OwnWorkspace {
    /// The workspace in `folder`.
    ///
    /// # Errors
    /// When `gate.toml` cannot be read or says something wrong; the message names the line where the file is malformed or
    /// has a field that does not exist.
    pub fn open(folder: &Path) -> Result<Self> {
        let path = folder.join(GATE_FILE);
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Self::parse(folder, &text)
    }

    /// The workspace in `folder` whose `gate.toml` is `text`.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn parse(folder: &Path, text: &str) -> Result<Self> {
        let path = folder.join(GATE_FILE).display().to_string();
        let file: GateFile =
            toml::from_str(text).map_err(|error| anyhow!("{path}: {}", error.to_string().trim_end()))?;
        let limits = file.limits().map_err(|refused| anyhow!("{path}: {refused}"))?;
        Ok(Self { folder: folder.to_owned(), file, limits })
    }

    /// A file of the workspace.
    #[must_use]
    pub fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.folder.join(relative)
    }

    /// The folder as it is written on a command line.
    #[must_use]
    pub fn shown(&self) -> String {
        let text = self.folder.display().to_string();
        if text.is_empty() { ".".to_owned() } else { text }
    }

    /// The command that writes the catalog again, as `gate.toml` says it.
    #[must_use]
    pub fn snapshot(&self) -> Option<&str> {
        self.file.snapshot.as_deref()
    }

    fn catalog(&self) -> Vec<PathBuf> {
        match &self.file.catalog {
            Paths::One(path) => vec![self.path(path)],
            Paths::Several(paths) => paths.iter().map(|path| self.path(path)).collect(),
        }
    }

    /// The files and folders that it is measured with: `gate.toml`, and what that names.
    #[must_use]
    pub fn inputs(&self) -> Vec<PathBuf> {
        let named = [&self.file.queries].into_iter().chain(&self.file.configuration);
        self.catalog().into_iter().chain(named.map(|path| self.path(path))).chain([self.path(GATE_FILE)]).collect()
    }

    /// The `bench eval` that measures the same without the workspace, for a shell.
    #[must_use]
    pub fn eval_command(&self) -> String {
        let mut words: Vec<(&str, String)> =
            self.catalog().iter().map(|path| ("--catalog", path.display().to_string())).collect();
        words.push(("--queries", self.path(&self.file.queries).display().to_string()));
        words.extend(self.file.engines.iter().map(|name| ("--engine", name.clone())));
        words.extend(self.file.configuration.iter().map(|path| ("--config", self.path(path).display().to_string())));
        let words: Vec<String> = words.iter().map(|(name, value)| format!("{name} {}", quoted(value))).collect();
        format!("contextweaver bench eval {}", words.join(" "))
    }

    /// The `catalog diff` that says which definition of the catalog costs ranks, for a shell; `OLD` is to be filled in.
    #[must_use]
    pub fn impact_command(&self) -> String {
        let new = match self.catalog().as_slice() {
            [one] => quoted(&one.display().to_string()),
            _ => "NEW".to_owned(),
        };
        let queries = self.path(&self.file.queries).display().to_string();
        format!("contextweaver catalog diff OLD {new} --impact --queries {}", quoted(&queries))
    }

    /// The catalog with its queries.
    ///
    /// # Errors
    /// When either cannot be read, or a query is a draft; the message names the file and, where there is one, the line.
    pub fn collection(&self) -> Result<Collection> {
        let paths = self.catalog();
        let loaded = load(&paths, LoadOptions::default());
        let catalog = loaded.with_context(|| match self.snapshot() {
            Some(command) => format!("your catalog cannot be read; gate.toml writes it with `{command}`"),
            None => "your catalog cannot be read".to_owned(),
        })?;
        let queries = self.path(&self.file.queries);
        Ok(Collection::of_catalog(YOURS, Origin::Public, Arc::new(catalog.catalog), &queries)?)
    }

    /// The engines, the one that is judged first. With `configuration` in `gate.toml` that is the router under it.
    ///
    /// # Errors
    /// When an engine is unknown or the configuration cannot be read.
    pub fn engines(&self) -> Result<Vec<RouterEngine>> {
        let known = builtin_engines()?;
        let mut engines = Vec::with_capacity(self.file.engines.len() + 1);
        if let Some(relative) = &self.file.configuration {
            let path = self.path(relative);
            let place = || path.display().to_string();
            let text = fs::read_to_string(&path).with_context(place)?;
            let config: RoutingConfig = toml::from_str(&text).with_context(place)?;
            config.validate().with_context(place)?;
            engines.push(RouterEngine::new(&relative.display().to_string(), config));
        }
        for name in &self.file.engines {
            let found = known.iter().find(|engine| engine.name() == name);
            engines.push(found.cloned().ok_or_else(|| {
                let names: Vec<&str> = known.iter().map(|engine| engine.name()).collect();
                let path = self.path(GATE_FILE);
                anyhow!("{}: `engines`: no engine `{name}`; there are {}", path.display(), names.join(", "))
            })?);
        }
        Ok(engines)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refusal(text: &str) -> String {
        OwnWorkspace::parse(Path::new("gate"), text).unwrap_err().to_string()
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let base = "catalog = \"c.json\"\nqueries = \"q.jsonl\"\n";
        let table = [
            ("[least]\n\"recall@7\" = 0.5\n", "gate/gate.toml: [least]: no measure `recall@7`; there are recall@1"),
            ("[least]\n\"recall@5\" = 80\n", "`recall@5` is 80, which is not a number from 0 to 1"),
            (
                "[least]\n\"recall@5\" = 0.1\n\"RECALL@5\" = 0.8\n",
                "gate/gate.toml: [least]: it names `recall@5` twice, in other letters; name each",
            ),
            ("[change]\nmargin = 1.5\n", "[change]: `margin` is 1.5"),
            ("engines = []\n", "`engines` is empty"),
            (
                "engines = [\"bm25\", \"default\", \"bm25\"]\n",
                "gate/gate.toml: `engines` names `bm25` twice; name each",
            ),
            (
                "configuration = \"default\"\n",
                "`configuration` and `engines` both name `default`; give the file another",
            ),
            ("limit = 3\n", "TOML parse error at line 3, column 1"),
            ("[tokens]\nmost = -1\n", "TOML parse error at line 4, column 8"),
        ];
        for (more, expected) in table {
            let message = refusal(&format!("{base}{more}"));
            assert!(message.contains(expected), "{more:?}: {message}");
        }
        assert!(refusal("queries = \"q\"").contains("missing field `catalog`"));
        let unknown = OwnWorkspace::parse(Path::new(""), &format!("{base}engines = [\"pizza\"]")).unwrap();
        let message = unknown.engines().unwrap_err().to_string();
        assert!(
            message.starts_with("gate.toml: `engines`: no engine `pizza`; there are default, lexical"),
            "{message}"
        );
    }

    #[test]
    fn what_is_left_out_has_a_default() {
        let own = OwnWorkspace::parse(Path::new(""), "catalog = [\"a.json\", \"b\"]\nqueries = \"q.jsonl\"").unwrap();
        assert_eq!(own.limits, Limits { least: vec![], most_tokens: None, margin: 0.01, fewest_queries: 20 });
        assert_eq!(own.engines().unwrap().iter().map(Engine::name).collect::<Vec<_>>(), ["default"]);
    }

    proptest! {
        #[test]
        fn no_text_panics(
            value in "[-0-9.e\"\\[\\]a-z@]{0,12}",
            field in prop::sample::select(vec!["catalog", "engines", "snapshot", "[least]\n\"recall@5\"", "[change]\nmargin"]),
        ) {
            OwnWorkspace::parse(Path::new(""), &format!("queries = \"q\"\n{field} = {value}\n")).ok();
        }
    }
}
