//! `mcp import`: the servers of a client as a configuration, and the gateway as a server of a client.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::{Value, json};

use super::chain::{self, Values};
use super::refuse_existing;
use crate::cli::terminal::{line, shown};
use crate::cli::{Format, Outcome, counted, note, print_json};
use contextweaver_core::files::{WriteError, behind_links, replace_file, replace_file_as};
use contextweaver_gateway::{
    Addition, Beside, Change, Client, ClientFile, ClientFileError, Conversion, Converted, NewGateway, Place, Present,
    apply, convert, convert_beside, discover, quoted, restored, snippet, without_secrets,
};

/// Import the servers of an MCP client, or print the entry that puts the gateway in front of one
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without FILE, it looks for the files of all known clients, in this folder and in your home directory: --show-client lists
their names. Nothing is written without --write or --apply, and to a client's file only with --apply, which keeps a
backup beside it and shows what changes. All servers go into one configuration: each client sees those of the others too.
For one client alone, name its file, and a configuration of its own with --write. Values of variables and headers that
may be secrets become references to the environment; --apply moves them into the gateway's entry in the client's file.
Only --show-client prints them, since its entry is to work as it is pasted; --without-values leaves references there.
With --apply, an existing configuration is added to; --restore keeps what was changed in the client's file since.

Examples:
  contextweaver mcp import
  contextweaver mcp import ~/.cursor/mcp.json --apply
  contextweaver mcp import ~/.cursor/mcp.json --write cursor.yaml --apply
  contextweaver mcp import ~/.cursor/mcp.json --restore
  contextweaver mcp import --write servers.yaml
  contextweaver mcp import --show-client claude-desktop")]
pub(in crate::cli) struct Args {
    /// Client files to read, instead of those that are found
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Write the configuration to a file: JSON if its name ends in .json, otherwise YAML [with --apply: gateway.yaml]
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Overwrite an existing file, but never a client's file or one that is read here; with --restore: drop what was changed
    /// in the client's file since --apply
    #[arg(long)]
    force: bool,
    /// Replace the imported servers by the gateway, in the clients' own files; `--restore` undoes it
    #[arg(long)]
    apply: bool,
    /// Put clients' servers back in place of the gateway
    #[arg(long, conflicts_with_all = ["write", "apply", "show_client"])]
    restore: bool,
    /// Print the entry for a client's file that puts the gateway in front of it
    #[arg(long, value_name = "CLIENT", conflicts_with_all = ["files", "write", "apply"], value_parser = client_names())]
    show_client: Option<Client>,
    /// Print references in place of the values of variables, which may be secrets
    #[arg(long, requires = "show_client")]
    without_values: bool,
    /// The configuration that the gateway of the client uses
    #[arg(long, value_name = "FILE", requires = "show_client", default_value = chain::CONFIG)]
    config: PathBuf,
    /// The name of the gateway in the client
    #[arg(long, value_name = "NAME", default_value = "contextweaver")]
    name: String,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

fn client_names() -> impl TypedValueParser<Value = Client> {
    let names = PossibleValuesParser::new(Client::all().map(Client::name));
    names.try_map(|name| Client::named(&name).ok_or("no such client"))
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    if let Some(client) = args.show_client {
        return show(client, args, out);
    }
    let home = std::env::home_dir();
    let folder = std::env::current_dir()?;
    if args.restore {
        return restore(args, home.as_deref(), &folder, out);
    }
    let import = Import::of(args, home, folder)?;
    let conversion = &import.conversion;
    match args.format {
        Format::Json => {
            print_json(out, "mcp import", &json!({"conversion": conversion, "config": conversion.to_value()}))?;
        }
        Format::Text => print(out, conversion)?,
    }
    // Notes on standard error are about what stands before them.
    out.flush()?;
    let Some(path) = &import.write else { return import.show(out) };
    if conversion.servers.is_empty() && !(args.apply && conversion.moves_anything()) {
        return import.nothing_new(path);
    }
    let written = import.put(path)?;
    import.say(path, &written, out)?;
    Ok(Outcome::Ok)
}

/// What was read, and what would become of it.
struct Import<'a> {
    args: &'a Args,
    home: Option<PathBuf>,
    folder: PathBuf,
    files: Vec<ClientFile>,
    conversion: Conversion,
    /// The configuration with the servers.
    addition: Addition,
    /// Where it is to be written.
    write: Option<PathBuf>,
    /// Whether there is a configuration that is added to.
    adds: bool,
}

