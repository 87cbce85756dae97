//! `gold draft`: proposals for queries, from what was recorded and from definitions.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::cli::files::{Files, is_stream, read_input};
use crate::cli::ingest::prefix;
use crate::cli::mcp::refuse_existing;
use crate::cli::{counted, note};
use contextweaver_bench::eval::draft::Requests;
use contextweaver_bench::eval::files::replace_private_file;
use contextweaver_bench::report::markup::visible;
use contextweaver_core::catalog::{LoadOptions, load};

/// The arguments of `gold draft`.
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("from").args(["session", "catalog"]).required(true).multiple(true)), after_help = "\
Sessions are conversations of any format that `ingest` knows, session files that it wrote, recorded
sessions, and files of `mcp record`. Secrets, addresses and long numbers are replaced. Every line is marked `\"draft\": true`, and
nothing is measured with a file that holds such a line: make each query what a user would say,
correct the tools, and remove the mark.

Examples:
  contextweaver gold draft --catalog tools.json --out queries.jsonl
  contextweaver gold draft --catalog tools.json --session monday.json --out queries.jsonl")]
pub(in crate::cli) struct DraftArgs {
    /// A session, recorded session or conversation; may be repeated
    #[arg(long, value_name = "FILE")]
    session: Vec<PathBuf>,
    /// Catalog file or folder, whose names the drafts use; tools that no session called get a draft from their definition
    #[arg(long, value_name = "PATH")]
    catalog: Vec<PathBuf>,
    /// Where to write the drafts, readable only by their owner [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long, requires = "out")]
    force: bool,
}

pub(super) fn run(args: &DraftArgs, out: &mut dyn Write) -> Result<()> {
    let files = Files::default().read("--session", &args.session).read("--catalog", &args.catalog);
    files.written("--out", &args.out).check()?;
    let file = args.out.as_deref().filter(|path| !is_stream(path));
    if let Some(path) = file {
        refuse_existing(path, args.force)?;
    }
    let catalog = match args.catalog.as_slice() {
        [] => None,
        paths => Some(load(paths, LoadOptions::default())?.catalog),
    };
    let mut requests = Requests::default();
    for path in &args.session {
        requests.add(&read_input(path)?, &prefix(path)).with_context(|| path.display().to_string())?;
    }
    let found = requests.drafts(catalog.as_ref());
    if !found.unknown.is_empty() {
        let names: Vec<String> = found.unknown.iter().map(|name| visible(name)).collect();
        note(&format!("called, but not in the catalog: {}", names.join(", ")));
    }
    if found.drafts.is_empty() {
        bail!("nothing to draft: no session has a request that led to the call of a known tool; give --catalog too");
    }
    if found.requests == 0 && !args.session.is_empty() {
        let sessions = if args.session.len() == 1 { "the session" } else { "the sessions" };
        note(&format!(
            "no draft is from {sessions}: no request there led to the call of a tool of the catalog; all are from definitions"
        ));
    }
    let text = found.to_jsonl();
    match file {
        None => out.write_all(text.as_bytes())?,
        Some(path) => {
            replace_private_file(path, text.as_bytes())?;
            let drafts = counted(found.drafts.len(), "draft");
            writeln!(out, "{}: {drafts}; read each, correct it, and remove `\"draft\": true`", path.display())?;
        }
    }
    Ok(())
}
