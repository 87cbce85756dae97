//! `build`: an index and graph on disk, so that `route` starts without building them.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;

use super::files::{Overwrite, begins_as};
use super::source::{CatalogSource, read_config};
use super::{Format, Outcome, print_json};
use contextweaver_bench::eval::files::replace_file;
use contextweaver_routing::{INDEX_FILE, Router, save};

/// Build the index and choice graph of a catalog and save them
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  contextweaver build --catalog servers/ --out servers.cwx\n  contextweaver route --catalog servers/ --index servers.cwx \"who is on call\""
)]
pub(super) struct Args {
    #[command(flatten)]
    source: CatalogSource,
    /// Routing configuration (TOML) [default: built in]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The file to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    overwrite: Overwrite,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    args.source.files().read("--config", &args.config).written("--out", [&args.out]).check()?;
    args.overwrite.check(&args.out, "an index", |bytes| begins_as(bytes, INDEX_FILE))?;
    let catalog = args.source.load()?;
    let config = read_config(args.config.as_deref())?;
    let router = Router::build(catalog, config)?;
    replace_file(&args.out, &save(&router)?)?;
    let (index, graph) = (router.index(), router.choice_graph()?);
    if args.format == Format::Json {
        let result = serde_json::json!({
            "file": args.out, "items": index.items(), "terms": index.terms(), "postings": index.postings_total(),
            "graph_nodes": graph.len(),
        });
        print_json(out, "build", &result)?;
        return Ok(Outcome::Ok);
    }
    let sizes = [(index.items(), "items"), (index.terms(), "terms"), (index.postings_total(), "postings")];
    let sizes: Vec<String> = sizes.iter().map(|(number, what)| format!("{number} {what}")).collect();
    writeln!(out, "wrote {}: {}, {} graph nodes", args.out.display(), sizes.join(", "), graph.len())?;
    Ok(Outcome::Ok)
}
