//! `build`: an index and graph on disk, so that `route` starts without building them.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;

use super::Outcome;
use super::source::{CatalogSource, read_config};
use crate::eval::files::replace_file;
use crate::routing::{Router, save};

/// Build the index and choice graph of a catalog and save them
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  contextweaver build --catalog servers/ --out servers.cwx\n  contextweaver route --catalog servers/ --index servers.cwx \"who is on call\""
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
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let catalog = args.source.load()?;
    let config = read_config(args.config.as_deref())?;
    let router = Router::build(catalog, config)?;
    replace_file(&args.out, &save(&router)?)?;
    let (index, graph) = (router.index(), router.choice_graph()?);
    writeln!(
        out,
        "wrote {}: {} items, {} terms, {} postings, {} graph nodes",
        args.out.display(),
        index.items(),
        index.terms(),
        index.postings_total(),
        graph.len()
    )?;
    Ok(Outcome::Ok)
}
