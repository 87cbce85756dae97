//! The MCP clients whose files are known: where the files lie, what form they have, and how an entry in them looks.
//!
//! A client is one row of `ROWS`. What differs between clients stands there and nowhere else, so that reading, importing,
//! applying and restoring know none of them by name.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Component, Path, PathBuf};

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::client_edit::{Form, rendered};
use super::references::{refers, replaced};
use crate::common::program::quoted;

/// Where objects of servers may stand in a document: keys from the outside in, `*` for every key.
pub(super) type Keys = &'static [&'static str];

/// What is known of a client.
#[derive(Debug)]
pub(super) struct Row {
    /// Its name on the command line.
    name: &'static str,
    /// Where a person finds the file that an entry goes into.
    place: &'static str,
    /// Its files below the home of a user, on all systems.
    of_user: &'static [&'static str],
    /// Its files below the folder of a project.
    of_project: &'static [&'static str],
    /// What its files are written in.
    pub(super) form: Form,
    /// Where its servers stand; a new entry goes into the first.
    pub(super) keys: &'static [Keys],
    /// Its entry in the form that most have: `command`, `args`, `env`, `url`, `headers`.
    pub(super) read: fn(Map<String, Value>) -> Map<String, Value>,
    /// An entry that starts a program, in its form; from that of most.
    write: fn(Map<String, Value>, &str) -> Map<String, Value>,
    /// How an entry says what comes from outside of it.
    outside: Outside,
    /// Members that it calls otherwise than most, each with the name that most have.
    names: &'static [(&'static str, &'static str)],
    /// Whether its document says that a server is switched off: the keys that lead to its object, and its name.
    pub(super) switches: fn(&Value, &[String], &str) -> bool,
}

impl Row {
    /// What the client calls a member that most call so.
    pub(super) fn own_name<'n>(&self, name: &'n str) -> &'n str {
        self.names.iter().find(|(_, ours)| *ours == name).map_or(name, |(theirs, _)| theirs)
    }
}

