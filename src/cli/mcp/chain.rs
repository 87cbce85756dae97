//! What the commands of a first hour have in common: the configuration that they work on where none is named, the command that comes
//! next, and the variables that a client starts the gateway with.
//!
//! After `mcp import --apply` the secrets of the servers stand in the client's file and nowhere else. Who checks the configuration
//! on a terminal would see servers without them, so that a check looks there too.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use contextweaver_core::files::ReadError;
use contextweaver_gateway::{
    Client, ClientFile, GatewayConfig, GatewayEntry, Mode, Place, Present, convert_beside, discover, quoted, resolved,
};

/// The configuration where none is named.
pub(super) const CONFIG: &str = "gateway.yaml";

/// What ends the name of the file beside a client's that shows how `mcp import --apply` left it.
pub(super) const LEFT: &str = ".with-contextweaver";

/// What is said where the gateway's own tools take more tokens than those that they stand for.
pub(super) const COSTS_MORE: &str =
    "for so few tools it costs more tokens than it saves; `mode: passthrough` adds none";

// No doc comment: it would become that of the command.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct ConfigArg {
    /// The configuration, YAML or JSON [default: gateway.yaml]
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
}

impl ConfigArg {
    /// As [`config`].
    ///
    /// # Errors
    /// As [`config`].
    pub(super) fn path(&self) -> Result<PathBuf> {
        config(self.config.as_deref())
    }
}

// What a client starts; no doc comment, as above.
#[derive(Debug, clap::Args)]
pub(super) struct Started {
    #[command(flatten)]
    pub(super) config: ConfigArg,
    /// A client's file with the gateway's entry, in addition to those that are found; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(super) client: Vec<PathBuf>,
}

/// The named configuration, or the one in this folder.
///
/// # Errors
/// None is named, and there is none here.
pub(super) fn config(named: Option<&Path>) -> Result<PathBuf> {
    match named {
        Some(path) => Ok(path.to_owned()),
        None if Path::new(CONFIG).exists() => Ok(PathBuf::from(CONFIG)),
        None => bail!(
            "there is no {CONFIG} in this folder; name a configuration with --config, or make one: contextweaver mcp \
             import --write {CONFIG} takes the servers of your clients, contextweaver mcp add NAME -- COMMAND adds one"
        ),
    }
}

/// The flag that names a configuration, as a shell takes it; nothing where it is the one in this folder.
pub(super) fn flag(config: &Path) -> String {
    if config == Path::new(CONFIG) {
        return String::new();
    }
    format!(" --config {}", quoted(&config.to_string_lossy()))
}

/// The files in a folder in which `mcp import --apply` has put the gateway.
pub(super) fn applied_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut files: Vec<PathBuf> =
        names.filter_map(|name| Some(PathBuf::from(name.strip_suffix(LEFT)?))).filter(|file| file.exists()).collect();
    files.sort();
    files
}

/// The flags that name clients' files, as a shell takes them.
pub(super) fn clients(files: &[PathBuf]) -> String {
    files.iter().map(|path| format!(" --client {}", quoted(&path.to_string_lossy()))).collect()
}

/// The program that clients start.
pub(super) fn program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from(env!("CARGO_PKG_NAME")))
}

/// The configuration at `path` with the values that the gateways of it in `files` are started with.
///
/// # Errors
/// It cannot be read, or is not a configuration.
pub(super) fn present(path: &Path, files: &[ClientFile]) -> Result<Present> {
    let text = std::fs::read_to_string(path).map_err(ReadError::at(path))?;
    let mut values = BTreeMap::new();
    for gateway in files.iter().flat_map(ClientFile::gateways) {
        if gateway.config.as_deref().is_some_and(|config| is_same(config, path)) {
            for (name, value) in gateway.env {
                values.entry(name).or_insert(value);
            }
        }
    }
    values.remove("PATH");
    Ok(Present::of(&text, path, values)?)
}

/// The configuration at `path`, served in `mode` where one is given, with the values that a client would start the gateway with; and
/// these values, of the clients' files `named` and of those of the known clients.
///
/// # Errors
/// It is not a configuration. What is wrong with a client's file is in place of the values: a configuration without variables
/// needs none.
pub(super) fn load(path: &Path, mode: Option<Mode>, named: &[PathBuf]) -> Result<(GatewayConfig, Result<Values>)> {
    let values = Values::of(path, named);
    let config = GatewayConfig::load_for(path, mode, &|name| match &values {
        Ok(values) => values.get(name),
        Err(_) => std::env::var(name).ok(),
    })?;
    Ok((config, values))
}

/// The files of the known clients. One that cannot be read says nothing.
fn found(home: Option<&Path>, folder: &Path) -> impl Iterator<Item = ClientFile> {
    discover(home, folder).into_iter().filter_map(|place| ClientFile::read(place).ok())
}

fn is_same(one: &Path, other: &Path) -> bool {
    let resolved = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path));
    matches!((resolved(one), resolved(other)), (Ok(one), Ok(other)) if one == other)
}

/// The variables of a configuration, with the values that a client's file has for them.
pub(super) struct Values {
    present: Present,
    /// What clients' files have: values, or texts with references.
    values: BTreeMap<String, String>,
    /// Whether a client starts a gateway of the configuration.
    is_applied: bool,
    /// Whether a client has a server of the configuration.
    is_of_clients: bool,
}

