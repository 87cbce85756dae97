//! What a client's file says: its servers, and the entries of gateways in it.
//!
//! Every client has its own place and form (`clients`); here files are read into one form. What an entry means is the business of
//! `import`, and how a file is changed that of `applied`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::client_edit::{Form, read};
use super::clients::{Place, off_in_projects, row};
use crate::common::program;

/// A server as a client's file has it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ClientServer {
    pub(crate) name: String,
    /// The project that it belongs to.
    pub(crate) folder: Option<PathBuf>,
    /// The keys that lead to the object that it stands in.
    pub(crate) place: Vec<String>,
    /// Its entry, in the form that most clients have.
    pub(crate) entry: Value,
    /// Whether it is switched off somewhere else than in its entry.
    pub(crate) is_off: bool,
}

/// An entry of a gateway in a client's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayEntry {
    /// Its name in the file.
    pub name: String,
    /// The keys that lead to the object that it stands in.
    pub(crate) place: Vec<String>,
    /// The configuration of the gateway, where the entry names one.
    pub config: Option<PathBuf>,
    /// The variables that the client starts it with: values, or texts with references as most clients write them.
    pub env: BTreeMap<String, String>,
}

/// A file that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientFile {
    /// The path of the file.
    pub place: Place,
    /// Its text.
    pub(crate) text: String,
    /// Its servers, in the order of the file.
    pub(crate) servers: Vec<ClientServer>,
    /// What is asked of a person when a server starts, by id.
    pub(crate) inputs: BTreeMap<String, String>,
    /// Servers of projects, whose own file may be another, that it switches off.
    pub(crate) off_in_projects: Vec<(PathBuf, String)>,
}

/// A client's file cannot be read, or not be changed as it is to be.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct ClientFileError {
    /// The file, or what lies beside it.
    pub path: PathBuf,
    /// Why not, and where.
    pub reason: String,
}

/// Files of a project in which Claude Code keeps what is switched off.
const SETTINGS: [&str; 2] = [".claude/settings.json", ".claude/settings.local.json"];

impl ClientFile {
    /// Reads the file at `place`.
    ///
    /// # Errors
    /// [`ClientFileError`]: it cannot be read, or its text has another form than files of its client.
    pub fn read(place: Place) -> Result<Self, ClientFileError> {
        let path = place.path.clone();
        let failed = |reason: String| ClientFileError { path: path.clone(), reason };
        let text = std::fs::read_to_string(&path).map_err(|error| failed(error.to_string()))?;
        let mut file = Self::of_text(place, text).map_err(failed)?;
        // What a person has chosen for a project stands beside the servers that all have.
        for settings in file.place.folder.iter().flat_map(|folder| SETTINGS.map(|name| folder.join(name))) {
            let text = std::fs::read_to_string(settings).unwrap_or_default();
            let Ok(document) = read(Form::Json, &text) else { continue };
            let switches = row(file.place.client).switches;
            for server in &mut file.servers {
                server.is_off |= switches(&document, &server.place, &server.name);
            }
        }
        Ok(file)
    }

