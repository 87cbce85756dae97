//! Where things lie in a checkout, and what of them is on this machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};

use super::collection::{Collection, Hashes};
use super::context::run::CountedCatalog;
use super::context::scenario::{self, Scenario};
use super::gateway::case::Places;
use super::matrix::{Case, Matrix};
use super::record::Origin;

/// What tells a checkout from other folders.
const MATRIX: &str = "scenarios/engines.toml";

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
    /// When no folder with `scenarios/engines.toml` is found, or `public` was given and is not a folder.
    pub fn find(root: Option<&Path>, public: Option<&Path>) -> Result<Self> {
        let is_workspace = |folder: &Path| folder.join(MATRIX).is_file();
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

    /// The scenarios of the context engine that are one log; logs of public ones are looked for beside the public
    /// collections.
    ///
    /// # Errors
    /// A scenario file that says something wrong.
    pub fn scenarios(&self) -> Result<Vec<Scenario>> {
        Ok(self.all_scenarios()?.into_iter().filter(|scenario| scenario.way.is_none()).collect())
    }

    /// The scenarios of the context engine that rest on more: a memory, a hand-over, envelopes or hooks.
    ///
    /// # Errors
    /// A scenario file that says something wrong.
    pub fn ways(&self) -> Result<Vec<Scenario>> {
        Ok(self.all_scenarios()?.into_iter().filter(|scenario| scenario.way.is_some()).collect())
    }

    fn all_scenarios(&self) -> Result<Vec<Scenario>> {
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
                bail!(no_collection(name));
            };
            let collection = Collection::load(&folder, origin)?;
            counted.insert(name.clone(), CountedCatalog::new(&collection.catalog, &collection.inputs_sha256));
        }
        Ok(counted)
    }

    /// The digest of the collection that `scenario` names; `None` for one that names none.
    ///
    /// # Errors
    /// A catalog that is not here or cannot be read.
    pub fn catalog_sha256(&self, scenario: &Scenario) -> Result<Option<String>> {
        let Some(name) = &scenario.catalog else { return Ok(None) };
        let (folder, _) = self.catalog_folder(name).with_context(|| no_collection(name))?;
        Ok(Some(Hashes::of_folder(&folder)?.together()))
    }

    fn catalog_folder(&self, name: &str) -> Option<(PathBuf, Origin)> {
        let embedded = (self.path("gold").join(name), Origin::Embedded);
        let public = (self.public.join(name), Origin::Public);
        [embedded, public].into_iter().find(|(folder, _)| folder.is_dir())
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
}

impl Workspace {
    /// Files and folders that say which tools are right, or what a scenario looks for: what a measured program must not
    /// read. Not all of them need be there.
    #[must_use]
    pub fn judgements(&self) -> Vec<PathBuf> {
        let mut found: Vec<PathBuf> =
            ["gold", "scorecard", "scenarios/context"].into_iter().map(|name| self.path(name)).collect();
        found.extend(repository(&self.root));
        found.extend([self.public.clone(), self.gateway().sessions]);
        found
    }
}

/// What a measured program must not read where its judgements are in `files`: these, what git keeps of them, and in a
/// checkout all that [`Workspace::judgements`] names.
#[must_use]
pub fn judgements_around(files: &[&Path]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for file in files {
        let named = std::path::absolute(file).ok();
        for file in named.into_iter().chain(file.canonicalize().ok()) {
            for folder in file.ancestors().skip(1) {
                found.extend(repository(folder));
                if folder.join(MATRIX).is_file()
                    && let Ok(workspace) = Workspace::find(Some(folder), None)
                {
                    found.extend(workspace.judgements());
                }
            }
            found.push(file);
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Where git keeps what is committed in a folder: `.git`, and for a second work tree what its file names.
fn repository(folder: &Path) -> Vec<PathBuf> {
    let git = folder.join(".git");
    let linked = std::fs::read_to_string(&git).ok().and_then(|text| {
        let own = folder.join(text.strip_prefix("gitdir:")?.trim());
        let common = std::fs::read_to_string(own.join("commondir")).ok();
        Some(common.map_or(own.clone(), |common| own.join(common.trim())))
    });
    [git].into_iter().chain(linked).collect()
}

impl Collections {
    /// The collection called `name`, when it is there.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<Collection>> {
        self.found.get(name)
    }
}

fn no_collection(name: &str) -> String {
    format!("{name}: no such collection in gold/ or among the public ones; correct `catalog`")
}

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// What takes seconds.
    #[default]
    Usual,
    /// What takes minutes too.
    Large,
    /// Everything, and nothing may be left out.
    All,
}

/// Everything that measuring starts from: a checkout, its matrix, the collections that are here, and how much is asked for.
#[derive(Debug)]
pub struct Bench {
    /// Where everything is.
    pub workspace: Workspace,
    /// Cases and engines.
    pub matrix: Matrix,
    /// The collections of the cases, as far as they are here.
    pub collections: Collections,
    /// How much is measured.
    pub scope: Scope,
}

impl Bench {
    /// Reads the matrix of `workspace` and its collections.
    ///
    /// # Errors
    /// As [`Workspace::matrix`] and [`Workspace::collections`].
    pub fn open(workspace: Workspace, scope: Scope) -> Result<Self> {
        let matrix = workspace.matrix()?;
        let collections = workspace.collections(&matrix.cases)?;
        Ok(Self { workspace, matrix, collections, scope })
    }
}
