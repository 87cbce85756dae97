//! `mcp capture`: the definitions that a server lists, as a catalog file.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use serde_json::json;

use super::add::header;
use super::{block_on, refuse_existing};
use crate::cli::files::writable_in;
use crate::cli::terminal::line;
use crate::cli::{Outcome, counted};
use contextweaver_core::files::{folder_of, replace_file};
use contextweaver_gateway::{Capture, GatewayConfig, UpstreamConfig};

/// Save the definitions that a server lists as a catalog file
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The file has the definitions byte for byte as the server sent them. `mcp serve --catalog`, `route --catalog` and
`catalog inspect` read it.

Examples:
  contextweaver mcp capture --out git.json -- uvx mcp-server-git --repository .
  contextweaver mcp capture --out docs.json --server docs --url https://example.com/mcp
  contextweaver mcp capture --out docs.json --url https://example.com/mcp --header 'Authorization: Bearer ${env:TOKEN}'")]
pub(in crate::cli) struct Args {
    /// The file to write; its folder is made
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// The name of the server in the file, instead of its own
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    /// The URL of a streamable HTTP server
    #[arg(long, conflicts_with = "command")]
    url: Option<String>,
    /// A header for it; `${env:NAME}` is replaced; may be repeated
    #[arg(long, value_name = "'NAME: VALUE'", requires = "url", value_parser = header)]
    header: Vec<(String, String)>,
    /// The timeout for the server, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0)]
    timeout: f64,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
    /// The command that starts the server, with its arguments
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    refuse_existing(&args.out, args.force)?;
    // The server is not started for a file that has no place.
    let folder = folder_of(&args.out);
    writable_in("--out", folder, args.out.file_name().and_then(|name| name.to_str()))?;
    let timeout = Duration::try_from_secs_f64(args.timeout).map_err(|error| anyhow!("--timeout: {error}"))?;
    let config = upstream(args)?;
    let capture = block_on(async {
        let name = args.server.as_deref().unwrap_or("server");
        let captured = Capture::of(name, config, timeout).await;
        captured.map_err(|fault| anyhow!(fault.in_full()).context("the server did not return its lists"))
    })?;
    let name = args.server.as_deref().or(capture.name()).unwrap_or("server");
    std::fs::create_dir_all(folder)
        .with_context(|| format!("--out: the folder {} cannot be made", folder.display()))?;
    replace_file(&args.out, capture.to_json(name).as_bytes())?;
    let listing = &capture.listing;
    line(
        out,
        format_args!(
            "{}: {}, {}, {}, {} of `{name}`",
            args.out.display(),
            counted(listing.tools.len(), "tool"),
            counted(listing.resources.len(), "resource"),
            counted(listing.templates.len(), "template"),
            counted(listing.prompts.len(), "prompt")
        ),
    )?;
    Ok(Outcome::Ok)
}

/// The server of the command line, checked as one of a configuration file.
fn upstream(args: &Args) -> Result<UpstreamConfig> {
    let mut written = match (&args.url, args.command.split_first()) {
        (Some(url), _) => {
            json!({"url": url, "headers": args.header.iter().cloned().collect::<BTreeMap<_, _>>()})
        }
        (None, Some((command, arguments))) => json!({"command": command, "args": arguments, "inherit_env": "all"}),
        (None, None) => return Err(anyhow!("name a program after `--`, or an address with --url")),
    };
    written["timeout"] = json!(args.timeout);
    let text = json!({"upstreams": {"server": written}}).to_string();
    let config = GatewayConfig::parse(&text, Path::new(""), &|name| std::env::var(name).ok())?;
    config.upstreams.into_values().next().context("no server")
}
