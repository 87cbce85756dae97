//! `mcp add`: one server more in a configuration.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use clap::ValueEnum;
use serde_json::{Map, Value, json};

use super::chain;
use super::import::{Writes, anew, refuse_clients_file, target};
use crate::cli::terminal::{line, shown};
use crate::cli::{Outcome, note};
use contextweaver_gateway::{Addition, Present, new_server, quoted};

/// Add a server to a configuration, which is made if there is none
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The program that starts the server stands behind `--`, with its arguments; a server at a URL needs no `--`. A value that
may be a secret is not written: the file gets `${env:NAME}` in its place, and the command says which variable to set.
`${env:NAME}` and `${file:PATH}` stay as they are. Comments and everything else in the file stay where that is possible;
otherwise it is written anew without comments, beside a copy of what it was. Nothing is started; `mcp doctor` checks that
the server works.

Examples:
  contextweaver mcp add git -- uvx mcp-server-git --repository .
  contextweaver mcp add forge --env 'FORGE_TOKEN=${env:FORGE_TOKEN}' -- npx -y forge-mcp
  contextweaver mcp add docs https://example.com/mcp
  contextweaver mcp add docs https://example.com/mcp --header 'Authorization: Bearer ${env:DOCS_TOKEN}'")]
pub(in crate::cli) struct Args {
    /// The name of the server in the configuration
    name: String,
    /// The address of a server that is reached over HTTP
    #[arg(conflicts_with = "command")]
    url: Option<String>,
    /// A variable for the program; `${env:NAME}` and `${file:PATH}` are replaced when the gateway starts; may be repeated
    #[arg(short, long, value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,
    /// A header for the address; `${env:NAME}` and `${file:PATH}` are replaced when the gateway starts; may be repeated
    #[arg(short = 'H', long, value_name = "NAME: VALUE", value_parser = header)]
    header: Vec<(String, String)>,
    /// The transport [default: stdio for a program, http for an address]
    #[arg(short, long, value_enum)]
    transport: Option<Transport>,
    /// The configuration: JSON if its name ends in .json, otherwise YAML
    #[arg(long, value_name = "FILE", default_value = chain::CONFIG)]
    config: PathBuf,
    /// Replace a server of the same name
    #[arg(long)]
    force: bool,
    /// The program that starts the server, with its arguments
    #[arg(last = true)]
    command: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Transport {
    /// A program, on its standard input and output
    Stdio,
    /// Streamable HTTP
    Http,
    /// The transport before streamable HTTP
    Sse,
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Reads a header, as `curl` takes it or with an equals sign.
pub(super) fn header(text: &str) -> Result<(String, String), String> {
    let divided = text.split_once([':', '=']).map(|(name, value)| (name.trim(), value.trim()));
    let (name, value) = divided.filter(|(name, _)| !name.is_empty()).ok_or("write 'NAME: VALUE'")?;
    Ok((name.to_owned(), value.to_owned()))
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let entry = entry(args)?;
    let (home, folder) = (std::env::home_dir(), std::env::current_dir()?);
    let (name, path) = (&*args.name, &*args.config);
    refuse_clients_file(path, std::iter::empty(), home.as_deref(), &folder, "--config")?;
    let (mut present, mut is_rewritten) = (None, false);
    if path.exists() {
        let mut found = chain::present(path, &[])?;
        if found.has(name) {
            if !args.force {
                bail!(
                    "{}: there is a server `{name}` already; choose another name, or replace it with --force",
                    path.display()
                );
            }
            let without = found.without(name, path)?;
            is_rewritten = without.is_rewritten;
            found = Present::of(&without.text, path, found.values().clone())?;
        }
        present = Some(found);
    }
    let beside = present.clone().unwrap_or_default().for_own_form();
    let conversion = new_server(name, &entry, home.as_deref(), &beside)
        .map_err(|reason| anyhow!("`{}` cannot be added: {reason}", shown(name)))?;
    let addition = match &present {
        Some(present) => conversion.added_to(present, path),
        None => conversion.to_text(path).map(|text| Addition { text, is_rewritten: false }),
    };
    let addition = addition.context("nothing was written, since the result would not be a valid configuration")?;
    is_rewritten |= addition.is_rewritten;
    written(path, addition.text, is_rewritten)?;
    for server in &conversion.servers {
        line(out, format_args!("{}: added `{}`", path.display(), server.name))?;
        line(out, format_args!("  {}", target(server)))?;
        for text in &server.notes {
            line(out, format_args!("  note: {text}"))?;
        }
    }
    if is_relative(&args.command) {
        line(out, "  note: clients start the gateway in a folder of their choice; write the full path of the program")?;
    }
    out.flush()?;
    note(&format!("next: contextweaver mcp doctor{}", chain::flag(path)));
    Ok(Outcome::Ok)
}

/// Writes a configuration; one that loses its comments leaves a copy of what it was.
pub(super) fn written(path: &Path, text: String, is_rewritten: bool) -> Result<()> {
    let mut writes = Writes::default();
    let copy = if is_rewritten { Some(writes.add_copy(path)?) } else { None };
    writes.add(path, text, None)?;
    writes.write()?;
    if let Some(copy) = copy {
        note(&anew(path, &copy));
    }
    Ok(())
}

/// The server in the form that clients have.
fn entry(args: &Args) -> Result<Map<String, Value>> {
    let Args { name, url, env, header, transport, command, .. } = args;
    if name.trim().is_empty() {
        bail!("the name of the server is empty; write one");
    }
    let mut entry = Map::new();
    match (url, command.split_first()) {
        (None, None) => bail!(
            "say how `{name}` is reached: contextweaver mcp add {0} -- PROGRAM ARGUMENTS, or contextweaver mcp add {0} URL",
            quoted(name)
        ),
        (Some(url), _) => {
            if !url.starts_with("http://") && !url.starts_with("https://") && !url.starts_with("${") {
                bail!(
                    "`{url}` is not an address that begins with http:// or https://; a program stands behind `--`: \
                     contextweaver mcp add {} -- {url}",
                    quoted(name)
                );
            }
            if !env.is_empty() {
                bail!("--env is for a program; a server at an address takes --header");
            }
            if *transport == Some(Transport::Stdio) {
                bail!("--transport stdio is for a program, which stands behind `--`; an address takes http or sse");
            }
            if *transport == Some(Transport::Sse) {
                entry.insert("type".to_owned(), "sse".into());
            }
            entry.insert("url".to_owned(), url.as_str().into());
            if !header.is_empty() {
                entry.insert("headers".to_owned(), object(header));
            }
        }
        (None, Some((program, arguments))) => {
            if !header.is_empty() {
                bail!("--header is for a server at an address; a program takes --env");
            }
            if matches!(transport, Some(Transport::Http | Transport::Sse)) {
                bail!("--transport http and sse are for a server at an address; give its URL in place of the program");
            }
            entry.insert("command".to_owned(), program.as_str().into());
            entry.insert("args".to_owned(), json!(arguments));
            if !env.is_empty() {
                entry.insert("env".to_owned(), object(env));
            }
        }
    }
    Ok(entry)
}

fn object(pairs: &[(String, String)]) -> Value {
    pairs.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect::<Map<_, _>>().into()
}

/// Whether the program is named by a path that does not begin at the root.
fn is_relative(command: &[String]) -> bool {
    command
        .first()
        .is_some_and(|program| program.contains(std::path::MAIN_SEPARATOR) && Path::new(program).is_relative())
}