/// How an entry of a client says what comes from outside of it: from the client's environment, or from a person.
#[derive(Debug)]
enum Outside {
    /// In the text of a value; this is the reference for what most write in `${…}`.
    Text(fn(&str) -> String),
    /// By the name of a variable in this list.
    Listed(&'static str),
}

/// As most clients write references.
const DOLLARS: Outside = Outside::Text(|inner| format!("${{{inner}}}"));

/// As clients write them that know nothing but variables of their environment, with a default or without.
const BARE_DOLLARS: Outside = Outside::Text(|inner| format!("${{{}}}", inner.strip_prefix("env:").unwrap_or(inner)));

/// Where most clients have their servers. Some files have those of several clients.
const USUAL: &[Keys] =
    &[&["mcpServers"], &["servers"], &["mcp", "mcpServers"], &["mcp", "servers"], &["projects", "*", "mcpServers"]];

/// What a file of no known client is taken for.
static UNKNOWN: Row = Row {
    name: "unknown client",
    place: "the client's file",
    of_user: &[],
    of_project: &[],
    form: Form::Json,
    keys: &[
        &["mcpServers"],
        &["servers"],
        &["context_servers"],
        &["mcp_servers"],
        &["mcp", "mcpServers"],
        &["mcp", "servers"],
        &["projects", "*", "mcpServers"],
    ],
    read: |entry| entry,
    write: |entry, _| entry,
    outside: DOLLARS,
    names: &[],
    switches: |_, _, _| false,
};

static ROWS: [Row; 18] = [
    Row {
        name: "claude-code",
        place: ".mcp.json in the project's folder",
        of_user: &[".claude.json", ".mcp.json"],
        of_project: &[".mcp.json"],
        outside: BARE_DOLLARS,
        write: typed,
        switches: |document, place, name| {
            let project = match place {
                [projects, folder, _] => document.get(projects).and_then(|projects| projects.get(folder)),
                _ => None,
            };
            ["disabledMcpServers", "disabledMcpjsonServers"]
                .iter()
                .any(|key| named_in(project, key, name) || named_in(Some(document), key, name))
        },
        ..USUAL_ROW
    },
    Row {
        name: "claude-desktop",
        place: "claude_desktop_config.json (Settings > Developer > Edit Config)",
        of_user: &[
            ".config/Claude/claude_desktop_config.json",
            "Library/Application Support/Claude/claude_desktop_config.json",
            "AppData/Roaming/Claude/claude_desktop_config.json",
        ],
        ..USUAL_ROW
    },
    Row {
        name: "cursor",
        place: ".cursor/mcp.json in the project's folder, or ~/.cursor/mcp.json",
        of_user: &[".cursor/mcp.json"],
        of_project: &[".cursor/mcp.json"],
        ..USUAL_ROW
    },
    Row {
        name: "vscode",
        place: ".vscode/mcp.json in the project's folder",
        of_user: &[
            ".config/Code/User/mcp.json",
            "Library/Application Support/Code/User/mcp.json",
            "AppData/Roaming/Code/User/mcp.json",
        ],
        of_project: &[".vscode/mcp.json"],
        keys: &[&["servers"], &["mcpServers"], &["mcp", "servers"]],
        write: typed,
        ..USUAL_ROW
    },
    Row {
        name: "windsurf",
        place: "~/.codeium/windsurf/mcp_config.json",
        of_user: &[".codeium/windsurf/mcp_config.json"],
        ..USUAL_ROW
    },
    Row {
        name: "zed",
        place: "~/.config/zed/settings.json (zed: open settings file)",
        of_user: &[".config/zed/settings.json", "AppData/Roaming/Zed/settings.json"],
        of_project: &[".zed/settings.json"],
        keys: &[&["context_servers"]],
        read: of_zed,
        ..USUAL_ROW
    },
    Row {
        name: "junie",
        place: "~/.junie/mcp/mcp.json, or .junie/mcp/mcp.json in the project's folder",
        of_user: &[".junie/mcp/mcp.json"],
        of_project: &[".junie/mcp/mcp.json"],
        ..USUAL_ROW
    },
    Row {
        name: "gemini",
        place: "~/.gemini/settings.json, or .gemini/settings.json in the project's folder",
        of_user: &[".gemini/settings.json"],
        of_project: &[".gemini/settings.json"],
        keys: &[&["mcpServers"]],
        read: of_gemini,
        outside: BARE_DOLLARS,
        switches: |document, _, name| {
            let mcp = document.get("mcp");
            let allows = |within: Option<&Value>, key: &str| {
                let allowed = within.and_then(|within| within.get(key)).and_then(Value::as_array);
                allowed.is_none_or(|allowed| allowed.is_empty()) || named_in(within, key, name)
            };
            named_in(mcp, "excluded", name)
                || named_in(Some(document), "excludeMCPServers", name)
                || !allows(mcp, "allowed")
                || !allows(Some(document), "allowMCPServers")
        },
        ..USUAL_ROW
    },
    Row {
        name: "codex",
        place: "~/.codex/config.toml",
        of_user: &[".codex/config.toml"],
        of_project: &[".codex/config.toml"],
        form: Form::Toml,
        keys: &[&["mcp_servers"]],
        read: of_codex,
        outside: Outside::Listed("env_vars"),
        names: &CODEX_NAMES,
        ..USUAL_ROW
    },
    Row {
        name: "goose",
        place: "~/.config/goose/config.yaml",
        of_user: &[".config/goose/config.yaml", "AppData/Roaming/Block/goose/config/config.yaml"],
        form: Form::Yaml,
        keys: &[&["extensions"]],
        read: of_goose,
        write: to_goose,
        outside: Outside::Listed("env_keys"),
        names: &GOOSE_NAMES,
        ..USUAL_ROW
    },
    Row {
        name: "warp",
        place: "~/.warp/.mcp.json, or .warp/.mcp.json in the project's folder",
        of_user: &[".warp/.mcp.json"],
        of_project: &[".warp/.mcp.json"],
        read: |entry| renamed(entry, &[("working_directory", "cwd")], &["start_on_launch"]),
        ..USUAL_ROW
    },
    Row {
        name: "cline",
        place: "cline_mcp_settings.json (MCP Servers > Configure)",
        of_user: &[
            ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
            "Library/Application Support/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
            "AppData/Roaming/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        ],
        ..USUAL_ROW
    },
    Row {
        name: "roo",
        place: ".roo/mcp.json in the project's folder, or mcp_settings.json (MCP Servers > Edit Global MCP)",
        of_user: &[
            ".config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
            "Library/Application Support/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
            "AppData/Roaming/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
        ],
        of_project: &[".roo/mcp.json"],
        ..USUAL_ROW
    },
    Row {
        name: "amazon-q",
        place: "~/.aws/amazonq/mcp.json, or .amazonq/mcp.json in the project's folder",
        of_user: &[".aws/amazonq/mcp.json"],
        of_project: &[".amazonq/mcp.json"],
        ..USUAL_ROW
    },
    Row {
        name: "kiro",
        place: "~/.kiro/settings/mcp.json, or .kiro/settings/mcp.json in the project's folder",
        of_user: &[".kiro/settings/mcp.json"],
        of_project: &[".kiro/settings/mcp.json"],
        ..USUAL_ROW
    },
    Row { name: "lm-studio", place: "~/.lmstudio/mcp.json", of_user: &[".lmstudio/mcp.json"], ..USUAL_ROW },
    Row {
        name: "opencode",
        place: "~/.config/opencode/opencode.json, or opencode.json in the project's folder",
        of_user: &[".config/opencode/opencode.json", ".config/opencode/opencode.jsonc"],
        of_project: &["opencode.json", "opencode.jsonc"],
        keys: &[&["mcp"]],
        read: of_opencode,
        write: to_opencode,
        outside: Outside::Text(|inner| match inner.strip_prefix("env:") {
            Some(name) => format!("{{env:{name}}}"),
            None => format!("${{{inner}}}"),
        }),
        ..USUAL_ROW
    },
    Row {
        name: "copilot-cli",
        place: "~/.copilot/mcp-config.json",
        of_user: &[".copilot/mcp-config.json"],
        read: |mut entry| {
            if entry.get("type").is_some_and(|kind| kind == "local") {
                entry.insert("type".to_owned(), "stdio".into());
            }
            // A list without a tool shows none; all are shown by a star.
            match entry.get("tools").and_then(Value::as_array) {
                Some(tools) if tools.is_empty() => {
                    entry.insert("disabled".to_owned(), true.into());
                }
                Some(tools) if !tools.contains(&json!("*")) => {
                    entry.insert("enabledTools".to_owned(), tools.clone().into());
                }
                _ => {}
            }
            renamed(entry, &[], &["tools"])
        },
        write: |mut entry, _| {
            entry.shift_insert(0, "type".to_owned(), "local".into());
            entry.insert("tools".to_owned(), json!(["*"]));
            entry
        },
        ..USUAL_ROW
    },
];

/// What rows say that say nothing else.
const USUAL_ROW: Row = Row {
    name: "",
    place: "",
    of_user: &[],
    of_project: &[],
    form: Form::Json,
    keys: USUAL,
    read: |entry| entry,
    write: |entry, _| entry,
    outside: DOLLARS,
    names: &[],
    switches: |_, _, _| false,
};

/// Names that files of many programs have: the folder has to tell.
const COMMON_NAMES: [&str; 6] =
    ["mcp.json", ".mcp.json", "settings.json", "config.toml", "config.yaml", "mcp_config.json"];

/// An MCP client with a file of servers.
#[derive(Clone, Copy)]
pub struct Client(&'static Row);

impl fmt::Debug for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0.name)
    }
}

