//! What becomes of a client's file when a gateway takes the place of its servers, and when it is taken back.
//!
//! Everything is planned as text before anything is written. Beside a changed file lie two others: the file as it would be without
//! the gateway, and the file as it was left with it. A later run tells by them what others changed meanwhile: a server that was
//! added since joins the gateway, and taking the gateway back loses no later change.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::client_edit::{Edit, edited, read};
use super::client_files::{ClientFile, ClientFileError, GatewayEntry};
use super::clients::{Place, entry_with_references};
use super::import::Conversion;

/// What lies beside a client's file that has a gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beside {
    /// The file as it would be without the gateway.
    pub without: String,
    /// The file as it was left with it; `None` where that is not there, as after the gateway was taken back.
    pub with: Option<String>,
}

/// The gateway that takes the place of servers.
#[derive(Debug, Clone, Copy)]
pub struct NewGateway<'g> {
    /// The program that a client starts.
    pub program: &'g Path,
    /// Its configuration.
    pub config: &'g Path,
    /// Its name in the client.
    pub name: &'g str,
    /// The variables that every client starts it with. Those of the servers of a file come in addition, in that file alone.
    pub env: &'g BTreeMap<String, String>,
}

/// A change of a client's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The file.
    pub path: PathBuf,
    /// Its text now.
    pub before: String,
    /// Its text with the gateway.
    pub after: String,
    /// Its text as it would be without the gateway.
    pub without: String,
    /// The names of the variables that its client starts the gateway with.
    pub given: BTreeSet<String>,
}

/// The changes that put `gateway` in place of what was imported from `files`; `beside` finds what lies beside a file.
///
/// # Errors
/// [`ClientFileError`]: what is in the way, or what `beside` gave; nothing is written here.
pub fn apply(
    files: &[ClientFile],
    conversion: &Conversion,
    gateway: NewGateway<'_>,
    beside: &dyn Fn(&Path) -> Result<Option<Beside>, ClientFileError>,
) -> Result<Vec<Change>, ClientFileError> {
    let mut changes = Vec::new();
    for file in files {
        let path = &file.place.path;
        let Some(moved) = conversion.moved.get(path) else { continue };
        let failed = |reason| ClientFileError { path: path.clone(), reason };
        let mut edits: Vec<Edit> = Vec::new();
        for one in moved {
            let same = edits.iter_mut().find(|edit| edit.place == one.place);
            if let Some(edit) = same {
                edit.remove.push(one.name.clone());
            } else {
                edits.push(Edit { place: one.place.clone(), remove: vec![one.name.clone()], insert: Vec::new() });
            }
        }
        let document = read(file.place.form(), &file.text).map_err(failed)?;
        let here = file.gateways();
        let mut env = gateway.env.clone();
        env.extend(conversion.own.get(path).cloned().unwrap_or_default());
        let gateway = NewGateway { env: &env, ..gateway };
        let mut given: Option<BTreeSet<String>> = None;
        for edit in &mut edits {
            let earlier = here.iter().find(|other| other.place == edit.place && other.name == gateway.name);
            let (written, names) = with_gateway(&document, &file.place, edit, earlier, gateway).map_err(failed)?;
            given = Some(given.map_or(names.clone(), |given| given.intersection(&names).cloned().collect()));
            edit.remove.push(gateway.name.to_owned());
            edit.insert.push((gateway.name.to_owned(), written));
        }
        let after = edited(file.place.form(), &file.text, &edits).map_err(failed)?.text;
        let without = match beside(path)? {
            Some(beside) if !here.is_empty() => restored(file, &beside)?.text,
            // Somebody took the gateway out by hand: what there is now is what there was before it.
            _ => file.text.clone(),
        };
        changes.push(Change {
            path: path.clone(),
            before: file.text.clone(),
            after,
            without,
            given: given.unwrap_or_default(),
        });
    }
    Ok(changes)
}

