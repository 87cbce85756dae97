//! `mcp import`: the servers of a client as a configuration, and the gateway as a server of a client.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use serde_json::{Value, json};

use super::refuse_existing;
use super::terminal::{line, shown};
use crate::cli::{Format, Outcome, note, print_json};
use contextweaver_core::files::replace_file;
use contextweaver_gateway::{
    Client, ClientFile, Conversion, Converted, Place, convert, discover, quoted, replaced, snippet,
};

/// Import the servers of an MCP client, or print the entry that puts the gateway in front of one
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without a file, those of Claude Desktop, Claude Code, Cursor, VS Code and Windsurf are looked for, in this folder and at
home. Nothing is written without --write, and to a client's file only with --apply, which keeps a backup beside it and
shows what changes. Values of variables and headers that may be secrets become references to the environment; --apply
moves them into the gateway's entry in the client's file. Only --show-client prints them.

Examples:
  contextweaver mcp import
  contextweaver mcp import ~/.cursor/mcp.json --write gateway.yaml --apply
  contextweaver mcp import ~/.cursor/mcp.json --restore
  contextweaver mcp import --show-client claude-desktop --config gateway.yaml")]
pub(in crate::cli) struct Args {
    /// Client files to read, instead of those that are found
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Write the configuration to a file: JSON if its name ends in .json, otherwise YAML
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Overwrite an existing file, but never a client's file or one that is read here
    #[arg(long, requires = "write")]
    force: bool,
    /// Put the gateway in place of the imported servers, in the clients' own files; `--restore` takes it back
    #[arg(long, requires = "write")]
    apply: bool,
    /// Give clients' files back as they were before `--apply`
    #[arg(long, conflicts_with_all = ["write", "apply", "show_client"])]
    restore: bool,
    /// Print the entry for a client's file that puts the gateway in front of it
    #[arg(long, value_enum, value_name = "CLIENT", conflicts_with_all = ["files", "write"])]
    show_client: Option<ClientArg>,
    /// The configuration that the gateway of the client uses
    #[arg(long, value_name = "FILE", requires = "show_client", default_value = "gateway.yaml")]
    config: PathBuf,
    /// The name of the gateway in the client
    #[arg(long, value_name = "NAME", default_value = "contextweaver")]
    name: String,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ClientArg {
    ClaudeDesktop,
    ClaudeCode,
    Cursor,
    #[value(name = "vscode")]
    VsCode,
    Windsurf,
}

impl From<ClientArg> for Client {
    fn from(client: ClientArg) -> Self {
        match client {
            ClientArg::ClaudeDesktop => Self::ClaudeDesktop,
            ClientArg::ClaudeCode => Self::ClaudeCode,
            ClientArg::Cursor => Self::Cursor,
            ClientArg::VsCode => Self::VsCode,
            ClientArg::Windsurf => Self::Windsurf,
        }
    }
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    if let Some(client) = args.show_client {
        return show(client.into(), args, out);
    }
    if let Some(path) = &args.write {
        refuse_existing(path, args.force)?;
    }
    let home = std::env::home_dir();
    let folder = std::env::current_dir()?;
    if args.restore {
        return restore(args, home.as_deref(), &folder, out);
    }
    let files = read(&args.files, home.as_deref(), &folder)?;
    if let Some(path) = &args.write {
        let inputs = files.iter().map(|file| file.place.path.clone());
        refuse_clients_file(path, inputs, home.as_deref(), &folder)?;
    }
    let conversion = convert(&files, home.as_deref());
    refuse_nothing(&conversion)?;
    let target = args.write.as_deref().unwrap_or(Path::new("gateway.yaml"));
    let text = conversion.to_text(target).context("the servers make no configuration")?;
    match args.format {
        Format::Json => {
            print_json(out, "mcp import", &json!({"conversion": conversion, "config": conversion.to_value()}))?;
        }
        Format::Text => print(out, &conversion)?,
    }
    match &args.write {
        Some(_) if conversion.servers.is_empty() => bail!("no server can be imported; nothing was written"),
        Some(path) => {
            replace_file(path, text.as_bytes())?;
            let config = quoted(&path.to_string_lossy());
            note(&format!("{}: {} servers", path.display(), conversion.servers.len()));
            if args.apply {
                apply(args, path, &conversion, &files, out)?;
            }
            note(&format!("next: contextweaver mcp doctor --config {config}"));
        }
        None if args.format == Format::Text => {
            writeln!(out, "\n# the configuration; --write FILE writes it")?;
            for text in text.lines() {
                line(out, text)?;
            }
        }
        None => {}
    }
    Ok(Outcome::Ok)
}

/// The servers of the named clients' files, or of those that are found in `folder` and at home.
///
/// # Errors
/// A named file that cannot be read.
pub(in crate::cli) fn servers(named: &[PathBuf], home: Option<&Path>, folder: &Path) -> Result<Conversion> {
    Ok(convert(&read(named, home, folder)?, home))
}

/// Refuses what holds no server at all, not even one that cannot be imported.
pub(in crate::cli) fn refuse_nothing(conversion: &Conversion) -> Result<()> {
    if conversion.servers.is_empty() && conversion.skipped.is_empty() {
        bail!("no client's file with servers was found; name one");
    }
    Ok(())
}

/// A file that was named must be readable; one that was found and is not is left out.
fn read(named: &[PathBuf], home: Option<&Path>, folder: &Path) -> Result<Vec<ClientFile>> {
    if !named.is_empty() {
        return named.iter().map(|path| Ok(ClientFile::read(Place::of(path, home))?)).collect();
    }
    let mut files = Vec::new();
    for place in discover(home, folder) {
        match ClientFile::read(place) {
            Ok(file) => files.push(file),
            Err(error) => note(&shown(&format!("left out: {error}"))),
        }
    }
    Ok(files)
}

/// Refuses to write onto what was read, or onto the file of a known client, by whatever path or link: a client would
/// lose its servers, and what else it keeps there.
fn refuse_clients_file(
    path: &Path,
    inputs: impl Iterator<Item = PathBuf>,
    home: Option<&Path>,
    folder: &Path,
) -> Result<()> {
    let target = canonical(path);
    if inputs.map(|input| canonical(&input)).any(|input| input == target) {
        bail!("{} is what the servers are read from; name another file with --write", path.display());
    }
    let is_named_so = [path, &target].iter().any(|path| Place::of(path, home).client.is_some());
    if is_named_so || discover(home, folder).iter().any(|place| canonical(&place.path) == target) {
        bail!("{} is the file of a client; name another file with --write", path.display());
    }
    Ok(())
}

/// The path without links; of a file that does not exist yet, its folder's.
fn canonical(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let resolved = path.canonicalize().ok();
    let of_folder = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    resolved.or_else(of_folder).unwrap_or(path)
}

/// Prints each server, and what was left out and why; no values of variables.
pub(in crate::cli) fn print(out: &mut dyn Write, conversion: &Conversion) -> Result<()> {
    for server in &conversion.servers {
        let client = server.client.map_or("unknown client", Client::name);
        line(out, format_args!("{} ({client}, {})", server.name, server.from.display()))?;
        line(out, format_args!("  {}", target(server)))?;
        for note in &server.notes {
            line(out, format_args!("  note: {note}"))?;
        }
    }
    for skipped in &conversion.skipped {
        line(out, format_args!("{} ({}) is left out: {}", skipped.name, skipped.from.display(), skipped.reason))?;
    }
    if !conversion.variables.is_empty() {
        let names: Vec<&str> = conversion.variables.iter().map(String::as_str).collect();
        line(out, format_args!("variables that the gateway needs: {}", names.join(", ")))?;
    }
    Ok(())
}

/// How a server is reached, on one line; values of variables and headers are not shown.
fn target(server: &Converted) -> String {
    let text = |key: &str| server.entry.get(key).and_then(Value::as_str).map(str::to_owned);
    let mut words: Vec<String> = text("command").or_else(|| text("url")).into_iter().collect();
    let args = server.entry.get("args").and_then(Value::as_array).into_iter().flatten();
    words.extend(args.filter_map(Value::as_str).map(str::to_owned));
    for field in ["env", "headers"] {
        let values = server.entry.get(field).and_then(Value::as_object).into_iter().flatten();
        words.extend(values.map(|(name, _)| format!("{name}=***")));
    }
    words.join(" ")
}

fn show(client: Client, args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from(env!("CARGO_PKG_NAME")));
    // Clients start servers in folders of their own choice.
    let config = std::path::absolute(&args.config).with_context(|| args.config.display().to_string())?;
    if !config.exists() {
        note(&format!("{} does not exist yet; `mcp import --write` makes one", config.display()));
    }
    let snippet = snippet(client, &program, &config, &args.name, &variables(&config)?);
    match args.format {
        Format::Json => print_json(out, "mcp snippet", &snippet)?,
        Format::Text => {
            writeln!(out, "{}", snippet.text)?;
            note(&format!("put it into {}", snippet.file));
            if let Some(command) = &snippet.command {
                note(&format!("or run: {command}"));
            }
        }
    }
    Ok(Outcome::Ok)
}

