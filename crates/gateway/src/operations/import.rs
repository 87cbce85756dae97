//! Servers of a client's file as upstreams of a gateway's configuration.
//!
//! What cannot be taken over is said, never guessed. A value that may be a secret becomes a reference to the environment,
//! so that no secret gets from one file into another or onto a screen; `likely_secrets` judges which may be one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::common::yaml::{self, YamlError};
use crate::config::error::ConfigError;
use crate::config::file::GatewayConfig;
use crate::operations::client_edit::{Edit, Edited, Form, edited, read};
use crate::operations::client_files::{ClientFile, ClientServer, is_gateway};
use crate::operations::clients::{Client, row};
use crate::operations::likely_secrets::{
    Part, credentials, in_argument, is_plain, is_reference, is_secret_address, takes_secret,
};
use crate::operations::references::{meaning, replaced};
use contextweaver_core::catalog::server_namespace;

/// A server that was taken over.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Converted {
    /// Its name in the configuration.
    pub name: String,
    /// The client, when the file's name tells.
    pub client: Option<Client>,
    /// The file of the client that has the server.
    pub from: PathBuf,
    /// Its entry in the configuration; secrets are references.
    pub entry: Map<String, Value>,
    /// What a person should know.
    pub notes: Vec<String>,
}

/// A server that was not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// Its name in the file.
    pub name: String,
    /// The file of the client that has the server.
    pub from: PathBuf,
    /// Why the server cannot be taken over.
    pub reason: String,
}

/// What became of the servers of some files.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Conversion {
    /// Taken over, in the order of the files.
    pub servers: Vec<Converted>,
    /// The servers that cannot be taken over.
    pub skipped: Vec<Skipped>,
    /// Variables that the configuration refers to.
    pub variables: BTreeSet<String>,
    /// What the files have for them: a value, or a text with references of the client (`${env:NAME}`, `${input:id}`). Shown nowhere.
    #[serde(skip)]
    pub values: BTreeMap<String, String>,
    /// By file what its own servers are started with. A file never gets what another has.
    #[serde(skip)]
    pub(crate) own: BTreeMap<PathBuf, BTreeMap<String, String>>,
    /// By file the servers in it that the gateway serves now, those included that are the same as another.
    #[serde(skip)]
    pub(crate) moved: BTreeMap<PathBuf, Vec<Moved>>,
    /// Whether a server was in the configuration already.
    #[serde(skip)]
    pub(crate) is_present: bool,
    /// Variables of servers that the configuration had already, with what the files have for them; shown nowhere.
    #[serde(skip)]
    pub(crate) known: BTreeMap<String, String>,
}

/// A server of a client's file that the gateway serves now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Moved {
    /// The keys that lead to the object that it stands in.
    pub(crate) place: Vec<String>,
    /// Its name there.
    pub(crate) name: String,
}

/// A configuration that servers are added to.
#[derive(Debug, Clone, Default)]
pub struct Present {
    text: String,
    form: Option<Form>,
    pub(super) upstreams: Map<String, Value>,
    /// The values that gateways of this configuration are started with.
    values: BTreeMap<String, String>,
    /// Whether what is added is written as it is in a configuration.
    is_for_own_form: bool,
}

impl Present {
    /// The configuration of this text, in the form of `path`; `values` are those that clients start its gateway with.
    ///
    /// # Errors
    /// The text is not a configuration.
    pub fn of(text: &str, path: &Path, values: BTreeMap<String, String>) -> Result<Self, ConfigError> {
        let failed = |reason| ConfigError::Parse { path: path.to_owned(), reason };
        let form = form_of(path);
        // One with comments alone is a configuration too.
        let document: Value = match yaml::read(text) {
            Err(_) if read(form, text).is_ok() => Value::Null,
            read => read.map_err(failed)?,
        };
        let upstreams = document.get("upstreams").and_then(Value::as_object).cloned().unwrap_or_default();
        Ok(Self { text: text.to_owned(), form: Some(form), upstreams, values, is_for_own_form: false })
    }

    /// The same for servers that are written as in a configuration, where `${file:PATH}` stands for what a file holds. What
    /// a client means by it is unknown.
    #[must_use]
    pub fn for_own_form(self) -> Self {
        Self { is_for_own_form: true, ..self }
    }

    /// The values that clients start its gateway with.
    #[must_use]
    pub fn values(&self) -> &BTreeMap<String, String> {
        &self.values
    }

    /// Its text with one change; everything else of it stays.
    ///
    /// # Errors
    /// The result would not be a valid configuration.
    pub(super) fn changed(&self, edit: Edit, path: &Path) -> Result<Addition, ConfigError> {
        let Edited { text, is_rewritten } = match edit.insert.is_empty() && edit.remove.is_empty() {
            true => Edited { text: self.text.clone(), is_rewritten: false },
            false => edited(self.form.unwrap_or(Form::Yaml), &self.text, &[edit])
                .map_err(|problem| unreadable(path, problem))?,
        };
        accepted(&text, path).map_err(|error| error.of_file(path))?;
        Ok(Addition { text, is_rewritten })
    }

    /// The variables that it refers to.
    #[must_use]
    pub fn variables(&self) -> BTreeSet<String> {
        referred_in(&self.text)
    }

    /// The variables that each of its upstreams refers to.
    #[must_use]
    pub fn variables_of_upstreams(&self) -> BTreeMap<&str, BTreeSet<String>> {
        self.upstreams.iter().map(|(name, entry)| (name.as_str(), referred_in(&entry.to_string()))).collect()
    }

    /// Whether it starts a program by a name that is looked up in the `PATH`.
    #[must_use]
    pub fn needs_path(&self) -> bool {
        self.upstreams.values().any(|entry| {
            let command = entry.get("command").and_then(Value::as_str);
            let has_own = entry.get("env").is_some_and(|env| env.get("PATH").is_some());
            command.is_some_and(|command| !command.contains(['/', '\\'])) && !has_own
        })
    }

    /// The namespaces of its upstreams.
    fn namespaces(&self) -> impl Iterator<Item = String> {
        self.upstreams.iter().filter_map(|(name, entry)| Some(namespace_of(name, entry.as_object()?)))
    }

    /// The name of the upstream that is this server already: as it would be imported, or with members that were added.
    fn same_as(&self, name: &str, entry: &Map<String, Value>) -> Option<&str> {
        let equal = self.upstreams.iter().find(|(_, other)| other.as_object() == Some(entry)).map(|(name, _)| name);
        let named = self
            .upstreams
            .get_key_value(name)
            .filter(|(_, other)| entry.iter().all(|(key, value)| other.get(key) == Some(value)));
        equal.or(named.map(|(name, _)| name)).map(String::as_str)
    }
}

/// The names of the variables that a text refers to.
fn referred_in(text: &str) -> BTreeSet<String> {
    let named = text.split("${env:").skip(1).filter_map(|rest| rest.split_once('}'));
    named.map(|(name, _)| name.to_owned()).collect()
}

/// The namespace of the tools of an upstream.
fn namespace_of(name: &str, entry: &Map<String, Value>) -> String {
    server_namespace(entry.get("namespace").and_then(Value::as_str).unwrap_or(name))
}

/// Checks the text of a configuration at `path`. A variable may have any value where the gateway runs; the files that the
/// text refers to are read.
fn accepted(text: &str, path: &Path) -> Result<GatewayConfig, ConfigError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    GatewayConfig::parse(text, folder, &|_| Some("value".to_owned()))
}

fn form_of(path: &Path) -> Form {
    match path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json")) {
        true => Form::Json,
        false => Form::Yaml,
    }
}

/// A configuration to which servers were added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addition {
    /// Its text.
    pub text: String,
    /// Whether it was written anew, since its text cannot be edited: its comments are lost.
    pub is_rewritten: bool,
}