/// What was written besides the configuration.
struct Put {
    /// A copy of the configuration, which lost its comments.
    copy: Option<PathBuf>,
    /// The changes of clients' files.
    applied: Vec<Change>,
}

impl<'a> Import<'a> {
    /// Reads the servers; nothing is written.
    fn of(args: &'a Args, home: Option<PathBuf>, folder: PathBuf) -> Result<Self> {
        let write = args.write.clone().or_else(|| args.apply.then(|| PathBuf::from(chain::CONFIG)));
        if args.force && write.is_none() {
            bail!("--force needs --write, --apply or --restore");
        }
        let adds = args.apply && write.as_ref().is_some_and(|path| path.exists());
        if let Some(path) = write.as_ref().filter(|_| !adds) {
            refuse_existing(path, args.force)?;
        }
        let files = read(&args.files, home.as_deref(), &folder)?;
        if let Some(path) = &write {
            let inputs = files.iter().map(|file| file.place.path.clone());
            refuse_clients_file(path, inputs, home.as_deref(), &folder, "--write")?;
        }
        let target = write.as_deref().unwrap_or(Path::new(chain::CONFIG));
        let present = match adds {
            true => Some(chain::present(target, &files)?),
            false => None,
        };
        let conversion = convert_beside(&files, home.as_deref(), &present.clone().unwrap_or_default());
        refuse_nothing(&conversion, &args.files)?;
        let addition = match &present {
            Some(present) => conversion.added_to(present, target),
            None => conversion.to_text(target).map(|text| Addition { text, is_rewritten: false }),
        };
        let addition = addition.context("the servers do not make a valid configuration")?;
        Ok(Self { args, home, folder, files, conversion, addition, write, adds })
    }

    /// Whether the gateway has the place of servers in a client's file already.
    fn is_applied(&self) -> bool {
        self.files.iter().flat_map(ClientFile::gateways).next().is_some()
    }

    /// The command with the files that were named.
    fn command(&self) -> String {
        let files = self.args.files.iter().map(|file| format!("{} ", quoted(&file.to_string_lossy())));
        format!("contextweaver mcp import {}", files.collect::<String>())
    }

    /// Shows the configuration that would be written.
    fn show(&self, out: &mut dyn Write) -> Result<Outcome> {
        let count = self.conversion.servers.len();
        if count == 0 {
            if !self.is_applied() {
                bail!("no server can be imported");
            }
            note("the gateway is in place already, and there is no other server");
            return Ok(Outcome::Ok);
        }
        if self.args.format == Format::Text {
            writeln!(out, "\n# the configuration; --write FILE writes it")?;
            for text in self.addition.text.lines() {
                line(out, text)?;
            }
            out.flush()?;
        }
        if self.conversion.joins() {
            note(&joined(Path::new(chain::CONFIG), count));
        }
        note(&format!("next: {}--apply, which --restore undoes", self.command()));
        Ok(Outcome::Ok)
    }

    /// Says that nothing is written to the configuration at `path`.
    fn nothing_new(&self, path: &Path) -> Result<Outcome> {
        if !(self.adds && self.is_applied()) {
            bail!("no server can be imported; nothing was written");
        }
        note("the gateway is already in place, and there are no other servers; nothing was written");
        let clients = chain::clients(&self.args.files);
        note(&format!("next: contextweaver mcp doctor{}{clients}", chain::flag(path)));
        Ok(Outcome::Ok)
    }

    /// Writes the configuration, and the clients' files with the gateway. What can be wrong is found before anything is
    /// written: nothing is half applied.
    fn put(&self, path: &Path) -> Result<Put> {
        let Addition { text, is_rewritten } = &self.addition;
        let mut writes = Writes::default();
        let copy = if *is_rewritten { Some(writes.add_copy(path)?) } else { None };
        writes.add(path, text.clone(), None)?;
        let applied = match self.args.apply {
            true => planned(self.args, path, text, &self.conversion, &self.files)?,
            false => Vec::new(),
        };
        for change in &applied {
            let permissions = std::fs::metadata(&change.path)?.permissions();
            writes.add(&backup_of(&change.path), change.without.clone(), Some(permissions.clone()))?;
            writes.add(&left_of(&change.path), change.after.clone(), Some(permissions.clone()))?;
            writes.add(&change.path, change.after.clone(), Some(permissions))?;
        }
        writes.write()?;
        Ok(Put { copy, applied })
    }