/// The variables that a configuration refers to with their values: from the environment, else from the clients' files, else
/// empty with a note.
fn variables(config: &Path) -> Result<BTreeMap<String, String>> {
    let Ok(text) = std::fs::read_to_string(config) else { return Ok(BTreeMap::new()) };
    let named = text.split("${env:").skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name.to_owned());
    let (home, folder) = (std::env::home_dir(), std::env::current_dir()?);
    let of_clients = convert(&read(&[], home.as_deref(), &folder)?, home.as_deref()).values;
    let value = |name: String| {
        let known = std::env::var(&name).ok().or_else(|| of_clients.get(&name).cloned());
        if known.is_none() {
            note(&format!("{name} is known neither here nor in a client's file: fill in its value"));
        }
        (name, known.unwrap_or_default())
    };
    Ok(named.collect::<BTreeSet<_>>().into_iter().map(value).collect())
}

/// The name of a backup beside a client's file.
fn backup_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".before-contextweaver");
    path.with_file_name(name)
}

/// Puts the gateway of `config` in place of what was imported, file by file; either all files change or none.
fn apply(args: &Args, config: &Path, conversion: &Conversion, files: &[ClientFile], out: &mut dyn Write) -> Result<()> {
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from(env!("CARGO_PKG_NAME")));
    let config = std::path::absolute(config)?;
    let known = |name: &String| conversion.values.get(name).cloned().or_else(|| std::env::var(name).ok());
    let env: BTreeMap<String, String> =
        conversion.variables.iter().filter_map(|name| Some((name.clone(), known(name)?))).collect();
    let mut changes = Vec::new();
    for (path, moved) in &conversion.moved {
        let place = files.iter().map(|file| &file.place).find(|place| place.path == *path);
        // A file of no known client has the form that most have.
        let client = place.and_then(|place| place.client).unwrap_or(Client::Cursor);
        let snippet: Value = serde_json::from_str(&snippet(client, &program, &config, &args.name, &env).text)?;
        let entry = snippet.as_object().and_then(|levels| levels.values().next()?.get(&args.name)).cloned();
        let entry = entry.context("the client has no form for an entry")?;
        let target = path.canonicalize().with_context(|| path.display().to_string())?;
        let backup = backup_of(&target);
        if backup.exists() {
            bail!("{} is there from an earlier --apply; run `mcp import --restore` first", backup.display());
        }
        let before = std::fs::read_to_string(&target).with_context(|| target.display().to_string())?;
        let names: Vec<&str> = moved.iter().map(String::as_str).collect();
        let after = replaced(&before, &names, &args.name, &entry);
        let after = after.map_err(|reason| anyhow::anyhow!("{}: {reason}; nothing was applied", target.display()))?;
        changes.push((target, backup, before, after));
    }
    for (target, backup, before, after) in &changes {
        let permissions = std::fs::metadata(target)?.permissions();
        replace_file(backup, before.as_bytes())?;
        std::fs::set_permissions(backup, permissions.clone())?;
        replace_file(target, after.as_bytes())?;
        std::fs::set_permissions(target, permissions)?;
        line(out, format_args!("\n{}, backup {}:", target.display(), backup.display()))?;
        for text in difference(&covered(before, &conversion.values), &covered(after, &conversion.values)) {
            line(out, format_args!("  {text}"))?;
        }
    }
    for name in conversion.variables.iter().filter(|name| !env.contains_key(*name)) {
        note(&format!("{name} is known neither here nor in the client's file: set it under `env` of `{}`", args.name));
    }
    note("restart the client; to take it back: contextweaver mcp import --restore");
    Ok(())
}