/// What editors complete a YAML configuration by, and how the file that it names is made.
const SCHEMA_LINES: &str = "# yaml-language-server: $schema=gateway.schema.json\n\
    # For completion in editors: contextweaver schema gateway > gateway.schema.json\n";

impl Conversion {
    /// The configuration as JSON.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let upstreams: Map<String, Value> =
            self.servers.iter().map(|server| (server.name.clone(), server.entry.clone().into())).collect();
        json!({ "upstreams": upstreams })
    }

    /// The text of the configuration in the form of `path`: JSON when it ends so, else YAML.
    ///
    /// # Errors
    /// The servers do not make a valid configuration: a field of an entry has a wrong value.
    pub fn to_text(&self, path: &Path) -> Result<String, ConfigError> {
        let value = self.to_value();
        let text = if form_of(path) == Form::Json {
            serde_json::to_string_pretty(&value).unwrap_or_default() + "\n"
        } else {
            let text = serde_saphyr::to_string(&value).map_err(|error| unreadable(path, error.to_string()))?;
            format!("{SCHEMA_LINES}{text}")
        };
        accepted(&text, path)?;
        Ok(text)
    }

    /// The text of a configuration with these servers behind those that it has; everything else of it stays.
    ///
    /// # Errors
    /// The result would not be a valid configuration.
    pub fn added_to(&self, present: &Present, path: &Path) -> Result<Addition, ConfigError> {
        let insert = self.servers.iter().map(|server| (server.name.clone(), Value::Object(server.entry.clone())));
        let edit = Edit { place: vec!["upstreams".to_owned()], remove: Vec::new(), insert: insert.collect() };
        present.changed(edit, path)
    }

    /// Whether the servers come from several files, or from several projects in one: whoever the gateway is put before sees
    /// servers of the others too.
    #[must_use]
    pub fn joins(&self) -> bool {
        let places = self.moved.iter().flat_map(|(file, moved)| moved.iter().map(move |one| (file, &one.place)));
        places.collect::<BTreeSet<_>>().len() > 1
    }

    /// Whether a client's file has a server that the gateway serves.
    #[must_use]
    pub fn moves_anything(&self) -> bool {
        !self.moved.is_empty()
    }

    /// Whether a client's file has a server that the configuration had already.
    #[must_use]
    pub fn is_present(&self) -> bool {
        self.is_present
    }

    /// What the clients' old entries have for the variables of servers that the configuration had already. Shown nowhere.
    #[must_use]
    pub fn values_of_present(&self) -> &BTreeMap<String, String> {
        &self.known
    }
}

fn unreadable(path: &Path, problem: String) -> ConfigError {
    ConfigError::Parse { path: path.to_owned(), reason: YamlError { place: None, key: None, problem } }
}

/// Converts the servers of `files`. `home` stands for `${userHome}`.
#[must_use]
pub fn convert(files: &[ClientFile], home: Option<&Path>) -> Conversion {
    convert_beside(files, home, &Present::default())
}

/// As [`convert`], for servers that come beside those of a configuration. What it has already is not taken again, and names of
/// servers and variables do not collide with its own.
#[must_use]
pub fn convert_beside(files: &[ClientFile], home: Option<&Path>, present: &Present) -> Conversion {
    let mut conversion = Conversion { values: present.values.clone(), ..Conversion::default() };
    let referred = present.variables();
    for file in files {
        for server in &file.servers {
            if let Some(reason) = refused_name(&server.name) {
                conversion.skip(file, server, reason.to_owned());
                continue;
            }
            let draft = |reserved: &BTreeSet<String>| {
                let mut draft = Draft {
                    server,
                    file,
                    home,
                    notes: Vec::new(),
                    variables: BTreeSet::new(),
                    values: conversion.values.clone(),
                    own: BTreeMap::new(),
                    reserved: reserved.clone(),
                    is_own_form: present.is_for_own_form,
                    is_off: is_off_elsewhere(file, server, files),
                };
                let entry = draft.entry();
                (entry, draft)
            };
            let (entry, made) = draft(&BTreeSet::new());
            let entry = match entry {
                Ok(entry) => entry,
                Err(reason) => {
                    conversion.skip(file, server, reason);
                    continue;
                }
            };
            if let Some(name) = present.same_as(&server.name, &entry) {
                let reason = format!("the configuration already has it, as `{name}`");
                conversion.is_present = true;
                conversion.known.extend(made.known());
                // The next one that calls another value so is known by its other name.
                conversion.values.extend(made.known());
                conversion.own.entry(file.place.path.clone()).or_default().extend(made.known());
                conversion.move_out(file, server);
                conversion.skip(file, server, reason);
                continue;
            }
            // A variable of the configuration may have any value; it is not given another.
            let unknown: BTreeSet<String> =
                referred.iter().filter(|name| !present.values.contains_key(*name)).cloned().collect();
            let (entry, made) = if unknown.is_empty() { (Ok(entry), made) } else { draft(&unknown) };
            let known = made.known();
            let Draft { notes, variables, values, .. } = made;
            match entry {
                Ok(entry) => {
                    conversion.values = values;
                    conversion.own.entry(file.place.path.clone()).or_default().extend(known);
                    conversion.add(file, server, entry, notes, variables, present);
                }
                Err(reason) => conversion.skip(file, server, reason),
            }
        }
    }
    conversion
}

/// Why no server can have this name, if so.
fn refused_name(name: &str) -> Option<&'static str> {
    match name {
        name if name.trim().is_empty() => Some("its name is empty; give it one"),
        name if name.contains(char::is_control) => {
            Some("its name has a control character in it, such as the end of a line; give it another")
        }
        _ => None,
    }
}

/// Whether another file of the same client says that a server of a project is switched off.
fn is_off_elsewhere(file: &ClientFile, server: &ClientServer, files: &[ClientFile]) -> bool {
    let Some(folder) = &server.folder else { return false };
    let others = files.iter().filter(|other| other.place.client == file.place.client);
    others.flat_map(|other| &other.off_in_projects).any(|(project, name)| project == folder && *name == server.name)
}

impl Conversion {
    fn add(
        &mut self,
        file: &ClientFile,
        server: &ClientServer,
        mut entry: Map<String, Value>,
        mut notes: Vec<String>,
        variables: BTreeSet<String>,
        present: &Present,
    ) {
        self.move_out(file, server);
        let is_taken =
            |name: &str| self.servers.iter().any(|other| other.name == name) || present.upstreams.contains_key(name);
        if let Some(same) = self.servers.iter().find(|other| other.entry == entry) {
            let reason = format!("it is the same as `{}` of {}", same.name, same.from.display());
            return self.skip(file, server, reason);
        }
        let mut name = server.name.clone();
        if is_taken(&name) {
            let numbered = (2..).map(|number| format!("{}-{number}", server.name)).find(|name| !is_taken(name));
            name = numbered.unwrap_or(name);
            notes.push(format!("another server is called `{}`", server.name));
        }
        let namespace = server_namespace(&name);
        let is_used = |namespace: &str| {
            self.servers.iter().any(|other| namespace_of(&other.name, &other.entry) == namespace)
                || present.namespaces().any(|other| other == namespace)
        };
        if is_used(&namespace) {
            let numbered = (2..).map(|number| format!("{namespace}-{number}")).find(|name| !is_used(name));
            let own = numbered.unwrap_or(namespace);
            notes.push(format!(
                "the ids of its tools begin with `{own}`, since another server has the name without the number"
            ));
            entry.insert("namespace".to_owned(), own.into());
        }
        self.variables.extend(variables);
        let (client, from) = (file.place.client, file.place.path.clone());
        self.servers.push(Converted { name, client, from, entry, notes });
    }

    fn move_out(&mut self, file: &ClientFile, server: &ClientServer) {
        let moved = Moved { place: server.place.clone(), name: server.name.clone() };
        self.moved.entry(file.place.path.clone()).or_default().push(moved);
    }