/// The entry of the gateway at the place of an edit, with what an earlier one has beyond ours; and the variables in it.
fn with_gateway(
    document: &Value,
    place: &Place,
    edit: &Edit,
    earlier: Option<&GatewayEntry>,
    gateway: NewGateway<'_>,
) -> Result<(Value, BTreeSet<String>), String> {
    let object = edit.place.iter().try_fold(document, |value, key| value.get(key));
    let there = object
        .and_then(|entries| entries.get(gateway.name))
        .filter(|_| !edit.remove.iter().any(|name| name == gateway.name));
    let mut env = gateway.env.clone();
    let mut written = match (there, earlier) {
        (None, _) => serde_json::Map::new(),
        (Some(_), None) => {
            return Err(format!(
                "`{}` is already the name of another server there; give the gateway another name with --name",
                gateway.name
            ));
        }
        (Some(there), Some(earlier)) => {
            if earlier.config.as_deref() != Some(gateway.config) {
                let config = earlier.config.as_deref().unwrap_or(Path::new("another configuration")).display();
                return Err(format!(
                    "`{}` is already the gateway of {config}; add to it with `--write {config} --apply`, or give this \
                     one another name with --name",
                    gateway.name
                ));
            }
            for (name, value) in &earlier.env {
                env.entry(name.clone()).or_insert_with(|| value.clone());
            }
            there.as_object().cloned().unwrap_or_default()
        }
    };
    let (entry, given) = entry_with_references(place.client, gateway.program, gateway.config, gateway.name, &env);
    written.extend(entry);
    Ok((written.into(), given))
}

/// A client's file without its gateways.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The text.
    pub text: String,
    /// The lines between which the file was changed since the gateway was put in, where it was: the text as it was left, and as it
    /// is now. Those changes are in `text` too.
    pub changed: Option<(String, String)>,
    /// The variables that the gateway was given since, or that changed, and that no server has which comes back.
    pub gone: Vec<String>,
}

/// The text of `file` with its servers in place of the gateway. Where nobody changed it since, it is byte for byte as it was.
///
/// # Errors
/// [`ClientFileError`]: the gateway is not in it any more, its text has another form than before, or it cannot be told to
/// which server the new value of a variable of the gateway belongs.
pub fn restored(file: &ClientFile, beside: &Beside) -> Result<Restored, ClientFileError> {
    taken_back(file, beside).map_err(|reason| ClientFileError { path: file.place.path.clone(), reason })
}

fn taken_back(file: &ClientFile, beside: &Beside) -> Result<Restored, String> {
    if beside.with.as_ref() == Some(&file.text) {
        return Ok(Restored { text: beside.without.clone(), changed: None, gone: Vec::new() });
    }
    let form = file.place.form();
    let before = read(form, &beside.without)?;
    let left = beside.with.as_ref().map(|text| read(form, text)).transpose()?;
    let now = read(form, &file.text)?;
    let earlier = beside.with.clone().map(|text| ClientFile::of(file.place.clone(), text)).transpose();
    let earlier = earlier.map_err(|error| error.reason)?.map(|file| file.gateways()).unwrap_or_default();
    let entries = |document: &Value, place: &[String]| {
        let object = place.iter().try_fold(document, |value, key| value.get(key));
        object.and_then(Value::as_object).cloned().unwrap_or_default()
    };
    let (mut edits, mut gone): (Vec<Edit>, Vec<String>) = (Vec::new(), Vec::new());
    for gateway in file.gateways() {
        let place = &gateway.place;
        let (old, then, here) = (
            entries(&before, place),
            left.as_ref().map(|left| entries(left, place)).unwrap_or_default(),
            entries(&now, place),
        );
        // What was there with the gateway and is not now was removed by somebody.
        let comes_back = |name: &String| !then.contains_key(name) && !here.contains_key(name);
        let at = edits.iter().position(|edit| edit.place == *place).unwrap_or_else(|| {
            let back = old.iter().filter(|(name, _)| comes_back(name));
            let insert = back.map(|(name, entry)| (name.clone(), entry.clone())).collect();
            edits.push(Edit { place: place.clone(), remove: Vec::new(), insert });
            edits.len() - 1
        });
        let Some(edit) = edits.get_mut(at) else { continue };
        if let Some(earlier) = earlier.iter().find(|earlier| earlier.place == *place && earlier.name == gateway.name) {
            gone.extend(renew(&mut edit.insert, old, &earlier.env, &gateway.env)?);
        }
        edit.remove.push(gateway.name);
    }
    if edits.is_empty() {
        return Err("the gateway is no longer in it".to_owned());
    }
    let text = edited(form, &file.text, &edits)?.text;
    let left = beside.with.clone().unwrap_or_else(|| beside.without.clone());
    Ok(Restored { text, changed: Some((left, file.text.clone())), gone })
}