    /// Says what was written, and what comes next.
    fn say(&self, path: &Path, Put { copy, applied }: &Put, out: &mut dyn Write) -> Result<()> {
        let added = if self.adds { " added" } else { "" };
        note(&format!("{}: {}{added}", path.display(), counted(self.conversion.servers.len(), "server")));
        if let Some(copy) = copy {
            note(&anew(path, copy));
        }
        if self.args.format == Format::Text {
            let mut values = self.conversion.values.clone();
            values.extend(self.conversion.values_of_present().clone());
            if !applied.is_empty() && self.conversion.joins() {
                let servers = Present::of(&self.addition.text, path, BTreeMap::new())?.names().len();
                writeln!(out)?;
                line(out, joined(path, servers))?;
            }
            told(applied, &values, self.home.as_deref(), out)?;
            out.flush()?;
        }
        if self.args.apply {
            note(&format!("restart the client; to undo this: {}--restore", self.command()));
        }
        let found = discover(self.home.as_deref(), &self.folder);
        let is_found = |path: &Path| found.iter().any(|place| canonical(&place.path) == path);
        let named = applied.iter().map(|change| change.path.clone()).filter(|path| !is_found(path));
        let clients = chain::clients(&named.collect::<Vec<_>>());
        note(&format!("next: contextweaver mcp doctor{}{clients}", chain::flag(path)));
        Ok(())
    }
}

/// What is said where one configuration takes the place of servers from several files or projects.
fn joined(config: &Path, servers: usize) -> String {
    format!(
        "with --apply, these clients share {}: each sees all {}, those of the other files and projects too; for one client \
         alone: contextweaver mcp import FILE --write OTHER.yaml --apply",
        config.display(),
        counted(servers, "server")
    )
}

/// What became of a file; nothing where there is none.
fn if_there<T>(outcome: io::Result<T>) -> io::Result<Option<T>> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        outcome => outcome.map(Some),
    }
}

/// What is said of a configuration that was written anew.
pub(super) fn anew(path: &Path, copy: &Path) -> String {
    format!("{} was written anew, without its comments; {} is what it was", path.display(), copy.display())
}

/// Files that are written together: when one cannot be, those before it are as they were.
#[derive(Default)]
pub(super) struct Writes(Vec<Written>);

struct Written {
    path: PathBuf,
    /// What was there, and who might read it.
    before: Option<(Vec<u8>, std::fs::Permissions)>,
    text: String,
    /// Those of what was there, where none are given.
    permissions: Option<std::fs::Permissions>,
}

impl Writes {
    /// A file that takes the place of another is for those who could read that, unless `permissions` are given.
    pub(super) fn add(&mut self, path: &Path, text: String, permissions: Option<std::fs::Permissions>) -> Result<()> {
        let path = behind_links(path).with_context(|| path.display().to_string())?;
        let before = std::fs::read(&path).and_then(|bytes| Ok((bytes, std::fs::metadata(&path)?.permissions())));
        let before = if_there(before).with_context(|| path.display().to_string())?;
        self.0.push(Written { path, before, text, permissions });
        Ok(())
    }

    /// A copy of a file that is about to lose its comments, beside it and beside earlier copies; the name of the copy. One that
    /// is the same already stays the only one.
    pub(super) fn add_copy(&mut self, path: &Path) -> Result<PathBuf> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let mut copy = backup_of(path);
        let mut number = 2;
        loop {
            // An error may be that of a name which is too long, and a further number makes it no shorter.
            let held = if_there(std::fs::read(&copy)).with_context(|| copy.display().to_string())?;
            if held.is_none_or(|held| held == text.as_bytes()) {
                break;
            }
            copy = beside(path, &format!("{BEFORE}-{number}"));
            number += 1;
        }
        if !copy.exists() {
            self.add(&copy, text, Some(std::fs::metadata(path)?.permissions()))?;
        }
        Ok(copy)
    }

    pub(super) fn write(&self) -> Result<()> {
        for (at, written) in self.0.iter().enumerate() {
            let Err(error) = written.put() else { continue };
            for done in self.0.iter().take(at).rev() {
                // There is nothing more to be done about what cannot be taken back.
                let _ = match &done.before {
                    Some((bytes, permissions)) => replace_file_as(&done.path, bytes, permissions).is_ok(),
                    None => std::fs::remove_file(&done.path).is_ok(),
                };
            }
            return Err(error).context("nothing was changed");
        }
        Ok(())
    }
}