    fn skip(&mut self, file: &ClientFile, server: &ClientServer, reason: String) {
        self.skipped.push(Skipped { name: server.name.clone(), from: file.place.path.clone(), reason });
    }
}

/// What becomes of a value that may be a secret.
pub(super) const MOVED_BY_APPLY: &str =
    ": `mcp import --apply` moves it into the gateway's entry in the client's file; elsewhere,";

/// Members of entries that have no meaning for a gateway.
const WITHOUT_MEANING: [&str; 6] = ["name", "description", "type", "transport", "gallery", "version"];

struct Draft<'d> {
    server: &'d ClientServer,
    file: &'d ClientFile,
    home: Option<&'d Path>,
    notes: Vec<String>,
    variables: BTreeSet<String>,
    /// What clients have for variables, those of servers before this one included.
    values: BTreeMap<String, String>,
    /// The variables that the server's own entry sets, as they stand in the configuration.
    own: BTreeMap<String, String>,
    /// Names of variables that have a value which is not known here.
    reserved: BTreeSet<String>,
    /// Whether the entry is written as in a configuration.
    is_own_form: bool,
    /// Whether another file says that the server is switched off.
    is_off: bool,
}

impl Draft<'_> {
    /// What the client has for the variables of this server.
    fn known(&self) -> BTreeMap<String, String> {
        let known = self.values.iter().filter(|(name, _)| self.variables.contains(*name));
        known.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    fn entry(&mut self) -> Result<Map<String, Value>, String> {
        let Value::Object(members) = &self.server.entry else { return Err("its entry is not an object".to_owned()) };
        let is_off = self.server.is_off || self.is_off;
        if is_off
            || members.get("disabled") == Some(&Value::Bool(true))
            || members.get("enabled") == Some(&Value::Bool(false))
        {
            return Err("it is switched off".to_owned());
        }
        let text = |keys: &[&str]| {
            keys.iter().find_map(|key| members.get(*key)).and_then(Value::as_str).filter(|text| !text.is_empty())
        };
        let other_than_text = |keys: &[&str]| {
            let key = keys
                .iter()
                .find(|key| members.get(**key).is_some_and(|value| !value.is_string() && !value.is_null()))?;
            Some(format!("`{key}` must be a string"))
        };
        const ADDRESSES: [&str; 3] = ["url", "serverUrl", "httpUrl"];
        let url = text(&ADDRESSES);
        let kind = text(&["type", "transport"]).unwrap_or(if url.is_some() { "http" } else { "stdio" });
        let mut entry = Map::new();
        let mut understood = vec!["url", "serverUrl", "httpUrl", "disabled", "enabled"];
        match (kind, text(&["command"]), url) {
            ("stdio", Some(command), _) => {
                understood.extend(["command", "args", "env", "cwd", "inherit_env"]);
                self.local(members, command, &mut entry)?;
            }
            ("http" | "streamable-http" | "streamableHttp" | "sse", _, Some(url)) => {
                understood.push("headers");
                if kind == "sse" {
                    entry.insert("type".to_owned(), "sse".into());
                }
                self.remote(members, url, &mut entry)?;
            }
            ("stdio", None, _) if text(&["type", "transport"]).is_none() => {
                let wrong = other_than_text(&["command"]).or_else(|| other_than_text(&ADDRESSES));
                return Err(wrong.unwrap_or_else(|| "it has neither `command` nor `url`".to_owned()));
            }
            ("stdio", None, _) => {
                return Err(other_than_text(&["command"]).unwrap_or_else(|| "it has no `command`".to_owned()));
            }
            ("http" | "streamable-http" | "streamableHttp" | "sse", ..) => {
                return Err(other_than_text(&ADDRESSES).unwrap_or_else(|| "it has no `url`".to_owned()));
            }
            (other, ..) => return Err(format!("the gateway does not support the transport `{other}`")),
        }
        for (theirs, ours) in [("disabledTools", "exclude_tools"), ("enabledTools", "include_tools")] {
            if let Some(tools) = members.get(theirs) {
                entry.insert(ours.to_owned(), texts(tools, theirs)?.into());
                understood.push(theirs);
            }
        }
        if let Some(seconds) = members.get("timeout_seconds") {
            entry.insert("timeout".to_owned(), seconds.clone());
            understood.push("timeout_seconds");
        }
        let row = row(self.file.place.client);
        let foreign: Vec<&str> = members
            .keys()
            .map(String::as_str)
            .filter(|key| !understood.contains(key) && !WITHOUT_MEANING.contains(key))
            .map(|key| row.own_name(key))
            .collect();
        if !foreign.is_empty() {
            self.notes.push(format!("not imported: {}", foreign.join(", ")));
        }
        if foreign.contains(&"envFile") {
            let note = "set the variables of its `envFile` in the gateway's environment, and list them under \
                        `inherit_env`";
            self.notes.push(note.to_owned());
        }
        Ok(entry)
    }

    fn local(
        &mut self,
        members: &Map<String, Value>,
        command: &str,
        entry: &mut Map<String, Value>,
    ) -> Result<(), String> {
        let mut args = members.get("args").map(|args| texts(args, "args")).transpose()?.unwrap_or_default();
        let mut command = command;
        if let Some((program, rest)) = command_line(command)? {
            command = program;
            args.splice(0..0, rest);
            self.notes.push(
                "its `command` was a whole command line; everything after the program is now in \
                             `args`"
                    .to_owned(),
            );
        }
        if is_gateway(self.server) {
            return Err("it is this gateway".to_owned());
        }
        // Arguments may refer to the variables, so that these come first; what is said of them comes last.
        let before = std::mem::take(&mut self.notes);
        let env = members.get("env").map(|env| self.named_values(env, "env", |_, name| name.to_owned())).transpose()?;
        let env = env.unwrap_or_default();
        let of_env = std::mem::replace(&mut self.notes, before);
        self.own = env.iter().filter_map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned()))).collect();
        entry.insert("command".to_owned(), self.mapped(command).into());
        if !args.is_empty() {
            entry.insert("args".to_owned(), self.arguments(command, &args).into());
        }
        self.notes.extend(of_env);
        if !env.is_empty() {
            entry.insert("env".to_owned(), env.into());
        }
        let mut inherited = passed_on(command, &args, entry.get("env"));
        if let Some(Value::Array(named)) = members.get("inherit_env") {
            let name_of = |value: &Value| value.as_str().or_else(|| value.get("name")?.as_str()).map(str::to_owned);
            for name in named.iter().filter_map(name_of) {
                // The gateway passes on what the client gives it.
                let value = format!("${{env:{name}}}");
                if self.free(&name, &value, true) == name {
                    self.values.insert(name.clone(), value);
                    self.variables.insert(name.clone());
                } else {
                    self.notes.push(format!(
                        "`{name}` of the gateway's environment is that of another server; fix it by hand"
                    ));
                }
                inherited.push(name);
            }
        }
        if !inherited.is_empty() {
            entry.insert("inherit_env".to_owned(), inherited.into());
        }
        let cwd = match members.get("cwd").and_then(Value::as_str) {
            Some(cwd) => {
                let cwd = self.mapped(cwd);
                Some(self.server.folder.as_ref().map_or_else(|| PathBuf::from(&cwd), |folder| folder.join(&cwd)))
            }
            // A client starts the servers of a project in its folder.
            None => self.server.folder.clone(),
        };
        if let Some(cwd) = cwd {
            // The configuration has no variables in `cwd`.
            if cwd.to_string_lossy().contains("${") {
                self.notes.push("`cwd` contains a variable; fix it by hand".to_owned());
            }
            if cwd.is_relative() {
                let note = "`cwd` begins where the client was started, and for the gateway at its configuration; write all of it";
                self.notes.push(note.to_owned());
            }
            entry.insert("cwd".to_owned(), cwd.to_string_lossy().into());
        }
        Ok(())
    }

    fn remote(
        &mut self,
        members: &Map<String, Value>,
        url: &str,
        entry: &mut Map<String, Value>,
    ) -> Result<(), String> {
        let mapped = self.mapped(url);
        let url = if is_secret_address(&mapped) {
            self.referred(&[&self.server.name, "url"], "the address", &mapped)
        } else {
            mapped
        };
        entry.insert("url".to_owned(), url.into());
        if let Some(headers) = members.get("headers") {
            let headers = self.named_values(headers, "headers", |server, name| variable(&[server, name]))?;
            if !headers.is_empty() {
                entry.insert("headers".to_owned(), headers.into());
            }
        }
        Ok(())
    }

    /// Variables or headers, of which `refer` names the reference by the server and the name.
    fn named_values(
        &mut self,
        values: &Value,
        field: &str,
        refer: fn(&str, &str) -> String,
    ) -> Result<Map<String, Value>, String> {
        let Value::Object(values) = values else { return Err(format!("its `{field}` is not an object")) };
        let mut mapped = Map::new();
        for (name, value) in values {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Number(_) | Value::Bool(_) => value.to_string(),
                Value::Null => continue,
                _ => return Err(format!("its `{field}.{name}` is not a string")),
            };
            let text = self.mapped(&text);
            let text = if is_plain(name, &text) {
                text
            } else {
                // What refers to a variable takes it as a whole.
                let (kind, bare) = if field == "headers" { credentials(&text) } else { ("", text.as_str()) };
                let what = match kind.trim_start() {
                    "" => format!("the value of `{name}`"),
                    kind => format!("what follows `{kind}` in `{name}`"),
                };
                let reference = refer(&self.server.name, name);
                let reference = self.reference(&reference, &what, bare);
                format!("{kind}{reference}")
            };
            mapped.insert(name.clone(), text.into());
        }
        Ok(mapped)
    }

    fn arguments(&mut self, command: &str, args: &[String]) -> Vec<String> {
        let mut mapped: Vec<String> = Vec::with_capacity(args.len());
        let mut after = None;
        for arg in args {
            let text = self.mapped(arg);
            let mut safe = String::with_capacity(text.len());
            for part in in_argument(after.take(), &text, of_runner(command).is_some()) {
                match part {
                    Part::Plain(text) => safe.push_str(text),
                    Part::Secret { name, what, value } => {
                        safe.push_str(&self.referred(&[&self.server.name, name], &what, value));
                    }
                }
            }
            let before = mapped.iter().rev().find(|word| !word.starts_with('-'));
            if text.starts_with('-') && takes_secret(arg, before.map_or(command, String::as_str)) {
                after = Some(arg.as_str());
            }
            mapped.push(safe);
        }
        mapped
    }

    fn referred(&mut self, words: &[&str], what: &str, value: &str) -> String {
        let name = variable(words);
        self.reference(&name, what, value)
    }

    /// The reference to a variable that has `value`; another server may have called another value so.
    fn reference(&mut self, name: &str, what: &str, value: &str) -> String {
        let more = match is_reference(value) {
            true => "; references in it are not replaced there, so write what they stand for",
            false => "",
        };
        let value = self.of_the_client(value);
        let name = self.free(name, &value, false);
        self.values.insert(name.clone(), value);
        self.variables.insert(name.clone());
        self.notes.push(format!(
            "{what} may be a secret{MOVED_BY_APPLY} set {name} to it in the gateway's environment{more}"
        ));
        format!("${{env:{name}}}")
    }

    /// The name of a variable for `value`: this one, unless it has another value elsewhere. What is only looked up in the
    /// environment may have been referred to before.
    fn free(&self, name: &str, value: &str, is_looked_up: bool) -> String {
        let is_taken = |name: &str| match self.values.get(name) {
            Some(other) => meaning(other) != meaning(value),
            None => !is_looked_up && self.reserved.contains(name),
        };
        let own = variable(&[&self.server.name, name]);
        let numbered = (2..).map(|number| format!("{own}_{number}"));
        let name = [name.to_owned(), own.clone()].into_iter().chain(numbered).find(|name| !is_taken(name));
        name.unwrap_or(own)
    }

    /// A text in our form as the client has it, with its own references.
    fn of_the_client(&self, text: &str) -> String {
        replaced(text, &mut |inner| {
            let own = inner.strip_prefix("env:").and_then(|name| self.values.get(name));
            own.cloned().unwrap_or_else(|| format!("${{{inner}}}"))
        })
    }

    /// The text with the client's variables in our form.
    fn mapped(&mut self, text: &str) -> String {
        replaced(text, &mut |inner| self.variable(inner))
    }

    fn variable(&mut self, inner: &str) -> String {
        let folder = self.server.folder.as_deref();
        let known = match inner {
            "workspaceFolder" | "workspaceRoot" => folder.map(|folder| folder.to_string_lossy().into_owned()),
            "workspaceFolderBasename" => {
                folder.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned())
            }
            "userHome" => self.home.map(|home| home.to_string_lossy().into_owned()),
            "pathSeparator" | "/" => Some(std::path::MAIN_SEPARATOR.to_string()),
            _ => None,
        };
        if let Some(known) = known {
            return known;
        }
        if inner.starts_with("file:") {
            return self.file(inner);
        }
        let (name, default) = inner.split_once(":-").map_or((inner, None), |(name, default)| (name, Some(default)));
        let input = inner.strip_prefix("input:");
        let name = match input {
            Some(input) => variable(&[input]),
            None => name.strip_prefix("env:").unwrap_or(name).to_owned(),
        };
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && !["workspaceFolder", "workspaceRoot", "workspaceFolderBasename", "userHome"].contains(&name.as_str());
        if !is_name {
            self.notes.push(format!("`${{{inner}}}` means nothing to a gateway; fix it by hand"));
            return format!("${{{inner}}}");
        }
        // Some programs look for what stands in their own environment in their arguments.
        if let Some(own) = self.own.get(&name).filter(|_| input.is_none()) {
            return own.clone();
        }
        let value = format!("${{{inner}}}");
        let ours = self.free(&name, &value, input.is_none() && default.is_none());
        match (input, default) {
            (Some(input), _) => {
                let about = self.file.inputs.get(input).filter(|about| !about.is_empty());
                let about = about.map(|about| format!(" ({about})")).unwrap_or_default();
                self.notes.push(format!(
                    "the client asks for `{input}`{about}, and still does with --apply; elsewhere, set {ours} in the gateway's \
                     environment"
                ));
            }
            (None, Some(_)) => self.notes.push(format!(
                "`{name}` has a default in the file, which --apply keeps there; elsewhere, set {ours} in the gateway's \
                 environment"
            )),
            (None, None) if ours != name => self
                .notes
                .push(format!("`{name}` of the client's environment is called {ours}, since {name} has another value")),
            (None, None) => {}
        }
        self.values.insert(ours.clone(), value);
        let reference = format!("${{env:{ours}}}");
        self.variables.insert(ours);
        reference
    }

    /// `${file:PATH}`. A gateway would read the file and hand it to the server, which is not what a client's file asks for.
    fn file(&mut self, inner: &str) -> String {
        let text = format!("${{{inner}}}");
        if self.is_own_form {
            return text;
        }
        let name = self.free(&variable(&[&self.server.name, "file"]), &text, false);
        self.notes.push(format!(
            "what the client means by `{text}` stays with it by --apply; elsewhere, set {name} in the gateway's environment"
        ));
        let reference = format!("${{env:{name}}}");
        self.values.insert(name.clone(), text);
        self.variables.insert(name);
        reference
    }
}