impl PartialEq for Client {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for Client {}

impl Serialize for Client {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name)
    }
}

impl Client {
    /// All known clients.
    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(Self)
    }

    /// The client of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|client| client.0.name == name)
    }

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// The client whose file this is, by its name and folder, and the project's folder where the file belongs to one.
    fn of(path: &Path) -> Option<(Self, Option<PathBuf>)> {
        let in_project = |client: Self| {
            let file = client.0.of_project.iter().filter(|file| path.ends_with(file)).max_by_key(|file| file.len())?;
            let levels = Path::new(file).components().count();
            Some((client, path.ancestors().nth(levels).map(Path::to_owned)))
        };
        let longest = |client: &Self| {
            let files = client.0.of_project.iter().filter(|file| path.ends_with(file));
            files.map(|file| Path::new(file).components().count()).max()
        };
        // `.warp/.mcp.json` is not the `.mcp.json` of another client in a folder `.warp`.
        let project = Self::all().max_by_key(longest).and_then(in_project);
        let of_user = |client: &Self| {
            client.0.of_user.iter().any(|file| {
                let file = Path::new(file);
                let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                let folder = file.parent().and_then(Path::file_name);
                path.file_name().is_some_and(|own| own == name)
                    && (!COMMON_NAMES.contains(&name) || folder == path.parent().and_then(Path::file_name))
            })
        };
        project.or_else(|| Self::all().find(of_user).map(|client| (client, None)))
    }
}

