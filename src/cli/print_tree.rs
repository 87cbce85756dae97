//! `print-tree`: the choice graph as people browse it.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Serialize;

use super::source::{CatalogSource, read_config};
use super::{Format, Outcome, counted, print_json};
use contextweaver_core::files::ReadError;
use contextweaver_routing::{ChoiceGraph, NodeId, NodeKind, Path, Router, load_graph};

/// Show the choice graph for browsing a catalog
#[derive(Debug, clap::Args)]
#[command(
    group(clap::ArgGroup::new("from").required(true).multiple(true)),
    after_help = "Examples:\n  contextweaver print-tree --catalog servers/ --depth 2\n  contextweaver print-tree --graph servers.cwx"
)]
pub(super) struct Args {
    /// Catalog file, or a folder with one file per server; may be repeated
    #[arg(long, value_name = "PATH", group = "from")]
    catalog: Vec<PathBuf>,
    /// Leave out what is malformed, report it, and continue with the rest
    #[arg(long)]
    lenient: bool,
    /// The graph of a file written by `contextweaver build`, instead of a catalog
    #[arg(long, value_name = "FILE", group = "from", conflicts_with_all = ["catalog", "config"])]
    graph: Option<PathBuf>,
    /// Routing configuration (TOML) [default: built in]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Number of levels to show
    #[arg(long, value_name = "N", default_value_t = 3)]
    depth: usize,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Serialize)]
struct Line {
    depth: usize,
    kind: &'static str,
    path: String,
    label: String,
    items: usize,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let graph = match &args.graph {
        Some(path) => {
            let bytes = std::fs::read(path).map_err(ReadError::at(path))?;
            load_graph(bytes).with_context(|| path.display().to_string())?
        }
        None => {
            let source = CatalogSource { catalog: args.catalog.clone(), lenient: args.lenient };
            Router::build(source.load()?, read_config(args.config.as_deref())?)?.choice_graph()?.clone()
        }
    };
    let lines: Vec<Line> =
        graph.walk(NodeId::ROOT, args.depth).map(|(depth, node)| line(&graph, depth, node)).collect();
    match args.format {
        Format::Json => print_json(out, "print-tree", &lines)?,
        Format::Text => {
            for line in &lines {
                let indent = "  ".repeat(line.depth);
                match line.kind {
                    "tool" => writeln!(out, "{indent}{}", line.label)?,
                    // Its label has the number.
                    "root" => writeln!(out, "{indent}{}  {}", line.label, line.path)?,
                    _ => writeln!(out, "{indent}{} ({})  {}", line.label, counted(line.items, "item"), line.path)?,
                }
            }
        }
    }
    Ok(Outcome::Ok)
}

fn line(graph: &ChoiceGraph, depth: usize, id: NodeId) -> Line {
    let node = graph.node(id);
    let kind = match node.kind {
        NodeKind::Root => "root",
        NodeKind::Group => "group",
        NodeKind::Namespace => "namespace",
        NodeKind::Cluster => "cluster",
        NodeKind::Leaf(_) => "tool",
    };
    let path = Path::of(graph, id).as_str().to_owned();
    Line { depth, kind, path, label: node.label.clone(), items: graph.size(id) }
}
