//! `build`: an index and graph on disk, so that `route` starts without building them.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;

use super::files::{Overwrite, begins_as, is_stream, shown, words_about};
use super::source::{CatalogSource, read_config};
use super::{Format, Outcome, counted, print_json};
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
    /// The file to write; `-` is standard output
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
    let index = save(&router)?;
    match is_stream(&args.out) {
        true => out.write_all(&index)?,
        false => replace_file(&args.out, &index)?,
    }
    let mut words = io::stderr();
    let out = words_about(&args.out, out, &mut words);
    let (index, graph) = (router.index(), router.choice_graph()?);
    if args.format == Format::Json {
        let result = serde_json::json!({
            "file": args.out, "items": index.items(), "terms": index.terms(), "postings": index.postings_total(),
            "graph_nodes": graph.len(),
        });
        print_json(out, "build", &result)?;
        return Ok(Outcome::Ok);
    }
    let sizes = [
        (index.items(), "item"),
        (index.terms(), "term"),
        (index.postings_total(), "posting"),
        (graph.len(), "graph node"),
    ];
    let sizes = sizes.map(|(number, what)| counted(number, what)).join(", ");
    writeln!(out, "wrote {}: {sizes}", shown(&args.out, "to standard output"))?;
    Ok(Outcome::Ok)
}