    /// As [`Self::read`], were `text` what stands at `place`.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn of(place: Place, text: String) -> Result<Self, ClientFileError> {
        let path = place.path.clone();
        Self::of_text(place, text).map_err(|reason| ClientFileError { path, reason })
    }

    fn of_text(place: Place, text: String) -> Result<Self, String> {
        let form = place.form();
        let document = read(form, &text)?;
        if !document.is_object() {
            let reason = "it is no file of a client: that has an object with its servers, under `mcpServers`, `servers` or the like";
            return Err(reason.to_owned());
        }
        let row = row(place.client);
        let mut servers = Vec::new();
        for keys in row.keys {
            for (found, entries) in objects(&document, keys) {
                let Value::Object(entries) = entries else {
                    if entries.is_null() {
                        continue;
                    }
                    let key = keys.last().copied().unwrap_or_default();
                    let line = line_of_key(&text, form, key).map(|line| format!("line {line}: ")).unwrap_or_default();
                    let found = found.join(".");
                    return Err(match entries.is_array() {
                        true => format!(
                            "{line}`{found}` is a list of servers, as Continue has it: that client is not supported; write \
                             each server as a member of an object, by its name"
                        ),
                        false => format!("{line}`{found}` is not an object of servers"),
                    });
                };
                // Claude Code keeps the servers of projects in one file.
                let folder = match found.as_slice() {
                    [projects, folder, _] if projects == "projects" => Some(PathBuf::from(folder)),
                    _ => place.folder.clone(),
                };
                for (name, entry) in entries {
                    let entry = match entry {
                        Value::Object(entry) => Value::Object((row.read)(entry.clone())),
                        other => other.clone(),
                    };
                    servers.push(ClientServer {
                        is_off: (row.switches)(&document, &found, name),
                        name: name.clone(),
                        folder: folder.clone(),
                        place: found.clone(),
                        entry,
                    });
                }
            }
        }
        let inputs = [document.get("inputs"), document.get("mcp").and_then(|older| older.get("inputs"))];
        let inputs = inputs.into_iter().flatten().filter_map(Value::as_array).flatten();
        let text_of = |input: &Value, key: &str| input.get(key).and_then(Value::as_str).map(str::to_owned);
        let inputs = inputs
            .filter_map(|input| Some((text_of(input, "id")?, text_of(input, "description").unwrap_or_default())))
            .collect();
        let off_in_projects = off_in_projects(&document);
        Ok(Self { place, text, servers, inputs, off_in_projects })
    }

    /// The entries that start a gateway of ours.
    #[must_use]
    pub fn gateways(&self) -> Vec<GatewayEntry> {
        self.servers.iter().filter_map(gateway_of).collect()
    }

    /// How many servers it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.servers.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }
}

/// What stands at `keys` in a document, with the keys that lead there.
fn objects<'d>(document: &'d Value, keys: &[&str]) -> Vec<(Vec<String>, &'d Value)> {
    let mut found = vec![(Vec::new(), document)];
    for key in keys {
        found = found
            .into_iter()
            .flat_map(|(path, value)| {
                let below = |key: &str, value| ([path.as_slice(), &[key.to_owned()]].concat(), value);
                match value {
                    Value::Object(members) if *key == "*" => {
                        members.iter().map(|(key, value)| below(key, value)).collect::<Vec<_>>()
                    }
                    _ => value.get(key).map(|value| below(key, value)).into_iter().collect(),
                }
            })
            .collect();
    }
    found
}

/// The line on which a key stands first.
fn line_of_key(text: &str, form: Form, key: &str) -> Option<usize> {
    let written = if form == Form::Json { format!("\"{key}\"") } else { key.to_owned() };
    text.lines().position(|line| line.contains(&written)).map(|line| line + 1)
}

/// The gateway that an entry starts: this program, directly or through a runner.
fn gateway_of(server: &ClientServer) -> Option<GatewayEntry> {
    let entry = server.entry.as_object()?;
    let command = entry.get("command").and_then(Value::as_str)?;
    let args: Vec<&str> = entry.get("args").and_then(Value::as_array)?.iter().filter_map(Value::as_str).collect();
    let own = std::env::current_exe().unwrap_or_default();
    let is_ours =
        |word: &str| Path::new(word).file_stem().is_some_and(|stem| stem == program::NAME) || Path::new(word) == own;
    let serves = args.windows(2).any(|pair| matches!(pair, ["mcp", "serve"]));
    if !serves || !(is_ours(command) || args.iter().any(|arg| is_ours(arg))) {
        return None;
    }
    let after = args.windows(2).find_map(|pair| match pair {
        ["--config", path] => Some(*path),
        _ => None,
    });
    let joined = args.iter().find_map(|arg| arg.strip_prefix("--config="));
    let none = Map::new();
    let env = entry.get("env").and_then(Value::as_object).unwrap_or(&none);
    let listed = entry.get("inherit_env").and_then(Value::as_array).into_iter().flatten();
    let listed = listed.filter_map(Value::as_str).map(|name| (name.to_owned(), format!("${{env:{name}}}")));
    let env = env.iter().filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
    let env = listed.chain(env).collect();
    Some(GatewayEntry {
        name: server.name.clone(),
        place: server.place.clone(),
        config: after.or(joined).map(PathBuf::from),
        env,
    })
}

