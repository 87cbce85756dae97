//! What there is to measure: catalogs, recordings and scenarios, found by their files.
//!
//! Public catalogs and recordings are known by their folder alone. What is not on a machine keeps its committed rows.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::scenario::{self, Scenario};
use super::session::Recording;
use super::stage::{Lists, Server};
use crate::eval::files::files_ending_in;
use crate::eval::record::Origin;
use crate::text::hex;

/// The name of the case that puts all public catalogs behind one gateway.
pub const TOGETHER: &str = "all catalogs together";

/// The collections of this project whose catalogs are measured.
const GOLD: [&str; 2] = ["household", "workbench"];

/// Where the inputs of the chapter are.
#[derive(Debug, Clone)]
pub struct Places {
    /// The scenarios of this project.
    pub scenarios: PathBuf,
    /// The collections of this project.
    pub gold: PathBuf,
    /// What public servers list, one file a server.
    pub catalogs: PathBuf,
    /// Recorded sessions with public servers.
    pub sessions: PathBuf,
}

/// One case.
#[derive(Debug, Clone)]
pub struct Case {
    /// What it is called, apart from its kind.
    pub name: String,
    /// Who wrote it.
    pub origin: Origin,
    /// What it is made of.
    pub source: Source,
}

/// What a case is made of.
#[derive(Debug, Clone)]
pub enum Source {
    /// Catalogs of servers behind one gateway: a file each.
    Catalogs(Vec<PathBuf>),
    /// A collection of this project, with a server for each that its tools name.
    Gold(PathBuf),
    /// A recording, and where the lists of its servers are.
    Session(PathBuf, PathBuf),
    /// A scenario, and where the collections are.
    Scenario(Box<Scenario>, PathBuf),
}

impl Case {
    /// What is measured.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self.source {
            Source::Catalogs(_) | Source::Gold(_) => "surface",
            Source::Session(..) => "session",
            Source::Scenario(..) => "scenario",
        }
    }

    /// Kind and name, as in the records.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{}/{}", self.kind(), self.name)
    }
}

impl Places {
    /// Everything that is here, by id.
    ///
    /// # Errors
    /// A folder that cannot be listed, or a scenario that says something wrong.
    pub fn cases(&self) -> Result<Vec<Case>> {
        let mut cases = Vec::new();
        let gold = GOLD.iter().map(|name| (name, self.gold.join(name))).filter(|(_, folder)| folder.is_dir());
        cases.extend(gold.map(|(name, folder)| Case {
            name: (*name).to_owned(),
            origin: Origin::Embedded,
            source: Source::Gold(folder),
        }));
        let catalogs = files(&self.catalogs)?;
        let public = |name: String, source: Source| Case { name, origin: Origin::Public, source };
        cases.extend(catalogs.iter().map(|path| public(stem(path), Source::Catalogs(vec![path.clone()]))));
        if !catalogs.is_empty() {
            cases.push(public(TOGETHER.to_owned(), Source::Catalogs(catalogs)));
        }
        for path in files(&self.sessions)? {
            cases.push(public(stem(&path), Source::Session(path, self.catalogs.clone())));
        }
        let scenarios = scenario::load_all(&self.scenarios)?;
        cases.extend(scenarios.into_iter().map(|scenario| Case {
            name: scenario.name.clone(),
            origin: Origin::Embedded,
            source: Source::Scenario(Box::new(scenario), self.gold.clone()),
        }));
        cases.sort_by_key(Case::id);
        Ok(cases)
    }

    /// The kinds of public cases of which nothing is on this machine.
    #[must_use]
    pub fn absent(&self) -> Vec<&'static str> {
        let kinds =
            [("surface", self.catalogs.is_dir()), ("session", self.sessions.is_dir() && self.catalogs.is_dir())];
        kinds.into_iter().filter(|(_, here)| !here).map(|(kind, _)| kind).collect()
    }
}

/// The JSON files of a folder, by name; none without it.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    files_ending_in(folder, "json").with_context(|| folder.display().to_string())
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Reads files and keeps their hash.
#[derive(Default)]
pub struct Reader(Sha256);

impl Reader {
    /// What the files are together.
    #[must_use]
    pub fn sha256(self) -> String {
        hex(&self.0.finalize())
    }

    /// Takes in what was read elsewhere.
    pub fn take(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn read<T: serde::de::DeserializeOwned>(&mut self, path: &Path) -> Result<T> {
        let bytes = fs::read(path).with_context(|| path.display().to_string())?;
        self.take(&bytes);
        serde_json::from_slice(&bytes).with_context(|| path.display().to_string())
    }

    /// A server that lists what a file says, called as the file.
    ///
    /// # Errors
    /// The file cannot be read, or is none.
    pub fn server(&mut self, path: &Path) -> Result<Server> {
        Ok(Server { name: stem(path), lists: self.read(path)? })
    }

    /// The servers that the tools of a collection name.
    ///
    /// # Errors
    /// As [`Self::server`].
    pub fn collection(&mut self, folder: &Path) -> Result<Vec<Server>> {
        let tools: Vec<Value> = self.read(&folder.join("catalog.json"))?;
        let mut servers: BTreeMap<String, Lists> = BTreeMap::new();
        for mut tool in tools {
            // The server is known by its connection and not part of what it lists.
            let server = tool.as_object_mut().and_then(|tool| tool.shift_remove("server"));
            let server = server.as_ref().and_then(Value::as_str).map_or_else(|| stem(folder), str::to_owned);
            servers.entry(server).or_default().tools.push(tool);
        }
        Ok(servers.into_iter().map(|(name, lists)| Server { name, lists }).collect())
    }

    /// A recording, and what its servers list; one without a file is left out.
    ///
    /// # Errors
    /// As [`Self::server`].
    pub fn recording(&mut self, path: &Path, catalogs: &Path) -> Result<(Recording, BTreeMap<String, Lists>)> {
        let recording: Recording = self.read(path)?;
        let mut lists = BTreeMap::new();
        for (name, server) in &recording.servers {
            let path = server.catalog(catalogs);
            if path.is_file() {
                lists.insert(name.clone(), self.server(&path)?.lists);
            }
        }
        Ok((recording, lists))
    }
}
