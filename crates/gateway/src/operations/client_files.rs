//! The files in which MCP clients keep their servers.
//!
//! Every client has its own place and nearly the same form: JSON, often with comments, with an object of servers under
//! `mcpServers` or `servers`. Here files are found and read; what their entries mean is `convert`'s business. Nothing is
//! ever written to a client's file: the snippet for one is printed, and a person puts it in.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// An MCP client with a file of servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Client {
    /// Claude Desktop.
    ClaudeDesktop,
    /// Claude Code.
    ClaudeCode,
    /// The editor Cursor.
    Cursor,
    /// Visual Studio Code.
    #[serde(rename = "vscode")]
    VsCode,
    /// The editor Windsurf.
    Windsurf,
}

impl Client {
    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeDesktop => "claude-desktop",
            Self::ClaudeCode => "claude-code",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::Windsurf => "windsurf",
        }
    }

    /// The client whose file this is, by its name and folder.
    fn of(path: &Path) -> Option<Self> {
        let folder = path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
        match (path.file_name()?.to_str()?, folder) {
            ("claude_desktop_config.json", _) => Some(Self::ClaudeDesktop),
            (".mcp.json" | ".claude.json", _) => Some(Self::ClaudeCode),
            ("mcp.json", Some(".cursor")) => Some(Self::Cursor),
            ("mcp.json", Some(".vscode" | "User")) => Some(Self::VsCode),
            ("mcp_config.json", Some("windsurf")) => Some(Self::Windsurf),
            _ => None,
        }
    }
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
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let client = Client::of(&path);
        let parent = path.parent();
        let above = parent.and_then(Path::parent);
        let folder = match (client, path.file_name().and_then(|name| name.to_str())) {
            (Some(Client::ClaudeCode), Some(".mcp.json")) => parent,
            (Some(Client::Cursor | Client::VsCode), _) if parent.is_some_and(|parent| !parent.ends_with("User")) => {
                above
            }
            _ => None,
        };
        let folder = folder.filter(|folder| Some(*folder) != home).map(Path::to_owned);
        Self { client, path, folder }
    }
}

/// The files of the known clients that exist, for a user at `home` who works in `folder`.
#[must_use]
pub fn discover(home: Option<&Path>, folder: &Path) -> Vec<Place> {
    const OF_PROJECT: [&str; 3] = [".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json"];
    const OF_USER: [&str; 10] = [
        ".claude.json",
        ".config/Claude/claude_desktop_config.json",
        "Library/Application Support/Claude/claude_desktop_config.json",
        "AppData/Roaming/Claude/claude_desktop_config.json",
        ".cursor/mcp.json",
        ".config/Code/User/mcp.json",
        "Library/Application Support/Code/User/mcp.json",
        "AppData/Roaming/Code/User/mcp.json",
        ".codeium/windsurf/mcp_config.json",
        ".mcp.json",
    ];
    let of_project = OF_PROJECT.iter().map(|file| folder.join(file));
    let of_user = home.into_iter().flat_map(|home| OF_USER.iter().map(move |file| home.join(file)));
    let mut places: Vec<Place> = Vec::new();
    for path in of_project.chain(of_user).filter(|path| path.is_file()) {
        let place = Place::of(&path, home);
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

/// A server as a client's file has it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ClientServer {
    pub(crate) name: String,
    /// The project that it belongs to.
    pub(crate) folder: Option<PathBuf>,
    pub(crate) entry: Value,
}

/// A file that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientFile {
    /// The path of the file.
    pub place: Place,
    /// Its servers, in the order of the file.
    pub(crate) servers: Vec<ClientServer>,
    /// What is asked of a person when a server starts, by id.
    pub(crate) inputs: BTreeMap<String, String>,
}