/// Whether an entry starts a gateway of ours.
pub(super) fn is_gateway(server: &ClientServer) -> bool {
    gateway_of(server).is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::operations::clients::{Client, discover};

    #[test]
    fn every_client_is_found_and_read() {
        let folder = tempfile::tempdir().unwrap();
        let (home, project) = (folder.path().join("home"), folder.path().join("work"));
        let one = |key: &str, name: &str| json!({key: {name: {"command": "x"}}}).to_string();
        let claude =
            json!({"mcpServers": {"a": {}}, "projects": {"/p": {"mcpServers": {"b": {}}, "other": 1}}, "x": 2});
        let files = [
            (project.join(".mcp.json"), one("mcpServers", "c")),
            (
                project.join(".vscode/mcp.json"),
                "{// VS Code\n\"servers\": {\"d\": {}}, \"inputs\": [{\"id\": \"k\", \"type\": \"promptString\"}]}"
                    .to_owned(),
            ),
            (home.join(".claude.json"), claude.to_string()),
            (home.join(".config/Claude/claude_desktop_config.json"), one("mcpServers", "e")),
            (home.join(".cursor/mcp.json"), one("mcpServers", "f")),
            (home.join(".config/Code/User/mcp.json"), one("servers", "g")),
            (home.join(".codeium/windsurf/mcp_config.json"), one("mcpServers", "h")),
        ];
        for (path, text) in files {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let found: Vec<String> = discover(Some(&home), &project)
            .into_iter()
            .map(|place| ClientFile::read(place).unwrap())
            .map(|file| {
                let servers: Vec<String> =
                    file.servers.iter().map(|server| format!("{}@{:?}", server.name, server.folder)).collect();
                let client = file.place.client.map_or("-", Client::name);
                format!("{client} {}", servers.join(" ")).replace(&*folder.path().to_string_lossy(), "")
            })
            .collect();
        insta::assert_snapshot!(found.join("\n"), @r#"
    claude-code c@Some("/work")
    vscode d@Some("/work")
    claude-code a@None b@Some("/p")
    claude-desktop e@None
    cursor f@None
    vscode g@None
    windsurf h@None
    "#);
    }

    #[test]
    fn an_error_has_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mcp.json");
        std::fs::write(&path, "{\n  // a comment\n  \"mcpServers\": [],\n}").unwrap();
        let error = ClientFile::read(Place::of(&path, None)).unwrap_err().to_string();
        assert!(error.contains("mcp.json: ") && error.contains("line 3") && error.contains("Continue"), "{error}");
    }

    #[test]
    fn what_is_switched_off_elsewhere_is_off() {
        let folder = tempfile::tempdir().unwrap();
        let servers = json!({"a": {"command": "a"}, "b": {"command": "b"}});
        let off = |path: &str, document: Value, beside: Option<Value>| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, document.to_string()).unwrap();
            let settings = path.with_file_name(".claude/settings.local.json");
            if let Some(beside) = &beside {
                std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
                std::fs::write(&settings, beside.to_string()).unwrap();
            }
            let file = ClientFile::read(Place::of(&path, None)).unwrap();
            let names = file.servers.iter().filter(|server| server.is_off).map(|server| server.name.clone());
            names.collect::<Vec<_>>().join(" ")
        };
        let cases = [
            (".gemini/settings.json", json!({"mcpServers": servers, "mcp": {"excluded": ["b"]}}), None, "b"),
            (".gemini/settings.json", json!({"mcpServers": servers, "mcp": {"allowed": ["b"]}}), None, "a"),
            (".gemini/settings.json", json!({"mcpServers": servers, "mcp": {"allowed": []}}), None, ""),
            (".gemini/settings.json", json!({"mcpServers": servers, "excludeMCPServers": ["a"]}), None, "a"),
            (
                "home/.claude.json",
                json!({"projects": {"/p": {"mcpServers": servers, "disabledMcpServers": ["a"]}}}),
                None,
                "a",
            ),
            ("p/.mcp.json", json!({"mcpServers": servers}), Some(json!({"disabledMcpjsonServers": ["b"]})), "b"),
        ];
        for (path, document, beside, expected) in cases {
            assert_eq!(off(path, document.clone(), beside), expected, "{document}");
        }
    }
}