/// Where a program runs containers, the variables of its own environment that say where its daemon is.
fn of_runner(command: &str) -> Option<&'static [&'static str]> {
    const RUNNERS: [(&str, &[&str]); 2] = [
        ("docker", &["DOCKER_CERT_PATH", "DOCKER_CONFIG", "DOCKER_CONTEXT", "DOCKER_HOST", "DOCKER_TLS_VERIFY"]),
        ("podman", &["CONTAINER_HOST"]),
    ];
    let program = Path::new(command).file_stem().unwrap_or_default();
    RUNNERS.into_iter().find(|(runner, _)| *runner == program).map(|(_, own)| own)
}

/// The variables that a container's program finds in its own environment: those that say where its daemon is, and those
/// that `-e NAME` passes into the container. Some clients give a server their whole environment, the gateway does not.
fn passed_on(command: &str, args: &[String], env: Option<&Value>) -> Vec<String> {
    let Some(own) = of_runner(command) else { return Vec::new() };
    let behind = args.windows(2).filter_map(|pair| match pair {
        [flag, name] if matches!(flag.as_str(), "-e" | "--env") => Some(name.as_str()),
        _ => None,
    });
    let joined = args.iter().filter_map(|arg| arg.strip_prefix("--env="));
    let is_set = |name: &str| env.is_some_and(|env| env.get(name).is_some());
    let named = behind.chain(joined).filter(|name| !name.contains('=') && !is_set(name));
    own.iter().copied().chain(named).map(str::to_owned).collect()
}