impl Written {
    fn put(&self) -> Result<(), WriteError> {
        match &self.permissions {
            Some(permissions) => replace_file_as(&self.path, self.text.as_bytes(), permissions),
            None => replace_file(&self.path, self.text.as_bytes()),
        }
    }
}

/// The servers of the named clients' files, or of those that are found in `folder` and at home.
///
/// # Errors
/// A named file that cannot be read.
pub(in crate::cli) fn servers(named: &[PathBuf], home: Option<&Path>, folder: &Path) -> Result<Conversion> {
    Ok(convert(&read(named, home, folder)?, home))
}

/// Refuses what holds no server at all, not even one that cannot be imported.
pub(in crate::cli) fn refuse_nothing(conversion: &Conversion, named: &[PathBuf]) -> Result<()> {
    if !conversion.servers.is_empty() || !conversion.skipped.is_empty() {
        return Ok(());
    }
    if named.is_empty() {
        bail!(
            "no client's file with servers was found; name one, or add a server yourself: contextweaver mcp add NAME -- COMMAND"
        );
    }
    let files: Vec<String> = named.iter().map(|file| file.display().to_string()).collect();
    bail!(
        "{}: there is no server in it; clients keep them under `mcpServers`, `servers` or the like",
        files.join(", ")
    );
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
/// lose its servers, and what else it keeps there. What is there and no file is refused too.
pub(super) fn refuse_clients_file(
    path: &Path,
    inputs: impl Iterator<Item = PathBuf>,
    home: Option<&Path>,
    folder: &Path,
    flag: &str,
) -> Result<()> {
    if path.metadata().is_ok_and(|about| !about.is_file()) {
        bail!("{} is not a file; name one with {flag}", path.display());
    }
    let target = canonical(path);
    if inputs.map(|input| canonical(&input)).any(|input| input == target) {
        bail!("{} is what the servers are read from; name another file with --write", path.display());
    }
    let is_named_so = [path, &target].iter().any(|path| Place::of(path, home).client.is_some());
    if is_named_so || discover(home, folder).iter().any(|place| canonical(&place.path) == target) {
        bail!("{} is the file of a client; name another file with {flag}", path.display());
    }
    Ok(())
}

/// The path without links; of a file that does not exist yet, its folder's.
fn canonical(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let path = behind_links(&path).unwrap_or(path);
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
pub(super) fn target(server: &Converted) -> String {
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
    // Clients start servers in folders of their own choice.
    let config = std::path::absolute(&args.config).with_context(|| args.config.display().to_string())?;
    let (mut env, mut lacking, mut shown) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
    if config.exists() {
        let values = Values::of_client(&config, client)?;
        env = values.entry(!args.without_values);
        lacking = if args.without_values { values.names() } else { values.missing() };
        shown = values.names().difference(&lacking).cloned().collect();
    } else {
        note(&format!(
            "{} does not exist yet; `mcp import --write {}` or `mcp add` makes one",
            config.display(),
            quoted(&args.config.to_string_lossy())
        ));
    }
    let snippet = snippet(client, &chain::program(), &config, &args.name, &env);
    match args.format {
        Format::Json => print_json(out, "mcp import show-client", &snippet)?,
        Format::Text => {
            writeln!(out, "{}", snippet.text)?;
            note(&format!("put it into {}", snippet.file));
            let joined = |names: BTreeSet<String>| names.into_iter().collect::<Vec<_>>().join(", ");
            if !shown.is_empty() {
                let names = joined(shown);
                note(&format!(
                    "the entry holds values that may be secrets ({names}); --without-values leaves them out"
                ));
            }
            if !lacking.is_empty() {
                let (names, client) = (joined(lacking), client.name());
                note(&format!(
                    "the entry has no value for {names}: write it there under `env`, or set it in the environment that {client} \
                     starts in"
                ));
            }
            if let Some(command) = &snippet.command {
                note(&format!("or run: {command}"));
            }
            note(&match config.exists() {
                true => format!("next: restart the client, or: contextweaver mcp doctor{}", chain::flag(&args.config)),
                false => "next, once the configuration exists: restart the client".to_owned(),
            });
        }
    }
    Ok(Outcome::Ok)
}

/// The name of what lies beside a client's file.
fn beside(path: &Path, what: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(what);
    path.with_file_name(name)
}

/// What ends the name of the file beside another that shows what that was.
const BEFORE: &str = ".before-contextweaver";

/// The file as it would be without the gateway.
fn backup_of(path: &Path) -> PathBuf {
    beside(path, BEFORE)
}

/// The file as it was left with the gateway.
fn left_of(path: &Path) -> PathBuf {
    beside(path, chain::LEFT)
}

/// What lies beside a client's file that has a gateway.
fn found_beside(path: &Path) -> Result<Option<Beside>, ClientFileError> {
    let text = |path: PathBuf| {
        let text = if_there(std::fs::read_to_string(&path));
        text.map_err(|error| ClientFileError { path, reason: error.to_string() })
    };
    let Some(without) = text(backup_of(path))? else { return Ok(None) };
    Ok(Some(Beside { without, with: text(left_of(path))? }))
}

/// The changes that put the gateway of `config`, which will have this `text`, in place of what was imported.
fn planned(
    args: &Args,
    config: &Path,
    text: &str,
    conversion: &Conversion,
    files: &[ClientFile],
) -> Result<Vec<Change>> {
    let config = std::path::absolute(config)?;
    let present = Present::of(text, &config, BTreeMap::new())?;
    let program = chain::program();
    let env = chain::path_for(&present).into_iter().collect();
    let gateway = NewGateway { program: &program, config: &config, name: &args.name, env: &env };
    let beside = |path: &Path| found_beside(&canonical(path));
    let mut changes =
        apply(files, conversion, gateway, &beside).map_err(|error| anyhow::anyhow!("{error}; nothing was written"))?;
    for change in &mut changes {
        // What a link points to changes, and not the link.
        change.path = canonical(&change.path);
        let (mut lacking, mut servers) = (BTreeSet::new(), Vec::new());
        for (server, names) in present.variables_of_upstreams() {
            let missing: BTreeSet<String> = names.difference(&change.given).cloned().collect();
            if !missing.is_empty() {
                servers.push(format!("`{server}`"));
            }
            lacking.extend(missing);
        }
        if !lacking.is_empty() {
            let them = if lacking.len() == 1 { "it" } else { "them" };
            note(&shown(&format!(
                "{} has no value for {}: started from there, {} will not work. Set {} under `env` of the entry `{}` in \
                 that file, or in the environment that the client starts in. (Values are not copied between files.)",
                change.path.display(),
                lacking.into_iter().collect::<Vec<_>>().join(", "),
                servers.join(", "),
                them,
                args.name
            )));
        }
    }
    Ok(changes)
}

/// Says what changed in clients' files, without secrets.
fn told(changes: &[Change], values: &BTreeMap<String, String>, home: Option<&Path>, out: &mut dyn Write) -> Result<()> {
    for Change { path, before, after, .. } in changes {
        writeln!(out)?;
        line(out, format_args!("{}, backup {}:", path.display(), backup_of(path).display()))?;
        let place = Place::of(path, home);
        shown_difference(&place, before, after, values, out)?;
    }
    Ok(())
}

/// The lines of a client's file that go and come, without secrets.
fn shown_difference(
    place: &Place,
    before: &str,
    after: &str,
    values: &BTreeMap<String, String>,
    out: &mut dyn Write,
) -> Result<()> {
    let covered = |text: &str| without_secrets(place, text, values);
    let (Some(before), Some(after)) = (covered(before), covered(after)) else {
        line(out, "  the lines are not shown, since it cannot be told what in them is secret")?;
        return Ok(());
    };
    for text in difference(&before, &after) {
        line(out, format_args!("  {text}"))?;
    }
    Ok(())
}

/// The lines that go and come, with one line of the rest around them.
fn difference(before: &str, after: &str) -> Vec<String> {
    let diff = similar::TextDiff::from_lines(before, after);
    let unified = diff.unified_diff().context_radius(1).to_string();
    unified.lines().filter(|line| !line.starts_with('\\')).map(str::to_owned).collect()
}

/// Puts the servers back in the files that `--apply` changed; what was changed in them since stays.
fn restore(args: &Args, home: Option<&Path>, folder: &Path, out: &mut dyn Write) -> Result<Outcome> {
    let named = !args.files.is_empty();
    let places: Vec<Place> = match named {
        true => args.files.iter().map(|path| Place::of(path, home)).collect(),
        false => discover(home, folder),
    };
    let mut files = Vec::new();
    for place in places {
        let target = canonical(&place.path);
        match found_beside(&target)? {
            // What an earlier run left is no gateway that could be taken back.
            Some(beside) if !named && !args.force && beside.with.is_none() && !has_gateway(&place) => {}
            Some(beside) => files.push((place, target, beside)),
            None if named => {
                bail!("{}: there is no backup {}", place.path.display(), backup_of(&target).display());
            }
            None => {}
        }
    }
    if files.is_empty() {
        let here = chain::applied_in(folder);
        let file = here.first().map_or_else(|| "FILE".to_owned(), |file| quoted(&file.to_string_lossy()));
        bail!(
            "no client's file has a backup of `mcp import --apply`; if you named a file then, name it again: contextweaver mcp \
             import {file} --restore"
        );
    }
    let mut writes = Writes::default();
    let mut reports = Vec::new();
    for (place, target, beside) in files {
        // Whoever has narrowed them since has done so for what comes back too.
        let present = std::fs::metadata(&target).or_else(|_| std::fs::metadata(backup_of(&target)));
        let permissions = present?.permissions();
        let (text, changed, gone) = match args.force {
            true => (beside.without.clone(), None, Vec::new()),
            false => {
                let file = ClientFile::read(place)?;
                let back = restored(&file, &beside).map_err(|ClientFileError { reason, .. }| {
                    let backup = backup_of(&target);
                    let reason = format!("{}: {reason}; {} is what it was", target.display(), backup.display());
                    anyhow::anyhow!("{reason}, and --restore --force puts that in its place")
                })?;
                (back.text, back.changed, back.gone)
            }
        };
        writes.add(&target, text, Some(permissions))?;
        reports.push((target, beside, changed, gone));
    }
    writes.write()?;
    for (target, beside, changed, gone) in &reports {
        // Where the text is not what it was, nothing of what it was is lost.
        let is_same = changed.is_none();
        let left = [Some(left_of(target)), is_same.then(|| backup_of(target))];
        for path in left.into_iter().flatten() {
            if_there(std::fs::remove_file(&path)).with_context(|| path.display().to_string())?;
        }
        let Some((left, now)) = changed else {
            line(out, format_args!("{} is as it was", target.display()))?;
            continue;
        };
        line(out, format_args!("{} has its servers back; what was changed in it since stays:", target.display()))?;
        let place = Place::of(target, home);
        let texts = [&beside.without, left, now].map(|text| ClientFile::of(place.clone(), text.clone()));
        let files: Vec<ClientFile> = texts.into_iter().filter_map(Result::ok).collect();
        let mut values = convert(&files, home).values;
        for (number, gateway) in files.iter().flat_map(ClientFile::gateways).enumerate() {
            // Under names of their own: a value of before is covered as well as that of now.
            let env = gateway.env.into_iter().filter(|(name, _)| name != "PATH");
            values.extend(env.map(|(name, value)| (format!("{name} {number}"), value)));
        }
        shown_difference(&place, left, now, &values, out)?;
        if !gone.is_empty() {
            line(out, format_args!("  gone with the gateway, since no server has them: {}", shown(&gone.join(", "))))?;
        }
        let backup = backup_of(target);
        line(out, format_args!("  {} is what it was, with all comments", backup.display()))?;
    }
    note("restart the client");
    Ok(Outcome::Ok)
}

/// Whether a client's file has a gateway of ours.
fn has_gateway(place: &Place) -> bool {
    ClientFile::read(place.clone()).is_ok_and(|file| !file.gateways().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `mcp import` makes of a file with these options, and what it shows.
    fn imported(file: &Path, more: &[&str]) -> (anyhow::Result<Outcome>, String) {
        let mut words = vec!["contextweaver", "mcp", "import", file.to_str().unwrap()];
        words.extend(more);
        let mut out = Vec::new();
        let outcome = crate::cli::run(words.iter().map(Into::into), &mut out);
        (outcome, String::from_utf8(out).unwrap())
    }

    #[test]
    #[cfg(unix)]
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
        // It leads to a client's file that is not there yet.
        std::os::unix::fs::symlink(folder.join(".mcp.json"), folder.join("new.yaml")).unwrap();
        let check = |path: PathBuf| {
            refuse_clients_file(&path, std::iter::once(input.clone()), Some(home.as_path()), &folder, "--write")
        };
        for (path, reason) in [
            (input.clone(), "are read from"),
            (folder.join("../work/./servers.json"), "are read from"),
            (folder.join("link.yaml"), "are read from"),
            (home.join(".cursor/mcp.json"), "of a client"),
            (kept, "of a client"),
            (folder.join(".mcp.json"), "of a client"),
            (folder.join("new.yaml"), "of a client"),
            (folder.clone(), "is not a file"),
            (PathBuf::from("/dev/null"), "is not a file"),
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
        let run = |more: &[&str]| imported(&file, more);
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
        let mut env = entry["env"].as_object().unwrap().clone();
        // `forge` and `desk` are looked up in it.
        assert!(env.remove("PATH").is_some());
        // Two servers call two values by one name.
        assert_eq!(
            Value::from(env),
            json!({"TOKEN": "s3cret-of-forge", "DESK_T": "s3cret-of-desk", "DESK_TOKEN": "an0ther-s3cret"})
        );
        let written = std::fs::read_to_string(&config).unwrap();
        assert!(!written.contains("s3cret") && written.contains("${env:DESK_TOKEN}"), "{written}");
        // A second time there is nothing to import, and the backup is not lost.
        let again = std::fs::read_to_string(&file).unwrap();
        run(&["--write", config_path, "--apply"]).0.unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), again);
        run(&["--restore"]).0.unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        assert!(run(&["--restore"]).0.unwrap_err().to_string().contains("no backup"));
        // Applied again, with a configuration that is there: what was added since joins it.
        run(&["--write", config_path, "--apply"]).0.unwrap();
        assert_eq!(std::fs::read_to_string(&config).unwrap(), written, "it has both servers already");
        let mut data: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        data["mcpServers"]["new"] = json!({"command": "new", "env": {"TOKEN": "th1rd-s3cret"}});
        data["theme"] = "light".into();
        std::fs::write(&file, data.to_string()).unwrap();
        let (outcome, shown) = run(&["--write", config_path, "--force", "--apply"]);
        outcome.unwrap();
        assert!(!shown.contains("s3cret"), "{shown}");
        let written = std::fs::read_to_string(&config).unwrap();
        for name in ["forge:", "desk:", "new:", "${env:NEW_TOKEN}"] {
            assert!(written.contains(name), "{name}: {written}");
        }
        let applied: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let env = &applied["mcpServers"]["contextweaver"]["env"];
        assert_eq!((&env["TOKEN"], &env["NEW_TOKEN"]), (&json!("s3cret-of-forge"), &json!("th1rd-s3cret")));
        // What a person changed since is neither lost nor hidden when it is taken back.
        let changed = std::fs::read_to_string(&file).unwrap().replace("light", "blue");
        std::fs::write(&file, changed).unwrap();
        let (outcome, shown) = run(&["--restore"]);
        outcome.unwrap();
        assert!(shown.contains("blue") && !shown.contains("s3cret"), "{shown}");
        assert!(!shown.contains("gone with"), "{shown}");
        let back: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let servers: std::collections::BTreeSet<&String> = back["mcpServers"].as_object().unwrap().keys().collect();
        assert_eq!(servers.into_iter().collect::<Vec<_>>(), ["desk", "forge", "new", "off"]);
        assert_eq!(back["theme"], "blue");
        // What cannot be put back as it was is kept.
        assert!(shown.contains(&format!("{} is what it was", backup_of(&file).display())), "{shown}");
        assert!(backup_of(&file).exists() && !left_of(&file).exists());
    }

    #[test]
    #[cfg(unix)]
    fn taking_the_gateway_back_keeps_new_values_and_who_may_read_them() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (file, config) = (folder.path().join("mcp.json"), folder.path().join("gateway.yaml"));
        let text = r#"{"mcpServers": {"forge": {"command": "/bin/forge", "env": {"TOKEN": "old-s3cret"}}}}"#;
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        let run = |more: &[&str]| imported(&file, more);
        let apply = || run(&["--write", config.to_str().unwrap(), "--apply"]).0.unwrap();
        let mode = || std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        let changed = |from: &str, to: &str| {
            let text = std::fs::read_to_string(&file).unwrap();
            assert!(text.contains(from), "{text}");
            std::fs::write(&file, text.replace(from, to)).unwrap();
        };
        apply();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        changed("old-s3cret", "new-s3cret");
        let (outcome, shown) = run(&["--restore"]);
        outcome.unwrap();
        assert!(!shown.contains("s3cret"), "{shown}");
        let back: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!(back["mcpServers"]["forge"]["env"]["TOKEN"], "new-s3cret");
        assert_eq!(mode(), 0o600);
        // A file that is gone gets those of its backup.
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
        std::fs::remove_file(backup_of(&file)).unwrap();
        apply();
        std::fs::remove_file(&file).unwrap();
        run(&["--restore", "--force"]).0.unwrap();
        assert_eq!((mode(), std::fs::read_to_string(&file).unwrap().as_str()), (0o640, text));
    }

    #[test]
    fn a_configuration_without_servers_is_added_to_and_keeps_its_comments() {
        for (before, is_kept) in [
            ("# mine\ntop_k: 5\n", true),
            ("# mine\nupstreams: {}\n", true),
            ("# mine\n", true),
            ("upstreams: # mine\n  old: {command: old}\n", true),
            ("{top_k: 5, # mine\n  upstreams: {}}\n", false),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let (file, config) = (folder.path().join("mcp.json"), folder.path().join("gateway.yaml"));
            std::fs::write(&file, r#"{"mcpServers": {"a": {"command": "/bin/a"}}}"#).unwrap();
            std::fs::write(&config, before).unwrap();
            let words = [
                "contextweaver",
                "mcp",
                "import",
                file.to_str().unwrap(),
                "--write",
                config.to_str().unwrap(),
                "--apply",
            ];
            crate::cli::run(words.iter().map(Into::into), &mut Vec::new()).unwrap();
            let after = std::fs::read_to_string(&config).unwrap();
            assert!(after.contains("command: /bin/a"), "{before}: {after}");
            assert_eq!(after.contains("# mine"), is_kept, "{before}: {after}");
            let backup = std::fs::read_to_string(backup_of(&config)).ok();
            assert_eq!(backup.as_deref(), (!is_kept).then_some(before), "{before}");
        }
    }

    #[test]
    #[cfg(unix)]
    fn a_copy_whose_name_is_too_long_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x".repeat(250));
        std::fs::write(&path, "a: 1\n").unwrap();
        let mut writes = Writes::default();
        assert!(writes.add_copy(&path).is_err());
        // Others are numbered.
        let path = folder.path().join("a.yaml");
        std::fs::write(&path, "a: 1\n").unwrap();
        std::fs::write(backup_of(&path), "another").unwrap();
        assert_eq!(writes.add_copy(&path).unwrap(), beside(&path, &format!("{BEFORE}-2")));
    }

    #[test]
    fn what_cannot_be_applied_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (file, config) = (folder.path().join("mcp.json"), folder.path().join("gateway.yaml"));
        let text =
            r#"{"mcpServers": {"a": {"command": "a"}, "contextweaver": {"command": "another", "disabled": true}}}"#;
        std::fs::write(&file, text).unwrap();
        let words =
            ["contextweaver", "mcp", "import", file.to_str().unwrap(), "--write", config.to_str().unwrap(), "--apply"];
        let error = crate::cli::run(words.iter().map(Into::into), &mut Vec::new()).unwrap_err().to_string();
        assert!(error.contains("the name of another server") && error.contains("nothing was written"), "{error}");
        assert!(!config.exists());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    }
}
