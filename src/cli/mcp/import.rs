//! `mcp import`: the servers of a client as a configuration, and the gateway as a server of a client.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use serde_json::{Value, json};

use super::refuse_existing;
use super::terminal::{line, shown};
use crate::cli::{Format, Outcome, note, print_json};
use contextweaver_core::files::replace_file;
use contextweaver_gateway::{Client, ClientFile, Conversion, Converted, Place, convert, discover, snippet};

/// Import the servers of an MCP client, or print the entry that puts the gateway in front of one
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without a file, those of Claude Desktop, Claude Code, Cursor, VS Code and Windsurf are looked for, in this folder and at
home. Nothing is written without --write, and never to a client's file. Values of variables and headers that may be
secrets become references to the environment, and none is printed.

Examples:
  contextweaver mcp import
  contextweaver mcp import ~/.cursor/mcp.json --write gateway.yaml
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
    /// Print the entry for a client's file that puts the gateway in front of it
    #[arg(long, value_enum, value_name = "CLIENT", conflicts_with_all = ["files", "write"])]
    show_client: Option<ClientArg>,
    /// The configuration that the gateway of the client uses
    #[arg(long, value_name = "FILE", requires = "show_client", default_value = "gateway.yaml")]
    config: PathBuf,
    /// The name of the gateway in the client
    #[arg(long, requires = "show_client", default_value = "contextweaver")]
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
    let files = read(&args.files, home.as_deref(), &folder)?;
    if let Some(path) = &args.write {
        let inputs = files.iter().map(|file| file.place.path.clone());
        refuse_clients_file(path, inputs, home.as_deref(), &folder)?;
    }
    let conversion = convert(&files, home.as_deref());
    if conversion.servers.is_empty() && conversion.skipped.is_empty() {
        bail!("no client's file with servers was found; name one");
    }
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
            note(&format!("{}: {} servers; check them with `mcp doctor`", path.display(), conversion.servers.len()));
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

fn print(out: &mut dyn Write, conversion: &Conversion) -> Result<()> {
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
    let snippet = snippet(client, &program, &config, &args.name);
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
}