/// Gives servers that come back the values that variables of their gateway have now; `all` are the servers of before.
/// The variables of no server that comes back are returned.
///
/// # Errors
/// A variable has another value, and it cannot be told where that belongs.
fn renew(
    back: &mut [(String, Value)],
    all: Map<String, Value>,
    then: &BTreeMap<String, String>,
    now: &BTreeMap<String, String>,
) -> Result<Vec<String>, String> {
    let unclear = |name: &str| {
        format!(
            "the variable `{name}` of the gateway has another value than it was given, and it cannot be told which \
             server that is for; note the value and put the earlier one back"
        )
    };
    let mut gone: Vec<String> = now.keys().filter(|name| !then.contains_key(*name)).cloned().collect();
    let mut names = BTreeMap::new();
    let mut renewal = Renewal::default();
    for (name, before) in then {
        let Some(after) = now.get(name).filter(|after| *after != before) else { continue };
        // Servers are known by the values of before: variables that shared one must share the next.
        let is_shared = then.iter().any(|(other, value)| value == before && now.get(other) != Some(after));
        if is_shared || before.is_empty() {
            return Err(unclear(name));
        }
        names.insert(before.as_str(), name.as_str());
        renewal.values.insert(before, after);
    }
    back.iter_mut().for_each(|(_, entry)| renewal.renew(entry));
    let in_back = std::mem::take(&mut renewal.found);
    renewal.renew(&mut Value::Object(all));
    for (before, name) in names.into_iter().filter(|(before, _)| !in_back.contains(*before)) {
        // What its programs are found by is the gateway's own.
        if name != "PATH" && !renewal.found.contains(before) {
            return Err(unclear(name));
        }
        gone.push(name.to_owned());
    }
    Ok(gone)
}

/// Values that take the place of others.
#[derive(Debug, Default)]
struct Renewal<'v> {
    values: BTreeMap<&'v str, &'v str>,
    /// Those that were found.
    found: BTreeSet<&'v str>,
}