/// What is known of a client, or of a file of none with this ending.
pub(super) fn row(client: Option<Client>) -> &'static Row {
    client.map_or(&UNKNOWN, |client| client.0)
}

/// A file of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The client that the file belongs to, when its name tells.
    pub client: Option<Client>,
    /// The path of the file.
    pub path: PathBuf,
    /// The project that it belongs to; servers run in it, and `${workspaceFolder}` stands for it.
    pub folder: Option<PathBuf>,
}

impl Place {
    /// The file at `path`, of a user whose home is `home`.
    #[must_use]
    pub fn of(path: &Path, home: Option<&Path>) -> Self {
        let path = direct(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
        let (client, folder) = Client::of(&path).unzip();
        let is_of_user = |home: &Path| row(client).of_user.iter().any(|file| home.join(file) == path);
        let folder = folder.flatten().filter(|folder| Some(folder.as_path()) != home);
        let folder = folder.filter(|_| !home.is_some_and(is_of_user));
        Self { client, path, folder }
    }

    /// What the file is written in: the client's form, or that which its name ends in.
    pub(super) fn form(&self) -> Form {
        match (self.client, self.path.extension().and_then(|ending| ending.to_str())) {
            (None, Some("toml")) => Form::Toml,
            (None, Some("yaml" | "yml")) => Form::Yaml,
            (client, _) => row(client).form,
        }
    }
}

/// The path without `..`, so that two ways to a folder are one; links without it stay.
fn direct(path: &Path) -> PathBuf {
    let goes_up = path.components().any(|part| part == Component::ParentDir);
    let folder = path.parent().filter(|_| goes_up).and_then(|folder| folder.canonicalize().ok());
    folder.zip(path.file_name()).map_or_else(|| path.to_owned(), |(folder, name)| folder.join(name))
}

/// The files of the known clients that exist, for a user at `home` who works in `folder`: those of the project first.
#[must_use]
pub fn discover(home: Option<&Path>, folder: &Path) -> Vec<Place> {
    let of_project = ROWS.iter().flat_map(|row| row.of_project.iter().map(|file| folder.join(file)));
    let of_user = home
        .into_iter()
        .flat_map(|home| ROWS.iter().flat_map(move |row| row.of_user.iter().map(|file| home.join(file))));
    let mut places: Vec<Place> = Vec::new();
    for path in of_project.chain(of_user).filter(|path| path.is_file()) {
        let place = Place::of(&path, home);
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

/// What puts a gateway before a client: a file and the text that goes into it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Snippet {
    /// The file that the text goes into.
    pub file: &'static str,
    /// The text, in the form of the file.
    pub text: String,
    /// A command that does the same, where the client has one.
    pub command: Option<String>,
}

/// The entry of a client's file that starts `program` as the gateway of `config` under `name`, with the variables `env`: clients
/// start servers with nearly nothing in their environment.
#[must_use]
pub fn entry(
    client: Option<Client>,
    program: &Path,
    config: &Path,
    name: &str,
    env: &BTreeMap<String, String>,
) -> Map<String, Value> {
    let mut entry = Map::new();
    entry.insert("command".to_owned(), program.to_string_lossy().into());
    entry.insert("args".to_owned(), json!(arguments(config)));
    if !env.is_empty() {
        entry.insert("env".to_owned(), json!(env));
    }
    (row(client).write)(entry, name)
}

/// The [`entry`] for variables that have values with references, as most clients write them; and the variables that it gives the
/// gateway. What the client cannot say is left out.
pub(super) fn entry_with_references(
    client: Option<Client>,
    program: &Path,
    config: &Path,
    name: &str,
    values: &BTreeMap<String, String>,
) -> (Map<String, Value>, BTreeSet<String>) {
    let (mut env, mut listed) = (BTreeMap::new(), Vec::new());
    for (variable, value) in values {
        match &row(client).outside {
            Outside::Text(write) => {
                env.insert(variable.clone(), replaced(value, &mut |inner| write(inner)));
            }
            Outside::Listed(_) if [format!("${{env:{variable}}}"), format!("${{{variable}}}")].contains(value) => {
                listed.push(variable.clone());
            }
            Outside::Listed(_) if refers(value) => {}
            Outside::Listed(_) => {
                env.insert(variable.clone(), value.clone());
            }
        }
    }
    let given = env.keys().chain(&listed).cloned().collect();
    let mut entry = entry(client, program, config, name, &env);
    if let (Outside::Listed(list), false) = (&row(client).outside, listed.is_empty()) {
        entry.insert((*list).to_owned(), json!(listed));
    }
    (entry, given)
}

fn arguments(config: &Path) -> [String; 4] {
    ["mcp", "serve", "--config", &config.to_string_lossy()].map(str::to_owned)
}

/// The snippet with the entry of a client, and the file that it goes into. `env` has values, with references in `${…}`.
#[must_use]
pub fn snippet(client: Client, program: &Path, config: &Path, name: &str, env: &BTreeMap<String, String>) -> Snippet {
    let (entry, _) = entry_with_references(Some(client), program, config, name, env);
    let set = entry.get("env").and_then(Value::as_object).cloned().unwrap_or_default();
    let keys = client.0.keys.first().copied().unwrap_or_default();
    let around = |inner: Value, key: &&str| json!({*key: inner});
    let document = keys.iter().rev().fold(json!({name: entry}), around);
    let command = (client.name() == "claude-code").then(|| {
        let words: Vec<String> = std::iter::once(program.to_string_lossy().into_owned())
            .chain(arguments(config))
            .map(|word| quoted(&word))
            .collect();
        let set = set.iter().filter_map(|(name, value)| Some(format!("{name}={}", value.as_str()?)));
        let env: String = set.map(|pair| format!(" --env {}", quoted(&pair))).collect();
        format!("claude mcp add {}{env} -- {}", quoted(name), words.join(" "))
    });
    Snippet { file: client.0.place, text: rendered(client.0.form, &document), command }
}

/// An entry with other names for some members, and without some that mean nothing to a gateway.
fn renamed(mut entry: Map<String, Value>, names: &[(&str, &str)], without: &[&str]) -> Map<String, Value> {
    entry.retain(|key, _| !without.contains(&key.as_str()));
    entry
        .into_iter()
        .map(|(key, value)| match names.iter().find(|(theirs, _)| *theirs == key) {
            Some((_, ours)) => ((*ours).to_owned(), value),
            None => (key, value),
        })
        .collect()
}

/// Whether a list under `key` has this name.
fn named_in(within: Option<&Value>, key: &str, name: &str) -> bool {
    let list = within.and_then(|within| within.get(key)).and_then(Value::as_array);
    list.is_some_and(|names| names.iter().any(|other| other == name))
}

/// Servers of projects that Claude Code has switched off in this document, with the folders of the projects.
pub(super) fn off_in_projects(document: &Value) -> Vec<(PathBuf, String)> {
    let projects = document.get("projects").and_then(Value::as_object).into_iter().flatten();
    let listed = projects.flat_map(|(folder, project)| {
        let lists =
            ["disabledMcpServers", "disabledMcpjsonServers"].map(|key| project.get(key).and_then(Value::as_array));
        let names = lists.into_iter().flatten().flatten().filter_map(Value::as_str);
        names.map(move |name| (PathBuf::from(folder), name.to_owned()))
    });
    listed.collect()
}

/// A time in seconds as the member that says how long a server has to answer, rounded up.
fn timeout(entry: &mut Map<String, Value>, theirs: &str, in_a_second: f64) {
    if let Some(time) = entry.get(theirs).and_then(Value::as_f64).filter(|time| *time > 0.0) {
        let seconds = (time / in_a_second).ceil().clamp(1.0, LONGEST_TIMEOUT);
        entry.shift_remove(theirs);
        entry.insert("timeout_seconds".to_owned(), (seconds as u64).into());
    }
}

/// Seconds that a server has to answer, at most: a year.
const LONGEST_TIMEOUT: f64 = 365.0 * 24.0 * 3600.0;

fn typed(mut entry: Map<String, Value>, _: &str) -> Map<String, Value> {
    entry.shift_insert(0, "type".to_owned(), "stdio".into());
    entry
}

/// Zed had an object under `command` once, and says whether a person or an extension brought the server.
fn of_zed(entry: Map<String, Value>) -> Map<String, Value> {
    let mut entry = renamed(entry, &[], &["source", "settings"]);
    if let Some(Value::Object(command)) = entry.get("command").cloned() {
        entry.shift_remove("command");
        entry.extend(renamed(command, &[("path", "command")], &[]));
    }
    entry
}

/// In Gemini CLI `httpUrl` is streamable HTTP and `url` its predecessor.
fn of_gemini(mut entry: Map<String, Value>) -> Map<String, Value> {
    if entry.contains_key("url") && !entry.contains_key("type") {
        entry.insert("type".to_owned(), "sse".into());
    }
    timeout(&mut entry, "timeout", 1000.0);
    entry.values_mut().for_each(with_braces);
    let names = [("includeTools", "enabledTools"), ("excludeTools", "disabledTools")];
    renamed(entry, &names, &["trust"])
}

/// Variables of Gemini, `$NAME`, as other clients write them.
fn with_braces(value: &mut Value) {
    match value {
        Value::String(text) if text.contains('$') => {
            let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
            let mut done = String::new();
            let mut rest = text.as_str();
            while let Some((before, after)) = rest.split_once('$') {
                done.push_str(before);
                let name = after.get(..after.find(|c| !is_part(c)).unwrap_or(after.len())).unwrap_or_default();
                let next = after.get(name.len()..).and_then(|rest| rest.chars().next());
                let is_name = name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
                    && !next.is_some_and(|c| c.is_ascii_alphanumeric() || c == '$')
                    && !before.ends_with(|c: char| c.is_ascii_alphanumeric());
                let name = if is_name { name } else { "" };
                done.push_str(&if name.is_empty() { "$".to_owned() } else { format!("${{{name}}}") });
                rest = after.get(name.len()..).unwrap_or_default();
            }
            done.push_str(rest);
            *text = done;
        }
        Value::Array(values) => values.iter_mut().for_each(with_braces),
        Value::Object(members) => members.values_mut().for_each(with_braces),
        _ => {}
    }
}

const CODEX_NAMES: [(&str, &str); 3] =
    [("enabled_tools", "enabledTools"), ("disabled_tools", "disabledTools"), ("env_vars", "inherit_env")];

fn of_codex(mut entry: Map<String, Value>) -> Map<String, Value> {
    let mut headers = match entry.shift_remove("http_headers") {
        Some(Value::Object(headers)) => headers,
        _ => Map::new(),
    };
    if let Some(Value::Object(named)) = entry.shift_remove("env_http_headers") {
        let value = |name: &Value| format!("${{env:{}}}", name.as_str().unwrap_or_default());
        headers.extend(named.into_iter().map(|(header, name)| (header, value(&name).into())));
    }
    if let Some(Value::String(name)) = entry.shift_remove("bearer_token_env_var") {
        headers.insert("Authorization".to_owned(), format!("Bearer ${{env:{name}}}").into());
    }
    if !headers.is_empty() {
        entry.insert("headers".to_owned(), headers.into());
    }
    // The names of variables that it passes on are a list in Codex.
    timeout(&mut entry, "tool_timeout_sec", 1.0);
    renamed(entry, &CODEX_NAMES, &["required"])
}

const GOOSE_NAMES: [(&str, &str); 5] = [
    ("cmd", "command"),
    ("envs", "env"),
    ("uri", "url"),
    ("env_keys", "inherit_env"),
    ("available_tools", "enabledTools"),
];

/// Goose has its own extensions among them, which no gateway can start.
fn of_goose(entry: Map<String, Value>) -> Map<String, Value> {
    let entry = match entry.get("config") {
        Some(Value::Object(inner)) => {
            entry.iter().filter(|(key, _)| *key != "config").chain(inner).map(|(k, v)| (k.clone(), v.clone())).collect()
        }
        _ => entry,
    };
    let mut entry = renamed(entry, &GOOSE_NAMES, &["bundled", "timeout", "display_name", "socket"]);
    if entry.get("type").is_some_and(|kind| kind == "streamable_http") {
        entry.insert("type".to_owned(), "http".into());
    }
    // Keys of the keyring are none of the environment; an empty list says nothing.
    // Without a list of tools all are available.
    let is_empty = |value: &Value| value.as_array().is_none_or(Vec::is_empty);
    entry.retain(|key, value| !matches!(key.as_str(), "inherit_env" | "enabledTools") || !is_empty(value));
    entry
}

fn to_goose(entry: Map<String, Value>, name: &str) -> Map<String, Value> {
    let mut written = Map::new();
    for (key, value) in [("enabled", json!(true)), ("type", json!("stdio")), ("name", json!(name))] {
        written.insert(key.to_owned(), value);
    }
    written.extend(renamed(entry, &[("command", "cmd"), ("env", "envs")], &[]));
    written.insert("timeout".to_owned(), 300.into());
    written
}

/// In opencode the command and its arguments are one list.
fn of_opencode(entry: Map<String, Value>) -> Map<String, Value> {
    let mut entry = renamed(entry, &[("environment", "env")], &["timeout", "oauth"]);
    let kind = entry.get("type").and_then(Value::as_str).unwrap_or_default();
    let kind = if kind == "remote" { "http" } else { "stdio" };
    entry.insert("type".to_owned(), kind.into());
    if let Some(Value::Array(mut words)) = entry.get("command").cloned()
        && !words.is_empty()
    {
        entry.insert("command".to_owned(), words.remove(0));
        entry.insert("args".to_owned(), words.into());
    }
    entry.values_mut().for_each(with_dollars);
    entry
}

/// Variables of opencode, `{env:NAME}`, as other clients write them.
fn with_dollars(value: &mut Value) {
    match value {
        Value::String(text) => *text = text.replace("${env:", "{env:").replace("{env:", "${env:"),
        Value::Array(values) => values.iter_mut().for_each(with_dollars),
        Value::Object(members) => members.values_mut().for_each(with_dollars),
        _ => {}
    }
}

fn to_opencode(mut entry: Map<String, Value>, _: &str) -> Map<String, Value> {
    let mut words: Vec<Value> = entry.shift_remove("command").into_iter().collect();
    if let Some(Value::Array(args)) = entry.shift_remove("args") {
        words.extend(args);
    }
    let mut written = Map::new();
    written.insert("type".to_owned(), "local".into());
    written.insert("command".to_owned(), words.into());
    written.insert("enabled".to_owned(), true.into());
    written.extend(renamed(entry, &[("env", "environment")], &[]));
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_back_to_the_home_of_a_user_is_that_home() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        for below in [".cursor", "project"] {
            std::fs::create_dir(home.join(below)).unwrap();
        }
        let place = |path: &str| Place::of(&home.join(path), Some(&home));
        assert_eq!(place("project/../.cursor/mcp.json"), place(".cursor/mcp.json"));
        assert_eq!(place("project/../.cursor/mcp.json").folder, None);
        assert_eq!(place("project/.cursor/mcp.json").folder, Some(home.join("project")));
    }

    #[test]
    fn snippets_name_the_commands_own_flags() {
        let shown: Vec<String> = ["claude-desktop", "claude-code", "cursor", "vscode", "windsurf"]
            .into_iter()
            .filter_map(Client::named)
            .map(|client| {
                snippet(
                    client,
                    Path::new("/bin/contextweaver"),
                    Path::new("/my conf/gateway.yaml"),
                    "tools",
                    &BTreeMap::new(),
                )
            })
            .map(|snippet| format!("{}\n{}\n{}", snippet.file, snippet.text, snippet.command.unwrap_or_default()))
            .collect();
        insta::assert_snapshot!(shown.join("\n"), @r#"
    claude_desktop_config.json (Settings > Developer > Edit Config)
    {
      "mcpServers": {
        "tools": {
          "command": "/bin/contextweaver",
          "args": [
            "mcp",
            "serve",
            "--config",
            "/my conf/gateway.yaml"
          ]
        }
      }
    }

    .mcp.json in the project's folder
    {
      "mcpServers": {
        "tools": {
          "type": "stdio",
          "command": "/bin/contextweaver",
          "args": [
            "mcp",
            "serve",
            "--config",
            "/my conf/gateway.yaml"
          ]
        }
      }
    }
    claude mcp add tools -- /bin/contextweaver mcp serve --config '/my conf/gateway.yaml'
    .cursor/mcp.json in the project's folder, or ~/.cursor/mcp.json
    {
      "mcpServers": {
        "tools": {
          "command": "/bin/contextweaver",
          "args": [
            "mcp",
            "serve",
            "--config",
            "/my conf/gateway.yaml"
          ]
        }
      }
    }

    .vscode/mcp.json in the project's folder
    {
      "servers": {
        "tools": {
          "type": "stdio",
          "command": "/bin/contextweaver",
          "args": [
            "mcp",
            "serve",
            "--config",
            "/my conf/gateway.yaml"
          ]
        }
      }
    }

    ~/.codeium/windsurf/mcp_config.json
    {
      "mcpServers": {
        "tools": {
          "command": "/bin/contextweaver",
          "args": [
            "mcp",
            "serve",
            "--config",
            "/my conf/gateway.yaml"
          ]
        }
      }
    }
    "#);
    }
}