/// A text without the values of secrets.
fn covered(text: &str, values: &BTreeMap<String, String>) -> String {
    let mut secrets: Vec<&String> = values.values().filter(|value| !value.is_empty()).collect();
    secrets.sort_by_key(|value| std::cmp::Reverse(value.len()));
    secrets.into_iter().fold(text.to_owned(), |text, secret| {
        let quoted = Value::from(secret.as_str()).to_string();
        text.replace(quoted.trim_matches('"'), "***")
    })
}

/// The lines that go and come, with one line of the rest around them.
fn difference(before: &str, after: &str) -> Vec<String> {
    let diff = similar::TextDiff::from_lines(before, after);
    let unified = diff.unified_diff().context_radius(1).to_string();
    unified.lines().filter(|line| !line.starts_with('\\')).map(str::to_owned).collect()
}

/// Gives the files back that `--apply` changed.
fn restore(args: &Args, home: Option<&Path>, folder: &Path, out: &mut dyn Write) -> Result<Outcome> {
    let named = !args.files.is_empty();
    let paths: Vec<PathBuf> = match named {
        true => args.files.clone(),
        false => discover(home, folder).into_iter().map(|place| place.path).collect(),
    };
    let mut restored = 0;
    for path in paths {
        let target = canonical(&path);
        let backup = backup_of(&target);
        if backup.exists() {
            std::fs::rename(&backup, &target).with_context(|| backup.display().to_string())?;
            line(out, format_args!("{} is as it was", target.display()))?;
            restored += 1;
        } else if named {
            bail!("{}: there is no backup {}", path.display(), backup.display());
        }
    }
    if restored == 0 {
        bail!("no client's file has a backup of `mcp import --apply`");
    }
    Ok(Outcome::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_an_input_nor_a_clients_file_is_written_over() {
        let root = tempfile::tempdir().unwrap();
        let (home, folder) = (root.path().join("home"), root.path().join("work"));
        std::fs::create_dir_all(home.join(".cursor")).unwrap();
        std::fs::create_dir_all(&folder).unwrap();
        let input = folder.join("servers.json");
        let kept = root.path().join("kept.json");
        for file in [&input, &kept] {
            std::fs::write(file, "{}").unwrap();
        }
        std::os::unix::fs::symlink(&kept, home.join(".cursor/mcp.json")).unwrap();
        std::os::unix::fs::symlink(&input, folder.join("link.yaml")).unwrap();
        let check =
            |path: PathBuf| refuse_clients_file(&path, std::iter::once(input.clone()), Some(home.as_path()), &folder);
        for (path, reason) in [
            (input.clone(), "are read from"),
            (folder.join("../work/./servers.json"), "are read from"),
            (folder.join("link.yaml"), "are read from"),
            (home.join(".cursor/mcp.json"), "of a client"),
            (kept, "of a client"),
            (folder.join(".mcp.json"), "of a client"),
            (root.path().join("claude_desktop_config.json"), "of a client"),
        ] {
            let error = check(path.clone()).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
        check(folder.join("gateway.yaml")).unwrap();
        check(folder.join("gateway.json")).unwrap();
    }

    #[test]
    fn a_clients_file_gets_the_gateway_in_place_of_its_servers_and_back() {
        let folder = tempfile::tempdir().unwrap();
        let (file, config) = (folder.path().join("mcp.json"), folder.path().join("gateway.yaml"));
        let text = r#"{
  "theme": "dark",
  "mcpServers": {
    "forge": {"command": "forge", "env": {"TOKEN": "s3cret-of-forge"}},
    "desk": {"command": "desk", "args": ["-t", "s3cret-of-desk"], "env": {"TOKEN": "an0ther-s3cret"}},
    "off": {"command": "off", "disabled": true}
  }
}
"#;
        std::fs::write(&file, text).unwrap();
        let run = |more: &[&str]| {
            let mut words = vec!["contextweaver", "mcp", "import", file.to_str().unwrap()];
            words.extend(more);
            let mut out = Vec::new();
            let outcome = crate::cli::run(words.iter().map(Into::into), &mut out);
            (outcome, String::from_utf8(out).unwrap())
        };
        let config_path = config.to_str().unwrap();
        let (outcome, shown) = run(&["--write", config_path, "--apply"]);
        outcome.unwrap();
        assert!(!shown.contains("s3cret") && shown.contains("\"TOKEN\": \"***\""), "{shown}");
        let applied: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!(applied["theme"], "dark");
        let servers: Vec<&String> = applied["mcpServers"].as_object().unwrap().keys().collect();
        assert_eq!(servers, ["contextweaver", "off"]);
        let entry = &applied["mcpServers"]["contextweaver"];
        assert_eq!(entry["args"], json!(["mcp", "serve", "--config", config_path]));
        // Two servers call two values by one name.
        assert_eq!(
            entry["env"],
            json!({"TOKEN": "s3cret-of-forge", "DESK_T": "s3cret-of-desk", "DESK_TOKEN": "an0ther-s3cret"})
        );
        let written = std::fs::read_to_string(&config).unwrap();
        assert!(!written.contains("s3cret") && written.contains("${env:DESK_TOKEN}"), "{written}");
        // A second time there is nothing to import, and the backup is not lost.
        assert!(run(&["--write", config_path, "--force", "--apply"]).0.is_err());
        run(&["--restore"]).0.unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        assert!(run(&["--restore"]).0.unwrap_err().to_string().contains("no backup"));
    }
}