/// A client's file cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct ClientFileError {
    /// The file that cannot be read.
    pub path: PathBuf,
    /// Why not, and where.
    pub reason: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Written {
    mcp_servers: Map<String, Value>,
    servers: Map<String, Value>,
    inputs: Vec<Input>,
    /// Settings of VS Code before it had a file of its own.
    mcp: Option<Box<Written>>,
    /// Claude Code keeps the servers of projects in one file.
    projects: BTreeMap<PathBuf, Project>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Project {
    mcp_servers: Map<String, Value>,
}

#[derive(Deserialize)]
struct Input {
    id: String,
    #[serde(default)]
    description: String,
}

impl ClientFile {
    /// Reads the file at `place`.
    ///
    /// # Errors
    /// [`ClientFileError`]: it cannot be read, is not JSON (comments and trailing commas are permitted), or has another form.
    pub fn read(place: Place) -> Result<Self, ClientFileError> {
        let path = place.path.clone();
        let failed = |reason: String| ClientFileError { path: path.clone(), reason };
        let text = std::fs::read_to_string(&path).map_err(|error| failed(error.to_string()))?;
        Self::parse(place, &text).map_err(|error| failed(error.to_string()))
    }

    fn parse(place: Place, text: &str) -> Result<Self, serde_json::Error> {
        let written: Written = serde_json::from_str(&plain_json(text))?;
        let mut servers = Vec::new();
        let mut inputs = BTreeMap::new();
        let mut add = |entries: Map<String, Value>, folder: Option<&Path>| {
            servers.extend(entries.into_iter().map(|(name, entry)| ClientServer {
                name,
                folder: folder.map(Path::to_owned),
                entry,
            }));
        };
        for level in [written.mcp.map(|older| *older).unwrap_or_default(), Written { mcp: None, ..written }] {
            add(level.mcp_servers, place.folder.as_deref());
            add(level.servers, place.folder.as_deref());
            for (folder, project) in level.projects {
                add(project.mcp_servers, Some(&folder));
            }
            inputs.extend(level.inputs.into_iter().map(|input| (input.id, input.description)));
        }
        Ok(Self { place, servers, inputs })
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

/// The text with spaces in place of comments and trailing commas: every other byte stays where it is, so that places in
/// errors are those of the file.
fn plain_json(text: &str) -> String {
    enum Within {
        Json,
        Text,
        Line,
        Block,
    }
    let mut bytes = text.as_bytes().to_vec();
    let source = text.as_bytes();
    let (mut within, mut comma, mut at) = (Within::Json, None, 0);
    if source.starts_with(b"\xef\xbb\xbf") {
        bytes.splice(0..3, *b"   ");
        at = 3;
    }
    let blank = |bytes: &mut Vec<u8>, range: std::ops::Range<usize>| {
        for byte in bytes.iter_mut().take(range.end).skip(range.start).filter(|byte| !matches!(byte, b'\n' | b'\r')) {
            *byte = b' ';
        }
    };
    while let Some(&byte) = source.get(at) {
        let pair = (byte, source.get(at + 1));
        let mut step = 1;
        within = match within {
            Within::Json => match pair {
                (b'"', _) => {
                    comma = None;
                    Within::Text
                }
                (b'/', Some(b'/')) => {
                    blank(&mut bytes, at..at + 1);
                    Within::Line
                }
                (b'/', Some(b'*')) => {
                    blank(&mut bytes, at..at + 2);
                    step = 2;
                    Within::Block
                }
                (b',', _) => {
                    comma = Some(at);
                    Within::Json
                }
                (b'}' | b']', _) => {
                    if let Some(comma) = comma.take() {
                        blank(&mut bytes, comma..comma + 1);
                    }
                    Within::Json
                }
                (byte, _) => {
                    if !byte.is_ascii_whitespace() {
                        comma = None;
                    }
                    Within::Json
                }
            },
            Within::Text => match byte {
                b'\\' => {
                    step = 2;
                    Within::Text
                }
                b'"' => Within::Json,
                _ => Within::Text,
            },
            Within::Line if byte == b'\n' => Within::Json,
            Within::Line => {
                blank(&mut bytes, at..at + 1);
                Within::Line
            }
            Within::Block if pair == (b'*', Some(&b'/')) => {
                blank(&mut bytes, at..at + 2);
                step = 2;
                Within::Json
            }
            Within::Block => {
                blank(&mut bytes, at..at + 1);
                Within::Block
            }
        };
        at += step;
    }
    // Whole characters were replaced, so the text is still one.
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// What puts a gateway before a client: a file and the text that goes into it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Snippet {
    /// The file that the text goes into.
    pub file: &'static str,
    /// The text, JSON.
    pub text: String,
    /// A command that does the same, where the client has one.
    pub command: Option<String>,
}

/// The snippet that makes `client` start `program` as the gateway of `config` under `name`, with the variables that the
/// configuration refers to: clients start servers with nearly nothing in their environment.
#[must_use]
pub fn snippet(client: Client, program: &Path, config: &Path, name: &str, env: &BTreeMap<String, String>) -> Snippet {
    let arguments = ["mcp", "serve", "--config", &config.to_string_lossy()].map(str::to_owned);
    let mut entry = json!({"command": program, "args": arguments});
    if let Some(entry) = entry.as_object_mut().filter(|_| !env.is_empty()) {
        entry.insert("env".to_owned(), json!(env));
    }
    let (file, key) = match client {
        Client::ClaudeDesktop => ("claude_desktop_config.json (Settings > Developer > Edit Config)", "mcpServers"),
        Client::ClaudeCode => (".mcp.json in the project's folder", "mcpServers"),
        Client::Cursor => (".cursor/mcp.json in the project's folder, or ~/.cursor/mcp.json", "mcpServers"),
        Client::VsCode => (".vscode/mcp.json in the project's folder", "servers"),
        Client::Windsurf => ("~/.codeium/windsurf/mcp_config.json", "mcpServers"),
    };
    if matches!(client, Client::ClaudeCode | Client::VsCode)
        && let Some(entry) = entry.as_object_mut()
    {
        entry.shift_insert(0, "type".to_owned(), "stdio".into());
    }
    let command = (client == Client::ClaudeCode).then(|| {
        let words: Vec<String> = std::iter::once(program.to_string_lossy().into_owned())
            .chain(arguments)
            .map(|word| quoted(&word))
            .collect();
        let env: String =
            env.iter().map(|(name, value)| format!(" --env {}", quoted(&format!("{name}={value}")))).collect();
        format!("claude mcp add {}{env} -- {}", quoted(name), words.join(" "))
    });
    let text = serde_json::to_string_pretty(&json!({key: {name: entry}})).unwrap_or_default();
    Snippet { file, text, command }
}

/// The text of a client's file in which the entry of a gateway, called `name`, stands in place of the servers `moved`: where the
/// first of them stood. Everything else of the file stays, but comments do not.
///
/// # Errors
/// The text is not JSON (comments and trailing commas are permitted), or has none of the servers.
pub fn replaced(text: &str, moved: &[&str], name: &str, entry: &Value) -> Result<String, String> {
    let mut document: Value = serde_json::from_str(&plain_json(text)).map_err(|error| error.to_string())?;
    let mut is_placed = false;
    place_in(&mut document, &mut |servers| {
        let first = servers.keys().position(|key| moved.contains(&key.as_str()));
        let Some(first) = first else { return };
        servers.retain(|key, _| !moved.contains(&key.as_str()) && key != name);
        servers.shift_insert(first.min(servers.len()), name.to_owned(), entry.clone());
        is_placed = true;
    });
    if !is_placed {
        return Err("none of its servers was imported".to_owned());
    }
    let mut text = serde_json::to_string_pretty(&document).map_err(|error| error.to_string())?;
    text.push('\n');
    Ok(text)
}

/// Every object of servers in a client's file.
fn place_in(document: &mut Value, with: &mut dyn FnMut(&mut Map<String, Value>)) {
    for key in ["mcpServers", "servers"] {
        if let Some(servers) = document.get_mut(key).and_then(Value::as_object_mut) {
            with(servers);
        }
    }
    if let Some(older) = document.get_mut("mcp") {
        place_in(older, with);
    }
    let projects = document.get_mut("projects").and_then(Value::as_object_mut);
    for project in projects.into_iter().flat_map(|projects| projects.values_mut()) {
        if let Some(servers) = project.get_mut("mcpServers").and_then(Value::as_object_mut) {
            with(servers);
        }
    }
}

/// A word as a shell takes it.
#[must_use]
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':' | '@' | '=' | ',');
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn comments_and_trailing_commas_are_taken() {
        let cases = [
            ("{\"a\": 1, // one, {\n \"b\": [1, 2, /* ] */ ], }", json!({"a": 1, "b": [1, 2]})),
            ("\u{feff}/* é */ {\"a\": \"// no /* comment */ ,}\"}", json!({"a": "// no /* comment */ ,}"})),
            ("{\"a\": \"\\\"//\", \"b\": \"\\\\\"} // end", json!({"a": "\"//", "b": "\\"})),
            ("{\"a\": [[],],}", json!({"a": [[]]})),
        ];
        for (text, expected) in cases {
            let plain = plain_json(text);
            assert_eq!(plain.len(), text.len());
            assert_eq!(serde_json::from_str::<Value>(&plain).unwrap(), expected, "{text}");
        }
        for text in ["{,}", "[1,,]", "{\"a\" /* open", "/"] {
            assert!(serde_json::from_str::<Value>(&plain_json(text)).is_err() || text == "{,}", "{text}");
        }
    }

    proptest! {
        #[test]
        fn json_without_comments_stays_as_it_is(text in "[ -~é]{0,40}", number in any::<i32>()) {
            let json = json!({"a": text, "b": [number, {"c": null}]}).to_string();
            prop_assert_eq!(plain_json(&json), json);
        }

        #[test]
        fn any_text_is_taken(text in "[/*\",\\\\\\[\\]{}\né ]{0,60}") {
            prop_assert_eq!(plain_json(&text).len(), text.len());
        }
    }

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
        assert!(error.contains("mcp.json: ") && error.contains("line 3"), "{error}");
    }

    #[test]
    fn snippets_name_the_commands_own_flags() {
        let all = [Client::ClaudeDesktop, Client::ClaudeCode, Client::Cursor, Client::VsCode, Client::Windsurf];
        let shown: Vec<String> = all
            .into_iter()
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