/// The program and the words behind it, where somebody has put a whole command line into `command`.
fn command_line(command: &str) -> Result<Option<(&str, Vec<String>)>, String> {
    let mut words = command.split_whitespace();
    let (Some(program), Some(next)) = (words.next(), words.next()) else { return Ok(None) };
    // A path may have spaces in it, on Windows most of all.
    if command.contains('\\') || Path::new(command).exists() {
        return Ok(None);
    }
    if command.contains(['"', '\'']) {
        return Err("its `command` is a whole command line; move everything after the program into `args`".to_owned());
    }
    Ok(Some((program, std::iter::once(next).chain(words).map(str::to_owned).collect())))
}

fn texts(value: &Value, field: &str) -> Result<Vec<String>, String> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    };
    let texts = value.as_array().and_then(|values| values.iter().map(text).collect());
    texts.ok_or_else(|| format!("its `{field}` is not a list of strings"))
}

/// The name of a variable for these words.
fn variable(words: &[&str]) -> String {
    let letters = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let parts: Vec<String> = words
        .iter()
        .map(|word| word.chars().map(letters).collect::<String>())
        .map(|word| word.trim_matches('_').to_owned())
        .filter(|word| !word.is_empty())
        .collect();
    let name = parts.join("_");
    if name.starts_with(|c: char| c.is_ascii_digit()) || name.is_empty() { format!("_{name}") } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::clients::Place;
    use crate::operations::references::resolved;

    fn converted(files: &[(&str, Value)]) -> Conversion {
        let folder = tempfile::tempdir().unwrap();
        let files: Vec<ClientFile> = files
            .iter()
            .map(|(path, text)| {
                let path = folder.path().join(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(&path, text.to_string()).unwrap();
                let mut place = Place::of(&path, None);
                place.path = PathBuf::from(path.file_name().unwrap());
                place.folder = place.folder.map(|_| PathBuf::from("/work"));
                let mut file = ClientFile::read(Place { path, ..place.clone() }).unwrap();
                file.place = place;
                file
            })
            .collect();
        convert(&files, Some(Path::new("/home/me")))
    }

    fn shown(conversion: &Conversion) -> String {
        let mut lines = vec![conversion.to_text(Path::new("x.yaml")).unwrap()];
        for server in &conversion.servers {
            lines.extend(server.notes.iter().map(|note| format!("{}: {note}", server.name)));
        }
        lines.extend(conversion.skipped.iter().map(|skipped| format!("skipped {}: {}", skipped.name, skipped.reason)));
        lines.join("\n")
    }

    #[test]
    fn entries_of_all_clients_become_upstreams() {
        let token = format!("ghp_{}", "a1B2".repeat(9));
        let conversion = converted(&[
            (
                ".mcp.json",
                json!({"mcpServers": {
                    "git": {"command": "uvx", "args": ["mcp-server-git", "--repository", "${REPO:-/x}"], "env": {"LOG_LEVEL": "debug", "GITHUB_TOKEN": token}},
                    "docs": {"type": "http", "url": "https://docs.example.com/mcp", "headers": {"Authorization": "Bearer abc", "X-Team": "core", "X-Key": "${DOCS_KEY}"}},
                    "gateway": {"command": "/usr/bin/contextweaver", "args": ["mcp", "serve", "--config", "x"]},
                    "off": {"command": "x", "disabled": true},
                }}),
            ),
            (
                ".vscode/mcp.json",
                json!({"inputs": [{"id": "api-key", "description": "Key of the shop"}], "servers": {
                    "git": {"type": "stdio", "command": "uvx", "args": ["mcp-server-git"], "envFile": "${workspaceFolder}/.env"},
                    "shop": {"command": "node", "args": ["${workspaceFolder}/shop.js", "--home=${userHome}", "${command:pick}"], "env": {"K": "${input:api-key}", "N": 3, "L": "${env:LANG}"}},
                    "ws": {"type": "ws", "url": "ws://x"},
                }}),
            ),
            (
                "windsurf/mcp_config.json",
                json!({"mcpServers": {
                    "old": {"serverUrl": "https://u:pw@example.com/sse", "type": "sse", "disabledTools": ["drop"], "alwaysAllow": []},
                    "cli": {"command": "x", "args": ["--api-key", "hunter2", "--token=hunter3", "-H", "Authorization: Bearer hunter4", "-e", "MODE=fast", "https://example.com/a"]},
                    "short": {"command": "y", "args": ["-t", "SECRETWORD", "-k", "hunter5", "-p=hunter6", "--header=Authorization: Bearer hunter7", "https://h.example/?token=hunter8", "-t", "stdio", "-p", "8080:80", "-t", "ghcr.io/some/image:1.2"]},
                    "no": {},
                    "number": {"command": 5},
                    "list": {"type": "http", "url": ["https://a.example"]},
                    "none": {"command": null, "url": 5},
                    "bad": {"command": "x", "args": [{}]},
                }}),
            ),
        ]);
        let text = shown(&conversion);
        for secret in ["a1B2", "abc", "pw@", "hunter", "SECRETWORD"] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
        insta::assert_snapshot!(text, @r#"
    # yaml-language-server: $schema=gateway.schema.json
    # For completion in editors: contextweaver schema gateway > gateway.schema.json
    upstreams:
      git:
        command: uvx
        args:
        - mcp-server-git
        - --repository
        - ${env:REPO}
        env:
          LOG_LEVEL: debug
          GITHUB_TOKEN: ${env:GITHUB_TOKEN}
        cwd: /work
      docs:
        url: https://docs.example.com/mcp
        headers:
          Authorization: Bearer ${env:DOCS_AUTHORIZATION}
          X-Team: core
          X-Key: ${env:DOCS_KEY}
      git-2:
        command: uvx
        args:
        - mcp-server-git
        cwd: /work
      shop:
        command: node
        args:
        - /work/shop.js
        - --home=/home/me
        - ${command:pick}
        env:
          K: ${env:API_KEY}
          "N": "3"
          L: ${env:LANG}
        cwd: /work
      old:
        type: sse
        url: ${env:OLD_URL}
        exclude_tools:
        - drop
      cli:
        command: x
        args:
        - --api-key
        - ${env:CLI_API_KEY}
        - --token=${env:CLI_TOKEN}
        - -H
        - "Authorization: Bearer ${env:CLI_AUTHORIZATION}"
        - -e
        - MODE=fast
        - https://example.com/a
      short:
        command: "y"
        args:
        - -t
        - ${env:SHORT_T}
        - -k
        - ${env:SHORT_K}
        - -p=${env:SHORT_P}
        - "--header=Authorization: Bearer ${env:SHORT_AUTHORIZATION}"
        - https://h.example/?token=${env:SHORT_TOKEN}
        - -t
        - stdio
        - -p
        - 8080:80
        - -t
        - ghcr.io/some/image:1.2

    git: `REPO` has a default in the file, which --apply keeps there; elsewhere, set REPO in the gateway's environment
    git: the value of `GITHUB_TOKEN` may be a secret: `mcp import --apply` moves it into the gateway's entry in the client's file; elsewhere, set GITHUB_TOKEN to it in the gateway's environment
    docs: what follows `Bearer ` in `Authorization` may be a secret: `mcp import --apply` moves it into the gateway's entry in the client's file; elsewhere, set DOCS_AUTHORIZATION to it in the gateway's environment
    git-2: not imported: envFile
    git-2: set the variables of its `envFile` in the gateway's environment, and list them under `inherit_env`
    git-2: another server is called `git`
    shop: `${command:pick}` means nothing to a gateway; fix it by hand
    shop: the client asks for `api-key` (Key of the shop), and still does with --apply; elsewhere, set API_KEY in the gateway's environment
    old: the address may be a secret: `mcp import --apply` moves it into the gateway's entry in the client's file; elsewhere, set OLD_URL to it in the gateway's environment
    old: not imported: alwaysAllow
    cli: what follows `--api-key` may be a secret: `mcp import --apply` moves it into the gateway's entry in the client's file; elsewhere, set CLI_API_KEY to it in the gateway's environment
    cli: the value of `--token` may be a secret: `mcp import --apply` moves it into the gateway's entry in the client's file; elsewhere, set CLI_TOKEN to it in the gateway's environment
    cli: the value of `Authorization` may be a secret: `mcp import --apply` moves it into the gateway's entry in the client's file; elsewhere, set CLI_AUTHORIZATION to it in the gateway's environment
    short: what follows `-t` may be a secret: `mcp import --apply` moves it into the gateway's entry in the client's file; elsewhere, set SHORT_T to it in the gateway's environment
    short: what follows `-k` may be a secret: `mcp import --apply` moves it into the gateway's entry in the client's file; elsewhere, set SHORT_K to it in the gateway's environment
    short: the value of `-p` may be a secret: `mcp import --apply` moves it into the gateway's entry in the client's file; elsewhere, set SHORT_P to it in the gateway's environment
    short: the value of `Authorization` may be a secret: `mcp import --apply` moves it into the gateway's entry in the client's file; elsewhere, set SHORT_AUTHORIZATION to it in the gateway's environment
    short: the value of `token` may be a secret: `mcp import --apply` moves it into the gateway's entry in the client's file; elsewhere, set SHORT_TOKEN to it in the gateway's environment
    skipped gateway: it is this gateway
    skipped off: it is switched off
    skipped ws: the gateway does not support the transport `ws`
    skipped no: it has neither `command` nor `url`
    skipped number: `command` must be a string
    skipped list: `url` must be a string
    skipped none: `url` must be a string
    skipped bad: its `args` is not a list of strings
    "#);
        insta::assert_snapshot!(format!("{:?}", conversion.variables), @r#"{"API_KEY", "CLI_API_KEY", "CLI_AUTHORIZATION", "CLI_TOKEN", "DOCS_AUTHORIZATION", "DOCS_KEY", "GITHUB_TOKEN", "LANG", "OLD_URL", "REPO", "SHORT_AUTHORIZATION", "SHORT_K", "SHORT_P", "SHORT_T", "SHORT_TOKEN"}"#);
    }

    #[test]
    fn containers_get_the_variables_that_they_pass_on() {
        let conversion = converted(&[(
            "mcp.json",
            json!({"mcpServers": {
                "a": {"command": "docker", "args": ["run", "-i", "-e", "GH", "--env=MODE", "-e", "SET", "-e", "X=1", "image"], "env": {"SET": "on"}},
                "b": {"command": "/usr/bin/podman", "args": ["run", "-e", "GH", "image"]},
                "c": {"command": "x", "args": ["-e", "GH"]},
            }}),
        )]);
        let inherited = conversion.servers.iter().map(|server| server.entry.get("inherit_env").cloned());
        let docker =
            ["DOCKER_CERT_PATH", "DOCKER_CONFIG", "DOCKER_CONTEXT", "DOCKER_HOST", "DOCKER_TLS_VERIFY", "GH", "MODE"];
        let expected = [Some(json!(docker)), Some(json!(["CONTAINER_HOST", "GH"])), None];
        assert_eq!(inherited.collect::<Vec<_>>(), expected);
        let config = GatewayConfig::parse(&conversion.to_value().to_string(), Path::new("/"), &|_| Some(String::new()));
        assert_eq!(config.unwrap().upstreams.len(), 3);
    }

    #[test]
    fn equal_servers_are_taken_once() {
        let server = json!({"mcpServers": {"a": {"command": "x"}}});
        let conversion = converted(&[("claude_desktop_config.json", server.clone()), ("other.json", server)]);
        assert_eq!((conversion.servers.len(), conversion.skipped.len()), (1, 1));
    }

    #[test]
    fn names_that_make_one_namespace_are_told_apart() {
        let conversion = converted(&[(
            "mcp.json",
            json!({"mcpServers": {"日本": {"command": "a"}, "日語": {"command": "b"}, "x": {"command": "c"}, "X": {"command": "d"}}}),
        )]);
        let named = |server: &Converted| (server.name.clone(), server.entry.get("namespace").cloned());
        let expected = [("日本", None), ("日語", Some("mcp-2")), ("x", None), ("X", Some("x-2"))];
        let found: Vec<_> = conversion.servers.iter().map(named).collect();
        assert_eq!(found, expected.map(|(name, namespace)| (name.to_owned(), namespace.map(Value::from))));
        conversion.to_text(Path::new("x.yaml")).unwrap();
    }

    #[test]
    fn a_command_line_is_divided_and_its_secrets_are_references() {
        let conversion = converted(&[(
            "mcp.json",
            json!({"mcpServers": {
                "a": {"command": "python3 /tmp/x.py --token abcdefgh12345678", "args": ["more"]},
                "b": {"command": r"C:\Program Files\node.exe"},
                "c": {"command": "sh -c 'x y'"},
            }}),
        )]);
        let entry = |at: usize| Value::Object(conversion.servers[at].entry.clone());
        assert_eq!(entry(0), json!({"command": "python3", "args": ["/tmp/x.py", "--token", "${env:A_TOKEN}", "more"]}));
        assert_eq!(entry(1), json!({"command": r"C:\Program Files\node.exe"}));
        assert!(conversion.skipped[0].reason.contains("`args`"), "{:?}", conversion.skipped);
    }

    #[test]
    fn references_stay_whole_and_the_client_keeps_its_own() {
        let cases = [
            (
                json!({"args": ["s.py", "--api-key=${env:API_KEY}"]}),
                json!(["s.py", "--api-key=${env:API_KEY}"]),
                "API_KEY=${env:API_KEY}",
            ),
            (json!({"args": ["--token=${input:token}"]}), json!(["--token=${env:TOKEN}"]), "TOKEN=${input:token}"),
            (
                json!({"args": ["--header", "Authorization:${AUTH_HEADER}"], "env": {"AUTH_HEADER": "Bearer abc"}}),
                json!(["--header", "Authorization:${env:AUTH_HEADER}"]),
                "AUTH_HEADER=Bearer abc",
            ),
            (
                json!({"args": ["${HDR}", "${PORT}"], "env": {"HDR": "Bearer abc", "PORT": 8080}}),
                json!(["${env:HDR}", "8080"]),
                "HDR=Bearer abc",
            ),
            (json!({"args": ["${D:-/x}"]}), json!(["${env:D}"]), "D=${D:-/x}"),
            (
                json!({"args": ["https://h.example/?api_key=${env:K}&token=hunter2"]}),
                json!(["https://h.example/?api_key=${env:K}&token=${env:S_TOKEN}"]),
                "K=${env:K} S_TOKEN=hunter2",
            ),
            (
                json!({"args": ["--token=${command:pick}"]}),
                json!(["--token=${env:S_TOKEN}"]),
                "S_TOKEN=${command:pick}",
            ),
            // A value that the entry sets, and one of the client's environment with the same name.
            (
                json!({"args": [], "env": {"PATH": "/x:${PATH}", "TOKEN": "abc1"}}),
                Value::Null,
                "PATH=${PATH} TOKEN=abc1",
            ),
        ];
        for (mut entry, args, own) in cases {
            entry["command"] = "x".into();
            let conversion = converted(&[("mcp.json", json!({"mcpServers": {"s": entry}}))]);
            let server = &conversion.servers[0];
            assert_eq!(server.entry.get("args").cloned().unwrap_or_default(), args, "{entry}");
            let known: Vec<String> =
                conversion.own.values().flatten().map(|(name, value)| format!("{name}={value}")).collect();
            assert_eq!(known.join(" "), own, "{entry}");
        }
        let two = json!({"a": {"command": "a", "env": {"TOKEN": "abc1"}}, "b": {"command": "b", "args": ["${TOKEN}"]}});
        let conversion = converted(&[("mcp.json", json!({"mcpServers": two}))]);
        assert_eq!(conversion.servers[1].entry["args"], json!(["${env:B_TOKEN}"]), "{:?}", conversion.servers[1].notes);
        let environment = |name: &str| (name == "A").then(|| "1".to_owned());
        for (text, expected) in [
            ("${env:A}-${A}", Some("1-1")),
            ("${B:-2}", Some("2")),
            ("${B}", None),
            ("${input:a}", None),
            ("x", Some("x")),
        ] {
            assert_eq!(resolved(text, &environment).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_secret_beside_a_reference_becomes_one_reference_with_it() {
        let conversion = converted(&[(
            "mcp.json",
            json!({"mcpServers": {
                "g": {"command": "cat", "env": {"TOKEN": "real${env:X}", "BASE": "https://${env:HOST}/path"}},
                "h": {"url": "https://u:pre${env:P}@h.example/m", "headers": {"Authorization": "Bearer ${env:TOK}extra"}},
            }}),
        )]);
        let entries: Vec<String> =
            conversion.servers.iter().map(|server| Value::Object(server.entry.clone()).to_string()).collect();
        insta::assert_snapshot!(entries.join("\n"), @r#"
        {"command":"cat","env":{"TOKEN":"${env:TOKEN}","BASE":"https://${env:HOST}/path"}}
        {"url":"${env:H_URL}","headers":{"Authorization":"Bearer ${env:H_AUTHORIZATION}"}}
        "#);
        assert_eq!(conversion.values["TOKEN"], "real${env:X}");
        insta::assert_snapshot!(conversion.servers[0].notes.join("\n"), @"the value of `TOKEN` may be a secret: `mcp import --apply` moves it into the gateway's entry in the client's file; elsewhere, set TOKEN to it in the gateway's environment; references in it are not replaced there, so write what they stand for");
    }

    #[test]
    fn of_an_argument_with_several_values_the_secrets_alone_are_covered() {
        let cases = [
            (
                json!(["-c", r#"curl -H "Authorization: Bearer abc1" -H 'X-Key: abc2' https://x:8080/y"#]),
                json!([
                    "-c",
                    r#"curl -H "Authorization: Bearer ${env:S_AUTHORIZATION}" -H 'X-Key: ${env:S_X_KEY}' https://x:8080/y"#
                ]),
            ),
            (
                json!([r#"--headers={"Authorization": "Bearer abc1", "V": "2"}"#]),
                json!([r#"--headers={"Authorization": "Bearer ${env:S_AUTHORIZATION}", "V": "2"}"#]),
            ),
            (json!(["-c", "exec x --token=abc1 --port=8080"]), json!(["-c", "exec x --token=${env:S_TOKEN}"])),
            (json!(["-e", "TOKEN=real${env:X}"]), json!(["-e", "TOKEN=${env:S_TOKEN}"])),
            (json!(["--token", "pre${env:X}"]), json!(["--token", "${env:S_TOKEN}"])),
            (json!(["-u", "me:pass1"]), json!(["-u", "me:${env:S_PASSWORD}"])),
            (json!(["--user=me:pass1"]), json!(["--user=me:${env:S_PASSWORD}"])),
            (json!(["-u", "${env:ME}:pass1"]), json!(["-u", "${env:ME}:${env:S_PASSWORD}"])),
            (json!(["-u", "me@h.example:pass1"]), json!(["-u", "me@h.example:${env:S_PASSWORD}"])),
            (json!(["-u", "admin:supersecret"]), json!(["-u", "admin:${env:S_PASSWORD}"])),
            (
                json!([r#"--config={"password":"hunter\"-22pass","port":80}"#]),
                json!([r#"--config={"password":"${env:S_PASSWORD}","port":80}"#]),
            ),
            (
                json!(["-c", r#"PASSWORD="ab\"!cdefSecret9" exec x"#]),
                json!(["-c", r#"PASSWORD="${env:S_PASSWORD}" exec x"#]),
            ),
            (json!(["--password='abc'-hunter22"]), json!(["--password=${env:S_PASSWORD}"])),
            (json!([r#"--header=Cookie: "a=b"; c=secret99"#]), json!(["--header=Cookie: ${env:S_COOKIE}"])),
            (
                json!(["-c", r#"node -e "f({password: 'ab'+'cdSecret9'})""#]),
                json!(["-c", r#"node -e "f({password: ${env:S_PASSWORD}""#]),
            ),
            (
                json!(["-c", r#"node -e "f({password: 'ab' + 'cdSecret9'})""#]),
                json!(["-c", r#"node -e "f({password: ${env:S_PASSWORD}""#]),
            ),
            (
                json!(["-c", r#"curl -d "{\"password\": \"hun\\\"ter99\", \"v\": 2}" https://x"#]),
                json!(["-c", r#"curl -d "{\"password\": \"${env:S_PASSWORD}\", \"v\": 2}" https://x"#]),
            ),
            (json!(["-c", "TOKEN=hunterpw ${env:RUN} x"]), json!(["-c", "TOKEN=${env:S_TOKEN}"])),
            (json!(["postgresql://u:token@localhost:5432/db"]), json!(["${env:S_ARGUMENT}"])),
        ];
        for (args, expected) in cases {
            let entry = json!({"command": "x", "args": args});
            let conversion = converted(&[("mcp.json", json!({"mcpServers": {"s": entry}}))]);
            assert_eq!(conversion.servers[0].entry["args"], expected, "{:?}", conversion.servers[0].notes);
            assert!(!conversion.servers[0].notes.is_empty(), "{args}");
        }
        let kept = [
            json!(["-c", r#"curl -H "Authorization: Bearer ${env:T}" https://x:8080/y"#]),
            json!(["-c", "TOKEN=${env:T} exec x --port=8080"]),
            json!(["Server=x;Password=${env:P};Database=shop"]),
            json!([r#"--headers={"Authorization": "Bearer ${env:T}", "V": "2"}"#]),
            json!(["-p", "${env:PORT}:80", "-t", "image:${env:TAG}"]),
            json!([
                "--secret-file",
                "/run/s3cret",
                "--token-file=./t",
                "--auth_file",
                "x",
                "--key-path",
                "~/k",
                "--token-dir",
                "/t"
            ]),
            json!(["-u", "${env:U}:${env:P}"]),
            json!(["-u", "1000:1000"]),
            json!(["-u", "me", "--user=localhost:8080", "-U", "https://h.example:80/m", "-u", "h.example:80"]),
            json!(["-u", "git@github.com:me/repo.git", "-u", "jdbc:postgresql://localhost:5432/db"]),
            json!(["-u", "myhost:8080", "--user", "sip:me@host", "-u", "1000:Users"]),
            json!(["run", "python", "-u", "main:App2"]),
            json!(["--key", "${env:HOME}/.ssh/id_rsa", "--key=${env:HOME}/.ssh/id_ed25519"]),
            json!(["--key", r"C:\Users\${env:USERNAME}\.ssh\id_rsa", "--credentials", "${env:HOME}/c.json"]),
            json!(["--session-name", "dev-${env:USER}", "--auth-mode", "oauth-${env:X}"]),
            json!(["-H", "Authorization: SSWS ${env:T}", "--header=Authorization: GenieKey ${env:T}"]),
            json!(["-c", r#"curl -H "Authorization: SSWS ${env:T}" https://x:8080/y"#]),
            json!(["-e", "GOOGLE_APPLICATION_CREDENTIALS=${env:HOME}/creds.json"]),
            json!(["-e", "CONNECTION_STRING=Server=db;User Id=sa;Password=${env:PW};TrustServerCertificate=true"]),
            json!(["--connection-string", "Server=db;Password=${env:PW};TrustServerCertificate=true"]),
            json!(["postgresql://u:${env:PW}@localhost:5432/db", "-c", "psql postgres://u:$PW@localhost/db"]),
        ];
        for args in kept {
            let entry = json!({"command": "x", "args": args});
            let conversion = converted(&[("mcp.json", json!({"mcpServers": {"s": entry}}))]);
            assert_eq!(conversion.servers[0].entry["args"], args, "{:?}", conversion.servers[0].notes);
        }
        let programs = [
            json!({"command": "docker", "args": ["run", "-u", "node:node", "image"]}),
            json!({"command": "docker", "args": ["run", "--user", "1000:Users", "-u", "app:nogroup1", "image"]}),
            json!({"command": "python", "args": ["-u", "server:App2"]}),
        ];
        for entry in programs {
            let conversion = converted(&[("mcp.json", json!({"mcpServers": {"s": entry}}))]);
            assert_eq!(conversion.servers[0].entry["args"], entry["args"]);
        }
    }

    #[test]
    fn a_file_that_a_configuration_refers_to_is_in_its_folder() {
        use crate::upstream::config::Target;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gateway.yaml");
        std::fs::write(folder.path().join("tok"), "\u{feff}topsecret\n").unwrap();
        let entry = |value: Value| {
            ClientFile::of(Place::of(Path::new("servers.json"), None), json!({"mcpServers": {"b": value}}).to_string())
                .unwrap()
        };
        let text = "upstreams:\n  a:\n    command: cat\n    args: [\"${file:tok}\"]\n";
        let present = Present::of(text, &path, BTreeMap::new()).unwrap();
        let added = |value: Value| {
            let conversion = convert_beside(&[entry(value)], None, &present.clone().for_own_form());
            (conversion.servers[0].notes.join("; "), conversion.added_to(&present, &path))
        };
        let (notes, addition) = added(json!({
            "url": "https://h.example/m",
            "headers": {"Authorization": "Bearer ${file:tok}", "X-Key": "${file:tok}"},
        }));
        assert_eq!(notes, "");
        std::fs::write(&path, addition.unwrap().text).unwrap();
        let config = GatewayConfig::load(&path).unwrap();
        let Target::Http { headers, .. } = &config.upstreams["b"].target else { panic!("another target") };
        assert_eq!((headers["Authorization"].as_str(), headers["X-Key"].as_str()), ("Bearer topsecret", "topsecret"));
        let (_, addition) = added(json!({"command": "cat", "args": ["${file:none}"]}));
        assert!(addition.unwrap_err().to_string().contains("upstreams.b.args: "));
        // A client's file reads no file for a server.
        let conversion =
            convert_beside(&[entry(json!({"command": "cat", "args": ["${file:/etc/passwd}"]}))], None, &present);
        assert_eq!(conversion.servers[0].entry["args"], json!(["${env:B_FILE}"]));
        assert_eq!(conversion.values["B_FILE"], "${file:/etc/passwd}");
    }

    #[test]
    fn a_server_needs_a_name_that_can_be_read() {
        let conversion = converted(&[(
            "mcp.json",
            json!({"mcpServers": {"": {"command": "a"}, " ": {"command": "b"}, "n\nl": {"command": "c"}, "d": {"command": "d"}}}),
        )]);
        let reasons: Vec<&str> = conversion.skipped.iter().map(|skipped| skipped.reason.as_str()).collect();
        assert_eq!(conversion.servers.len(), 1, "{reasons:?}");
        assert_eq!(reasons.iter().filter(|reason| **reason == "its name is empty; give it one").count(), 2);
        assert!(reasons.iter().any(|reason| reason.contains("a control character")), "{reasons:?}");
    }

    #[test]
    fn lists_of_tools_and_times_are_taken_over() {
        let entry = |path: &str, text: &str| {
            let file = ClientFile::of(Place::of(&Path::new("/home/me").join(path), None), text.to_owned()).unwrap();
            let conversion = convert(&[file], None);
            let shown = conversion.servers.first().map(|server| {
                let field = |key: &str| server.entry.get(key).map(Value::to_string).unwrap_or_default();
                format!("{} {} {}", field("include_tools"), field("timeout"), server.notes.join("; "))
            });
            shown.unwrap_or_else(|| conversion.skipped[0].reason.clone())
        };
        let cases = [
            (
                ".config/goose/config.yaml",
                "extensions: {a: {cmd: a, type: stdio, available_tools: [read]}}",
                "[\"read\"]  ",
            ),
            (".config/goose/config.yaml", "extensions: {a: {cmd: a, type: stdio, available_tools: []}}", "  "),
            (
                ".config/goose/config.yaml",
                "extensions: {a: {uri: 'https://h.example', type: streamable_http, envs: {A: b}, env_keys: [C]}}",
                "  not imported: envs, env_keys",
            ),
            (
                ".copilot/mcp-config.json",
                r#"{"mcpServers": {"a": {"command": "a", "tools": ["read"]}}}"#,
                "[\"read\"]  ",
            ),
            (".copilot/mcp-config.json", r#"{"mcpServers": {"a": {"command": "a", "tools": ["*"]}}}"#, "  "),
            (
                ".copilot/mcp-config.json",
                r#"{"mcpServers": {"a": {"command": "a", "tools": []}}}"#,
                "it is switched off",
            ),
            (".gemini/settings.json", r#"{"mcpServers": {"a": {"command": "a", "timeout": 1500}}}"#, " 2 "),
            (
                ".codex/config.toml",
                "[mcp_servers.a]\ncommand = 'a'\ntool_timeout_sec = 90\nstartup_timeout_sec = 5\n",
                " 90 not imported: startup_timeout_sec",
            ),
        ];
        for (path, text, expected) in cases {
            assert_eq!(entry(path, text), expected, "{text}");
        }
        let place = Place { client: Client::named("gemini"), path: PathBuf::from("/x/settings.json"), folder: None };
        let text = r#"{"mcpServers": {"a": {"command": "a", "cwd": "./x"}}}"#;
        let conversion = convert(&[ClientFile::of(place, text.to_owned()).unwrap()], None);
        assert!(conversion.servers[0].notes[0].contains("`cwd` begins where"), "{:?}", conversion.servers[0].notes);
    }
}