impl Renewal<'_> {
    /// Bytes of a value that is also sought within texts, such as in `Bearer VALUE`, at least: a shorter one may stand
    /// there for something else.
    const LONG: usize = 8;

    /// Puts the new values in place of the old ones in an entry.
    fn renew(&mut self, entry: &mut Value) {
        match entry {
            Value::Object(members) => members.values_mut().for_each(|value| self.renew(value)),
            Value::Array(values) => values.iter_mut().for_each(|value| self.renew(value)),
            Value::String(text) => {
                if let Some(renewed) = self.renewed(text) {
                    *text = renewed;
                }
            }
            Value::Number(_) | Value::Bool(_) => {
                if let Some((before, after)) = self.values.get_key_value(entry.to_string().as_str()) {
                    self.found.insert(before);
                    *entry = (*after).into();
                }
            }
            Value::Null => {}
        }
    }

    fn renewed(&mut self, text: &str) -> Option<String> {
        if let Some((before, after)) = self.values.get_key_value(text) {
            self.found.insert(before);
            return Some((*after).to_owned());
        }
        let (mut renewed, mut rest) = (String::new(), text);
        let long = || self.values.iter().filter(|(before, _)| before.len() >= Self::LONG);
        while let Some((at, before, after)) =
            long().filter_map(|(before, after)| Some((rest.find(before)?, *before, *after))).min_by_key(|found| found.0)
        {
            self.found.insert(before);
            renewed.push_str(rest.get(..at)?);
            renewed.push_str(after);
            rest = rest.get(at + before.len()..)?;
        }
        (!renewed.is_empty() || rest.len() < text.len()).then(|| renewed + rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::file::GatewayConfig;
    use crate::operations::clients::Client;
    use crate::operations::import::{Present, convert, convert_beside};

    /// A file of each client, by its path at home: the same two servers, one that is switched off or none of ours, and something
    /// else that must stay.
    const FILES: [(&str, &str, &str); 18] = [
        (
            "claude-code",
            ".claude.json",
            r#"{"numStartups": 7, "projects": {"/p": {"allowedTools": [], "mcpServers": {"forge": {"type": "stdio", "command": "npx", "args": ["-y", "forge-mcp"], "env": {"FORGE_TOKEN": "hunter2-forge"}}, "docs": {"type": "http", "url": "https://docs.example/mcp"}, "off": {"type": "ws", "url": "ws://x"}}}}}"#,
        ),
        (
            "claude-desktop",
            ".config/Claude/claude_desktop_config.json",
            r#"{
  "theme": "dark",
  "mcpServers": {
    "forge": {"command": "npx", "args": ["-y", "forge-mcp"], "env": {"FORGE_TOKEN": "hunter2-forge"}},
    "docs": {"type": "http", "url": "https://docs.example/mcp"},
    "off": {"command": "off", "disabled": true}
  }
}
"#,
        ),
        (
            "cursor",
            ".cursor/mcp.json",
            "{\n\t// mine\n\t\"mcpServers\": {\n\t\t\"off\": {\"command\": \"off\", \"enabled\": false}, // not now\n\t\t\"forge\": {\n\t\t\t\"command\": \"npx\", \"args\": [\"-y\", \"forge-mcp\"],\n\t\t\t\"env\": {\"FORGE_TOKEN\": \"hunter2-forge\"}\n\t\t},\n\t\t\"docs\": {\"url\": \"https://docs.example/mcp\"},\n\t},\n}\n",
        ),
        (
            "vscode",
            ".config/Code/User/mcp.json",
            "{\n  \"servers\": {\n    \"forge\": {\"type\": \"stdio\", \"command\": \"npx\", \"args\": [\"-y\", \"forge-mcp\"], \"env\": {\"FORGE_TOKEN\": \"hunter2-forge\"}},\n    \"off\": {\"type\": \"ws\", \"url\": \"ws://x\"},\n    \"docs\": {\"type\": \"http\", \"url\": \"https://docs.example/mcp\"}\n  },\n  \"inputs\": []\n}\n",
        ),
        (
            "windsurf",
            ".codeium/windsurf/mcp_config.json",
            r#"{"mcpServers": {"forge": {"command": "npx", "args": ["-y", "forge-mcp"], "env": {"FORGE_TOKEN": "hunter2-forge"}}, "docs": {"serverUrl": "https://docs.example/mcp"}, "off": {"command": "off", "disabled": true}}}"#,
        ),
        (
            "zed",
            ".config/zed/settings.json",
            "// Zed settings\n{\n  \"theme\": \"One Dark\", // at night\n  \"context_servers\": {\n    \"forge\": {\n      \"source\": \"custom\",\n      \"command\": {\"path\": \"npx\", \"args\": [\"-y\", \"forge-mcp\"], \"env\": {\"FORGE_TOKEN\": \"hunter2-forge\"}},\n    },\n    \"off\": {\"source\": \"extension\", \"settings\": {}},\n    // documentation\n    \"docs\": {\"url\": \"https://docs.example/mcp\"},\n  },\n}\n",
        ),
        (
            "junie",
            ".junie/mcp/mcp.json",
            r#"{"mcpServers": {"forge": {"command": "npx", "args": ["-y", "forge-mcp"], "env": {"FORGE_TOKEN": "hunter2-forge"}}, "docs": {"url": "https://docs.example/mcp"}, "off": {"command": "off", "enabled": false}}}"#,
        ),
        (
            "gemini",
            ".gemini/settings.json",
            "{\n    \"selectedAuthType\": \"none\",\n    \"mcpServers\": {\n        \"forge\": {\"command\": \"npx\", \"args\": [\"-y\", \"forge-mcp\"], \"env\": {\"FORGE_TOKEN\": \"hunter2-forge\"}, \"trust\": true, \"timeout\": 600000},\n        \"docs\": {\"httpUrl\": \"https://docs.example/mcp\"},\n        \"off\": {\"disabled\": true, \"command\": \"off\"}\n    }\n}\n",
        ),
        (
            "codex",
            ".codex/config.toml",
            "# my settings\nmodel = \"o4\"\n\n[mcp_servers.forge]\ncommand = \"npx\"\nargs = [\"-y\", \"forge-mcp\"]\nstartup_timeout_sec = 20\n\n[mcp_servers.forge.env]\nFORGE_TOKEN = \"hunter2-forge\"\n\n[mcp_servers.off]\ncommand = \"off\"\nenabled = false\n\n[mcp_servers.docs]\nurl = \"https://docs.example/mcp\"\n\n[tui] # the screen\nnotifications = true\n",
        ),
        (
            "goose",
            ".config/goose/config.yaml",
            "# Goose\nGOOSE_PROVIDER: none\nextensions:\n  developer:\n    bundled: true\n    enabled: true\n    type: builtin\n  # the forge\n  forge:\n    enabled: true\n    type: stdio\n    name: forge\n    cmd: npx\n    args:\n    - -y\n    - forge-mcp\n    envs:\n      FORGE_TOKEN: hunter2-forge\n    env_keys: []\n    timeout: 300\n  docs:\n    enabled: true\n    type: streamable_http\n    uri: https://docs.example/mcp\nGOOSE_MODE: auto # by default\n",
        ),
        (
            "warp",
            ".warp/.mcp.json",
            r#"{"mcpServers": {"forge": {"command": "npx", "args": ["-y", "forge-mcp"], "env": {"FORGE_TOKEN": "hunter2-forge"}, "working_directory": null, "start_on_launch": true}, "docs": {"url": "https://docs.example/mcp"}, "off": {"command": "off", "disabled": true}}}"#,
        ),
        (
            "cline",
            ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
            r#"{"mcpServers": {"forge": {"command": "npx", "args": ["-y", "forge-mcp"], "env": {"FORGE_TOKEN": "hunter2-forge"}, "autoApprove": [], "disabled": false, "timeout": 60}, "docs": {"type": "streamableHttp", "url": "https://docs.example/mcp"}, "off": {"command": "off", "disabled": true}}}"#,
        ),
        (
            "roo",
            ".roo/mcp.json",
            r#"{"mcpServers": {"forge": {"command": "npx", "args": ["-y", "forge-mcp"], "env": {"FORGE_TOKEN": "hunter2-forge"}, "alwaysAllow": []}, "docs": {"type": "streamable-http", "url": "https://docs.example/mcp"}, "off": {"command": "off", "disabled": true}}}"#,
        ),
        (
            "amazon-q",
            ".aws/amazonq/mcp.json",
            r#"{"mcpServers": {"forge": {"command": "npx", "args": ["-y", "forge-mcp"], "env": {"FORGE_TOKEN": "hunter2-forge"}, "timeout": 60000}, "docs": {"type": "http", "url": "https://docs.example/mcp"}, "off": {"command": "off", "disabled": true}}}"#,
        ),
        (
            "kiro",
            ".kiro/settings/mcp.json",
            r#"{"mcpServers": {"forge": {"command": "npx", "args": ["-y", "forge-mcp"], "env": {"FORGE_TOKEN": "hunter2-forge"}}, "docs": {"url": "https://docs.example/mcp"}, "off": {"command": "off", "disabled": true}}}"#,
        ),
        (
            "lm-studio",
            ".lmstudio/mcp.json",
            r#"{"mcpServers": {"forge": {"command": "npx", "args": ["-y", "forge-mcp"], "env": {"FORGE_TOKEN": "hunter2-forge"}}, "docs": {"url": "https://docs.example/mcp"}, "off": {"type": "ws", "url": "ws://x"}}}"#,
        ),
        (
            "opencode",
            ".config/opencode/opencode.json",
            "{\n  \"$schema\": \"https://opencode.ai/config.json\",\n  \"mcp\": {\n    \"forge\": {\"type\": \"local\", \"command\": [\"npx\", \"-y\", \"forge-mcp\"], \"environment\": {\"FORGE_TOKEN\": \"hunter2-forge\"}},\n    \"docs\": {\"type\": \"remote\", \"url\": \"https://docs.example/mcp\"},\n    \"off\": {\"type\": \"local\", \"command\": [\"off\"], \"enabled\": false}\n  }\n}\n",
        ),
        (
            "copilot-cli",
            ".copilot/mcp-config.json",
            r#"{"mcpServers": {"forge": {"type": "local", "command": "npx", "args": ["-y", "forge-mcp"], "env": {"FORGE_TOKEN": "hunter2-forge"}, "tools": ["*"]}, "docs": {"type": "http", "url": "https://docs.example/mcp", "tools": ["*"]}, "off": {"type": "ws", "url": "ws://x"}}}"#,
        ),
    ];

    fn file(home: &Path, path: &str, text: &str) -> ClientFile {
        ClientFile::of(Place::of(&home.join(path), Some(home)), text.to_owned()).unwrap()
    }

    fn applied(file: &ClientFile, conversion: &Conversion, beside: Option<&Beside>) -> Result<Change, String> {
        let env = BTreeMap::new();
        let program = std::env::current_exe().unwrap();
        let gateway =
            NewGateway { program: &program, config: Path::new("/conf/gateway.yaml"), name: "contextweaver", env: &env };
        let changes = apply(std::slice::from_ref(file), conversion, gateway, &|_| Ok(beside.cloned()));
        changes.map_err(|error| error.to_string())?.into_iter().next().ok_or_else(|| "no change".to_owned())
    }

    #[test]
    fn every_client_is_read_applied_and_restored() {
        let home = Path::new("/home/me");
        assert_eq!(FILES.map(|(name, ..)| name).to_vec(), Client::all().map(Client::name).collect::<Vec<_>>());
        let mut upstreams = None;
        for (name, path, text) in FILES {
            let before = file(home, path, text);
            assert_eq!(before.place.client.map(Client::name), Some(name), "{path}");
            let conversion = convert(std::slice::from_ref(&before), Some(home));
            let mut entries: BTreeMap<String, Value> =
                conversion.servers.iter().map(|one| (one.name.clone(), one.entry.clone().into())).collect();
            if let Some(entry) = entries.get_mut("forge").and_then(Value::as_object_mut) {
                entry.shift_remove("cwd");
                // Some say how long it may take.
                entry.shift_remove("timeout");
            }
            // All say the same in their own ways.
            let expected = upstreams.get_or_insert_with(|| entries.clone());
            assert_eq!(&entries, expected, "{name}");
            assert_eq!(conversion.skipped.len(), 1, "{name}: {:?}", conversion.skipped);
            let change = applied(&before, &conversion, None).unwrap();
            assert_eq!(change.without, text, "{name}");
            let after = file(home, path, &change.after);
            let [gateway] = after.gateways().try_into().unwrap_or_else(|all| panic!("{name}: {all:?}"));
            assert_eq!(gateway.config.as_deref(), Some(Path::new("/conf/gateway.yaml")), "{name}");
            assert_eq!(gateway.env["FORGE_TOKEN"], "hunter2-forge", "{name}");
            assert_eq!(after.servers.len(), 2, "{name}: {}", change.after);
            // What was not a server stays as it was, comments too.
            for kept in text.lines().filter(|line| line.contains("//") || line.contains('#')) {
                let kept = kept.trim();
                let of_docs = kept.contains("https:")
                    || kept.contains("ws:")
                    || kept.contains("documentation")
                    || kept.contains("the forge");
                assert!(of_docs || change.after.contains(kept), "{name}: {kept}: {}", change.after);
            }
            let beside = Beside { without: change.without, with: Some(change.after.clone()) };
            assert_eq!(
                restored(&after, &beside).unwrap(),
                Restored { text: text.to_owned(), changed: None, gone: Vec::new() },
                "{name}"
            );
            // A second time there is nothing but the gateway.
            assert!(convert(&[after], Some(home)).moved.is_empty(), "{name}");
        }
    }

    #[test]
    fn each_file_keeps_its_own_values_and_references_and_gets_no_others() {
        let home = Path::new("/home/me");
        let cases = [
            (
                ".cursor/mcp.json",
                r#"{"mcpServers": {"a": {"url": "https://a.example", "headers": {"Authorization": "Bearer ${env:LIVE}"}}, "b": {"command": "b", "env": {"TOKEN": "hunter2-cursor"}}}}"#,
                vec![r#""LIVE":"${env:LIVE}""#, r#""TOKEN":"hunter2-cursor""#],
            ),
            (
                ".config/Code/User/mcp.json",
                r#"{"servers": {"c": {"command": "c", "env": {"K": "${input:k}"}}}, "inputs": [{"id": "k"}]}"#,
                vec![r#""K":"${input:k}""#],
            ),
            (
                ".gemini/settings.json",
                r#"{"mcpServers": {"d": {"command": "d", "env": {"D": "$LIVE"}}, "e": {"command": "e", "args": ["${E:-x}"]}}}"#,
                vec![r#""E":"${E:-x}""#, r#""LIVE":"${LIVE}""#],
            ),
            (
                ".config/opencode/opencode.json",
                r#"{"mcp": {"f": {"type": "local", "command": ["f", "{env:LIVE}"]}}}"#,
                vec![r#""LIVE":"{env:LIVE}""#],
            ),
            (
                ".codex/config.toml",
                "[mcp_servers.g]\nurl = 'https://g.example'\nbearer_token_env_var = 'LIVE'\n[mcp_servers.h]\ncommand = 'h'\nenv_vars = ['H']\n",
                vec!["env_vars = [\"H\", \"LIVE\"]"],
            ),
        ];
        let files: Vec<ClientFile> = cases.iter().map(|(path, text, _)| file(home, path, text)).collect();
        let conversion = convert(&files, Some(home));
        let (program, env) = (std::env::current_exe().unwrap(), BTreeMap::new());
        let gateway =
            NewGateway { program: &program, config: Path::new("/conf/gateway.yaml"), name: "contextweaver", env: &env };
        let changes = apply(&files, &conversion, gateway, &|_| Ok(None)).unwrap();
        assert_eq!(changes.len(), cases.len());
        for (change, (path, _, expected)) in changes.iter().zip(&cases) {
            let after = change.after.split_whitespace().collect::<String>();
            for text in expected {
                assert!(after.contains(&text.replace(' ', "")), "{path}: {text}: {}", change.after);
            }
            let values =
                ["LIVE", "TOKEN", "K", "E"].iter().filter(|name| after.contains(&format!("\"{name}\":"))).count();
            let listed = usize::from(path.ends_with("toml"));
            assert_eq!(values + listed, expected.len(), "{path}: {}", change.after);
            assert_eq!(change.after.contains("hunter2"), path.contains("cursor"), "{path}: {}", change.after);
            // A second time the entry says the same.
            let again = file(home, path, &change.after);
            let given: BTreeSet<String> = again.gateways().remove(0).env.into_keys().collect();
            assert_eq!(given, change.given, "{path}");
        }
    }

    #[test]
    fn what_was_added_since_joins_the_gateway_and_nothing_is_lost() {
        let home = Path::new("/home/me");
        let path = ".cursor/mcp.json";
        let first = file(
            home,
            path,
            "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"a\", \"env\": {\"TOKEN\": \"s3cret-of-a\"}},\n    \"off\": {\"command\": \"x\", \"disabled\": true}\n  }\n}\n",
        );
        let conversion = convert(std::slice::from_ref(&first), None);
        let change = applied(&first, &conversion, None).unwrap();
        let config = conversion.to_text(Path::new("gateway.yaml")).unwrap() + "# mine\ntop_k: 5\n";
        let beside = Beside { without: change.without, with: Some(change.after.clone()) };
        // Later a person adds a server, with another secret of the same name, and a setting.
        let text = change.after.replacen(
            "\"mcpServers\": {",
            "\"theme\": \"dark\",\n  \"mcpServers\": {\n    \"b\": {\"command\": \"b\", \"env\": {\"TOKEN\": \"s3cret-of-b\"}},",
            1,
        );
        let second = file(home, path, &text);
        let env = second.gateways().remove(0).env;
        let present = Present::of(&config, Path::new("gateway.yaml"), env).unwrap();
        let more = convert_beside(std::slice::from_ref(&second), None, &present);
        let merged = more.added_to(&present, Path::new("gateway.yaml")).unwrap().text;
        assert!(merged.contains("# mine\ntop_k: 5\n"), "{merged}");
        let parsed = GatewayConfig::parse(&merged, Path::new("/"), &|name| Some(name.to_owned())).unwrap();
        assert_eq!(parsed.upstreams.keys().collect::<Vec<_>>(), ["a", "b"]);
        let again = applied(&second, &more, Some(&beside)).unwrap();
        let gateway = file(home, path, &again.after).gateways().remove(0);
        let env: Vec<(&str, &str)> = gateway.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(env, [("B_TOKEN", "s3cret-of-b"), ("TOKEN", "s3cret-of-a")]);
        let beside = Beside { without: again.without, with: Some(again.after.clone()) };
        let back = restored(&file(home, path, &again.after), &beside).unwrap();
        let names: Vec<String> = file(home, path, &back.text).servers.into_iter().map(|server| server.name).collect();
        assert_eq!(names, ["b", "a", "off"]);
        assert!(back.text.contains("\"theme\": \"dark\"") && back.changed.is_none(), "{}", back.text);
    }

    #[test]
    fn taking_it_back_keeps_what_was_changed_since() {
        let home = Path::new("/home/me");
        let path = "servers.json";
        let text = "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"a\"},\n    \"gone\": {\"command\": \"x\", \"disabled\": true}\n  }\n}\n";
        let first = file(home, path, text);
        let change = applied(&first, &convert(std::slice::from_ref(&first), None), None).unwrap();
        let beside = Beside { without: change.without, with: Some(change.after.clone()) };
        let mut data: Value = serde_json::from_str(&change.after).unwrap();
        data["theme"] = "dark".into();
        data["mcpServers"].as_object_mut().unwrap().shift_remove("gone");
        let back = restored(&file(home, path, &data.to_string()), &beside).unwrap();
        let data: Value = serde_json::from_str(&back.text).unwrap();
        assert_eq!(data, serde_json::json!({"mcpServers": {"a": {"command": "a"}}, "theme": "dark"}));
        assert!(back.changed.is_some());
        // Where somebody took the gateway out, there is nothing to be taken back.
        let error = restored(&file(home, path, "{\"mcpServers\": {}}"), &beside).unwrap_err();
        assert_eq!(error.to_string(), "/home/me/servers.json: the gateway is no longer in it");
    }

    #[test]
    fn values_that_the_gateway_was_given_since_go_to_the_servers_that_come_back() {
        let home = Path::new("/home/me");
        let text = |token: &str, key: &str| {
            serde_json::json!({"mcpServers": {
                "a": {"command": "a", "args": ["--name", "a"], "env": {"TOKEN": token, "MODE": "fast"}},
                "b": {"url": "https://b.example/mcp", "headers": {"Authorization": format!("Bearer {key}")}},
                "c": {"command": "c", "env": {"C_KEY": "same-s3cret-1"}},
                "d": {"command": "d", "env": {"D_KEY": "same-s3cret-1"}},
            }})
        };
        let before = file(home, "servers.json", &text("old-s3cret-of-a", "old-s3cret-of-b").to_string());
        let change = applied(&before, &convert(std::slice::from_ref(&before), None), None).unwrap();
        let beside = Beside { without: change.without, with: Some(change.after.clone()) };
        let env = file(home, "servers.json", &change.after).gateways().remove(0).env;
        let name_of = |value: &str| env.iter().find(|(_, other)| *other == value).unwrap().0.clone();
        let (of_a, of_b) = (name_of("old-s3cret-of-a"), name_of("old-s3cret-of-b"));
        let back = |changes: &[(&str, &str)]| {
            let mut data: Value = serde_json::from_str(&change.after).unwrap();
            for (name, value) in changes {
                data["mcpServers"]["contextweaver"]["env"][name] = (*value).into();
            }
            restored(&file(home, "servers.json", &data.to_string()), &beside)
        };
        let renewed = back(&[(&of_a, "old-s3cret-of-b"), (&of_b, "n3w"), ("PATH", "/bin"), ("MORE", "x")]).unwrap();
        let data: Value = serde_json::from_str(&renewed.text).unwrap();
        assert_eq!(data, text("old-s3cret-of-b", "n3w"));
        assert_eq!(renewed.gone, ["MORE", "PATH"]);
        // One of two variables with the same value.
        let refused = back(&[("C_KEY", "n3w")]).unwrap_err().reason;
        assert!(refused.contains("`C_KEY`") && !refused.contains("s3cret"), "{refused}");
        let both = back(&[("C_KEY", "n3w"), ("D_KEY", "n3w")]).unwrap();
        assert_eq!(both.text.matches("n3w").count(), 2, "{}", both.text);
    }

    #[test]
    fn a_server_of_the_same_name_in_another_project_stays() {
        let text = r#"{"projects": {
            "/one": {"mcpServers": {"db": {"command": "db"}}},
            "/two": {"mcpServers": {"db": {"command": "other", "disabled": true}, "more": {"command": "more"}}}}}"#;
        let before = file(Path::new("/home/me"), ".claude.json", text);
        let change = applied(&before, &convert(std::slice::from_ref(&before), None), None).unwrap();
        let data: Value = serde_json::from_str(&change.after).unwrap();
        let names = |project: &str| {
            let servers = data["projects"][project]["mcpServers"].as_object().unwrap();
            servers.keys().cloned().collect::<Vec<_>>()
        };
        assert_eq!(names("/one"), ["contextweaver"]);
        assert_eq!(names("/two"), ["db", "contextweaver"]);
    }

    #[test]
    fn the_gateway_of_another_configuration_is_not_replaced() {
        let text = r#"{"mcpServers": {"contextweaver": {"command": "contextweaver", "args": ["mcp", "serve", "--config", "/other.yaml"]}, "a": {"command": "a"}}}"#;
        let before = file(Path::new("/home/me"), "servers.json", text);
        let error = applied(&before, &convert(std::slice::from_ref(&before), None), None).unwrap_err();
        assert!(error.contains("is already the gateway of /other.yaml"), "{error}");
    }
}