impl Values {
    /// Those of the configuration at `path`: from the entries of its gateway in the files `named` and in those of the known clients,
    /// else from the entries of the same servers there.
    ///
    /// # Errors
    /// The configuration or a named file cannot be read.
    pub(super) fn of(path: &Path, named: &[PathBuf]) -> Result<Self> {
        let (home, folder) = (std::env::home_dir(), std::env::current_dir()?);
        let mut files = Vec::new();
        for name in named {
            files.push(ClientFile::read(Place::of(name, home.as_deref()))?);
        }
        files.extend(found(home.as_deref(), &folder));
        // One that is none of a known client was named when it was applied.
        let applied = applied_in(&folder).into_iter();
        let applied = applied.filter_map(|file| ClientFile::read(Place::of(&file, home.as_deref())).ok());
        let is_of_this = |gateway: &GatewayEntry| gateway.config.as_deref().is_some_and(|config| is_same(config, path));
        files.extend(applied.filter(|file| file.gateways().iter().any(is_of_this)));
        Self::among(path, &files, home.as_deref())
    }

    /// Those that the files of one client have, and those of no other.
    ///
    /// # Errors
    /// The configuration cannot be read.
    pub(super) fn of_client(path: &Path, client: Client) -> Result<Self> {
        let (home, folder) = (std::env::home_dir(), std::env::current_dir()?);
        let files = found(home.as_deref(), &folder).filter(|file| file.place.client == Some(client));
        Self::among(path, &files.collect::<Vec<_>>(), home.as_deref())
    }

    fn among(path: &Path, files: &[ClientFile], home: Option<&Path>) -> Result<Self> {
        let present = present(path, files)?;
        let is_applied = files
            .iter()
            .flat_map(ClientFile::gateways)
            .any(|gateway| gateway.config.is_some_and(|config| is_same(&config, path)));
        let conversion = convert_beside(files, home, &present);
        let mut values = conversion.values_of_present().clone();
        values.extend(present.values().clone());
        Ok(Self { present, values, is_applied, is_of_clients: conversion.is_present() })
    }

    /// What comes after a look at what the configuration serves; the clients' files `named` were looked into.
    pub(super) fn next(&self, config: &Path, named: &[PathBuf], has_diagnostics: bool) -> String {
        let flag = flag(config);
        match (self.is_applied, has_diagnostics) {
            (false, _) => {
                let write = flag.replacen("--config", "--write", 1);
                let (files, which) = match (named, self.is_of_clients) {
                    ([], true) => (String::new(), ""),
                    // Without a name, the servers of all other clients would be taken.
                    ([], false) => (
                        " FILE".to_owned(),
                        ", where FILE is the client's file that the servers come from; for servers of none: contextweaver mcp \
                         import --show-client CLIENT",
                    ),
                    _ => (named.iter().map(|file| format!(" {}", quoted(&file.to_string_lossy()))).collect(), ""),
                };
                format!("next: contextweaver mcp import{files}{write} --apply{which}")
            }
            (true, true) => format!("next, once the client has been used: contextweaver mcp stats{flag}"),
            (true, false) => format!(
                "next: add `diagnostics: gateway.jsonl` to {}, restart the client, use it, and then: contextweaver mcp stats{flag}",
                config.display()
            ),
        }
    }

    /// The value of a variable: that with which a client starts the gateway, else that of this environment.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        let environment = |name: &str| std::env::var(name).ok();
        self.values.get(name).and_then(|text| resolved(text, &environment)).or_else(|| environment(name))
    }

    /// The variables that are known: those that the configuration refers to, and those of clients' files.
    pub(super) fn known(&self) -> BTreeMap<String, String> {
        let names = self.present.variables().into_iter().chain(self.values.keys().cloned());
        names.filter_map(|name| Some((name.clone(), self.get(&name)?))).collect()
    }

    /// The names of variables that the configuration refers to and that only a client's file has.
    pub(super) fn of_clients(&self) -> BTreeSet<String> {
        let is_ours = |name: &String| self.get(name).is_some() && std::env::var_os(name).is_none();
        self.present.variables().into_iter().filter(is_ours).collect()
    }

    /// The names of variables that the configuration refers to and that have no value.
    pub(super) fn missing(&self) -> BTreeSet<String> {
        self.present.variables().into_iter().filter(|name| self.get(name).is_none()).collect()
    }

    /// The names of variables that only a client knows, which asks for them.
    pub(super) fn asked(&self) -> BTreeSet<String> {
        self.missing().into_iter().filter(|name| self.values.contains_key(name)).collect()
    }

    /// What a client has to start the gateway with: the values of variables if they are to be shown, and references to those
    /// that are not, or have none.
    pub(super) fn entry(&self, has_values: bool) -> BTreeMap<String, String> {
        let text = |name: &str| self.get(name).filter(|_| has_values).unwrap_or_else(|| format!("${{env:{name}}}"));
        let mut entry: BTreeMap<String, String> =
            self.present.variables().into_iter().map(|name| (name.clone(), text(&name))).collect();
        entry.extend(path_for(&self.present));
        entry
    }

    /// The names of variables that the configuration refers to.
    pub(super) fn names(&self) -> BTreeSet<String> {
        self.present.variables()
    }
}

/// The `PATH` that a gateway needs: a client gives it one of its own choice or none, in which programs without a path are not found.
pub(super) fn path_for(present: &Present) -> Option<(String, String)> {
    let path = std::env::var_os("PATH").filter(|_| present.needs_path())?;
    let mut folders: Vec<PathBuf> = Vec::new();
    for folder in std::env::split_paths(&path).filter(|folder| folder.is_absolute()) {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    let path = std::env::join_paths(folders).ok()?.into_string().ok()?;
    Some(("PATH".to_owned(), path))
}
