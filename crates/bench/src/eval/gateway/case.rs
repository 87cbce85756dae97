//! What there is to measure: catalogs, recordings and scenarios.
//!
//! Public catalogs and recordings are not part of a checkout; which there are is listed in it ([`PUBLIC_FILE`]), so that a
//! machine without them knows what it does not measure.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::kinds;
use super::scenario::{self, Scenario};
use super::session::Recording;
use super::stage::{Lists, Server};
use crate::eval::record::Origin;
use contextweaver_core::text::hex;

/// The name of the case that puts all public catalogs behind one gateway.
pub const TOGETHER: &str = "all catalogs together";

/// The list of public catalogs and sessions by name, in the folder of scenarios.
pub const PUBLIC_FILE: &str = "public.json";

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

/// One case: what is measured, and what of.
#[derive(Debug, Clone)]
pub struct Case {
    /// What it is called, apart from its kind.
    pub name: String,
    /// Who wrote it.
    pub origin: Origin,
    /// What it is made of.
    pub source: Source,
}

/// The content of [`PUBLIC_FILE`].
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Public {
    /// Files of the folder of catalogs, without their ending.
    catalogs: Vec<String>,
    /// Files of the folder of sessions, without their ending.
    sessions: Vec<String>,
}

/// What a case is made of.
#[derive(Debug, Clone)]
pub enum Source {
    /// Catalogs of servers behind one gateway: a file each.
    Catalogs(Vec<PathBuf>),
    /// A collection of this project, with a server for each that its tools name.
    Gold(PathBuf),
    /// One with requests for each kind of item.
    Kinds(PathBuf),
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
            Source::Kinds(_) => "kinds",
            Source::Session(..) => "session",
            Source::Scenario(..) => "scenario",
        }
    }

    /// Kind and name, as in the records.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{}/{}", self.kind(), self.name)
    }

    /// Whether its files are on this machine. What belongs to the checkout always counts as present, so that its absence is
    /// an error and not a silent omission.
    #[must_use]
    pub fn is_here(&self) -> bool {
        match &self.source {
            Source::Catalogs(paths) => paths.iter().all(|path| path.is_file()),
            Source::Session(path, catalogs) => path.is_file() && catalogs.is_dir(),
            Source::Gold(_) | Source::Kinds(_) | Source::Scenario(..) => true,
        }
    }
}

impl Places {
    /// Every case by id, those included whose files are not here.
    ///
    /// # Errors
    /// A folder that cannot be listed, or a list or scenario that says something wrong.
    pub fn cases(&self) -> Result<Vec<Case>> {
        let mut cases = Vec::new();
        let gold = GOLD.iter().map(|name| (name, self.gold.join(name))).filter(|(_, folder)| folder.is_dir());
        cases.extend(gold.map(|(name, folder)| Case {
            name: (*name).to_owned(),
            origin: Origin::Embedded,
            source: Source::Gold(folder),
        }));
        let kinds = Some(self.gold.join(kinds::COLLECTION)).filter(|folder| folder.is_dir());
        cases.extend(kinds.map(|folder| Case {
            name: kinds::COLLECTION.to_owned(),
            origin: Origin::Embedded,
            source: Source::Kinds(folder),
        }));
        let Public { catalogs, sessions } = self.public()?;
        let public = |name: &str, source: Source| Case { name: name.to_owned(), origin: Origin::Public, source };
        let catalog = |name: &String| self.catalogs.join(format!("{name}.json"));
        cases.extend(catalogs.iter().map(|name| public(name, Source::Catalogs(vec![catalog(name)]))));
        if !catalogs.is_empty() {
            cases.push(public(TOGETHER, Source::Catalogs(catalogs.iter().map(catalog).collect())));
        }
        for name in &sessions {
            let path = self.sessions.join(format!("{name}.json"));
            cases.push(public(name, Source::Session(path, self.catalogs.clone())));
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

    /// The list of public cases; empty without its file.
    fn public(&self) -> Result<Public> {
        let path = self.scenarios.join(PUBLIC_FILE);
        if !path.exists() {
            return Ok(Public::default());
        }
        let text = fs::read(&path).with_context(|| path.display().to_string())?;
        serde_json::from_slice(&text).with_context(|| path.display().to_string())
    }
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

    /// Takes in a file that is read elsewhere.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn file(&mut self, path: &Path) -> Result<()> {
        let bytes = fs::read(path).with_context(|| path.display().to_string())?;
        self.take(&bytes);
        Ok(())
    }

    fn read<T: serde::de::DeserializeOwned>(&mut self, path: &Path) -> Result<T> {
        let bytes = fs::read(path).with_context(|| path.display().to_string())?;
        self.take(&bytes);
        serde_json::from_slice(&bytes).with_context(|| path.display().to_string())
    }

    /// A server that lists what a file says, called as the file.
    ///
    /// # Errors
    /// The file cannot be read, or is not a recording.
    pub fn server(&mut self, path: &Path) -> Result<Server> {
        Ok(Server { name: stem(path), lists: self.read(path)? })
    }

    /// The servers that the items of a collection name.
    ///
    /// # Errors
    /// As [`Self::server`].
    pub fn collection(&mut self, folder: &Path) -> Result<Vec<Server>> {
        /// Tools alone are an array; with resources or prompts they are members of an object.
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Catalog {
            Tools(Vec<Value>),
            All(Lists),
        }
        let lists = match self.read(&folder.join("catalog.json"))? {
            Catalog::Tools(tools) => Lists { tools, ..Lists::default() },
            Catalog::All(lists) => lists,
        };
        let mut servers: BTreeMap<String, Lists> = BTreeMap::new();
        let mut add = |items: Vec<Value>, list: fn(&mut Lists) -> &mut Vec<Value>| {
            for mut item in items {
                // The server is known by its connection and not part of what it lists.
                let server = item.as_object_mut().and_then(|item| item.shift_remove("server"));
                let server = server.as_ref().and_then(Value::as_str).map_or_else(|| stem(folder), str::to_owned);
                list(servers.entry(server).or_default()).push(item);
            }
        };
        add(lists.tools, |lists| &mut lists.tools);
        add(lists.resources, |lists| &mut lists.resources);
        add(lists.resource_templates, |lists| &mut lists.resource_templates);
        add(lists.prompts, |lists| &mut lists.prompts);
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
